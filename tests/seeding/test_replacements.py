"""What MIR, SIR and TOP give to whom, against plain loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from onefit.problem import Problem
from onefit.seeding import STRATEGIES, Change, Neighbour
from onefit.seeding.multiple import _fit

N = 40


def change(seed):
    """From all rows, or all but some, to all but others; many coefficients are at their bounds."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, -1.0], N // 2)
    C = rng.uniform(0.5, 2.0, N)
    K = rng.normal(size=(N, N))
    K = K @ K.T

    def problem(held_out):
        bound = np.where(held_out, 0.0, C)
        lower, upper = np.minimum(0.0, y * bound), np.maximum(0.0, y * bound)
        return Problem(np.arange(N, dtype=np.int32), y, lower, upper)

    out = rng.permutation(N)
    before = problem(np.isin(np.arange(N), out[:8]))
    after = problem(np.isin(np.arange(N), out[8:20]))
    beta = rng.choice([0.0, 1.0, rng.random()], N) * (before.lower + before.upper)
    neighbour = Neighbour(before, beta, y - K @ beta, (0.1, 0.0))
    return Change(after, neighbour), K


def entries_of(K):
    return lambda a, b: K[np.ix_(a, b)]


@pytest.mark.parametrize("seed", range(20))
def test_top_goes_to_the_most_similar_with_room(seed):
    moved, K = change(seed)
    expected = moved.kept()
    for r in moved.leaving:
        rest = moved.neighbour.beta[r]
        for t in sorted(moved.staying, key=lambda t: -K[r, t]):
            after = np.clip(expected[t] + rest, moved.problem.lower[t], moved.problem.upper[t])
            rest -= after - expected[t]
            expected[t] = after
    assert_allclose(STRATEGIES["top"].propose(moved, entries_of(K)), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_sir_takes_each_row_once(seed):
    moved, K = change(seed)
    expected, taken = moved.kept(), set()
    for r in moved.leaving:
        value = moved.neighbour.beta[r]
        ends = moved.problem.upper if value > 0 else moved.problem.lower
        possible = [t for t in moved.entering if t not in taken and ends[t] != 0]
        if possible:
            best = max(possible, key=lambda t: K[r, t])
            taken.add(best)
            expected[best] = value
    assert_array_equal(STRATEGIES["sir"].propose(moved, entries_of(K)), expected)


@pytest.mark.parametrize("rank", [3, 10])
def test_mir_fits_in_the_least_squares(rank):
    rng = np.random.default_rng(rank)
    kernel = rng.normal(size=(10, rank)) @ rng.normal(size=(rank, 30))
    wanted, total = rng.normal(size=30), 2.0
    matrix, right = np.vstack((kernel.T, np.ones(10))), np.append(wanted, total)
    best = np.linalg.lstsq(matrix, right, rcond=None)[0]
    fitted = _fit(kernel, wanted, total)
    assert_allclose(
        np.linalg.norm(matrix @ fitted - right), np.linalg.norm(matrix @ best - right), rtol=1e-6
    )
    assert np.isfinite(_fit(np.zeros((4, 6)), np.ones(6), 1.0)).all()
