"""The kernel matrix of the free rows, with the border of the offset, inverted.

Duplicate rows, and kernels of low rank, make it singular: then the factorisation sorts the rows
that depend on others to the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotrf, dpotri, dpstrf

from onefit.kernels import Floats

Singles = NDArray[np.float32]

# A row depends on others if they explain all but this share of the largest diagonal entry. Less may
# be rounding of the entries, which are in single precision.
INDEPENDENT = 1e-5


class FreeSet:
    r"""The inverse of :math:`M = [0\ 1^\top;\ 1\ K]` for the kernel matrix K of the free rows.

    Factorised is :math:`K + c\,11^\top`, which has an inverse where M has one; what the border
    changes is its Schur complement. Without an offset M is K.
    """

    def __init__(self, kernel: Floats | Singles, *, offset: bool = True) -> None:
        lift = (float(np.abs(kernel.diagonal()).mean()) or 1.0) if offset else 0.0
        matrix = kernel.T.astype(np.float64, order="F")
        matrix += lift
        self.inverse = _inverse(matrix)  # the part of the rows
        self.border = np.zeros(len(kernel))
        self.corner = 0.0
        if offset:
            sums = self.inverse.sum(axis=1)
            total = float(sums.sum())
            self.border, self.corner = sums / total, lift - 1.0 / total
            self.inverse = dger(-1.0, self.border, sums, a=self.inverse, overwrite_a=1)


def _inverse(matrix: Floats) -> Floats:
    """The inverse of a positive semidefinite matrix.

    Rows that depend on others, as far as single precision can tell, are left with the least that is
    not taken for rounding: each can take the place of what it depends on, almost for nothing.
    """
    least = INDEPENDENT * float(matrix.diagonal().max())
    factor, failed = dpotrf(matrix, lower=1)
    if failed == 0 and float(factor.diagonal().min()) ** 2 > least:
        return _inverse_of_factor(factor)
    factor, order, rank, _ = dpstrf(matrix, tol=least, lower=1)
    factor[rank:, rank:] = np.sqrt(least) * np.eye(len(matrix) - rank)
    place = np.argsort(order)
    return np.asfortranarray(_inverse_of_factor(factor)[np.ix_(place, place)])


def _inverse_of_factor(factor: Floats) -> Floats:
    """The inverse of a matrix whose Cholesky factor is the lower triangle; in its place."""
    inverse, _ = dpotri(factor, lower=1, overwrite_c=1)
    for some in blocks(len(inverse), 256):
        square = np.tril(inverse[some, some])
        inverse[some, some] = square + np.tril(square, -1).T
        inverse[some, some.stop :] = inverse[some.stop :, some].T
    return np.asarray(inverse)


def blocks(n: int, size: int) -> Iterator[slice]:
    """The numbers below n, so many at a time."""
    return (slice(first, min(first + size, n)) for first in range(0, n, size))
