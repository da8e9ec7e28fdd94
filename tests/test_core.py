"""The compiled core through its Python face, against the naive oracles."""

import sys

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from strategies import drawn

from onefit import _core
from onefit.kernels import Kernel, kernel_values, make_store
from onefit.problem import class_pairs

PLENTY = 1 << 30
KERNELS = [
    Kernel("linear"),
    Kernel("poly", gamma=0.3, coef0=1.0, degree=2),
    Kernel("rbf", gamma=0.2),
    Kernel("rbf", gamma=30.0),
    Kernel("sigmoid", gamma=0.1, coef0=-0.5),
]


def rows(n=90, d=5, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def matrix(kernel, X, Z=None):
    return naive.kernel_matrix(
        kernel.name,
        X,
        X if Z is None else Z,
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
    )


def c_svc(y, C=1.0, **start):
    return _core.Problem(
        np.arange(len(y), dtype=np.int32), y, np.minimum(0, y * C), np.maximum(0, y * C), **start
    )


def labels(X, seed=1):
    noise = np.random.default_rng(seed).normal(size=len(X))
    return np.where(X[:, 0] + noise > 0, 1.0, -1.0)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}-{k.gamma:g}")
@pytest.mark.parametrize("form", ["float64", "float32", "csr", "csr_array"])
@pytest.mark.parametrize("starts", [(0,), (0, 20, 64)])
def test_rows_of_a_store(kernel, form, starts):
    X = rows()
    if form.startswith("csr"):
        X[np.random.default_rng(2).random(X.shape) < 0.7] = 0
        given_X = getattr(sp, form.replace("csr", "csr_matrix") if form == "csr" else form)(X)
    else:
        given_X = X.astype(form)
        X = given_X.astype(np.float64)
    store = make_store(given_X, kernel, PLENTY, block_starts=starts)
    expected = matrix(kernel, X)
    for i in range(len(store)):
        np.testing.assert_allclose(store.row(i), expected[i], rtol=1e-6, atol=1e-6)
    assert store.entries_evaluated == len(X) ** 2


def test_gammas_share_distances():
    X = rows()
    distances = make_store(X, Kernel("distance"), PLENTY)
    for gamma in (0.05, 0.5, 5.0):
        store = _core.KernelStore.from_distances(distances, gamma, PLENTY)
        np.testing.assert_allclose(store.row(7), matrix(Kernel("rbf", gamma), X)[7], atol=1e-6)
    assert distances.entries_evaluated == len(X)  # one row, once


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}-{k.gamma:g}")
@pytest.mark.parametrize("sparse", [False, True])
def test_values_at_new_points_are_in_double_precision(kernel, sparse, monkeypatch):
    monkeypatch.setattr("onefit.kernels.BLOCK_BYTES", 8 * 90 * 7)  # several blocks, the last short
    X, Z = rows(seed=3), rows(40, seed=4)
    as_given = sp.csr_array if sparse else np.asarray
    values = np.empty((40, 90))
    for block, part in kernel_values(as_given(Z), as_given(X), kernel):
        values[block] = part
    np.testing.assert_allclose(values, matrix(kernel, Z, X), rtol=1e-12, atol=1e-13)


def test_the_cache_is_no_larger_than_the_budget():
    X = rows(3000)
    budget = 8 << 20
    store = make_store(X, Kernel("rbf"), budget)
    assert store.capacity * 4 * 3000 <= budget
    assert store.capacity >= 500


