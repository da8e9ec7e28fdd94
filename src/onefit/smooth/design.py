r"""The matrix :math:`A = [s\mathbf 1 \mid \Phi]` of a smooth machine, and products with it.

Φ has the features of a linear machine, or kernel values :math:`k(x_i, z_j)` of rows with columns.
All sums over rows, the Hessian :math:`A^\top S A` among them, are sums over blocks of rows: a Φ
that does not fit in memory is evaluated block by block whenever it is needed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from onefit.kernels import Floats, row_products
from onefit.memory import MEGABYTE
from onefit.smooth import blocks

Rows = NDArray[np.intp]

# Blocks of rows have this size. Larger ones leave the caches, smaller ones cost calls.
BLOCK_BYTES = 16 * MEGABYTE

# A block of sparse rows that is fuller than this is multiplied as a dense one: a product of stored
# entries takes about 5 ns, one of dense entries 0.03 ns.
DENSE_ENOUGH = 0.08

# Lengths between this and its inverse have squares.
SAFE = 1e-140

# Rows by which the length of a row is judged.
LOOKED_AT = 64


class Design(ABC):
    """The matrix A, of ``n`` rows and ``p`` columns, the intercept's first."""

    n: int
    p: int

    def __init__(self, n: int, features: int, intercept: float) -> None:
        self.n, self.p, self.intercept = n, features + 1, intercept
        self.width = float(features + 1)  # entries of a row in memory
        self.is_sparse = False

    @cached_property
    def length(self) -> float:
        """About the root mean square length of a row."""
        some = np.linspace(0, self.n - 1, min(self.n, LOOKED_AT)).astype(np.intp)
        phi = self.features(some)
        entries = norm_of(phi.data if sp.issparse(phi) else phi.ravel())
        return float(np.hypot(self.intercept, entries / np.sqrt(len(some))))

    @abstractmethod
    def features(self, rows: Any) -> Any:
        """Φ of some rows (numbers or a slice), dense or sparse."""

    @abstractmethod
    def with_rows(self, rows: Rows) -> Design:
        """Some of the rows."""

    @abstractmethod
    def with_features(self, columns: Rows) -> Design:
        """The same rows with some of the features."""

    def values(self, theta: Floats, rows: Rows | None = None) -> Floats:
        """Aθ, of all or of some rows; θ may have several columns."""
        parts = [blocks.product(phi, theta[1:]) for _, phi in self.blocks_of(rows)]
        values: Floats = np.concatenate(parts) if len(parts) != 1 else np.asarray(parts[0])
        values += self.intercept * theta[0]
        return values

    def sums(self, factors: Floats, rows: Rows | None = None) -> Floats:
        """Aᵀ times a vector (or several columns) of all or of some rows."""
        total = np.zeros((self.p, *factors.shape[1:]))
        for part, phi in self.blocks_of(rows):
            total[1:] += blocks.product(phi.T, factors[part])
        total[0] = self.intercept * factors.sum(axis=0)
        return total

    def gram(self, weights: Floats) -> Floats:
        """AᵀWA with the diagonal matrix of these weights, whatever their signs."""
        gram = np.zeros((self.p, self.p))
        for sign, rows in ((1.0, weights > 0), (-1.0, weights < 0)):
            numbers = np.flatnonzero(rows)
            if len(numbers):
                self._add_gram(gram, numbers, np.abs(weights[numbers]), sign)
        return gram

    def _add_gram(self, gram: Floats, rows: Rows, weights: Floats, sign: float) -> None:
        first = np.zeros(self.p - 1)
        same = weights[0] if (weights == weights[0]).all() else None
        for part, phi in self.blocks_of(rows):
            w = weights[part]
            if sp.issparse(phi) and phi.nnz > DENSE_ENOUGH * phi.shape[0] * phi.shape[1]:
                phi = phi.toarray()
            if sp.issparse(phi):
                scaled = phi.copy()
                scaled.data *= np.repeat(w, np.diff(phi.indptr))
                gram[1:, 1:] += sign * (phi.T @ scaled).toarray()
            elif same is not None:
                blocks.add_gram(gram[1:, 1:], phi, sign * same)
            else:
                blocks.add_gram(gram[1:, 1:], phi * np.sqrt(w)[:, None], sign)
            first += phi.T @ w
        gram[0, 1:] += sign * self.intercept * first
        gram[1:, 0] = gram[0, 1:]
        gram[0, 0] += sign * self.intercept**2 * weights.sum()

    def rows(self, rows: Rows) -> Floats:
        """Some rows of A as a dense array."""
        block = np.empty((len(rows), self.p))
        block[:, 0] = self.intercept
        for part, phi in self.blocks_of(rows):
            block[part, 1:] = phi.toarray() if sp.issparse(phi) else phi
        return block

    def cross(self, rows: Rows, others: Rows) -> Floats:
        """Products of rows of A with others."""
        phi = self.features(rows)
        if sp.issparse(phi):
            products = (phi @ self.features(others).T).toarray()
        elif rows is others:
            products = blocks.gram(phi.T)
        else:
            products = blocks.product(phi, self.features(others).T)
        products += self.intercept**2
        return np.asarray(products)

    def blocks_of(self, rows: Rows | None) -> Iterator[tuple[slice, Any]]:
        """Places of all or of some rows, and their Φ, a block at a time."""
        n = self.n if rows is None else len(rows)
        size = max(1, int(BLOCK_BYTES / (8 * self.width)))
        contiguous = rows is None or (n == self.n and _is_range(rows))
        for first in range(0, max(1, n), size):
            part = slice(first, min(first + size, n))
            yield part, self.features(part if contiguous or rows is None else rows[part])


