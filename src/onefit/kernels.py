"""Which kernel, where its rows are kept, and its values at new points.

A kernel is evaluated in two ways. For training, :func:`make_store` gives a store of float32 rows
that are evaluated when a solver first asks for them and shared by every solver on the same data.
For prediction, :func:`kernel_values` gives blocks of values in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from onefit import _core
from onefit.memory import MEGABYTE

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = Any  # a dense array of float64, or a CSR matrix or array

# Rows are numbered with 32-bit integers, as in LIBSVM.
MOST_ROWS = np.iinfo(np.int32).max

NOT_FINITE = (
    "The dual coefficients or intercepts are not finite. The input data may contain large values"
    " and need to be preprocessed."
)

# Sparse data with more columns than this (hashed text) are renumbered to the columns that occur.
MANY_COLUMNS = 1 << 16

# Products of rows are summed up so many at a time: they stay in the cache.
PRODUCTS_AT_A_TIME = 1 << 15

# Rows of the diagonal of a user's function that are evaluated together at most.
LARGEST_BLOCK = 64

# Kernel values at new points are computed for so many rows at a time that a block has this size.
BLOCK_BYTES = 32 * MEGABYTE


@dataclass(frozen=True)
class Kernel:
    """A kernel function of two rows: ``linear``, ``poly``, ``rbf`` or ``sigmoid``."""

    name: str
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 3

    def to_core(self) -> _core.Kernel:
        return _core.Kernel(
            getattr(_core.KernelKind, self.name), self.gamma, self.coef0, int(self.degree)
        )


def resolve_gamma(gamma: str | float, X: Matrix) -> float:
    """The number that ``gamma`` stands for on these data ("scale" and "auto" as scikit-learn's)."""
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if gamma == "scale":
        # The same expressions as scikit-learn's, so that the same bits come out.
        variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
        return float(1.0 / (X.shape[1] * variance)) if variance != 0 else 1.0
    return float(gamma)


def make_store(
    X: Matrix,
    kernel: Kernel | None,
    budget_bytes: int,
    *,
    rows: NDArray[np.intp] | None = None,
    block_starts: Sequence[int] = (0,),
) -> _core.KernelStore:
    """A store of the kernel rows of X, or of X itself as the kernel matrix when kernel is None.

    Only for ``rows`` of X, in that order. Columns from each of ``block_starts`` to the next are
    evaluated together when one of them is needed; who gives several solves with ``forget=True``.
    """
    if X.shape[0] > MOST_ROWS:
        raise ValueError(f"X has {X.shape[0]} rows; at most {MOST_ROWS} are supported.")
    if rows is None:
        rows = np.arange(X.shape[0])
    try:
        if kernel is None:
            return _core.KernelStore.from_matrix(
                X, rows.astype(np.int32), budget_bytes, block_starts
            )
        if not isinstance(X, np.ndarray):
            if not np.array_equal(rows, np.arange(X.shape[0])):
                X = X[rows]
            parts = _csr_parts(_without_empty_columns(X) if X.shape[1] > MANY_COLUMNS else X)
            return _core.KernelStore.from_csr(*parts, kernel.to_core(), budget_bytes, block_starts)
        return _core.KernelStore.from_dense(
            X, rows.astype(np.int64, copy=False), kernel.to_core(), budget_bytes, block_starts
        )
    except OverflowError as error:
        raise ValueError(f"{NOT_FINITE} ({error})") from None


def function_store(
    function: Callable[[Any, Any], Floats],
    X: Any,
    budget_bytes: int,
    block_starts: Sequence[int] = (0,),
) -> _core.KernelStore:
    """A store of the rows of a function of the user, which is called for some rows at a time.

    Its values must depend on the two rows only, and not on which others it is given.
    """
    n = int(_num_samples(X))
    size = min(max(1, budget_bytes // (8 * n)), LARGEST_BLOCK)
    diagonal = np.empty(n)
    for first in range(0, n, size):
        part = _safe_indexing(X, np.arange(first, min(first + size, n)))
        diagonal[first : first + size] = np.diagonal(function(part, part))
    columns: dict[tuple[int, int], Any] = {(0, n): X}

    def entries(rows: list[int], first: int, last: int) -> Floats:
        if (first, last) not in columns:
            columns[first, last] = _safe_indexing(X, np.arange(first, last))
        block = function(_safe_indexing(X, np.array(rows, dtype=np.intp)), columns[first, last])
        return np.ascontiguousarray(block)

    try:
        return _core.KernelStore.from_function(entries, diagonal, budget_bytes, block_starts)
    except OverflowError as error:
        raise ValueError(f"{NOT_FINITE} ({error})") from None


def _middle(X: Floats) -> Floats:
    """The median of some rows: unlike the mean, one row that is far away does not move it."""
    some = X[np.linspace(0, len(X) - 1, min(len(X), 63)).astype(np.intp)]
    middle: Floats = np.median(some, axis=0)
    return middle


def kernel_values(X: Matrix, support: Matrix, kernel: Kernel) -> Iterator[tuple[slice, Floats]]:
    """Blocks ``(rows, k(X[rows], support))`` in double precision, for all rows in turn."""
    if sp.issparse(X):
        if support.shape[1] > MANY_COLUMNS:
            X, support = _only_support_columns(X, support)
        queries, columns = _core.Points(*_csr_parts(X)), _core.Points(*_csr_parts(support))
    else:
        # Far from the origin, distances come from the difference of large numbers.
        of_distances = kernel.name in ("rbf", "distance")
        centre = _middle(support) if of_distances and len(support) else None
        queries, columns = _core.Points(X, centre), _core.Points(support, centre)
    rows = max(1, BLOCK_BYTES // (8 * max(1, support.shape[0])))
    for first in range(0, X.shape[0], rows):
        block = slice(first, min(first + rows, X.shape[0]))
        yield (
            block,
            _core.kernel_block(queries, columns, kernel.to_core(), block.start, block.stop),
        )


def kernel_matrix(X: Matrix, kernel: Kernel) -> Floats:
    """The kernel of all rows with one another in double precision."""
    matrix = np.empty((X.shape[0], X.shape[0]))
    for rows, values in kernel_values(X, X, kernel):
        matrix[rows] = values
    return matrix


def _csr_parts(X: Matrix) -> tuple[Floats, NDArray[np.int32], NDArray[np.int64], int]:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    stored = X.indptr[-1]  # arrays may be longer
    return (
        np.ascontiguousarray(X.data[:stored], dtype=np.float64),
        np.ascontiguousarray(X.indices[:stored], dtype=np.int32),
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        X.shape[1],
    )


def _without_empty_columns(X: Matrix) -> Matrix:
    """X without the columns that store nothing: products and norms stay as they are."""
    stored = X.indptr[-1]  # arrays may be longer
    used, indices = np.unique(X.indices[:stored], return_inverse=True)
    return sp.csr_array((X.data[:stored], indices, X.indptr), shape=(X.shape[0], len(used)))


def _only_support_columns(X: Matrix, support: Matrix) -> tuple[Matrix, Matrix]:
    """Both in the columns that the support vectors use, and one for the norms of the others."""
    X = sp.csr_array(X)  # of a matrix, sums are of another shape
    used = np.unique(support.indices)
    kept = X[:, used]
    rest = X.multiply(X).sum(axis=1) - kept.multiply(kept).sum(axis=1)
    rest = sp.csr_array(np.sqrt(np.maximum(np.asarray(rest).reshape(-1, 1), 0.0)))
    nothing = sp.csr_array((support.shape[0], 1))
    return (
        sp.hstack([kept, rest], format="csr"),
        sp.hstack([sp.csr_array(support)[:, used], nothing], format="csr"),
    )


def row_products(rows: Floats, coef: Floats) -> Floats:
    """Products of rows of numbers with each row of coefficients: those of equal rows are equal.

    Products of BLAS, and of einsum, round a row by its place among others.
    """
    products = np.empty((len(rows), len(coef)))
    at_a_time = max(1, PRODUCTS_AT_A_TIME // max(1, rows.shape[1]))
    for first in range(0, len(rows), at_a_time):
        some = slice(first, first + at_a_time)
        for k, factors in enumerate(coef):
            np.multiply(rows[some], factors, order="C").sum(axis=1, out=products[some, k])
    return products
