"""Weights on their way through scikit-learn's metadata routing."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.examples import every_estimator, problem, values

FOLDS = KFold(3)


@pytest.fixture(autouse=True)
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def weighted(cls):
    """Rows, targets and weights that differ enough to change any fit."""
    X, y = problem(cls)
    return X, y, np.random.default_rng(0).uniform(0.1, 3.0, len(y))


@every_estimator
def test_weights_reach_a_grid_search(cls):
    X, y, weight = weighted(cls)
    model = cls().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(model, {"gamma": [0.1]}, cv=FOLDS).fit(X, y, sample_weight=weight)
    assert_array_equal(
        values(search.best_estimator_, X), values(cls(gamma=0.1).fit(X, y, weight), X)
    )
    assert not np.allclose(values(search.best_estimator_, X), values(cls(gamma=0.1).fit(X, y), X))
    expected = [
        cls(gamma=0.1).fit(X[train], y[train], weight[train])
        .score(X[test], y[test], weight[test])
        for train, test in FOLDS.split(X)
    ]  # fmt: skip
    found = [search.cv_results_[f"split{k}_test_score"][0] for k in range(3)]
    assert_allclose(found, expected, rtol=1e-12)


@every_estimator
def test_weights_reach_the_last_step_of_a_pipeline(cls):
    X, y, weight = weighted(cls)
    pipeline = make_pipeline(
        StandardScaler().set_fit_request(sample_weight=False),
        cls().set_fit_request(sample_weight=True),
    ).fit(X, y, sample_weight=weight)
    scaled = StandardScaler().fit_transform(X)
    assert_array_equal(values(pipeline, X), values(cls().fit(scaled, y, weight), scaled))


@every_estimator
@pytest.mark.parametrize("of_fit", [True, False])
@pytest.mark.parametrize("of_score", [True, False])
def test_cross_validation_gives_weights_to_whom_asks(cls, of_fit, of_score):
    X, y, weight = weighted(cls)
    model = cls().set_fit_request(sample_weight=of_fit).set_score_request(sample_weight=of_score)
    if not of_fit and not of_score:
        with pytest.raises(TypeError, match="sample_weight"):
            cross_validate(model, X, y, cv=FOLDS, params={"sample_weight": weight})
        return
    found = cross_validate(model, X, y, cv=FOLDS, params={"sample_weight": weight})["test_score"]
    expected = [
        cls().fit(X[train], y[train], weight[train] if of_fit else None)
        .score(X[test], y[test], weight[test] if of_score else None)
        for train, test in FOLDS.split(X)
    ]  # fmt: skip
    assert_allclose(found, expected, rtol=1e-12)


@every_estimator
def test_weights_under_another_name(cls):
    X, y, weight = weighted(cls)
    model = cls().set_fit_request(sample_weight="importance").set_score_request(sample_weight=False)
    search = GridSearchCV(model, {"gamma": [0.1]}, cv=FOLDS).fit(X, y, importance=weight)
    assert_array_equal(
        values(search.best_estimator_, X), values(cls(gamma=0.1).fit(X, y, weight), X)
    )


@every_estimator
def test_weights_that_nobody_asked_for_are_refused(cls):
    X, y, weight = weighted(cls)
    with pytest.raises(UnsetMetadataPassedError, match=f"sample_weight.*{cls.__name__}.fit"):
        GridSearchCV(cls(), {"gamma": [0.1]}, cv=FOLDS).fit(X, y, sample_weight=weight)


@every_estimator
def test_a_request_is_part_of_a_clone(cls):
    model = cls().set_fit_request(sample_weight=True)
    request = sklearn.base.clone(model).get_metadata_routing().fit.requests
    assert request == {"sample_weight": True}
