"""The kernel matrix of the free rows, with the border of the offset, inverted.

Duplicate rows, and kernels of low rank, make it singular: then the factorisation sorts the rows
that depend on others to the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from onefit.kernels import Floats

Singles: TypeAlias = NDArray[np.float32]
Reals: TypeAlias = NDArray[Any]  # of single or double precision

# A row depends on others if they explain all but this share of the largest diagonal entry. Less may
# be rounding of the entries, which are in single precision.
INDEPENDENT = 1e-5

# What a kernel entry and its products are known to, as a share of a diagonal entry.
ROUNDING = 1e-6

# If others leave at least this share of every row (of its diagonal entry, and what that is lifted
# by), single precision does for all of it, in half the time: steps of up to 5 were off by at most
# 1e-4, and by 1e-3 where a tenth of that is left (30 cases of 10 data sets, C up to 10,000). Small
# matrices are inverted in no time.
WELL_APART = 5e-3
MANY = 200


class FreeSet:
    r"""The inverse of :math:`M = [0\ 1^\top;\ 1\ K]` for the kernel matrix K of the free rows.

    Factorised is :math:`K + c\,11^\top`, which has an inverse where M has one; what the border
    changes is its Schur complement. Without an offset M is K.
    """

    def __init__(self, kernel: Floats | Singles, *, offset: bool = True) -> None:
        lift = (float(np.abs(kernel.diagonal()).mean()) or 1.0) if offset else 0.0
        self.inverse = _inverse(kernel, lift)  # the part of the rows
        self.border = np.zeros(len(kernel))
        self.corner = 0.0
        if offset:
            sums = self.inverse.sum(axis=1, dtype=np.float64)
            total = float(sums.sum())
            self.border, self.corner = sums / total, lift - 1.0 / total
            [ger] = get_blas_funcs(("ger",), (self.inverse,))
            self.inverse = ger(-1.0, self.border, sums, a=self.inverse, overwrite_a=1)
        self.inverse = self.inverse.T  # the same, as it is symmetric, and rows are contiguous

    @property
    def precision(self) -> Any:
        """The type of the numbers."""
        return self.inverse.dtype

    @property
    def noise(self) -> float:
        """What S of two rows may be off by, as a share of a diagonal entry."""
        return ROUNDING if self.precision == np.float64 else 100 * ROUNDING


def _inverse(kernel: Floats | Singles, lift: float) -> Reals:
    """The inverse of a positive semidefinite matrix, to all of whose entries ``lift`` is added.

    Rows that depend on others, as far as single precision can tell, are left with the least that is
    not taken for rounding: each can take the place of what it depends on, almost for nothing.
    """
    largest = float(kernel.diagonal().max()) + lift
    if len(kernel) >= MANY:
        factor, left = _factor(_lifted(kernel, lift, np.float32))
        if left > WELL_APART * largest:
            return _inverse_of_factor(factor)
    matrix = _lifted(kernel, lift, np.float64)
    factor, left = _factor(matrix)
    if left > INDEPENDENT * largest:
        return _inverse_of_factor(factor)
    return _pivoted_inverse(matrix, INDEPENDENT * largest)


def _lifted(kernel: Floats | Singles, lift: float, precision: Any) -> Reals:
    matrix = kernel.T.astype(precision, order="F")
    matrix += precision(lift)
    return matrix


def _factor(matrix: Reals) -> tuple[Reals, float]:
    """The Cholesky factor, and the least that others leave of a row; 0 where there is none."""
    [potrf] = get_lapack_funcs(("potrf",), (matrix,))
    factor, failed = potrf(matrix, lower=1)
    return factor, 0.0 if failed else float(factor.diagonal().min()) ** 2


def _pivoted_inverse(matrix: Reals, least: float) -> Reals:
    """The inverse if others leave less than ``least`` of some rows."""
    [pstrf] = get_lapack_funcs(("pstrf",), (matrix,))
    factor, order, rank, _ = pstrf(matrix, tol=least, lower=1)
    factor[rank:, rank:] = np.sqrt(least) * np.eye(len(matrix) - rank)
    place = np.argsort(order)
    inverse = _inverse_of_factor(np.asfortranarray(np.tril(factor)))
    return np.asfortranarray(inverse[np.ix_(place, place)])


def _inverse_of_factor(factor: Reals) -> Reals:
    """The inverse of a matrix from its Cholesky factor, a lower triangle; in its place."""
    [potri] = get_lapack_funcs(("potri",), (factor,))
    inverse, _ = potri(factor, lower=1, overwrite_c=1)
    for some in blocks(len(inverse), 256):
        inverse[some, some] += np.tril(inverse[some, some], -1).T
        inverse[some, some.stop :] = inverse[some.stop :, some].T
    return np.asarray(inverse)


def blocks(n: int, size: int) -> Iterator[slice]:
    """The numbers below n, so many at a time."""
    return (slice(first, min(first + size, n)) for first in range(0, n, size))
