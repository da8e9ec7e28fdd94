"""Every start is feasible, whatever the fold; and spreading is what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import drawn

from onefit.problem import Problem
from onefit.seeding import STRATEGIES, Change, Neighbour
from onefit.seeding.base import feasible, groups


def spread(amount, room):
    """Equal shares of an amount, as far as there is room."""
    rows, zeros = np.arange(len(room), dtype=np.int32), np.zeros(len(room))
    problem = Problem(rows, zeros, zeros, room, start=fill(room, amount))
    return feasible(problem, zeros, np.arange(len(room)))


def fill(room, amount):
    """A start with this sum, or as much of it as possible."""
    before = np.cumsum(room) - room
    return np.clip(amount - before, 0.0, room)


@given(
    st.floats(0, 100),
    st.lists(st.floats(0, 10), min_size=1, max_size=20),
)
@drawn(200)
def test_spreading(amount, room):
    room = np.array(room)
    shares = spread(amount, room)
    assert (shares >= 0).all()
    assert (shares <= room).all()
    assert shares.sum() == pytest.approx(min(amount, room.sum()), abs=1e-9)
    below = shares < room
    if below.any():  # equal shares, as far as there is room
        assert np.ptp(shares[below]) < 1e-12
        assert (shares[~below] <= shares[below].max() + 1e-12).all()


def random_point(rng, problem, sums):
    """A feasible point, many of its coefficients at bounds."""
    beta = np.zeros(len(problem))
    for group, total in zip(groups(problem), sums, strict=True):
        lower, upper = problem.lower[group], problem.upper[group]
        t = rng.choice([0.0, 1.0, rng.random()], len(lower))
        at = lower + t * (upper - lower)
        lack = total - at.sum()
        ends = upper if lack > 0 else lower
        at = at + np.sign(lack) * spread(abs(lack), np.abs(ends - at))
        beta[group] = at
    return beta


@pytest.mark.parametrize("name", STRATEGIES)
@given(seed=st.integers(0, 2**32 - 1))
@drawn(60)
def test_every_start_is_feasible(name, seed):
    rng = np.random.default_rng(seed)
    kind = rng.choice(["c-svc", "svr", "nu-svc", "nu-svr"])
    n = int(rng.integers(4, 25))
    y = rng.choice([-1.0, 1.0], n)
    y[:2] = [1.0, -1.0]
    y = -np.sort(-y)
    C = rng.uniform(0.1, 3.0, n)
    X = rng.normal(size=(n, 2))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)) if rng.random() < 0.5 else X @ X.T
    rows, split, kink, linear = np.arange(n, dtype=np.int32), None, 0.0, y
    sides = y
    if kind == "svr":
        kink, linear, sides = 0.1, rng.normal(size=n), np.zeros(n)
    elif kind == "nu-svc":
        split, linear = int((y > 0).sum()), np.zeros(n)
    elif kind == "nu-svr":
        rows, C = np.tile(rows, 2), np.tile(C, 2)
        split, linear = n, np.tile(rng.normal(size=n), 2)
        sides = np.repeat([1.0, -1.0], n)

    def problem(held_out):
        bound = np.where(held_out[rows], 0.0, C)
        lower = np.where(sides > 0, 0.0, -bound)
        upper = np.where(sides < 0, 0.0, bound)
        whole = Problem(rows, linear, lower, upper, kink, split)
        if split is None:
            return whole, [0.0]
        room = [np.abs(whole.lower[g] + whole.upper[g]).sum() for g in groups(whole)]
        total = 0.3 * min(room)
        signs = [np.sign(sides[g.start]) for g in groups(whole)]
        start = random_point(rng, whole, [s * total for s in signs])
        return (
            Problem(rows, linear, lower, upper, kink, split, start),
            [s * total for s in signs],
        )

    # Hostile folds: of one class, of everything, of nothing, of what the neighbour has.
    masks = [
        rng.random(n) < rng.random(),
        y > 0 if rng.random() < 0.5 else y < 0,
        np.ones(n, dtype=bool),
        np.zeros(n, dtype=bool),
    ]
    before, sums = problem(masks[rng.integers(0, 4)])
    after, wanted = problem(masks[rng.integers(0, 4)])
    beta = random_point(rng, before, sums)
    K_all = K[np.ix_(rows, rows)]
    neighbour = Neighbour(before, beta, linear - K_all @ beta, (0.1, -0.2))
    start = STRATEGIES[name].start(Change(after, neighbour), lambda a, b: K_all[np.ix_(a, b)])

    assert (start >= after.lower).all()
    assert (start <= after.upper).all()
    for group, total in zip(groups(after), wanted, strict=True):
        possible = np.clip(total, after.lower[group].sum(), after.upper[group].sum())
        assert start[group].sum() == pytest.approx(possible, abs=1e-12 * (1 + C.sum()))