@drawn(60)
@given(data=st.data())
def test_solutions_of_drawn_problems(data):
    """Any bounds, kink and groups: feasible, optimal, and with the objective of the oracle."""
    n = data.draw(st.integers(2, 40), label="n")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), label="seed"))
    X = rng.normal(size=(n, 3))
    if data.draw(st.booleans(), label="duplicates"):
        X[n // 2 :] = X[: n - n // 2]
    p = rng.normal(size=n)
    kink = data.draw(st.sampled_from([0.0, 0.125, 1.0]), label="kink")
    hi = rng.choice([0.0, 0.5, 2.0, 10.0], size=n)
    lo = -rng.choice([0.0, 0.5, 2.0], size=n)
    split = data.draw(st.integers(0, n), label="split")
    start = np.zeros(n)
    if data.draw(st.booleans(), label="start"):
        start = rng.uniform(lo, hi)
    store = make_store(X, Kernel("rbf", 0.3), PLENTY)
    problem = _core.Problem(
        np.arange(n, dtype=np.int32), p, lo, hi, kink=kink, split=split, start=start
    )
    (solution,) = _core.solve(store, [problem], tol=1e-8)

    assert solution.status == _core.Status.converged
    assert solution.gap < 1e-8
    K = np.array([store.row(i) for i in range(n)], dtype=np.float64)
    K = (K + K.T) / 2
    groups = (np.arange(n) >= split).astype(int)
    oracle = naive.dual(K, p, lo, hi, epsilon=kink, groups=groups)
    assert naive.kkt_gap(oracle, solution.beta) < 1e-6
    for group in (0, 1):
        chosen = groups == group
        np.testing.assert_allclose(
            solution.beta[chosen].sum(), start[chosen].sum(), atol=1e-12 * (1 + n)
        )
    expected = naive.solve(oracle, start=start, tol=1e-9)
    np.testing.assert_allclose(solution.objective, expected.objective, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(solution.gradient, p - K @ solution.beta, atol=1e-6)


@pytest.mark.parametrize("name", _core.instruction_sets())
def test_every_instruction_set_solves_the_same(name):
    X = rows(500)
    y = labels(X)
    widest = _core.instruction_set()
    reference = _core.solve(make_store(X, Kernel("rbf"), PLENTY), [c_svc(y)], tol=1e-8)[0]
    _core.use_instruction_set(name)
    try:
        assert _core.instruction_set() == name
        other = _core.solve(make_store(X, Kernel("rbf"), PLENTY), [c_svc(y)], tol=1e-8)[0]
    finally:
        _core.use_instruction_set(widest)
    np.testing.assert_allclose(other.objective, reference.objective, rtol=1e-7)
    np.testing.assert_allclose(other.gradient, reference.gradient, atol=1e-5)


def test_a_start_cuts_iterations_and_not_the_answer():
    X = rows(400)
    y = labels(X)
    store = make_store(X, Kernel("rbf"), PLENTY)
    cold = _core.solve(store, [c_svc(y, 10.0)], tol=1e-6)[0]
    again = _core.solve(store, [c_svc(y, 10.0, start=cold.beta)], tol=1e-6)[0]
    given_gradient = c_svc(y, 10.0, start=cold.beta, start_gradient=cold.gradient)
    assert again.n_iter == 0
    assert _core.solve(store, [given_gradient], tol=1e-6)[0].n_iter == 0
    near_cold = _core.solve(store, [c_svc(y, 11.0)], tol=1e-3)[0]
    near = _core.solve(store, [c_svc(y, 11.0, start=cold.beta)], tol=1e-3)[0]
    assert near.n_iter < near_cold.n_iter / 2
    np.testing.assert_allclose(near.objective, near_cold.objective, rtol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("poly", gamma=1.0, degree=2)])
def test_kernels_of_low_rank_reach_a_tight_tolerance(kernel, seed):
    """Float32 entries do not do here: the solution is that of entries in double precision."""
    X = rows(40, 1, seed)
    y = labels(X, seed + 100)
    order = np.argsort(-y, kind="stable")
    X, y = X[order], y[order]
    split = int((y > 0).sum())
    lower, upper = np.minimum(0, 10 * y), np.maximum(0, 10 * y)
    start = np.where(y > 0, 25 / split, -25 / (40 - split))
    everything = np.arange(40, dtype=np.int32)
    problem = _core.Problem(everything, np.zeros(40), lower, upper, split=split, start=start)
    store = make_store(X, kernel, PLENTY)
    (solution,) = _core.solve(store, [problem], tol=1e-9, max_iter=2_000_000)

    assert solution.status == _core.Status.converged
    assert solution.n_iter < 100_000
    K = matrix(kernel, X)
    oracle = naive.dual(K, np.zeros(40), lower, upper, groups=(everything >= split).astype(int))
    assert naive.kkt_gap(oracle, solution.beta) < 1.1e-9
    np.testing.assert_allclose(solution.gradient, -K @ solution.beta, rtol=0, atol=1e-11)


def test_a_solution_outlives_its_store():
    X = rows()
    (solution,) = _core.solve(make_store(X, Kernel("rbf"), PLENTY), [c_svc(labels(X))])
    beta = solution.beta
    del solution
    assert np.isfinite(beta).all()
    assert not beta.flags.writeable


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"linear": np.ones(3)}, "linear has 3 entries, rows has 90"),
        ({"lower": np.ones(3)}, "lower has 3 entries"),
        ({"upper": np.ones(91)}, "upper has 91 entries"),
        ({"start": np.ones(2)}, "start has 2 entries"),
        ({"start": np.full(90, 5.0)}, "start leaves the bounds at entry 0"),
        ({"start": np.full(90, np.nan)}, "start leaves the bounds at entry 0"),
        ({"start_gradient": np.zeros(90)}, "start_gradient is given without start"),
        ({"split": 91}, "split is larger than the problem"),
    ],
)
def test_problems_are_checked(change, message):
    parts = {
        "rows": np.arange(90, dtype=np.int32),
        "linear": np.ones(90),
        "lower": np.zeros(90),
        "upper": np.ones(90),
    }
    with pytest.raises(ValueError, match=message):
        _core.Problem(**{**parts, **change})


