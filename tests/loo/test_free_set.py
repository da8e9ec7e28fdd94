"""The inverse of the free rows' matrix, and the spans that are read from it: the formulas of the
estimate, with an offset and without one."""

import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from onefit import _core


def bordered(K):
    M = np.ones((len(K) + 1, len(K) + 1))
    M[0, 0], M[1:, 1:] = 0.0, K
    return M


def kernel_of(n, seed, n_features=3):
    """A kernel matrix of points, as a store has it."""
    X = np.random.default_rng(seed).normal(size=(n, n_features))
    return naive.rbf_kernel(X, X, gamma=0.5).astype(np.float32)


# Blocks of the factorisation and of the inversion end within these.
@pytest.mark.parametrize("n", [1, 2, 12, 65, 130, 300])
@pytest.mark.parametrize("single", [False, True])
def test_inverse_of_the_free_set(n, single):
    K = kernel_of(n, seed=0, n_features=30 if single else 8)
    inverse, border, corner = _core.free_set(K, single)
    whole = np.linalg.inv(bordered(K.astype(np.float64)))
    assert inverse.dtype == (np.float32 if single else np.float64)
    precision = 1e-5 if single else 1e-10
    assert_allclose(inverse, whole[1:, 1:], atol=precision * np.abs(whole).max())
    assert_allclose(border, whole[0, 1:], atol=precision * np.abs(whole).max())
    assert corner == pytest.approx(whole[0, 0], abs=precision)
    assert_array_equal(inverse, inverse.T)


def test_single_precision_is_for_rows_that_are_apart():
    K = kernel_of(40, seed=0, n_features=30)
    K[7], K[:, 7] = K[30], K[:, 30]
    K[7, 7] = K[7, 30] = K[30, 7] = 1.0
    # No two are near, but one is almost the mean of the others.
    nearly = np.eye(150, dtype=np.float32)
    nearly[149, :149] = nearly[:149, 149] = 1 / 149
    nearly[149, 149] = 1 / 149 + 1e-4
    for matrix in (K, nearly):
        with pytest.raises(ValueError, match="too near"):
            _core.free_set(matrix, True)


def test_the_matrix_of_the_free_set_is_square():
    with pytest.raises(ValueError, match="square"):
        _core.free_set(np.ones((3, 2), dtype=np.float32))


def test_the_diagonal_is_what_removing_a_row_costs():
    # K_ii - κᵀM⁻¹κ over the other rows, solved anew for each row.
    K = kernel_of(10, seed=1)
    spans = 1.0 / _core.free_set(K)[0].diagonal()
    for i in range(len(K)):
        others = np.delete(np.arange(len(K)), i)
        kappa = np.concatenate((np.ones(1), K[others, i]))
        M = bordered(K[np.ix_(others, others)])
        assert spans[i] == pytest.approx(K[i, i] - kappa @ np.linalg.solve(M, kappa), rel=1e-6)


def test_an_offset_is_a_kernel_that_is_lifted_without_end():
    # With an offset M is bordered; without one it is the kernel matrix, here of the lifted kernel.
    K = kernel_of(12, seed=2)
    with_offset = 1.0 / _core.free_set(K)[0].diagonal()
    without = [1.0 / np.linalg.inv(K.astype(np.float64) + c).diagonal() for c in (1e2, 1e4, 1e6)]
    apart = [np.abs(spans - with_offset).max() for spans in without]
    assert apart[0] > 10 * apart[1] > 100 * apart[2]
    assert apart[2] < 1e-5


def solved_without_offset(K, y, C):
    """The coefficients of a C-SVC without an offset, one after another to rounding."""
    beta = np.zeros(len(y))
    for _ in range(20_000):
        before = beta.copy()
        for i in range(len(y)):
            wanted = beta[i] + (y[i] - K[i] @ beta) / K[i, i]
            beta[i] = np.clip(wanted, min(0.0, y[i] * C), max(0.0, y[i] * C))
        if np.abs(beta - before).max() < 1e-13 * C:
            break
    return beta


@pytest.mark.parametrize("C", [0.5, 5.0])
def test_the_estimate_without_an_offset_where_no_row_changes(C):
    # As on the page for users: M is then the kernel matrix of the free rows.
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=40) > 0, 1.0, -1.0)
    K = naive.rbf_kernel(X, X, gamma=1.0)
    beta = solved_without_offset(K, y, C)

    def status(of):
        return np.where(of == 0, 0, np.where(np.abs(of) == C, 2, 1))

    free = np.flatnonzero(status(beta) == 1)
    inverse = np.linalg.inv(K[np.ix_(free, free)])
    n_free = n_bound = 0
    for i in np.flatnonzero(beta):
        others = np.delete(np.arange(len(y)), i)
        without = np.zeros(len(y))
        without[others] = solved_without_offset(K[np.ix_(others, others)], y[others], C)
        if (status(without)[others] != status(beta)[others]).any():
            continue
        if status(beta)[i] == 1:
            span, n_free = 1.0 / inverse[free == i, free == i][0], n_free + 1
        else:
            span, n_bound = K[i, i] - K[i, free] @ inverse @ K[free, i], n_bound + 1
        assert K[i] @ without == pytest.approx(K[i] @ beta - beta[i] * span, abs=1e-7)
    assert n_free + n_bound > 3


def affine_distance(X, i):
    """The squared distance of a row to the nearest combination, of sum 1, of the others."""
    others = np.delete(X, i, axis=0)
    directions = (others[1:] - others[0]).T
    gap = X[i] - others[0]
    return float(((gap - directions @ np.linalg.lstsq(directions, gap, rcond=None)[0]) ** 2).sum())


@pytest.mark.parametrize(
    "kind", ["duplicates", "more rows than features", "a line", "one point", "many duplicates"]
)
def test_spans_of_rows_that_depend_on_one_another(kind):
    rng = np.random.default_rng(2)
    X = {
        "duplicates": np.repeat(rng.normal(size=(4, 6)), [1, 2, 3, 1], axis=0),
        "more rows than features": rng.normal(size=(20, 3)),
        "a line": np.outer(np.arange(7.0), [1.0, 2.0]) + 1.0,
        "one point": np.ones((5, 2)),
        "many duplicates": np.repeat(rng.normal(size=(150, 200)), [1] * 100 + [2] * 50, axis=0),
    }[kind]
    inverse, _, _ = _core.free_set((X @ X.T).astype(np.float32))
    expected = [affine_distance(X, i) for i in range(len(X))]
    assert_allclose(1.0 / inverse.diagonal(), expected, atol=2e-4 * (X**2).sum(axis=1).max())
