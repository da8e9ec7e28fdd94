"""Folds by following the optimum of all rows, against folds solved from nothing."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from strategies import drawn

from onefit import SVC, SVR, NuSVC, cross_val_predict, cross_val_score, cross_validate
from onefit import folds as folds_module
from onefit.folds import FOLLOWED_FOLDS, choose
from onefit.followed import FollowedFolds

# The least tolerance that is followed; values are off by no more than its root, as the duality gap
# bounds the square of the distance to the optimum.
TOL = 2e-5
ATOL = 5e-3


def data(n, n_classes=2, seed=0, features=4, grid=0.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, features)) + 0.8 * rng.normal(size=(n_classes, features))[y]
    return (np.round(X / grid) * grid if grid else X), y


@pytest.fixture
def ended(monkeypatch):
    """Counts of what paths come to: solved, starts, and none."""
    counts = {"solved": 0, "start": 0, "none": 0}
    ends_of = FollowedFolds.ends

    def counted(self, number, bounds):
        ends = ends_of(self, number, bounds)
        for end in ends:
            kind = "none" if end is None else "solved" if end.gap < self._settings.tol else "start"
            counts[kind] += 1
        return ends

    monkeypatch.setattr(FollowedFolds, "ends", counted)
    return counts


@given(st.data())
@drawn(60)
def test_values_are_those_of_the_folds(drawn_data):
    draw = drawn_data.draw
    rng_seed = draw(st.integers(0, 2**31))
    n = draw(st.integers(30, 90))
    regresses = draw(st.booleans())
    X, y = data(
        n, draw(st.sampled_from([2, 2, 3])), rng_seed, grid=draw(st.sampled_from([0.0, 0.0, 1.0]))
    )
    kernel = draw(
        st.sampled_from(
            [
                {"kernel": "linear"},
                {"kernel": "rbf", "gamma": 0.3},
                {"kernel": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 2},
                {"kernel": "rbf", "gamma": "scale"},
            ]
        )
    )
    C = draw(st.sampled_from([0.02, 0.3, 1.0, 30.0]))
    if regresses:
        machine = SVR(C=C, epsilon=draw(st.sampled_from([0.0, 0.2])), **kernel)
        y = X[:, 0] * X[:, 1] + 0.1 * y
    else:
        weight = draw(st.sampled_from([None, {0: 2.0}, "balanced"]))
        machine = SVC(C=C, class_weight=weight, decision_function_shape="ovo", **kernel)
    method = "predict" if regresses else "decision_function"
    weights = draw(st.sampled_from([None, "drawn", "zeros"]))
    params = None
    if weights is not None:
        sample_weight = np.random.default_rng(rng_seed).uniform(0.3, 2.0, n)
        if weights == "zeros":
            sample_weight[::7] = 0.0
        params = {"sample_weight": sample_weight}
    layout = draw(st.sampled_from([np.asarray, sp.csr_array]))
    splitter = KFold(draw(st.sampled_from([3, 10, n // 2])), shuffle=True, random_state=1)
    how = {"cv": splitter, "method": method, "params": params}
    followed = cross_val_predict(
        clone(machine).set_params(tol=TOL), layout(X), y, seeding="follow", **how
    )
    cold = cross_val_predict(
        clone(machine).set_params(tol=1e-9), layout(X), y, seeding="none", **how
    )
    # Without a free row any offset within a gap is right, and others are taken only as far as TOL.
    scale = max(1.0, float(np.abs(cold).max()))
    assert_allclose(followed, cold, atol=ATOL * scale)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])  # at once, and fold by fold
def test_paths_end_in_solutions(ended, n_classes, C, n_jobs, scoring):
    # A path that is dropped on the way would give the same answers.
    X, y = data(240, n_classes)
    machine = SVC(gamma=0.2, C=C)
    how = {"cv": StratifiedKFold(40), "n_jobs": n_jobs, "scoring": scoring}
    followed = cross_validate(machine, X, y, seeding="follow", **how)
    averaged = cross_validate(machine, X, y, seeding="avg", **how)
    assert_array_equal(followed["test_score"], averaged["test_score"])
    if scoring is not None:
        problems = 40 * n_classes * (n_classes - 1) // 2
        assert ended["solved"] > 0.9 * problems
        assert ended["none"] == 0
    n_iter = [sum(fold.n_iter for fold in r.ledger.folds) for r in (followed, averaged)]
    assert n_iter[0] < 0.5 * n_iter[1]
    assert {fold.seeded_from for fold in followed.ledger.folds} == {"all rows"}


def test_regression_is_followed(ended):
    X, _ = data(200)
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    how = {"cv": KFold(40), "scoring": "neg_mean_squared_error"}
    followed = cross_validate(SVR(C=10.0, gamma=0.3), X, y, seeding="follow", **how)
    cold = cross_validate(SVR(C=10.0, gamma=0.3, tol=1e-8), X, y, seeding="none", **how)
    assert_allclose(followed["test_score"], cold["test_score"], atol=2e-3)
    assert ended["solved"] > 30
    assert ended["none"] == 0


@pytest.mark.parametrize(
    ("machine", "why"),
    [
        (SVC(gamma=0.2, max_iter=50), "iterations are counted"),
        (SVC(gamma=0.2, tol=1e-6), "entries are not known that well"),
        (SVC(gamma=0.2, cache_size=0.05), "no room"),
        (SVC(gamma=0.2, C=1e-6), "no free row"),
        (SVC(gamma="scale"), "another kernel in every fold"),
        (SVC(gamma=0.2, class_weight="balanced"), "other bounds in every fold"),
        (NuSVC(gamma=0.2, nu=0.37), "two sums"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_where_there_is_no_path(ended, machine, why):
    X, y = data(150)
    for scoring in (None, "balanced_accuracy"):
        how = {"cv": StratifiedKFold(30), "scoring": scoring}
        followed = cross_val_score(machine, X, y, seeding="follow", **how)
        assert ended["solved"] == ended["start"] == 0, why
        assert_array_equal(followed, cross_val_score(machine, X, y, seeding="avg", **how))


@pytest.mark.parametrize(
    "cv", [KFold(3), ShuffleSplit(5, train_size=0.5, test_size=0.2, random_state=0)]
)
def test_any_folds(cv):
    # Many rows leave at once, and whole classes with the sorted rows of KFold.
    X, y = data(120, 3)
    for order in (np.arange(120), np.argsort(y, kind="stable")):
        how = {"cv": cv, "error_score": np.nan}
        followed = cross_val_score(SVC(gamma=0.2), X[order], y[order], seeding="follow", **how)
        cold = cross_val_score(SVC(gamma=0.2), X[order], y[order], seeding="none", **how)
        assert_array_equal(followed, cold)


def test_auto_follows_many_folds():
    assert choose("auto", FOLLOWED_FOLDS, 100, 0.97).name == "follow"
    assert choose("auto", FOLLOWED_FOLDS - 1, 1000, 0.97).name == "avg"
    assert choose("auto", FOLLOWED_FOLDS - 1, 1000, 0.97, labels_only=False).name == "none"
    assert choose("auto", FOLLOWED_FOLDS, 1000, 0.5).name == "none"


def test_batches_do_not_matter(monkeypatch):
    X, y = data(200)
    cv = StratifiedKFold(50)
    scoring = "roc_auc"  # fold by fold, not at once
    whole = cross_validate(SVC(gamma=0.2), X, y, cv=cv, scoring=scoring, seeding="follow")
    monkeypatch.setattr(folds_module, "FOLLOWED_AT_A_TIME", 1)
    alone = cross_validate(SVC(gamma=0.2), X, y, cv=cv, scoring=scoring, seeding="follow")
    assert_allclose(whole["test_score"], alone["test_score"], atol=1e-12)
    assert [f.n_iter for f in whole.ledger.folds] == [f.n_iter for f in alone.ledger.folds]


def test_a_fold_with_another_kernel_is_not_followed():
    # The first fold has all rows, hence the gamma of all rows; the others have their own.
    X, y = data(120)
    X[::3] *= 3.0
    cv = [(np.arange(120), np.arange(20))]
    cv += [(np.flatnonzero(np.arange(120) % 3 != k), np.arange(k, 120, 3)) for k in (0, 1)]
    how = {"cv": cv, "scoring": "roc_auc", "return_estimator": True}
    followed = cross_validate(SVC(tol=TOL), X, y, seeding="follow", **how)
    cold = cross_validate(SVC(tol=1e-9), X, y, seeding="none", **how)
    for mine, expected in zip(followed["estimator"], cold["estimator"], strict=True):
        assert_allclose(mine.decision_function(X), expected.decision_function(X), atol=ATOL)