def test_rows_that_are_not_in_the_store_are_refused():
    store = make_store(rows(10), Kernel("rbf"), PLENTY)
    for bad in (-1, 10):
        problem = _core.Problem(
            np.array([bad], dtype=np.int32), np.ones(1), np.zeros(1), np.ones(1)
        )
        with pytest.raises(ValueError, match=f"row {bad} is not in the store"):
            _core.solve(store, [problem])
    with pytest.raises(IndexError, match="row 10"):
        store.row(10)


@pytest.mark.parametrize("row", [-1, 10])
def test_rows_that_are_not_in_the_data_are_refused(row):
    chosen = np.array([0, row])
    with pytest.raises(ValueError, match=f"row {row} is not in the data"):
        make_store(rows(10), Kernel("rbf"), PLENTY, rows=chosen)
    with pytest.raises(ValueError, match=f"row {row} is not in the matrix"):
        make_store(np.eye(10), None, PLENTY, rows=chosen)


def folds_of_three_classes():
    """A store of rows sorted by class, where classes start, their pairs, and bounds of folds."""
    starts, n = [0, 20, 45, 60], 60
    bounds = np.ones((4, n))
    for row in range(n):
        bounds[row % 4, row] = 0.0
    problems = _core.c_svc_pairs(starts, np.ones(n))
    return make_store(rows(n), Kernel("rbf", gamma=0.2), PLENTY), starts, problems, bounds


def test_paths_keep_what_they_use_and_let_it_go():
    store, _, problems, bounds = folds_of_three_classes()
    problem, solution, memory = problems[0], _core.solve(store, problems[:1])[0], _core.PathMemory()
    used = (store, problem, solution, memory)
    before = [sys.getrefcount(x) for x in used]
    paths = _core.FoldPaths(store, problem, solution, 10**7, 1e9, memory)
    assert paths.available
    assert [sys.getrefcount(x) for x in used] == [n + 1 for n in before]
    assert all(end is not None for end in paths.ends(list(bounds), 1e-3))
    with pytest.raises(ValueError, match="an entry for each row of the store"):
        paths.ends([np.ones(59)], 1e-3)
    with pytest.raises(ValueError, match="paths are of another problem"):
        _core.solve_together(store, problems[1:2], bounds, [None], [paths])
    with pytest.raises(ValueError, match="different lengths"):
        _core.solve_together(store, problems[:1], bounds, [None], [paths, None])
    del paths
    assert [sys.getrefcount(x) for x in used] == before


def test_paths_whose_memory_was_taken_are_not_available():
    store, _, problems, bounds = folds_of_three_classes()
    problem, solution, memory = problems[0], _core.solve(store, problems[:1])[0], _core.PathMemory()
    paths = _core.FoldPaths(store, problem, solution, 10**7, 1e9, memory)
    assert paths.available
    memory.clear()
    assert not paths.available
    assert paths.ends(list(bounds), 1e-3) == [None] * len(bounds)
    solved = _core.solve_together(store, problems[:1], bounds, [solution], [paths])
    assert solved.converged == [True] * len(bounds)
    assert _core.FoldPaths(store, problem, solution, 10**7, 1e9, memory).available


def test_a_part_is_joined_once():
    store, _, problems, bounds = folds_of_three_classes()
    part = _core.solve_together(store, problems, bounds, [None] * 3)
    with pytest.raises(ValueError, match="a part is given twice"):
        _core.FoldSolutions.joined([part, part])
    assert len(part) == len(bounds)


def test_signs_are_of_solutions_of_the_same_problem():
    store, _, problems, _ = folds_of_three_classes()
    [other] = _core.solve(store, problems[1:2])
    with pytest.raises(ValueError, match="other variables than its problem"):
        _core.proven_sign(store, problems[0], other, 0)


