"""Which kernel, where its rows are kept, and its values at new points.

A kernel is evaluated in two ways. For training, :func:`make_store` gives a store of float32 rows
that are evaluated when a solver first asks for them and shared by every solver on the same data.
For prediction, :func:`kernel_values` gives blocks of values in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

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
    X: Matrix, kernel: Kernel | None, budget_bytes: int, block_starts: Sequence[int] = (0,)
) -> _core.KernelStore:
    """A store of the kernel rows of X, or of X itself as the kernel matrix when kernel is None.

    Columns from each of ``block_starts`` to the next are evaluated together when one of them is
    needed.
    """
    if X.shape[0] > MOST_ROWS:
        raise ValueError(f"X has {X.shape[0]} rows; at most {MOST_ROWS} are supported.")
    try:
        if kernel is None:
            return _core.KernelStore.from_matrix(X, budget_bytes)
        if sp.issparse(X):
            parts = _csr_parts(X)
            return _core.KernelStore.from_csr(*parts, kernel.to_core(), budget_bytes, block_starts)
        return _core.KernelStore.from_dense(X, kernel.to_core(), budget_bytes, block_starts)
    except OverflowError as error:
        raise ValueError(f"{NOT_FINITE} ({error})") from None
    except MemoryError:
        raise MemoryError(
            f"No memory for a kernel cache of {budget_bytes / MEGABYTE:.0f} MB on "
            f"{X.shape[0]} rows. Give a smaller cache_size (in MB)."
        ) from None


def kernel_values(X: Matrix, support: Matrix, kernel: Kernel) -> Iterator[tuple[slice, Floats]]:
    """Blocks ``(rows, k(X[rows], support))`` in double precision, for all rows in turn."""
    queries, columns = _points(X), _points(support)
    rows = max(1, BLOCK_BYTES // (8 * max(1, support.shape[0])))
    for first in range(0, X.shape[0], rows):
        block = slice(first, min(first + rows, X.shape[0]))
        yield (
            block,
            _core.kernel_block(queries, columns, kernel.to_core(), block.start, block.stop),
        )


def _points(X: Matrix) -> _core.Points:
    return _core.Points(*_csr_parts(X)) if sp.issparse(X) else _core.Points(X)


def _csr_parts(X: Matrix) -> tuple[Floats, NDArray[np.int32], NDArray[np.int64], int]:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return (
        np.ascontiguousarray(X.data, dtype=np.float64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        X.shape[1],
    )
