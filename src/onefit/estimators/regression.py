"""What regressors share: targets, the coefficients of one function and its values."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from onefit import _core
from onefit.estimators.base import KernelMachine, MatrixLike, Model, Part, Training, densify
from onefit.kernels import Floats, Matrix, row_products
from onefit.problem import Problem

# The solver keeps differences of targets in float32.
LARGEST_TARGET = 1e29


class KernelRegressor(RegressorMixin, KernelMachine):  # type: ignore[misc]
    """Base of the regressors: one problem, one function."""

    # ---- training -------------------------------------------------------------------------------

    @abstractmethod
    def _bounds(self, weights: Floats) -> Floats:
        """The bound of each row."""

    @abstractmethod
    def _problem(self, y: Floats, bounds: Floats) -> Problem:
        """The problem of these rows."""

    @property
    def _unit(self) -> float:
        """What targets and coefficients of the problem are multiples of."""
        return 1.0

    def _function(self, solution: _core.Solution) -> tuple[Floats, float, dict[str, Any]]:
        """Coefficients of the rows, the intercept, and other fitted attributes."""
        return solution.beta, solution.offset, {}

    def _training(
        self, y: NDArray[Any], weights: Floats | None, *, every_row: bool = False
    ) -> Training:
        try:
            y = y.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must be numbers for {type(self).__name__}: {error}") from None
        if not (np.abs(y) <= LARGEST_TARGET).all():  # not true of NaN
            raise ValueError(
                "y contains NaN, infinity or a value that is too large; it must be finite numbers "
                f"of at most {LARGEST_TARGET:g}."
            )
        weights = np.ones(len(y)) if weights is None else np.maximum(weights, 0.0)
        order = np.arange(len(y)) if every_row else np.flatnonzero(weights > 0)
        bounds = self._bounds(weights[order])
        return Training([self._problem(y[order], bounds)], order, [0, len(order)], bounds)

    def _part(
        self, whole: Training, y: NDArray[Any], weights: Floats | None, train: NDArray[np.intp]
    ) -> Part:
        row_weights = np.zeros(len(y))
        row_weights[train] = 1.0 if weights is None else np.maximum(weights[train], 0.0)
        if not row_weights.any():
            raise ValueError("Invalid input - all samples have zero or negative weights.")
        return Part(whole, self._bounds(row_weights), [0])

    def _model(self, training: Training, solutions: list[_core.Solution]) -> Model:
        [solution] = solutions
        coef, intercept, attributes = self._function(solution)
        attributes["n_iter_"] = solution.n_iter
        return Model(np.atleast_2d(coef), np.array([intercept]), attributes, factor=self._unit)

    # ---- prediction -----------------------------------------------------------------------------

    def _feature_weights(self) -> Matrix:
        return self.dual_coef_ @ self.support_vectors_

    def predict(self, X: MatrixLike) -> Floats:
        """Values of the function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        values : ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        known = self._known_values(X)
        if known is not None:
            return known.ravel()
        X = self._check_query(X)
        coef = densify(self.dual_coef_)[0]
        if self.kernel == "precomputed":  # equal rows have equal values, as in folds
            blocks = [
                row_products(kernel, coef[None])[:, 0] for _, kernel in self._kernel_blocks(X)
            ]
        else:
            blocks = [kernel @ coef for _, kernel in self._kernel_blocks(X)]
        blocks = [block + self.intercept_ for block in blocks]
        return np.concatenate(blocks)