class NoTruth:
    def __bool__(self):
        raise RuntimeError("neither true nor false")


@pytest.mark.parametrize("said", [None, 0, "", [], np.False_])
def test_what_a_callback_says_is_true_or_false(said):
    store, _, problems, bounds = folds_of_three_classes()
    called = []

    def finished(*what):
        called.append(what)
        return said

    given = ([store] * 2, problems[:2], [bounds[0]] * 2, [[1.0], [1.0]], [None] * 2)
    assert _core.solve_chains(*given, finished=finished) == [[], []]
    assert len(called) == 2
    called.clear()
    said = 1
    _core.solve_chains(*given, finished=finished)
    assert len(called) == 1
    said = NoTruth()
    with pytest.raises(RuntimeError, match="neither true nor false"):
        _core.solve_chains(*given, finished=finished)


@pytest.mark.parametrize("said", [None, [], 0, NoTruth()])
def test_what_the_progress_says_is_true_or_false(said):
    n = 1000
    signs, C = np.where(np.arange(n) % 3, 1.0, -1.0), 1e4
    store = make_store(rows(n), Kernel("rbf", gamma=2.0), PLENTY)
    given = (
        np.arange(n, dtype=np.int32),
        signs,
        np.minimum(C * signs, 0),
        np.maximum(C * signs, 0),
    )
    problems = [_core.Problem(*given)] * 1000  # more than can be solved before it is called
    called = []

    def progress(share):
        called.append(share)
        return said if len(called) < 3 else "stop"

    if isinstance(said, NoTruth):
        with pytest.raises(RuntimeError, match="neither true nor false"):
            _core.solve(store, problems, progress=progress)
        assert len(called) == 1
    else:
        solutions = _core.solve(store, problems, progress=progress)
        assert len(called) == 3
        assert solutions[-1].status == _core.Status.interrupted


def test_lines_are_checked():
    store, starts, _, bounds = folds_of_three_classes()
    query = np.arange(3, dtype=np.int32)
    given = (starts, [bounds[0]], [[1.0]], [query], [query], 0.01, 1e-8)
    with pytest.raises(ValueError, match="different lengths"):
        _core.solve_cells([store], [], *given, finished=lambda *_: None)


def test_votes_of_folds_that_are_not_there():
    store, starts, problems, bounds = folds_of_three_classes()
    solved = _core.solve_together(store, problems, bounds, [None] * 3)
    query = np.arange(2, dtype=np.int32)
    for first in (4, 2**64 - 1):
        with pytest.raises(ValueError, match="a solution for each fold"):
            _core.held_out_labels(store, starts, solved, first, query, [1, 1], 1e-3)