class StoredDesign(Design):
    """Φ in memory: a C-ordered array, or a CSR matrix."""

    def __init__(self, phi: Any, intercept: float = 1.0) -> None:
        super().__init__(phi.shape[0], phi.shape[1], intercept)
        self.phi = phi
        if sp.issparse(phi) and phi.nnz < DENSE_ENOUGH * phi.shape[0] * phi.shape[1]:
            self.width = 1.0 + 2.0 * phi.nnz / max(1, phi.shape[0])
            self.is_sparse = True

    def features(self, rows: Any) -> Any:
        return self.phi[rows]

    def with_rows(self, rows: Rows) -> Design:
        return StoredDesign(self.phi[rows], self.intercept)

    def with_features(self, columns: Rows) -> Design:
        return StoredDesign(np.ascontiguousarray(self.phi[:, columns]), self.intercept)

    def values(self, theta: Floats, rows: Rows | None = None) -> Floats:
        if rows is not None:
            return super().values(theta, rows)
        values: Floats = blocks.product(self.phi, theta[1:])
        values += self.intercept * theta[0]
        return values

    def sums(self, factors: Floats, rows: Rows | None = None) -> Floats:
        if rows is not None and 2 * len(rows) < self.n:
            return super().sums(factors, rows)
        if rows is not None:  # one pass in order is faster than picking most rows
            spread = np.zeros((self.n, *factors.shape[1:]))
            spread[rows] = factors
            factors = spread
        total = np.empty((self.p, *factors.shape[1:]))
        total[0] = self.intercept * factors.sum(axis=0)
        total[1:] = blocks.product(self.phi.T, factors)
        return total


class EvaluatedDesign(Design):
    """Φ that is evaluated whenever it is needed, for some rows at a time."""

    def __init__(
        self, n: int, features: int, evaluate: Callable[[Any], Floats], intercept: float = 1.0
    ) -> None:
        super().__init__(n, features, intercept)
        self._evaluate = evaluate

    def features(self, rows: Any) -> Any:
        return self._evaluate(rows)

    def with_rows(self, rows: Rows) -> Design:
        def evaluate(some: Any) -> Floats:
            return self._evaluate(rows[some])

        return EvaluatedDesign(len(rows), self.p - 1, evaluate, self.intercept)

    def with_features(self, columns: Rows) -> Design:
        def evaluate(rows: Any) -> Floats:
            return np.ascontiguousarray(self._evaluate(rows)[:, columns])

        return EvaluatedDesign(self.n, len(columns), evaluate, self.intercept)


def quiet() -> np.errstate:
    """Without warnings of overflows: whether results are finite is checked where they are used."""
    return np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")


def norm_of(vector: Floats) -> float:
    """The length of a vector, also where squares of its entries overflow or vanish."""
    norm = math.sqrt(vector @ vector)
    if SAFE < norm < 1 / SAFE:
        return norm
    largest = float(np.abs(vector).max(initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.linalg.norm(vector / largest))


def row_values(phi: Any, thetas: Floats, intercept: float) -> Floats:
    """Values of rows of Φ by each row of θ: those of equal rows are equal, wherever they are.

    Products of BLAS round a row by its place among others.
    """
    if sp.issparse(phi):
        values = np.asarray(phi @ thetas[:, 1:].T)
    else:
        values = row_products(phi, thetas[:, 1:])
    values += intercept * thetas[:, 0]
    return values


def _is_range(rows: Rows) -> bool:
    return bool(rows[0] == 0 and (np.diff(rows) == 1).all()) if len(rows) else True
