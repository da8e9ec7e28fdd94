"""Left-out rows without the shortcuts that are measured: what predictions are compared with.

A row is predicted by the fit to all others, solved to ``TIGHT``. No rule settles a row and no proof
ends a solve. Up to ``ALL_COLD`` rows every left-out problem starts from nothing. Of larger data
sets all are solved to ``FIRST``, from the fit on all rows, and from nothing to ``TIGHT`` where the
prediction would be another one if decision values below ``UNSURE`` had the other sign. That is ten
thousand times the first tolerance.

That is onefit's solver. The rows nearest to the boundary are fitted by scikit-learn, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from onefit.loo.answers import exact_result
from onefit.loo.checks import NOT_SUPPORT, SOLVER
from onefit.loo.exact import LeaveOneOutFit
from onefit.loo.left_out import Proofs, Rules
from onefit.loo.result import LooResult

from .machines.base import FloatArray, IntArray

TIGHT = 1e-9
ALL_COLD = 600
FIRST = 1e-6
UNSURE = 0.01
# Fits of scikit-learn to ``TIGHT``: so many rows, as long as they take no more seconds.
NEAREST = 10
NEAREST_SECONDS = 20.0


class WithoutRules(LeaveOneOutFit):
    """All rows by the solver, or those of ``chosen`` alone."""

    chosen: NDArray[np.bool_] | None = None

    def rules(self, *, signs_suffice: bool) -> Rules:
        asked = np.ones(self.n, dtype=bool) if self.chosen is None else self.chosen
        of_problems = (asked[self.whole.order[problem.rows]] for problem in self.whole.problems)
        return [np.where(rows, SOLVER, NOT_SUPPORT).astype(np.int8) for rows in of_problems]


class WithChecks(LeaveOneOutFit):
    """Rows by what the fit on all rows proves of their sides, and else by the solver."""

    def rules(self, *, signs_suffice: bool) -> Rules:
        return super().rules(signs_suffice=True)


def with_checks_alone(estimator: Any, X: Any, y: Any) -> LooResult:
    """Leave one out with all checks of the fit on all rows and without a certified stop."""
    fit = WithChecks(estimator, X, y, None, "auto", None, False)
    return exact_result(fit, Proofs.NONE)


@dataclass(frozen=True)
class Refits:
    """The predictions of n fits, and by how much each is decided."""

    predictions: NDArray[Any]
    nearest: FloatArray  # smallest size of a decision value
    cold: int  # rows solved from nothing to TIGHT
    refitted: IntArray  # rows that scikit-learn has fitted
    refitted_predictions: NDArray[Any]

    def differ(self, predictions: NDArray[Any], rows: IntArray | None = None) -> NDArray[np.bool_]:
        """Return which predictions (of some rows) are others."""
        expected = self.predictions if rows is None else self.predictions[rows]
        return np.asarray(predictions != expected)

    @property
    def refits_differ(self) -> int:
        return int(self.differ(self.refitted_predictions, self.refitted).sum())


def refits(estimator: Any, theirs: Any, X: Any, y: NDArray[Any]) -> Refits:
    """Predict every row by a fit without it; the estimators are onefit's and scikit-learn's."""
    ours = clone(estimator).set_params(decision_function_shape="ovo")
    everything = len(y) <= ALL_COLD
    result = _solved(ours, X, y, TIGHT if everything else FIRST, "none" if everything else "auto")
    predictions, nearest = result.predictions.copy(), _smallest(result.decision_values)
    cold = len(y)
    if not everything:
        unsure = may_change(result.decision_values, UNSURE)
        cold = int(unsure.sum())
        if cold:
            again = _solved(ours, X, y, TIGHT, "none", unsure)
            predictions[unsure] = again.predictions[unsure]
            nearest[unsure] = _smallest(again.decision_values)[unsure]
    rows, refitted = _nearest(theirs, X, y, result.decision_values)
    return Refits(predictions, nearest, cold, rows, refitted)


def _solved(
    estimator: Any,
    X: Any,
    y: Any,
    tol: float,
    seeding: str,
    chosen: NDArray[np.bool_] | None = None,
) -> LooResult:
    fit = WithoutRules(estimator.set_params(tol=tol), X, y, None, seeding, None, False)
    fit.chosen = chosen
    return exact_result(fit, Proofs.NONE)


def _nearest(
    estimator: Any, X: Any, y: NDArray[Any], values: FloatArray
) -> tuple[IntArray, NDArray[Any]]:
    """Return the rows nearest to the boundary, and what scikit-learn says of them."""
    end = perf_counter() + NEAREST_SECONDS
    rows, found = [], []
    for row in np.lexsort((_smallest(values), ~may_change(values, UNSURE)))[:NEAREST]:
        rows.append(row)
        found.append(predict_left_out(clone(estimator).set_params(tol=TIGHT), X, y, row))
        if perf_counter() > end:
            break
    return np.array(rows, dtype=np.int64), np.array(found)


def predict_left_out(estimator: Any, X: Any, y: NDArray[Any], row: int) -> Any:
    """Fit without a row and predict it."""
    others = np.delete(np.arange(len(y)), row)
    return estimator.fit(X[others], y[others]).predict(X[[row]])[0]


def may_change(values: FloatArray, unsure: float) -> NDArray[np.bool_]:
    """Return which rows could be predicted otherwise if values below ``unsure`` changed their sign.

    With votes of pairs: the winner may lose all pairs that it wins by so little, and any other
    class win all that it loses by so little.
    """
    if values.ndim == 1:
        return np.asarray(np.abs(values) < unsure)
    n, n_pairs = values.shape
    n_classes = round((1 + np.sqrt(1 + 8 * n_pairs)) / 2)
    least, most = np.zeros((n, n_classes)), np.zeros((n, n_classes))
    for value, (i, j) in zip(values.T, combinations(range(n_classes), 2), strict=True):
        for k, own in ((i, value), (j, -value)):
            least[:, k] += own >= unsure
            most[:, k] += own > -unsure
    rows = np.arange(n)
    winner = least.argmax(axis=1)
    surely = least[rows, winner]
    most[rows, winner] = -1
    return np.asarray(surely <= most.max(axis=1))


def _smallest(values: FloatArray) -> FloatArray:
    return np.asarray(np.abs(values).reshape(len(values), -1).min(axis=1))