def test_folds_in_one_piece():
    store, _, problems, bounds = folds_of_three_classes()
    full = _core.solve(store, problems)
    solved = _core.solve_together(store, problems, bounds, [*full[:2], None])
    assert len(solved) == 4
    assert solved.converged == [True] * 4
    for number, n_iter in enumerate(solved.n_iter):
        assert n_iter == sum(s.n_iter for s in solved.fold(number)) > 0
    apart = [
        _core.solve_together(store, [problem], bounds, [start])
        for problem, start in zip(problems, [*full[:2], None], strict=True)
    ]
    joined = _core.FoldSolutions.joined(apart)
    assert [len(part) for part in apart] == [0, 0, 0]
    assert joined.n_iter == solved.n_iter
    for number, bound in enumerate(bounds):
        starts_of_fold = [full[0], full[1], None]
        alone = _core.solve_folds(store, problems, [bound] * 3, starts_of_fold, same_kernel=True)
        for mine, other, expected in zip(
            solved.fold(number), joined.fold(number), alone, strict=True
        ):
            np.testing.assert_array_equal(mine.beta, expected.beta)
            np.testing.assert_array_equal(other.beta, expected.beta)
            assert mine.offset == expected.offset
    # A fold outlives the object that it is part of.
    kept = solved.fold(3)
    beta = kept[1].beta.copy()
    del solved, joined
    np.testing.assert_array_equal(kept[1].beta, beta)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bounds": np.ones((2, 59))}, "an entry for each row of the store"),
        ({"bounds": np.ones((0, 60))}, "bounds of a fold"),
        ({"problems": []}, "there must be problems"),
        ({"solutions": [None] * 2}, "different lengths"),
        ({"solutions": "of another problem"}, "other variables"),
    ],
)
def test_folds_in_one_call_are_checked(change, message):
    store, _, problems, bounds = folds_of_three_classes()
    given = {"problems": problems, "bounds": bounds, "solutions": [None] * 3} | change
    if isinstance(given["solutions"], str):
        given["solutions"] = _core.solve(store, problems)[::-1]
    with pytest.raises(ValueError, match=message):
        _core.solve_together(store, **given)


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("separation", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("tol", [1e-3, 0.3])
def test_votes_are_those_of_all_pairs(blocks, separation, tol):
    # Classes that overlap: pairs of a row's own class decide some rows, all pairs the others.
    sizes = np.array([30, 45, 25, 40])
    starts, n = [0, *np.cumsum(sizes).tolist()], int(sizes.sum())
    codes = np.arange(4).repeat(sizes)
    X = rows(n, seed=3) + separation * np.eye(4, rows(1).shape[1])[codes]
    bounds = np.ones((5, n))
    bounds[np.arange(n) % 5, np.arange(n)] = 0.0
    store = make_store(X, Kernel("rbf", gamma=0.2), PLENTY)
    problems = _core.c_svc_pairs(starts, np.ones(n))
    solved = _core.solve_together(store, problems, bounds, [None] * 6)
    queries = [np.flatnonzero(bound == 0).astype(np.int32) for bound in bounds]
    asked = store.in_blocks(PLENTY, starts[:-1]) if blocks else store
    labels, right, small = _core.held_out_labels(
        asked, starts, solved, 0, np.concatenate(queries), [len(q) for q in queries], tol
    )
    K = np.array([store.row(row) for row in range(n)], dtype=np.float64)
    decided_by = np.zeros(3, dtype=int)  # own pairs, those of a rival, all
    for number, rows_of_fold in enumerate(queries):
        numbers = np.arange(len(rows_of_fold))
        own = codes[rows_of_fold]
        margins = np.full((len(rows_of_fold), 4, 4), np.inf)  # of a class over another
        for (i, j), solution in zip(class_pairs(4), solved.fold(number), strict=True):
            members = np.r_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
            value = K[np.ix_(rows_of_fold, members)] @ solution.beta + solution.offset
            margins[:, i, j], margins[:, j, i] = value, -value
        wins = margins > 0  # values of exactly 0 do not occur
        votes = wins.sum(axis=2) - 1
        got = labels[: len(rows_of_fold)]
        labels = labels[len(rows_of_fold) :]
        np.testing.assert_array_equal(got, votes.argmax(axis=1))
        assert right[number] == np.count_nonzero(got == codes[rows_of_fold])
        # What is looked at: the pairs of the own class; those of the class that beats it by most,
        # if that wins them all, or else all pairs. In blocks always all.
        rivals = margins[numbers, own].argmin(axis=1)
        is_small = np.abs(margins) < tol
        own_wins = wins[numbers, own].all(axis=1)
        rival_wins = ~own_wins & wins[numbers, rivals].all(axis=1) & (not blocks)
        left = ~own_wins & ~rival_wins
        expected = is_small[numbers, own].sum() + is_small[numbers, rivals][rival_wins].sum()
        expected += is_small[left].sum() / 2  # each pair is there twice
        looked_at = 3 * len(own) + 3 * rival_wins.sum() + 6 * left.sum()
        assert small[number] == pytest.approx(expected / looked_at)
        decided_by += [own_wins.sum(), rival_wins.sum(), left.sum()]
    assert decided_by[0] > 0
    assert decided_by[2] > 0 or separation > 0
    assert decided_by[1] > 0 or blocks


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"starts": [0, 20, 45]}, "starts does not fit"),
        ({"starts": [0, 45, 60]}, "for each fold and pair"),
        ({"starts": [0, 21, 45, 60]}, "other variables than its pair"),
        ({"first": 3}, "for each fold and pair"),
        ({"sizes": [1, 2]}, "sum up"),
        ({"queries": np.array([0, 60], dtype=np.int32)}, "row 60 is not in the store"),
    ],
)
def test_votes_are_checked(change, message):
    store, starts, problems, bounds = folds_of_three_classes()
    solved = _core.solve_together(store, problems, bounds, [None] * 3)
    queries = np.array([0, 59], dtype=np.int32)
    given = {"starts": starts, "first": 0, "queries": queries, "sizes": [1, 1]} | change
    with pytest.raises(ValueError, match=message):
        _core.held_out_labels(store, solutions=solved, tol=1e-3, **given)
    with pytest.raises(IndexError):
        solved.fold(4)
    with pytest.raises(ValueError, match="different folds"):
        _core.FoldSolutions.joined(
            [solved, _core.solve_together(store, problems, bounds[:2], [None] * 3)]
        )


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2), max_size=40))
def test_classes_are_those_of_numpy(labels):
    labels = np.array(labels, dtype=np.int64)
    classes, codes, order, starts = _core.classes_of(labels)
    expected, expected_codes = np.unique(labels, return_inverse=True)
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, expected_codes)
    np.testing.assert_array_equal(order, np.argsort(expected_codes, kind="stable"))
    assert starts == [0, *np.cumsum(np.bincount(expected_codes)).tolist()]


