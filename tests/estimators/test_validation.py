"""The short cuts through validation let pass exactly what scikit-learn lets pass."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.utils.validation import validate_data

from estimators.examples import every_estimator
from onefit import SVC, NuSVR
from onefit.estimators.validation import is_plain

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
Y = np.array([0, 1, 1])


@every_estimator
@pytest.mark.parametrize("y", [Y, Y.astype(float), Y.astype(bool), Y.astype(np.uint8)])
def test_plain_data_are_what_scikit_learn_returns(cls, y):
    assert is_plain(X, y)
    checked_X, checked_y = validate_data(cls(), X, y, dtype=np.float64, order="C")
    for checked, given in ((checked_X, X), (checked_y, y)):
        assert checked.dtype == given.dtype
        assert checked.shape == given.shape
        assert np.shares_memory(checked, given)


def with_entry(array, value):
    changed = array.astype(float)
    changed.flat[0] = value
    return changed


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (X.tolist(), Y),
        (X.astype(np.float32), Y),
        (np.asfortranarray(X), Y),
        (X[:, 0], Y),
        (pd.DataFrame(X), Y),
        (np.ma.MaskedArray(X), Y),
        (with_entry(X, np.nan), Y),
        (with_entry(X, np.inf), Y),
        (X, Y[:2]),
        (X, Y[:, None]),
        (X, Y.astype(str)),
        (X, Y.tolist()),
        (X, with_entry(Y, np.nan)),
        (np.empty((0, 2)), np.empty(0)),
    ],
)
def test_all_else_is_left_to_scikit_learn(X, y):
    assert not is_plain(X, y)


def test_finite_numbers_are_plain_though_their_sum_overflows():
    assert is_plain(np.full((3, 2), 1e308), Y)


@every_estimator
def test_equal_parameters_of_another_type_are_checked_again(cls):
    cls(shrinking=True, max_iter=1000, tol=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="'max_iter' parameter"):
        cls(shrinking=True, max_iter=1000.0, tol=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="'shrinking' parameter"):
        cls(shrinking=1, max_iter=1000, tol=1.0).fit(X, Y)


@every_estimator
def test_bad_parameters_are_found_every_time(cls):
    for _ in range(2):
        with pytest.raises(ValueError, match="'tol' parameter"):
            cls(tol=-1.0).fit(X, Y)


def test_what_one_class_allows_is_not_taken_for_another():
    # The same values of the same names: nu and C are checked for each class by itself.
    SVC(C=np.inf).fit(X, Y)
    with pytest.raises(ValueError, match="'C' parameter of NuSVR"):
        NuSVR(C=float("inf")).fit(X, Y)


@every_estimator
def test_parameters_that_are_not_plain_values(cls):
    cls(kernel=lambda A, B: A @ B.T, tol=np.float64(1e-3)).fit(X, Y)
    with pytest.raises(ValueError, match="'tol' parameter"):
        cls(kernel=lambda A, B: A @ B.T, tol=np.float64(-1e-3)).fit(X, Y)


@every_estimator
def test_validation_can_be_left_out(cls):
    with config_context(skip_parameter_validation=True):
        cls(verbose="loud").fit(X, Y)
    with pytest.raises(ValueError, match="'verbose' parameter"):
        cls(verbose="loud").fit(X, Y)


@every_estimator
def test_names_of_an_earlier_fit_are_dropped(cls):
    model = cls().fit(pd.DataFrame(X, columns=["a", "b"]), Y)
    assert list(model.feature_names_in_) == ["a", "b"]
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_a_class_has_the_parameters_of_its_own_constructor():
    class Wide(SVC):
        def __init__(self, C=1.0, width=2.0):
            super().__init__(C=C, gamma=1 / width)
            self.width = width

    assert "width" not in SVC().get_params()
    assert Wide(width=3.0).get_params() == {"C": 1.0, "width": 3.0}
    Wide.__init__ = SVC.__init__
    assert Wide().get_params() == SVC().get_params()
    names = SVC._get_param_names()
    names.clear()
    assert "C" in SVC().get_params()
