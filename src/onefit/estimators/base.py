"""What all kernel machines share: parameters, checks, the kernel and its values at new points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from onefit import _core
from onefit.estimators.validation import QuickParameterValidation, is_plain
from onefit.kernels import (
    NOT_FINITE,
    Floats,
    Kernel,
    Matrix,
    kernel_values,
    make_store,
    resolve_gamma,
)
from onefit.memory import budget_bytes
from onefit.solver import Settings


class KernelMachine(QuickParameterValidation):
    """Base of the estimators: the parameters of scikit-learn's SVMs, and `n_jobs`."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [
            StrOptions({"linear", "poly", "rbf", "sigmoid", "precomputed"}),
            callable,
        ],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    kernel: str | Callable[[Any, Any], Any]
    gamma: str | float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    # ---- training -------------------------------------------------------------------------------

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X and y as arrays; with a callable kernel X may be anything that has a length."""
        if sp.issparse(X) and self.kernel == "precomputed":
            raise TypeError("Sparse precomputed kernels are not supported.")
        if callable(self.kernel):
            check_consistent_length(X, y)
            return X, column_or_1d(y, warn=True)
        if is_plain(X, y):
            self.n_features_in_ = X.shape[1]
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        else:
            X, y = validate_data(
                self,
                X,
                y,
                dtype=np.float64,
                order="C",
                accept_sparse="csr",
                accept_large_sparse=False,
            )
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(
                "Precomputed matrix must be a square matrix."
                f" Input is a {X.shape[0]}x{X.shape[1]} matrix."
            )
        return X, y

    def _check_weights(self, sample_weight: Any, X: Any) -> Floats | None:
        """Weights as an array, or None; rows with a weight of 0 or less take no part."""
        if sample_weight is None:
            return None
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

    def _settings(self) -> Settings:
        return Settings(
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            shrinking=bool(self.shrinking),
            threads=effective_n_jobs(self.n_jobs),
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
        if callable(self.kernel):
            X = self._call_kernel(X, X)
        budget = budget_bytes(self.cache_size, len(order))
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

    def _check_finite(self, *fitted: Floats) -> None:
        if not all(np.isfinite(values).all() for values in fitted):
            raise ValueError(NOT_FINITE)

    # ---- prediction -----------------------------------------------------------------------------

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
        values = self._call_kernel(X, self._X_fit) if callable(self.kernel) else X
        yield slice(0, values.shape[0]), values[:, self.support_]


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