def test_pairs_of_classes():
    starts, bounds = [0, 2, 5, 6], np.array([1.0, 2.0, 3.0, 0.0, 5.0, 6.0])
    pairs = _core.c_svc_pairs(starts, bounds)
    assert [problem.rows.tolist() for problem in pairs] == [
        [0, 1, 2, 3, 4],
        [0, 1, 5],
        [2, 3, 4, 5],
    ]
    for problem, (i, _) in zip(pairs, class_pairs(3), strict=True):
        first = (problem.rows >= starts[i]) & (problem.rows < starts[i + 1])
        signs, of_rows = np.where(first, 1.0, -1.0), bounds[problem.rows]
        np.testing.assert_array_equal(problem.linear, signs)
        np.testing.assert_array_equal(problem.lower, np.minimum(signs * of_rows, 0.0))
        np.testing.assert_array_equal(problem.upper, np.maximum(signs * of_rows, 0.0))
        assert (problem.kink, problem.split, problem.two_groups) == (0.0, len(problem), False)
    for wrong in ([0, 6], [0, 2, 5], [1, 2, 6], [0, 5, 2, 6]):
        with pytest.raises(ValueError, match="starts does not fit"):
            _core.c_svc_pairs(wrong, bounds)


@pytest.mark.parametrize("held_out", [True, False])
def test_bounds_of_folds(held_out):
    starts, bounds = [0, 3, 7], np.arange(1.0, 8.0)
    folds = [[6, 0, 2], [1, 3, 4, 5], [5, 1]]
    expected = np.empty((3, 7))
    for fold, some in zip(expected, folds, strict=True):
        fold[:] = bounds if held_out else 0.0
        fold[some] = 0.0 if held_out else bounds[some]
    numbers = np.concatenate(folds).astype(np.int32)
    given, sizes = (bounds, starts, numbers), list(map(len, folds))
    found = _core.bounds_of_folds(*given, sizes, held_out)
    np.testing.assert_array_equal(found, expected)
    # A fold without a row of the first class.
    all_of_one, others = np.array([0, 1, 2], dtype=np.int32), np.array([3, 5], dtype=np.int32)
    lacking = all_of_one if held_out else others
    assert _core.bounds_of_folds(bounds, starts, lacking, [len(lacking)], held_out) is None
    for wrong in ([3, 4], [3, 4, 3], [2**64 - 2, 11], []):
        with pytest.raises(ValueError, match="sum up"):
            _core.bounds_of_folds(*given, wrong, held_out)
    with pytest.raises(ValueError, match="starts does not fit"):
        _core.bounds_of_folds(bounds, [0, 3, 6], numbers, sizes, held_out)
    for row in (-1, 7):
        with pytest.raises(ValueError, match=f"row {row} is not in the store"):
            _core.bounds_of_folds(bounds, starts, np.array([row], dtype=np.int32), [1], held_out)


@pytest.mark.parametrize("shape", [(0,), (7,), (33, 3)])
def test_finite(shape):
    values = np.random.default_rng(0).uniform(-1.0, 1.0, shape) * 1.7e308
    assert _core.is_finite(values)
    for at in range(values.size):
        for wrong in (np.nan, np.inf, -np.inf):
            changed = values.copy()
            changed.flat[at] = wrong
            assert not _core.is_finite(changed)


def test_unknown_instruction_set():
    with pytest.raises(ValueError, match="does not have the instruction set sse9"):
        _core.use_instruction_set("sse9")


def test_a_budget_that_cannot_be_had_names_the_parameter():
    # More rows than memory has room for the smallest number of slots.
    with pytest.raises(ValueError, match="rows; at most"):
        make_store(sp.csr_array((2**31, 1)), Kernel("rbf"), PLENTY)
