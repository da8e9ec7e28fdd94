"""ATO follows the path to the optimum of the next fold, in every machine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from onefit import _core
from onefit.problem import Problem
from onefit.seeding import STRATEGIES, Change, Neighbour, gradual
from onefit.seeding.members import Members

KINDS = ["c-svc", "svr", "nu-svc", "nu-svr"]
N = 80


def points(seed, repeated=False):
    """Two classes that overlap; the rows in pairs of equal ones, if they are to be repeated."""
    X = np.random.default_rng(seed).normal(size=(N, 3))
    X[: N // 2, 0] += 1.5
    return np.repeat(X[::2], 2, axis=0) if repeated else X


def whole(kind, X, C, seed=0):
    """The problem on all rows; classes are sorted."""
    rng = np.random.default_rng(seed)
    noise = 0.5 * rng.normal(size=N)
    target = X[:, 0] ** 2 + X[:, 1] + noise
    y = np.where(np.arange(N) < N // 2, 1.0, -1.0)
    rows, kink, split, linear, sides = np.arange(N, dtype=np.int32), 0.0, None, y, y
    if kind == "svr":
        kink, linear, sides = 0.3, target, np.zeros(N)
    elif kind == "nu-svc":
        split, linear = N // 2, np.zeros(N)
    elif kind == "nu-svr":
        rows, split, linear = np.tile(rows, 2), N, np.tile(target, 2)
        sides = np.repeat([1.0, -1.0], N)
    lower, upper = np.where(sides > 0, 0.0, -C), np.where(sides < 0, 0.0, C)
    start = None
    if split is not None:
        total = 0.4 * C * split
        before = C * np.arange(split)
        start = np.clip(total - before, 0.0, C)
        start = np.concatenate((start, -start))
    return Problem(rows, linear, lower, upper, kink, split, start)


def store_of(X, kernel):
    K = X @ X.T if kernel == "linear" else np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    return _core.KernelStore.from_matrix(K, np.arange(N, dtype=np.int32), 1 << 26)


def folds(problem, store, bounds, tol):
    """Solutions of folds: cold, and each from the fold before."""
    before = None
    for c in bounds:
        fold = problem.with_bounds(c)
        cold = _core.solve(store, [fold], tol=tol)[0]
        if before is None:
            before = fold, cold
            continue
        neighbour = Neighbour(before[0], before[1].beta, before[1].gradient, before[1].offsets)

        def entries(a, b, rows=fold.rows):
            return store.block(rows[a], rows[b]).astype(np.float64)

        start = STRATEGIES["ato"].start(Change(fold, neighbour), entries)
        seeded = _core.solve(store, [fold.started(start)], tol=tol)[0]
        before = fold, seeded
        yield cold, seeded


def held_out(C, k=5, seed=0):
    """Bounds of k folds."""
    number = np.random.default_rng(seed).permutation(N) % k
    return [np.where(number == f, 0.0, C) for f in range(k)]


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("kind", KINDS)
def test_the_start_is_the_optimum(kind, C, repeated, kernel):
    X = points(1, repeated)
    problem = whole(kind, X, C)
    for cold, seeded in folds(problem, store_of(X, kernel), held_out(C), 1e-3):
        assert seeded.n_iter <= cold.n_iter // 10
        assert seeded.gap < 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_is_that_of_a_cold_start(kind):
    X = points(2)
    problem = whole(kind, X, 3.0)
    for cold, seeded in folds(problem, store_of(X, "rbf"), held_out(3.0), 1e-9):
        assert_allclose(seeded.objective, cold.objective, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_that_change_with_the_fold(kind):
    X = points(3)
    problem = whole(kind, X, 2.0)
    bounds = [c * w for c, w in zip(held_out(2.0), [1.0, 1.3, 0.8, 0.81, 1.5], strict=True)]
    for cold, seeded in folds(problem, store_of(X, "rbf"), bounds, 1e-3):
        assert seeded.n_iter <= cold.n_iter // 10


def test_infinite_bounds():
    X = points(4)
    X[: N // 2, 0] += 8.0  # separable
    problem = whole("c-svc", X, np.inf)
    for cold, seeded in folds(problem, store_of(X, "rbf"), held_out(np.inf), 1e-3):
        assert seeded.n_iter <= cold.n_iter // 10


def test_folds_without_a_class():
    X = points(5)
    problem = whole("c-svc", X, 1.0)
    first = np.where(np.arange(N) < N // 2, 0.0, 1.0)
    for cold, seeded in folds(problem, store_of(X, "rbf"), [first, 1.0 - first, first], 1e-3):
        assert cold.n_iter == seeded.n_iter == 0
        assert not seeded.beta.any()
    everything = np.ones(N)
    nothing = np.zeros(N)
    for cold, seeded in folds(
        problem, store_of(X, "rbf"), [first, everything, nothing, everything, first], 1e-3
    ):
        assert_allclose(seeded.objective, cold.objective, atol=1e-4)
        assert seeded.n_iter <= cold.n_iter // 10


@pytest.mark.parametrize("name", ["MOST_STEPS", "MOST_ENTRIES", "MOST_READ"])
def test_a_path_that_is_given_up_is_a_start_too(name, monkeypatch):
    monkeypatch.setattr(gradual, name, 0)
    X = points(6)
    for cold, seeded in folds(whole("svr", X, 3.0), store_of(X, "rbf"), held_out(3.0), 1e-7):
        assert_allclose(seeded.objective, cold.objective, rtol=1e-6)


@pytest.mark.parametrize("split", [0, 12, 30])
def test_members_follow(split):
    """Against the bordered system itself, as rows join and leave."""
    rng = np.random.default_rng(split)
    A = rng.normal(size=(30, 20))
    A[7] = A[3]
    K, group = A @ A.T, (np.arange(30) >= split).astype(np.intp)
    first = np.array([0, 3, 5, 25])
    members = Members(group, first.copy(), K[first])
    for turn in range(60):
        if turn % 3 == 2:
            members.leave(int(rng.integers(len(members))))
        else:
            row = int(rng.choice(np.setdiff1d(np.arange(30), members.rows)))
            size = len(members)
            joined = members.join(row, K[row])
            assert len(members) == size + joined
            assert joined or size >= 20 or row in (3, 7)
        rows = members.rows
        E = np.eye(2)[group[rows]]
        E = E[:, E.any(axis=0)]
        pull, lack = rng.normal(size=30), rng.normal(size=2)
        change, slope, offsets = members.follow(pull, lack)
        present = np.unique(group[rows])
        assert_allclose(E.T @ change, lack[present], atol=1e-8)
        assert_allclose(slope, -K[:, rows] @ change, atol=1e-8)
        assert_allclose((pull + slope - offsets[group])[rows], 0.0, atol=1e-7)
    assert not members.join(int(rows[0]), K[rows[0]])
