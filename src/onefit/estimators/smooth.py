"""What smooth machines share: parameters, checks, columns, and the way through a fit."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _clone_parametrized, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    validate_data,
)

from onefit.estimators.base import HeldOut, MatrixLike, Prepared
from onefit.estimators.smooth_features import Features, Selection, is_given, resolved, values_with
from onefit.estimators.validation import (
    LARGEST_DEGREE,
    QuickParameters,
    check_sparse,
    features_kept,
    training_data,
)
from onefit.kernels import BLOCK_BYTES, Floats, Kernel
from onefit.memory import ALWAYS, budget_for
from onefit.smooth.design import Design, Rows, quiet, row_values
from onefit.smooth.loss import Loss
from onefit.smooth.newton import Solution, Status, Task, minimise
from onefit.smooth.starts import start_of
from onefit.smooth.systems import UPDATES, bytes_of_system, make_system

# A number whose square is finite.
LARGEST_SQUARED = 1e150

KERNEL_CONSTRAINTS: dict[str, Any] = {
    "kernel": [StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}), callable],
    "degree": [Interval(Integral, 0, LARGEST_DEGREE, closed="both")],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "threshold": [Interval(Real, 0.0, None, closed="left")],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "failures": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}


@dataclass(frozen=True)
class Part:
    """A function to fit: of all rows in regression, or for one class or one pair of classes."""

    rows: Rows  # those that take part
    y: Floats  # of these rows: ±1, or numbers
    c: Floats  # their weights in the objective, positive
    key: tuple[Any, ...] = ()  # of the same function in a fit to other rows


@dataclass
class SmoothModel:
    """Fitted functions, and what they need to predict."""

    thetas: Floats  # of shape (n_parts, 1 + n_columns), intercepts first
    columns: Rows | None  # rows of the training data; None of a linear machine
    kernel: Kernel | None
    solutions: Sequence[Solution]
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass
class PreparedModel(Prepared):
    """A fit of a smooth machine that was done elsewhere."""

    smooth: SmoothModel | None = None  # its columns numbered as the rows given to fit


class SmoothMachine(QuickParameters):
    """Base of SmoothSVC and SmoothSVR."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KERNEL_CONSTRAINTS,
        "C": [Interval(Real, 0.0, None, closed="neither")],
        "beta": [Interval(Real, 0.0, None, closed="neither"), None],
        "reduced": [StrOptions({"random", "incremental"}), None],
        "update": [StrOptions(set(UPDATES))],
        "intercept_scaling": [Interval(Real, 0.0, LARGEST_SQUARED, closed="right")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
    }

    kernel: str | Callable[[Any, Any], Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    def __sklearn_clone__(self) -> Any:
        # Cross-validation hands scikit-learn an estimator whose clones are its folds, one by one.
        folds = vars(self).get("_folds")
        return next(folds) if folds is not None else _clone_parametrized(self)

    # ---- training -------------------------------------------------------------------------------

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Of shape (n_samples, n_samples) with ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Class labels, or numbers in regression.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors on C. A row with a weight of 0 or less takes no part.

        Returns
        -------
        self : object
        """
        prepared = self.__dict__.pop("_prepared", None)
        with features_kept(self):
            data, targets = self._check_training_data(X, y)
            if prepared is not None and prepared.is_for(X, sample_weight):
                if prepared.error is not None:
                    raise prepared.error
                self._keep(data, prepared.smooth)
                self._held_out = prepared.held_out
                return self
            weights = self._check_weights(sample_weight, data)
            self._keep(data, self._fitted(data, targets, weights))
        return self

    @abstractmethod
    def _parts(self, y: NDArray[Any], weights: Floats | None) -> tuple[list[Part], dict[str, Any]]:
        """The functions to fit to these targets, and fitted attributes."""

    @abstractmethod
    def _loss(self) -> Loss:
        """What is summed over the rows."""

    @quiet()
    def _fitted(self, X: Any, y: NDArray[Any], weights: Floats | None) -> SmoothModel:
        parts, attributes = self._parts(y, weights)
        n = _num_samples(X)
        taken = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
        used = X if len(taken) == n else _safe_indexing(X, taken)
        if self.kernel == "precomputed" and len(taken) < n:
            used = used[:, taken]
        kernel = resolved(
            self.kernel, self.gamma, self.coef0, self.degree, used, _some(weights, taken)
        )
        keys, columns = self._columns(used, kernel, self._seed())
        width = used.shape[1] if columns is None else len(columns)
        budget = budget_for(
            self.cache_size, bytes_of_fit(self.update, len(taken), width, columns is not None)
        )
        self._check_size(len(taken), columns, budget)
        features = Features(self.kernel, kernel, used, columns, self.intercept_scaling, budget)
        place = np.empty(n, dtype=np.intp)
        place[taken] = np.arange(len(taken))
        thetas = np.zeros((len(parts), 1 + width))
        earlier = self._earlier(thetas.shape, None if columns is None else taken[columns])
        solutions = []
        shared: Design | None = None
        for number, part in enumerate(parts):
            rows = place[part.rows]
            mine = own_columns(keys, columns, rows) if self.reduced is None else None
            if len(rows) == len(taken):
                design = shared = shared or features.design()
            else:
                design = features.design(rows, mine)
            here = slice(None) if mine is None else np.concatenate([[0], 1 + mine])
            start = None if earlier is None else earlier[number, here]
            square = None
            if columns is not None and self.reduced is None:
                square = np.searchsorted(rows, columns if mine is None else columns[mine])
            solution = self._minimise(design, part, budget, start, square)
            thetas[number, here] = solution.theta
            solutions.append(solution)
        where = None if columns is None else taken[columns]
        return SmoothModel(thetas, where, kernel, solutions, attributes)

    def _minimise(
        self,
        design: Design,
        part: Part,
        budget: int,
        start: Floats | None = None,
        square: Rows | None = None,
    ) -> Solution:
        task = Task(design, self._loss(), part.y, part.c)
        if start is None:
            start = start_of(task, self.update, budget, square)
        system = make_system(self.update, design, budget)
        return minimise(task, system, float(self.tol), int(self.max_iter), start)

    def _seed(self) -> int:
        if self.reduced is None and not is_given(self.kernel):
            return 0  # only whether rows are the same is asked
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    def _selection(self, seed: int) -> Selection:
        return Selection(
            self.reduced,
            self.n_components,
            self.threshold,
            self.batch_size,
            self.failures,
            seed,
            self.cache_size,
        )

    def _columns(
        self, X: Any, kernel: Kernel | None, seed: int
    ) -> tuple[NDArray[np.uint64], Rows | None]:
        """Keys of the rows, and which of them are columns (None: features are)."""
        if self.kernel == "linear" and self.reduced is None:
            return np.empty(0, dtype=np.uint64), None
        selection = self._selection(seed)
        keys = selection.keys(self.kernel, X)
        return keys, selection.choose(keys, self.kernel, kernel, X)

    def _check_size(self, n: int, columns: Rows | None, budget: int) -> None:
        """A full kernel needs its matrix and its Hessian."""
        if columns is None or self.reduced is not None:
            return
        needed = bytes_of_fit(self.update, n, len(columns), True)
        if needed > max(budget, ALWAYS):
            raise MemoryError(
                f"A kernel of {n} rows with all of them needs about {needed / 2**30:.1f} GB, more "
                f"than cache_size={self.cache_size!r} allows ({budget / 2**30:.1f} GB). Use "
                "reduced='random' or reduced='incremental', or a larger cache_size (in MB)."
            )

    def _earlier(self, shape: tuple[int, ...], columns: Rows | None) -> Floats | None:
        """Coefficients of an earlier fit to start from, if they are of the same columns."""
        if not self.warm_start or not hasattr(self, "intercept_"):
            return None
        coef = self.coef_ if columns is None else self.dual_coef_
        intercepts = np.atleast_1d(self.intercept_) / self.intercept_scaling
        earlier = np.column_stack([intercepts, coef])
        same = columns is None or np.array_equal(columns, self.component_indices_)
        return earlier if same and earlier.shape == shape else None

    def _keep(self, X: Any, model: SmoothModel) -> None:
        """Set the fitted attributes."""
        if not np.isfinite(model.thetas).all():
            raise ValueError("The coefficients are not finite. The data need to be preprocessed.")
        for name in ("coef_", "dual_coef_", "component_indices_", "components_", "_held_out"):
            self.__dict__.pop(name, None)
        self._kernel_ = model.kernel
        if model.columns is None:
            self.coef_ = model.thetas[:, 1:]
        else:
            self.dual_coef_ = model.thetas[:, 1:]
            self.component_indices_ = model.columns
            if self.kernel != "precomputed":
                self.components_ = _safe_indexing(X, model.columns)
        self.intercept_ = self.intercept_scaling * model.thetas[:, 0]
        self._n_fit = _num_samples(X)
        self.n_iter_ = np.array([s.n_iter for s in model.solutions], dtype=np.int32)
        for name, value in model.attributes.items():
            setattr(self, name, value)
        _warn_if_unfinished(model.solutions, int(self.max_iter), float(self.tol))

    # ---- checks ---------------------------------------------------------------------------------

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        return training_data(self, X, y)

    def _check_weights(self, sample_weight: Any, X: Any) -> Floats | None:
        if sample_weight is None:
            return None
        weights: Floats = _check_sample_weight(
            sample_weight, np.empty((_num_samples(X), 1)), dtype=np.float64
        )
        if not np.any(weights > 0):
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return weights

    # ---- prediction -----------------------------------------------------------------------------

    @quiet()
    def _values(self, X: MatrixLike) -> Floats:
        """Values of every function."""
        check_is_fitted(self)
        check_sparse(X)
        held_out: HeldOut | None = vars(self).get("_held_out")
        if held_out is not None and held_out.is_for(X):
            return held_out.values
        if not callable(self.kernel):
            X = validate_data(
                self, X, accept_sparse="csr", dtype=np.float64, order="C", reset=False
            )
        if not hasattr(self, "dual_coef_"):
            return row_values(X, np.column_stack([self.intercept_, self.coef_]), 1.0)
        given = self.component_indices_ if self.kernel == "precomputed" else self.components_
        n, size = _num_samples(X), max(1, BLOCK_BYTES // (8 * len(self.component_indices_)))
        values = np.empty((n, len(self.intercept_)))
        thetas = np.column_stack([self.intercept_, self.dual_coef_])
        for first in range(0, n, size):
            part = slice(first, min(first + size, n))
            block = values_with(self.kernel, self._kernel_, _safe_indexing(X, part), given)
            values[part] = row_values(block, thetas, 1.0)
        return values


def bytes_of_fit(update: str, n: int, width: int, is_kernel: bool) -> int:
    """What a fit has in memory beside X: kernel values, and a system with its factor."""
    return (8 * n * width if is_kernel else 0) + bytes_of_system(update, n, 1 + width)


def own_columns(keys: NDArray[np.uint64], columns: Rows | None, rows: Rows) -> Rows | None:
    """Positions of the columns that are among these rows, or equal to one of them."""
    if columns is None:
        return None
    return np.flatnonzero(np.isin(keys[columns], keys[rows]))


def _some(weights: Floats | None, rows: Rows) -> Floats | None:
    return None if weights is None else weights[rows]


def _warn_if_unfinished(solutions: Sequence[Solution], max_iter: int, tol: float) -> None:
    found = {solution.status: solution for solution in solutions}
    if Status.MAX_ITER in found:
        warnings.warn(
            f"Newton's method ended early (max_iter={max_iter}). Consider pre-processing your "
            "data with StandardScaler or MinMaxScaler, or increase max_iter.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if Status.STALLED in found:
        norm = found[Status.STALLED].gradient_norm
        warnings.warn(
            f"Newton's method stopped at a gradient of {norm:.3g}: tol={tol:g} is below what "
            "rounding allows on these data. Consider pre-processing your data with "
            "StandardScaler or MinMaxScaler, or increase tol.",
            ConvergenceWarning,
            stacklevel=4,
        )


def in_turn(machine: Any, fits: Iterator[PreparedModel]) -> Any:
    """An estimator whose clones are the folds, one by one: ``fit`` takes their fits over."""

    def folds() -> Iterator[Any]:
        for prepared in fits:
            fold = _clone_parametrized(machine)
            fold._prepared = prepared
            yield fold

    estimator = _clone_parametrized(machine)
    estimator._folds = folds()
    return estimator
