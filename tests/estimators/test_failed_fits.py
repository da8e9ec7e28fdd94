"""A fit that fails computes nothing that it need not, and leaves an earlier model as it was."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import is_classifier

from estimators.examples import TOY_X, TOY_Y, every_classifier, every_estimator, problem, values
from onefit import NuSVC


def bad_fits(cls):
    """Parameters, rows, targets and weights, of which one is bad."""
    X, y, ones = TOY_X, TOY_Y, np.ones(6)
    yield {"tol": -1.0}, X, y, None
    yield {"n_jobs": 0}, X, y, None
    yield {}, X, y[:-1], None
    yield {}, X, y * np.nan, None
    yield {}, X, y, ones[:5]
    yield {}, X, y, ones * np.nan
    yield {}, X, y, ones * 0
    if is_classifier(cls()):
        yield {}, X, np.ones(6), None
        yield {"class_weight": {7: 1.0}}, X, y, None
        yield {"probability": True}, X, y, None
        yield {}, X, y, [1, 1, 1, 0, 0, 0]
    if cls is NuSVC:
        yield {"nu": 0.9}, X, [1, 1, 1, 1, 1, 2], None


@every_estimator
def test_nothing_is_computed_for_bad_input(cls):
    calls = []

    def kernel(A, B):
        calls.append(len(A))
        return A @ B.T

    for params, X, y, weight in bad_fits(cls):
        with pytest.raises(ValueError, match=r"\w"):
            cls(kernel=kernel, **params).fit(X, y, weight)
        assert not calls


@every_estimator
def test_an_earlier_model_of_as_many_features_stays_as_it_was(cls):
    X, y = problem(cls)
    X = X[:, :2]  # as many as the bad fits have
    model = cls().fit(X, y)
    expected, params = values(model, X), model.get_params()
    for bad, bad_X, bad_y, weight in bad_fits(cls):
        with pytest.raises(ValueError, match=r"\w"):
            model.set_params(**bad).fit(bad_X, bad_y, weight)
        model.set_params(**params)
        assert_array_equal(values(model, X), expected)


@every_estimator
@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_array])
def test_an_earlier_model_of_other_features_stays_as_it_was(cls, layout):
    X, y = problem(cls)
    model = cls().fit(X, y)
    expected, params = values(model, X), model.get_params()
    for bad, bad_X, bad_y, weight in bad_fits(cls):
        with pytest.raises(ValueError, match=r"\w"):
            model.set_params(**bad).fit(layout(bad_X), bad_y, weight)
        model.set_params(**params)
        assert model.n_features_in_ == 5
        assert_array_equal(values(model, X), expected)


@every_estimator
def test_the_feature_names_of_an_earlier_model_stay(cls):
    X, y = problem(cls)
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = cls().fit(frame, y)
    for bad_X in (X, pd.DataFrame(X, columns=list("vwxyz"))):
        with pytest.raises(ValueError, match="sample_weight"):
            model.fit(bad_X, y, np.full(len(y), np.nan))
        assert_array_equal(model.feature_names_in_, list("abcde"))


@every_classifier
def test_the_classes_of_an_earlier_model_stay(cls):
    X, y = problem(cls)
    model = cls().fit(X, y)
    with pytest.raises(ValueError, match="weight"):
        model.fit(X, np.array(["a", "b", "c"])[y], np.zeros(len(y)))
    assert_array_equal(model.classes_, [0, 1, 2])


@every_estimator
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_fit_that_was_stopped_leaves_the_earlier_one_whole(cls, error, monkeypatch):
    X, y = problem(cls)
    model = cls(gamma=0.3).fit(X, y)
    before = {name: value for name, value in vars(model).items() if name != "gamma"}
    expected = values(model, X)

    def stop(*args, **kwargs):
        raise error

    monkeypatch.setattr("onefit.estimators.base.solve", stop)
    with pytest.raises(error):
        model.set_params(gamma=30.0).fit(X + 1, y[::-1])
    assert_array_equal(values(model, X), expected)
    assert all(getattr(model, name) is value for name, value in before.items())


@every_estimator
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_numbers_too_large_for_the_solver_leave_the_earlier_model_whole(cls):
    X, y = problem(cls)
    model = cls(kernel="linear").fit(X, y)
    expected = values(model, X)
    with pytest.raises(ValueError, match=r"finite|large"):
        model.fit(X * 1e300, y)
    assert_array_equal(values(model, X), expected)
