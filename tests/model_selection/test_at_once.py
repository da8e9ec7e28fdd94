"""Folds that are solved and voted on in the core, against the same folds made one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import model_selection, svm
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from onefit import SVC, cross_validate
from onefit.folds import LEAST_VARIABLES, MANY_FOLDS, choose
from onefit.model_selection import at_once, validation


def data(n, n_classes, seed=0, features=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    return rng.normal(size=(n, features)) + 0.8 * rng.normal(size=(n_classes, features))[y], y


def both_ways(monkeypatch, estimator, X, y, **how):
    """What cross_validate says, at once and fold by fold."""
    calls = []

    def counted(crossfit):
        found = at_once_scores(crossfit)
        calls.append(found is not None)
        return found

    at_once_scores = at_once.scores
    monkeypatch.setattr(validation.at_once, "scores", counted)
    fast = cross_validate(estimator, X, y, **how)
    monkeypatch.setattr(validation.at_once, "scores", lambda crossfit: None)
    slow = cross_validate(estimator, X, y, **how)
    monkeypatch.setattr(validation.at_once, "scores", at_once_scores)
    return fast, slow, calls == [True]


def assert_same(fast, slow, rounding=0.0):
    assert fast.keys() == slow.keys()
    np.testing.assert_array_equal(fast["test_score"], slow["test_score"])
    assert len(fast["fit_time"]) == len(fast["score_time"]) == len(slow["fit_time"])
    for mine, theirs in zip(fast.ledger.folds, slow.ledger.folds, strict=True):
        assert mine.n_iter == pytest.approx(theirs.n_iter, rel=rounding, abs=0)
        assert mine.seeded_from == theirs.seeded_from
    assert (fast.ledger.full is None) == (slow.ledger.full is None)
    assert fast.ledger.n_iter == pytest.approx(slow.ledger.n_iter, rel=rounding, abs=0)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("seeding", ["none", "avg", "follow"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"kernel": "linear"},
        {"gamma": 0.2, "C": 10.0},
        {"gamma": 0.2, "class_weight": {0: 2.0}},
        {"kernel": "poly", "gamma": 0.1, "coef0": 1.0},
    ],
    ids=str,
)
def test_scores_and_ledger(monkeypatch, n_classes, seeding, make, parameters):
    X, y = data(240, n_classes)
    X[np.abs(X) < 0.3] = 0.0
    fast, slow, used = both_ways(monkeypatch, SVC(**parameters), make(X), y, cv=4, seeding=seeding)
    assert used
    assert_same(fast, slow)


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("most_rows", [0, 5000])
@pytest.mark.parametrize("features", [4, 60])  # entries of few are cheaper than reading them
@pytest.mark.parametrize("cache_size", ["auto", 0.05])
def test_however_they_are_shared_out(monkeypatch, n_jobs, most_rows, features, cache_size):
    monkeypatch.setattr(at_once, "MOST_ROWS", most_rows)
    X, y = data(300, 4, seed=1, features=features)
    names = np.array(["b", "a", "d", "c"])[y]
    estimator = SVC(gamma=1 / features, cache_size=cache_size)
    fast, slow, used = both_ways(
        monkeypatch,
        estimator,
        X,
        names,
        cv=StratifiedKFold(7, shuffle=True, random_state=0),
        n_jobs=n_jobs,
        seeding="avg",
    )
    assert used
    assert_same(fast, slow)


def test_values_that_decide_nothing_do_not_count(monkeypatch):
    # Well apart, each row is decided by the pairs of its class; more than one in a hundred values
    # of the other pairs are smaller than the tolerance.
    X, y = data(300, 4, features=60)
    how = {"cv": StratifiedKFold(7, shuffle=True, random_state=0), "seeding": "avg"}
    fast, slow, used = both_ways(monkeypatch, SVC(gamma=1 / 60), X, y, **how)
    assert used
    np.testing.assert_array_equal(fast["test_score"], slow["test_score"])
    assert fast.ledger.n_iter < slow.ledger.n_iter


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("seeding", ["none", "avg", "follow"])
@pytest.mark.parametrize("C", [1.0, 1e-6])  # with free rows and without
def test_pair_by_pair(monkeypatch, n_jobs, seeding, C):
    monkeypatch.setattr(at_once, "MOST_ROWS", 0)
    X, y = data(400, 4)
    asked = []
    better = at_once._are_pairs_better
    monkeypatch.setattr(
        at_once, "_are_pairs_better", lambda *given: asked.append(better(*given)) or asked[-1]
    )
    how = {"cv": 5, "n_jobs": n_jobs, "seeding": seeding, "progress": False}
    fast, slow, used = both_ways(monkeypatch, SVC(gamma=0.2, C=C), X, y, **how)
    assert used
    assert asked == [True]
    # Entries at the edges of blocks are rounded in another way: iterations may differ by a few.
    assert_same(fast, slow, rounding=0.05)
    assert fast.ledger.kernel_entries > 0


@pytest.mark.parametrize(
    "cv", [KFold(5), ShuffleSplit(6, train_size=0.5, test_size=0.2, random_state=0)]
)
def test_any_splitter(monkeypatch, cv):
    fast, slow, used = both_ways(monkeypatch, SVC(gamma=0.3), *data(200, 3), cv=cv)
    assert used
    assert_same(fast, slow)


@pytest.mark.parametrize(
    ("parameters", "how"),
    [
        ({"gamma": "scale"}, {}),
        ({"gamma": 0.2, "class_weight": "balanced"}, {}),
        ({"gamma": 0.2, "break_ties": True}, {}),
        ({"gamma": 0.2}, {"seeding": "sir"}),
        ({"gamma": 0.2}, {"params": {"sample_weight": np.linspace(0.5, 2, 150)}}),
        ({"gamma": 0.2}, {"cv": [(np.flatnonzero(np.arange(150) > 40), np.arange(41))] * 2}),
    ],
)
def test_folds_that_differ_in_more_than_their_rows(monkeypatch, parameters, how):
    X, y = data(150, 3)
    if "cv" in how:  # a class that is held out as a whole
        y = np.sort(y)
        how = {"cv": [(np.flatnonzero(y > 0), np.flatnonzero(y == 0))]}
    fast, slow, used = both_ways(monkeypatch, SVC(**parameters), X, y, **how)
    assert not used
    assert_same(fast, slow)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_folds_whose_values_are_all_small(monkeypatch, n_classes):
    # The kernel matrix is almost the identity: folds are solved on until values have a sign.
    X, y = data(120, n_classes, features=2)
    solved_on = []
    decided = at_once._decided
    monkeypatch.setattr(
        at_once, "_decided", lambda *given: solved_on.append(given[2]) or decided(*given)
    )
    fast, slow, used = both_ways(monkeypatch, SVC(gamma=300.0, tol=0.1), X, y, cv=5)
    assert used
    assert solved_on
    assert_same(fast, slow)


def test_no_free_rows_and_early_ends(monkeypatch):
    X, y = data(150, 3)
    fast, slow, used = both_ways(monkeypatch, SVC(gamma=0.2, C=1e-6), X, y, seeding="avg")
    assert used
    assert_same(fast, slow)
    with pytest.warns(ConvergenceWarning) as warned:
        fast, slow, used = both_ways(monkeypatch, SVC(gamma=0.2, max_iter=5), X, y, cv=4)
    assert used
    assert_same(fast, slow)
    assert len(warned) == 8


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_many_folds_against_scikit_learn(n_classes, C):
    # Most folds hold out no row with a coefficient in some pair, whose solution is then known.
    X, y = data(200, n_classes, seed=3)
    how = {"gamma": 0.2, "C": C, "tol": 1e-6}
    cv = StratifiedKFold(min(40, np.bincount(y).min()))
    mine = cross_validate(SVC(**how), X, y, cv=cv)
    theirs = model_selection.cross_validate(svm.SVC(**how), X, y, cv=cv)
    np.testing.assert_array_equal(mine["test_score"], theirs["test_score"])
    assert {fold.seeded_from for fold in mine.ledger.folds} == {"all rows"}
    assert mine.ledger.full is not None


def test_which_folds_start_from_all_rows():
    def chosen(n_folds, n_variables, share=None):
        return choose("auto", n_folds, n_variables, share or 1 - 1 / n_folds).name

    assert chosen(MANY_FOLDS, 10) == "avg"
    assert chosen(MANY_FOLDS - 1, LEAST_VARIABLES - 1) == "none"
    assert chosen(5, LEAST_VARIABLES) == "avg"
    assert chosen(3, 100_000) == "none"
    assert chosen(50, 100_000, share=0.5) == "none"
