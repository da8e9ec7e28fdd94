"""What a leave-one-out says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score

from onefit.kernels import Floats
from onefit.loo.checks import DecidedBy
from onefit.loo.ledger import LooLedger
from onefit.loo.picture import draw

# What does not settle a row.
UNRELIABLE = [DecidedBy.DOUBTFUL, DecidedBy.UNDECIDED, DecidedBy.FAILED]


@dataclass(frozen=True)
class OwnValues:
    """One value a row: of the function; of more than two classes the smallest of those pairs that
    the row's own class is in, positive on its side."""

    left_out: Floats  # what a solver had got to; NaN where there was none
    full: Floats


@dataclass(frozen=True)
class LooResult:
    """The predictions of every row by a fit to all others, and how they were found.

    Attributes
    ----------
    y : ndarray of shape (n_rows,)
        The targets.
    predictions : ndarray of shape (n_rows,)
        Of each row by a fit without it. None (NaN in regression) where there is no such fit, for
        lack of a second class for example; with ``method="bound"`` what could be at worst.
    decision_values : ndarray of shape (n_rows,), (n_rows, n_classes) or (n_rows, n_pairs)
        Decision values of the left-out rows, as the estimator's ``decision_function`` gives them;
        in regression the predictions. NaN where the sign was proven and no value was needed:
        ``certify=False`` computes them all, to about 1e-7 (:func:`onefit.leave_one_out`); else
        those of a classifier are right up to ``tol``. With ``method="approximate"`` they are
        estimates.
    full_values : ndarray
        The same of the fit on all rows.
    influence : ndarray of shape (n_rows,)
        How far leaving a row out moves its own value; with more than two classes the smallest value
        of the pairs of its class. Of rows with a certificate an estimate, from where their solver
        ended; NaN where the fit on all rows has proven a sign.
    decided_by : ndarray of shape (n_rows,)
        What settled each row, a :class:`DecidedBy`. With more than two classes the weakest of what
        settled its pairs.
    n_iter : ndarray of shape (n_rows,)
        Iterations of the solver for each row; the fit on all rows is in the ``ledger``.
    reliable : ndarray of shape (n_rows,)
        Rows whose prediction can be relied on: settled exactly, or estimated and not in doubt. An
        estimate of a class is in doubt where it could have the other sign, one of a number where it
        may be off by a quarter of the typical error. :meth:`refine` settles these rows. The flag of
        an estimate is a rule, not a proof: of 1,763 wrong estimates in 600 drawn problems it
        missed 3, and 22 more with ``gamma="scale"`` or ``class_weight="balanced"``.
    exact : bool
        Whether these are the predictions of a fit for every row; not with ``method="approximate"``
        or ``method="bound"``, nor where a solver had to stop early.
    classifies : bool
    ledger : LooLedger
        What was paid, by what settled the rows.
    """

    y: NDArray[Any]
    predictions: NDArray[Any]
    decision_values: Floats
    full_values: Floats
    decided_by: NDArray[Any]
    n_iter: NDArray[np.int64]
    exact: bool
    classifies: bool
    ledger: LooLedger
    own_values: OwnValues
    # Settles the rows that are in doubt. It has the fit and its kernel rows, and stays here when
    # the result is copied or pickled.
    refiner: Callable[[], LooResult] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "refiner": None}

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """Rows that have a prediction."""
        return np.asarray(self.decided_by != DecidedBy.FAILED)

    @property
    def influence(self) -> Floats:
        return np.abs(self.own_values.full - self.own_values.left_out)

    @property
    def reliable(self) -> NDArray[np.bool_]:
        return ~np.isin(self.decided_by.astype(str), UNRELIABLE)

    def refine(self) -> LooResult:
        """Settle the rows whose estimates are in doubt with exact leave-one-out.

        Returns
        -------
        result : LooResult
            The same estimates for the rows that were ``reliable``, and exact values for the others.
            It is ``exact`` if nothing is left that was estimated.
        """
        n_doubtful = int((self.decided_by == DecidedBy.DOUBTFUL).sum())
        if n_doubtful == 0:
            if DecidedBy.UNDECIDED in self.counts():
                raise ValueError(
                    "refine() settles the estimates of method='approximate'; a bound has none. Use "
                    "method='exact' for its undecided rows."
                )
            return self
        if self.refiner is None:
            raise ValueError(
                f"{n_doubtful} rows are in doubt, and this result cannot settle them: it is a copy "
                "without the fit. Call refine() on what leave_one_out returned."
            )
        return self.refiner()

    # ---- errors and scores ----------------------------------------------------------------------

    @property
    def losses(self) -> Floats:
        """Of every row that has a prediction: 1 for a wrong class, the squared residual."""
        y, predictions = self.y[self.predicted], self.predictions[self.predicted]
        if self.classifies:
            return np.asarray(y != predictions, dtype=np.float64)
        return np.asarray((y - predictions.astype(np.float64)) ** 2)

    @property
    def error(self) -> float:
        """The error rate, or the mean squared error; with ``method="bound"`` no less than it."""
        return float(self.losses.mean())

    @property
    def standard_error(self) -> float:
        """Of the error, as the mean of so many losses."""
        return float(self.losses.std() / np.sqrt(len(self.losses)))

    @property
    def residuals(self) -> Floats:
        """Targets less predictions; of regression."""
        self._need_regression("residuals")
        return np.asarray(self.y - self.predictions)

    @property
    def r2(self) -> float:
        """R² of all left-out predictions together; of regression."""
        self._need_regression("r2")
        return self.pooled_score(r2_score)

    def mean_of_row_scores(self, metric: Callable[[Any, Any], float] | None = None) -> float:
        """A metric computed for each row alone, and averaged.

        That is ``cross_val_score(cv=LeaveOneOut()).mean()``. Metrics that need several rows (R²,
        F1, ROC AUC) say nothing of one; see :meth:`pooled_score`.

        Parameters
        ----------
        metric : callable, default=None
            A function of true and predicted targets; by default accuracy or mean squared error.
        """
        metric = metric or self._own_metric
        y, predictions = self._pairs()
        rows = range(len(y))
        return float(np.mean([metric(y[k : k + 1], predictions[k : k + 1]) for k in rows]))

    def pooled_score(self, metric: Callable[[Any, Any], float] | None = None) -> float:
        """A metric computed once, of the left-out predictions of all rows together.

        Parameters
        ----------
        metric : callable, default=None
            A function of true and predicted targets; by default accuracy or mean squared error.
        """
        return float((metric or self._own_metric)(*self._pairs()))

    @property
    def _own_metric(self) -> Callable[[Any, Any], float]:
        metric: Callable[[Any, Any], float]
        metric = accuracy_score if self.classifies else mean_squared_error
        return metric

    def _pairs(self) -> tuple[NDArray[Any], NDArray[Any]]:
        y, predictions = self.y[self.predicted], self.predictions[self.predicted]
        return y, predictions.astype(y.dtype) if self.classifies else predictions

    def _need_regression(self, name: str) -> None:
        if self.classifies:
            raise AttributeError(f"{name} is of a regression; this is of a classifier")

    # ---- for people -----------------------------------------------------------------------------

    def counts(self) -> dict[DecidedBy, int]:
        """How many rows each rule settled."""
        return {rule: int((self.decided_by == rule).sum()) for rule in self.ledger.rules}

    def summary(self) -> str:
        """The error and what it took, as text."""
        name = "error rate" if self.classifies else "mean squared error"
        lines = [
            f"Leave-one-out of {len(self.y):,} rows ({self._kind()})",
            f"{name} {self.error:.4g} ± {self.standard_error:.2g}",
        ]
        if not self.classifies and len(self.y) > 1:
            lines.append(f"R² of all predictions {self.r2:.4g}")
        doubtful = self.counts().get(DecidedBy.DOUBTFUL, 0)
        if doubtful:
            lines.append(f"in doubt: {doubtful:,} rows, which refine() settles")
        missing = len(self.y) - int(self.predicted.sum())
        if missing:
            lines.append(f"without a prediction: {missing:,} rows")
        return "\n".join([*lines, "", str(self.ledger)])

    def _kind(self) -> str:
        if self.exact:
            return "exact"
        counts = self.counts()
        if DecidedBy.UNDECIDED in counts:
            return "upper bound"
        estimated = any(kind in counts for kind in (DecidedBy.ESTIMATE, DecidedBy.DOUBTFUL))
        return "estimate" if estimated else "not converged"

    def plot(self, ax: Any = None) -> Any:
        """Left-out values against those of the fit on all rows, coloured by what settled them.

        A row far from the diagonal is one that the model leans on; those that move furthest are
        numbered. Values of classifiers are positive on the side of the row's own class, so that
        rows below 0 are misclassified when left out. Rows whose ``influence`` is not known (their
        side was proven without a value) are not drawn. Estimates that are in doubt are crosses.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ax : matplotlib.axes.Axes
        """
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError(
                "LooResult.plot() needs matplotlib: pip install 'onefit[plot]'"
            ) from error
        if ax is None:
            _, ax = pyplot.subplots()
        draw(self, ax)
        return ax

    def __str__(self) -> str:
        return self.summary()
