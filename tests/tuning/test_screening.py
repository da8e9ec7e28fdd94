"""A screened search chooses what the full search chooses, and says what it left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification, make_regression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, SVR, GridSearchCV, NuSVC, RandomizedSearchCV
from onefit.tuning.screening import largest_score

# No smaller C: where all rows are at their bounds the offset is not unique, and a score depends on
# the start. No larger gamma: values of a kernel that is almost the identity are not decided.
GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-3, 0, 5)}


def classes(seed=0, n=90, n_classes=2):
    return make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.05, random_state=seed
    )


def check_lossless(full, screened):
    """The same choice; every score that is there is that of the full search."""
    assert screened.best_params_ == full.best_params_
    assert_allclose(screened.best_score_, full.best_score_, atol=1e-6)
    dropped = screened.cv_results_["dropped"]
    assert dropped.shape == (len(full.cv_results_["params"]),)
    assert dropped.dtype == bool
    assert [*screened.cv_results_][1:] == [*full.cv_results_]
    assert_array_equal(np.isnan(screened.cv_results_["mean_test_score"]), dropped)
    for key, expected in full.cv_results_.items():
        if key.startswith("split"):
            found = screened.cv_results_[key]
            there = ~np.isnan(found)
            assert_allclose(found[there], expected[there], atol=1e-5)
    missing = sum(
        int(np.isnan(values).sum())
        for key, values in screened.cv_results_.items()
        if key.startswith("split")
    )
    assert screened.ledger_.dropped == missing
    assert screened.ledger_.cells == full.ledger_.cells - missing


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "f1_macro"])
def test_the_choice_is_that_of_the_full_search(n_classes, scoring):
    X, y = classes(n_classes=n_classes)
    full = GridSearchCV(SVC(tol=1e-6), GRID, scoring=scoring).fit(X, y)
    screened = GridSearchCV(SVC(tol=1e-6), GRID, scoring=scoring, screen="approximate").fit(X, y)
    check_lossless(full, screened)
    if scoring is None:
        assert screened.ledger_.dropped > 0.1 * full.ledger_.cells


def test_regression():
    X, y = make_regression(80, 4, noise=5.0, random_state=0)
    y = y / y.std()
    grid = {**GRID, "epsilon": [0.05, 0.3]}
    full = GridSearchCV(SVR(tol=1e-6), grid).fit(X, y)
    screened = GridSearchCV(SVR(tol=1e-6), grid, screen="approximate").fit(X, y)
    check_lossless(full, screened)
    assert screened.ledger_.dropped > 0


def test_other_machines_and_pipelines():
    X, y = classes()
    pipeline = make_pipeline(StandardScaler(), SVC(tol=1e-6))
    grid = {f"svc__{name}": values for name, values in GRID.items()}
    for estimator, parameters in (
        (pipeline, grid),
        (NuSVC(tol=1e-7), {"nu": [0.2, 0.5, 0.8], "gamma": GRID["gamma"]}),
    ):
        full = GridSearchCV(estimator, parameters).fit(X, y)
        screened = GridSearchCV(estimator, parameters, screen="approximate").fit(X, y)
        check_lossless(full, screened)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([2, 3, 5]), st.sampled_from([30, 70]))
def test_drawn_searches(seed, folds, n):
    X, y = classes(seed, n)
    full = GridSearchCV(SVC(tol=1e-6), GRID, cv=folds, refit=False).fit(X, y)
    screened = GridSearchCV(SVC(tol=1e-6), GRID, cv=folds, refit=False, screen="approximate")
    check_lossless(full, screened.fit(X, y))


def test_choices_of_the_user_drop_nothing():
    X, y = classes()

    def last(results):
        return len(results["params"]) - 1

    search = GridSearchCV(SVC(), GRID, refit=last, screen="approximate").fit(X, y)
    assert search.best_index_ == 24
    assert not search.cv_results_["dropped"].any()


def test_a_random_search_too():
    X, y = classes()
    options = {"n_iter": 20, "random_state": 0}
    full = RandomizedSearchCV(SVC(tol=1e-6), GRID, **options).fit(X, y)
    screened = RandomizedSearchCV(SVC(tol=1e-6), GRID, screen="approximate", **options).fit(X, y)
    check_lossless(full, screened)


def test_other_estimators_are_refused():
    X, y = classes()
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, screen="approximate")
    with pytest.raises(ValueError, match=r"screen='approximate' is for SVC.*LogisticRegression"):
        search.fit(X, y)
    with pytest.raises(ValueError, match="'screen' parameter"):
        GridSearchCV(SVC(), GRID, screen="exact").fit(X, y)


def test_what_a_score_can_be_at_most():
    from sklearn.metrics import check_scoring

    machine = SVC()
    assert largest_score(check_scoring(machine), True) == (1.0, None)
    assert largest_score(check_scoring(machine, "roc_auc"), True) == (1.0, None)
    assert largest_score(check_scoring(SVR(), "neg_mean_squared_error"), True) == (0.0, None)
    several = check_scoring(machine, ["accuracy", "f1"])
    assert largest_score(several, "f1") == (1.0, "f1")
    assert largest_score(several, False) is None
    assert largest_score(lambda estimator, X, y: 3.0, True) is None
