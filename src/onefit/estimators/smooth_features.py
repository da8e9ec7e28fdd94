"""The matrix Φ of a smooth machine: its features, or the values of a kernel with some rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from onefit.estimators.base import densify
from onefit.kernels import Floats, Kernel, kernel_values, resolve_gamma
from onefit.memory import budget_bytes
from onefit.smooth.blocks import slices
from onefit.smooth.design import Design, EvaluatedDesign, Rows, StoredDesign, row_values
from onefit.smooth.reduced import (
    Keys,
    distinct,
    incremental_set,
    measured_rows,
    random_set,
    random_sets_without,
    row_keys,
    unchanged_without,
)

KernelLike = str | Callable[[Any, Any], Any]

# An incremental set measures distances on all rows up to so many: a basis of their columns has to
# fit in memory. With a limit on that, on as many as have room for so many columns.
MOST_ROWS = 1 << 17
LEAST_ROWS = 1_000
LIKELY_COLUMNS = 256


def is_given(kernel: KernelLike) -> bool:
    """Whether rows are known by their kernel values only."""
    return callable(kernel) or kernel == "precomputed"


def resolved(
    kernel: KernelLike,
    gamma: str | float,
    coef0: float,
    degree: int,
    X: Any,
    weights: Floats | None = None,
) -> Kernel | None:
    """The kernel function with its numbers, or None for given values.

    "scale" is that of scikit-learn; with weights it is of rows that are there so many times.
    """
    if is_given(kernel):
        return None
    if kernel == "linear":
        gamma = 1.0  # not used, and "scale" would be a pass over X
    elif gamma == "scale" and weights is not None:
        gamma = _weighted_scale(X, weights)
    return Kernel(str(kernel), resolve_gamma(gamma, X), float(coef0), int(degree))


def _weighted_scale(X: Any, weights: Floats) -> float:
    total = weights.sum() * X.shape[1]
    mean = float(np.sum(weights @ X)) / total
    squares = X.multiply(X) if sp.issparse(X) else X * X
    variance = float(np.sum(weights @ squares)) / total - mean**2
    return float(1.0 / (X.shape[1] * variance)) if variance > 0 else 1.0


def values_with(kernel: KernelLike, of: Kernel | None, X: Any, columns: Any) -> Floats:
    """Kernel values of rows with those of the columns, in double precision.

    Of a precomputed kernel ``columns`` are numbers.
    """
    if of is not None:
        if sp.issparse(columns) != sp.issparse(X):
            X = sp.csr_array(X) if sp.issparse(columns) else X.toarray()
        width = X.nnz / max(1, X.shape[0]) if sp.issparse(X) else X.shape[1]
        values = np.empty((X.shape[0], columns.shape[0]))
        for rows in slices(X.shape[0], float(width) * columns.shape[0]):
            whole = rows.stop - rows.start == X.shape[0]
            for part, block in kernel_values(X if whole else X[rows], columns, of):
                if len(block) == len(values):
                    return block
                values[rows][part] = block
        return values
    if not callable(kernel):
        return np.ascontiguousarray(X[:, columns])
    values = np.asarray(densify(kernel(X, columns)), dtype=np.float64, order="C")
    expected = (_num_samples(X), _num_samples(columns))
    if values.shape != expected:
        raise ValueError(
            f"The kernel function returned an array of shape {values.shape}; "
            f"expected {expected}: a value for each row of X and each column."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            "The kernel function returned values that are not finite (NaN or infinity)."
        )
    return values


class Selection:
    """How the columns of a kernel are chosen among rows."""

    def __init__(
        self,
        reduced: str | None,
        size: int | str,
        threshold: float,
        batch_size: int,
        failures: int,
        seed: int,
        cache_size: str | float = "auto",
    ) -> None:
        self.reduced, self.seed = reduced, seed
        self._most_rows = MOST_ROWS
        if not isinstance(cache_size, str):
            self._most_rows = max(LEAST_ROWS, budget_bytes(cache_size, 0) // (8 * LIKELY_COLUMNS))
        self._size = None if isinstance(size, str) else int(size)
        self._threshold, self._batch_size, self._failures = threshold, batch_size, failures

    def keys(self, kernel: KernelLike, X: Any) -> Keys:
        """By which rows are the same, and in which order they are drawn."""
        if not is_given(kernel):
            return row_keys(X, self.seed)
        # Nothing is known of the rows: all are different.
        draws = np.random.default_rng(self.seed).permutation(_num_samples(X))
        return draws.astype(np.uint64)

    def without_each(self, keys: Keys) -> Callable[[int], Keys] | None:
        """The keys of the columns without one of the rows, where they need no selection."""
        return random_sets_without(keys, self._size) if self.reduced == "random" else None

    def unchanged_without(self, keys: Keys) -> NDArray[np.bool_]:
        """Rows without which the columns are the same, or lack those of that row.

        An incremental set measures distances on all rows: without any of them it may be another.
        """
        if self.reduced == "random":
            return unchanged_without(keys, self._size)
        return np.full(len(keys), self.reduced is None)

    def choose(self, keys: Keys, kernel: KernelLike, of: Kernel | None, X: Any) -> Rows:
        """Rows of X, which have these keys."""
        if self.reduced is None:
            return distinct(keys)
        if self.reduced == "random":
            return random_set(keys, self._size)
        measured = measured_rows(keys, self._most_rows)
        rows = X if measured is None else _safe_indexing(X, measured)

        def columns(some: Rows) -> Floats:
            given = some if kernel == "precomputed" else _safe_indexing(X, some)
            return values_with(kernel, of, rows, given)

        return incremental_set(
            keys, columns, self._threshold, self._batch_size, self._failures, self._size
        )


class Features:
    """Φ of some rows, in memory where it fits in ``budget`` bytes and else evaluated in blocks."""

    def __init__(
        self,
        kernel: KernelLike,
        of: Kernel | None,
        X: Any,
        columns: Rows | None,
        intercept: float,
        budget: int,
    ) -> None:
        self._kernel, self._of, self._X = kernel, of, X
        self.columns, self._intercept = columns, intercept
        self.n = _num_samples(X)
        if columns is None:  # a linear machine
            self.phi: Any = X
            return
        self._given = columns if kernel == "precomputed" else _safe_indexing(X, columns)
        fits = 8 * self.n * len(columns) <= budget
        self.phi = values_with(kernel, of, X, self._given) if fits else None

    def design(self, rows: Rows | None = None, columns: NDArray[Any] | None = None) -> Design:
        """A of all or of some rows and (positions of) columns."""
        if self.phi is not None:
            phi = self.phi if rows is None else self.phi[rows]
            if columns is not None:
                phi = np.ascontiguousarray(phi[:, columns])
            return StoredDesign(phi, self._intercept)
        assert self.columns is not None
        given = self._given if columns is None else _safe_indexing(self._given, columns)
        count = len(self.columns) if columns is None else len(columns)
        numbers = np.arange(self.n) if rows is None else rows

        def evaluate(some: Any) -> Floats:
            block = _safe_indexing(self._X, numbers[some])
            return values_with(self._kernel, self._of, block, given)

        return EvaluatedDesign(len(numbers), count, evaluate, self._intercept)

    def values(self, rows: Rows, thetas: Floats) -> Floats:
        """Values of some rows by functions with these coefficients, intercepts first."""
        values = np.empty((len(rows), len(thetas)))
        for part, phi in self.design(rows).blocks_of(None):
            values[part] = row_values(phi, thetas, self._intercept)
        return values
