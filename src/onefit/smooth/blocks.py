"""Dense linear algebra in calls that end soon, so that Ctrl-C is seen between them.

A call of BLAS or LAPACK does not see signals. What one call would do for seconds is done here by
several, each of them on a block that is large enough to be as fast.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, get_lapack_funcs, solve_triangular

from onefit.kernels import Floats

# Multiplications of a call: 0.2 s at 20 GFLOP/s.
OPERATIONS = 2e9

# Columns that are factorised at a time.
PANEL = 256

Factor = tuple[Floats, bool]


def slices(n: int, operations: float, first: int = 0) -> Iterator[slice]:
    """Parts of ``range(first, n)``, each element of which takes so many operations."""
    size = max(1, int(OPERATIONS / max(1.0, operations)))
    for start in range(first, n, size):
        yield slice(start, min(start + size, n))


def product(a: Any, b: Floats) -> Floats:
    """The product of two matrices, of which the first may be sparse, or of one and a vector."""
    each = float(a.shape[1]) * (b.shape[1] if b.ndim > 1 else 1)
    if a.shape[0] * each <= OPERATIONS or not isinstance(a, np.ndarray):
        return np.asarray(a @ b)
    result = np.empty((len(a), *b.shape[1:]))
    for part in slices(len(a), each):
        result[part] = a[part] @ b
    return result


def gram(a: Floats) -> Floats:
    """aᵀa"""
    n, p = a.shape
    if _is_short(n, p):
        return np.asarray(a.T @ a)
    total = np.zeros((p, p))
    add_gram(total, a)
    return total


def add_gram(total: Floats, a: Floats, factor: float = 1.0) -> None:
    """Add factor · aᵀa to a symmetric matrix."""
    n, p = a.shape
    if _is_short(n, p):
        product = a.T @ a
        if factor != 1.0:
            product *= factor
        total += product
        return
    for part in slices(p, float(n) * p):
        block = factor * (a[:, part.start :].T @ a[:, part])
        total[part.start :, part] += block
        total[part, part.stop :] += block[part.stop - part.start :].T


def _is_short(n: int, p: int) -> bool:
    return float(n) * p * p / 2 <= OPERATIONS


def cholesky(matrix: Floats) -> Factor:
    """The lower factor of a positive definite matrix, for :func:`cholesky_solve`."""
    n = len(matrix)
    if n**3 / 6 <= OPERATIONS:
        factor: Factor = cho_factor(matrix, lower=True, check_finite=False)
        return factor
    low = np.array(matrix.T, order="F")  # it is symmetric, and most often in C order
    for j in range(0, n, PANEL):
        end = min(j + PANEL, n)
        if j:
            left = low[j:end, :j].T
            for part in slices(n, float(j) * PANEL, first=j):
                low[part, j:end] -= low[part, :j] @ left
        corner = cho_factor(low[j:end, j:end], lower=True, check_finite=False)[0]
        low[j:end, j:end] = corner
        if end < n:
            below = low[end:, j:end]
            below[:] = solve_triangular(corner, below.T, lower=True, check_finite=False).T
    return low, True


def cholesky_solve(factor: Factor, right: Floats) -> Floats:
    """The solution of a system whose matrix has this factor."""
    if right.ndim == 1 or right.size * float(len(right)) <= OPERATIONS:
        return np.asarray(cho_solve(factor, right, check_finite=False))
    solved = np.empty(right.shape, order="F")
    for part in slices(right.shape[1], float(len(right)) ** 2):
        solved[:, part] = cho_solve(factor, right[:, part], check_finite=False)
    return solved


def half_solve(factor: Factor, right: Floats) -> Floats:
    """L⁻¹ times columns, which are overwritten."""
    for part in slices(right.shape[1], float(len(right)) ** 2 / 2):
        right[:, part] = solve_triangular(
            factor[0], right[:, part], lower=True, overwrite_b=True, check_finite=False
        )
    return right


def solve(matrix: Floats, right: Floats) -> Floats:
    """The solution of a square system, by elimination with row exchanges."""
    n = len(matrix)
    if n**3 / 3 <= OPERATIONS:
        return np.asarray(np.linalg.solve(matrix, right))
    a, b = np.array(matrix, order="F"), np.array(right, dtype=np.float64)
    (getrf,) = get_lapack_funcs(("getrf",), (a,))
    for j in range(0, n, PANEL):
        end = min(j + PANEL, n)
        panel, exchanges, info = getrf(a[j:, j:end])
        if info:
            raise np.linalg.LinAlgError("Singular matrix")
        order = np.arange(n - j)
        for k, other in enumerate(exchanges):
            order[[k, other]] = order[[other, k]]
        a[j:, j:end] = panel
        top, below = panel[: end - j], panel[end - j :]
        b[j:] = b[j:][order]
        b[j:end] = solve_triangular(top, b[j:end], lower=True, unit_diagonal=True)
        b[end:] -= below @ b[j:end]
        for part in slices(n, float(n - j) * PANEL, first=end):
            columns = a[j:, part][order]
            columns[: end - j] = solve_triangular(
                top, columns[: end - j], lower=True, unit_diagonal=True, check_finite=False
            )
            columns[end - j :] -= below @ columns[: end - j]
            a[j:, part] = columns
    return np.asarray(solve_triangular(a, b, check_finite=False))
