"""What all kernel machines share: parameters, checks, the kernel and its values at new points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import _clone_parametrized, _fit_context
from sklearn.utils import (
    _safe_indexing,
    check_array,
)
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from onefit import _core
from onefit.estimators.callbacks import CallbackSupportMixin, FitTask
from onefit.estimators.validation import (
    LARGEST_DEGREE,
    MOST_ITERATIONS,
    MOST_THREADS,
    QuickParameters,
    check_sparse,
    features_kept,
    same_rows,
    training_data,
)
from onefit.kernels import (
    BLOCK_BYTES,
    NOT_FINITE,
    Floats,
    Kernel,
    Matrix,
    function_store,
    kernel_values,
    make_store,
    resolve_gamma,
)
from onefit.memory import budget_bytes, keeps_matrix
from onefit.problem import Problem
from onefit.solver import Settings, solve, warn_if_unfinished

MatrixLike: TypeAlias = Any  # an array-like or a sparse matrix of two dimensions


@dataclass
class Training:
    """Problems to solve, whose variables are rows of the training data in a new order."""

    problems: list[Problem]
    order: NDArray[np.intp]  # the rows that take part
    starts: list[int]  # where each class of them starts, and the end; one class in regression
    bounds: Floats  # of each of them


@dataclass
class Part:
    """A training of some rows as part of a whole: its problems with other bounds."""

    training: Training  # its problems are those of the whole
    bounds: Floats  # of each row of the whole, in its order; 0 where it takes no part
    problems: Sequence[int]  # which problems of the whole are there


@dataclass
class Model:
    """What the solved problems say."""

    coef: Floats  # of every row of the training, of shape (n_classes - 1, n_rows); (1, n_rows)
    intercept: Floats
    attributes: dict[str, Any]  # other fitted attributes
    factor: float = 1.0  # of the coefficients over those of the solution, where there is but one


@dataclass
class HeldOut:
    """What a fitted fold says of its test rows, known without evaluating a kernel."""

    given: Any  # all rows
    test: NDArray[np.intp]
    values: Floats  # of each pair; of the function in regression

    def is_for(self, X: Any) -> bool:
        """Whether these are the test rows."""
        if type(X) is not type(self.given) or _num_samples(X) != len(self.test):
            return False
        if getattr(X, "shape", ())[1:] != getattr(self.given, "shape", ())[1:]:
            return False
        return same_rows(X, _safe_indexing(self.given, self.test))


@dataclass
class Prepared:
    """A fit that was done elsewhere, on these rows and weights; or the error that it ended with."""

    train: NDArray[np.intp]
    sample_weight: Floats | None
    kernel: Kernel | None = None
    training: Training | None = None  # numbered as in all rows
    solutions: Sequence[_core.Solution] = ()
    model: Model | None = None
    held_out: HeldOut | None = None
    error: Exception | None = None

    def is_for(self, X: Any, sample_weight: Any) -> bool:
        if _num_samples(X) != len(self.train):
            return False
        if sample_weight is None or self.sample_weight is None:
            return sample_weight is None and self.sample_weight is None
        return np.array_equal(sample_weight, self.sample_weight)

    def training_of_rows(self) -> Training:
        """The training, numbered as in the rows that are given to fit."""
        assert self.training is not None
        order = self.training.order
        number = np.full(max(order.max(), self.train.max()) + 1, -1, dtype=np.intp)
        number[self.train] = np.arange(len(self.train))
        return replace(self.training, order=number[order])


class KernelMachine(CallbackSupportMixin, QuickParameters):  # type: ignore[misc]
    """Base of the estimators: the way through a fit, which is the same for all.

    Data are checked and become problems; the problems are solved on one store of kernel rows; the
    solutions become a model.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [
            StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}),
            callable,
        ],
        "degree": [Interval(Integral, 0, LARGEST_DEGREE, closed="both")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, MOST_ITERATIONS, closed="both")],
        "n_jobs": [Interval(Integral, None, MOST_THREADS, closed="right"), None],
    }

    kernel: str | Callable[[Any, Any], Any]
    gamma: str | float
    _folds: Iterator[KernelMachine]
    _fold: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

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
            A weight of 2 is the same as the row twice. A row with a weight of 0 or less takes no
            part.

        Returns
        -------
        self : object
        """
        prepared = self.__dict__.pop("_prepared", None)
        with features_kept(self):
            if prepared is not None and prepared.is_for(X, sample_weight):
                return self._take(prepared, X, y)
            return self._fit(X, y, sample_weight)

    def _fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        task = FitTask(self, X, y, sample_weight)
        X, targets = self._check_training_data(X, y)
        training = self._training(targets, self._check_weights(sample_weight, X))
        settings = self._settings()
        kernel = self._resolve_kernel(X)
        # Two classes need all columns of a row; a pair of more needs those of its two classes.
        starts = training.starts
        store = self._store(X, kernel, training.order, starts[:-1] if len(starts) > 3 else (0,))
        # A fold of a pipeline knows where to start.
        fold = self.__dict__.pop("_fold", None)
        if fold is not None:
            solutions = fold.solve(store, training, settings, task.advance)
        else:
            solutions = solve(
                store, training.problems, settings, forget=True, progress=task.advance
            )

        model = self._model(training, solutions)
        converged = warn_if_unfinished(solutions, settings)
        # What prediction reads is set only now: a fit that was stopped keeps an earlier one whole.
        self._keep(X, kernel, training, model, converged)
        task.end()
        return self

    def _take(self, prepared: Prepared, X: MatrixLike, y: ArrayLike) -> Self:
        """Becomes the model that was fitted elsewhere to these data."""
        if prepared.error is not None:
            raise prepared.error
        X, _ = self._check_training_data(X, y)
        assert prepared.model is not None
        converged = warn_if_unfinished(prepared.solutions, self._settings())
        self._keep(X, prepared.kernel, prepared.training_of_rows(), prepared.model, converged)
        self._held_out = prepared.held_out
        return self

    def _keep(
        self, X: Any, kernel: Kernel | None, training: Training, model: Model, converged: bool
    ) -> None:
        if not (np.isfinite(model.coef).all() and np.isfinite(model.intercept).all()):
            raise ValueError(NOT_FINITE)
        self.fit_status_ = 0 if converged else 1
        self._keep_kernel(X, kernel)
        self._keep_support(X, training, model)
        for name, value in model.attributes.items():
            setattr(self, name, value)
        self.__dict__.pop("_held_out", None)

    def __copy__(self) -> Self:
        # scikit-learn's way, by the state that is pickled, takes longer than folds of a few rows.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        return other

    def __sklearn_clone__(self) -> Any:
        # Cross-validation hands scikit-learn an estimator whose clones are its folds, one by one.
        folds = vars(self).get("_folds")
        return next(folds) if folds is not None else _clone_parametrized(self)

    @abstractmethod
    def _training(
        self, y: NDArray[Any], weights: Floats | None, *, every_row: bool = False
    ) -> Training:
        """The problems of these targets, checked before any kernel value is computed.

        Rows without weight take no part. With ``every_row`` they are variables all the same.
        """

    @abstractmethod
    def _part(
        self, whole: Training, y: NDArray[Any], weights: Floats | None, train: NDArray[np.intp]
    ) -> Part:
        """The training of some rows, as part of that of every row."""

    @abstractmethod
    def _model(self, training: Training, solutions: list[_core.Solution]) -> Model:
        """The model that the solutions make up."""

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        return training_data(self, X, y)

    def _check_weights(self, sample_weight: Any, X: Any) -> Floats | None:
        """Weights as an array, or None; rows with a weight of 0 or less take no part."""
        if sample_weight is None:
            return None
        if isinstance(sample_weight, Real):
            raise ValueError(
                f"sample_weight must be of shape ({_num_samples(X)},); "
                f"got the scalar {sample_weight!r}."
            )
        weights: Floats = check_array(
            sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
        )
        if weights.ndim != 1 or weights.shape[0] != _num_samples(X):
            raise ValueError(
                "sample_weight and X have incompatible shapes: "
                f"{weights.shape} vs {_num_samples(X)} rows; sample_weight must be of shape "
                f"({_num_samples(X)},)."
            )
        if not np.any(weights > 0):
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return weights

    def _settings(self, n_jobs: int | None = None) -> Settings:
        """How to solve, on so many threads; on the machine's own number of them if it is None."""
        return Settings(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            shrinking=bool(self.shrinking),
            threads=min(effective_n_jobs(n_jobs or self.n_jobs), MOST_THREADS),
        )

    def _resolve_kernel(self, X: Any) -> Kernel | None:
        """The kernel function with its numbers, or None for a matrix of given values."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return None
        gamma = resolve_gamma(self.gamma, X)
        return Kernel(self.kernel, gamma, float(self.coef0), int(self.degree))

    def _store(
        self,
        X: Any,
        kernel: Kernel | None,
        order: NDArray[np.intp],
        block_starts: Sequence[int] = (0,),
    ) -> _core.KernelStore:
        """The kernel rows of X in a new order."""
        budget = budget_bytes(self.cache_size, len(order))
        if callable(self.kernel):
            if not keeps_matrix(self.cache_size, _num_samples(X)):
                X = (
                    X
                    if np.array_equal(order, np.arange(_num_samples(X)))
                    else _safe_indexing(X, order)
                )
                return function_store(self._call_kernel, X, budget, block_starts)
            X = self._call_kernel(X, X)
        return make_store(X, kernel, budget, rows=order, block_starts=block_starts)

    def _keep_kernel(self, X: Any, kernel: Kernel | None) -> None:
        """Set what prediction needs of the kernel and of X."""
        self._kernel_ = kernel
        self._gamma = 0.0 if kernel is None else kernel.gamma
        self._X_fit = X if callable(self.kernel) else None
        self._sparse = sp.issparse(X) and not callable(self.kernel)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (len(X),)

    def _call_kernel(self, X: Any, X_fit: Any) -> Floats:
        """Values of the user's function, checked."""
        values = self.kernel(X, X_fit)  # type: ignore[operator]
        values = np.asarray(densify(values), dtype=np.float64, order="C")
        expected = (_num_samples(X), _num_samples(X_fit))
        if values.shape != expected:
            raise ValueError(
                f"The kernel function returned an array of shape {values.shape}; "
                f"expected {expected}: a value for each row of X and each training row."
            )
        if not np.isfinite(values).all():
            raise ValueError(
                "The kernel function returned values that are not finite (NaN or infinity)."
            )
        return values

    def _keep_support(self, X: Any, training: Training, model: Model) -> None:
        """Set the support vectors, their coefficients and the intercepts."""
        support = np.flatnonzero(np.any(model.coef != 0, axis=0))
        self.support_ = training.order[support].astype(np.int32)
        if self._kernel_ is None:
            self.support_vectors_ = np.empty((0, 0))
        else:
            vectors = X[self.support_]
            self.support_vectors_ = sparse_class()(vectors) if self._sparse else vectors
        self._n_support = np.diff(np.searchsorted(support, training.starts)).astype(np.int32)
        dual_coef = model.coef[:, support]
        self.dual_coef_ = as_sparse(dual_coef) if self._sparse else dual_coef
        self.intercept_ = model.intercept

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class; of all in regression."""
        check_is_fitted(self)
        return self._n_support

    @property
    def coef_(self) -> Any:
        """Weights of the features; only with a linear kernel."""
        if self.kernel != "linear":
            raise AttributeError("coef_ is only available when using a linear kernel")
        check_is_fitted(self)
        coef = self._feature_weights()
        (coef.data if self._sparse else coef).flags.writeable = False
        return coef

    @abstractmethod
    def _feature_weights(self) -> Matrix:
        """The rows of ``coef_``."""

    # ---- prediction -----------------------------------------------------------------------------

    def _known_values(self, X: Any) -> Floats | None:
        """What is known of the rows that a fold held out, if these are they."""
        check_sparse(X)
        held_out: HeldOut | None = vars(self).get("_held_out")
        if held_out is None or not len(held_out.values) or not held_out.is_for(X):
            return None  # no rows are an error, as ever
        return held_out.values

    def _check_query(self, X: Any) -> Any:
        check_is_fitted(self)
        if callable(self.kernel):
            return X
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            accept_large_sparse=False,
            reset=False,
        )
        if self._sparse and not sp.issparse(X):
            X = sp.csr_array(X)
        if sp.issparse(X) and not self._sparse:
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data"
            )
        if self.kernel == "precomputed" and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, "
                "the number of samples at training time"
            )
        return X

    def _kernel_blocks(self, X: Any) -> Iterator[tuple[slice, Floats]]:
        """Kernel values of all rows of X with the support vectors, block by block."""
        if self._kernel_ is not None:
            yield from kernel_values(X, self.support_vectors_, self._kernel_)
            return
        if not callable(self.kernel):
            yield slice(0, X.shape[0]), X[:, self.support_]
            return
        n, n_fit = _num_samples(X), _num_samples(self._X_fit)
        size = max(1, BLOCK_BYTES // (8 * n_fit))
        for first in range(0, max(n, 1), size):
            block = slice(first, min(first + size, n))
            rows = X if size >= n else _safe_indexing(X, np.arange(block.start, block.stop))
            yield block, self._call_kernel(rows, self._X_fit)[:, self.support_]


def as_sparse(values: Floats) -> Matrix:
    """A CSR matrix that stores every entry, zeros too."""
    rows, cols = values.shape
    indices = np.tile(np.arange(cols, dtype=np.int32), rows)
    indptr = np.arange(rows + 1, dtype=np.int32) * cols
    return sparse_class()((values.ravel(), indices, indptr), shape=(rows, cols))


def sparse_class() -> Any:
    """The CSR class that scikit-learn is set to return."""
    arrays = get_config().get("sparse_interface") == "sparray"
    return sp.csr_array if arrays else sp.csr_matrix


def densify(values: Matrix) -> Floats:
    """A dense array with the same values."""
    return np.asarray(values.toarray() if sp.issparse(values) else values)
