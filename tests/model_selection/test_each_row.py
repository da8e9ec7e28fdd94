"""Folds of one row each are left-out rows, with scikit-learn's results."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as theirs
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, LeaveOneOut

from onefit import SVC, SVR, NuSVC, cross_val_predict, cross_val_score, cross_validate
from onefit.model_selection import validation

TOL = 1e-8
MACHINES = {
    "SVC": SVC(gamma=0.1, tol=TOL),
    "SVC, three classes": SVC(gamma=0.1, tol=TOL, decision_function_shape="ovo"),
    "SVC, scale": SVC(tol=TOL),
    "NuSVC": NuSVC(nu=0.37, gamma=0.1, tol=TOL),
    "SVR": SVR(gamma=0.1, C=3.0, tol=TOL),
}
SPLITTERS = {
    "leave one out": lambda n: LeaveOneOut(),
    "as many folds as rows": lambda n: KFold(n),
    "shuffled": lambda n: KFold(n, shuffle=True, random_state=0),
    "pairs of indices": lambda n: [
        (np.delete(np.arange(n), row)[::-1], np.array([row])) for row in range(n)[::-1]
    ],
}


def data(name, n=50):
    if "R" in name:
        X, y = make_regression(n, 4, noise=5.0, random_state=0)
        return X, y / y.std()
    n_classes = 3 if "three" in name else 2
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
    )


@pytest.fixture
def taken(monkeypatch):
    """How often folds were taken for left-out rows."""
    calls = []

    def noted(*args):
        rows = inner(*args)
        calls.append(rows)
        return rows

    inner = validation.each_row
    monkeypatch.setattr(validation, "each_row", noted)
    return calls


@pytest.mark.parametrize("cv", SPLITTERS)
@pytest.mark.parametrize("name", MACHINES)
def test_predictions(name, cv, taken):
    machine, (X, y) = MACHINES[name], data(name)
    cv = SPLITTERS[cv](len(y))
    expected = theirs.cross_val_predict(machine, X, y, cv=cv)
    ours = cross_val_predict(machine, X, y, cv=cv)
    assert ours.dtype == expected.dtype
    assert_allclose(ours, expected, atol=1e-5)
    if name != "SVR":
        how = {"cv": cv, "method": "decision_function"}
        expected = theirs.cross_val_predict(machine, X, y, **how)
        assert_allclose(cross_val_predict(machine, X, y, **how), expected, atol=1e-5)
    assert len(taken) == (1 if name == "SVR" else 2)
    assert None not in taken


@pytest.mark.parametrize("cv", SPLITTERS)
@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "NuSVC"])
def test_scores(name, cv, taken):
    machine, (X, y) = MACHINES[name], data(name)
    cv = SPLITTERS[cv](len(y))
    expected = theirs.cross_validate(machine, X, y, cv=cv)
    ours = cross_validate(machine, X, y, cv=cv)
    assert list(ours) == list(expected)
    assert_array_equal(ours["test_score"], expected["test_score"])
    assert_array_equal(cross_val_score(machine, X, y, cv=cv), expected["test_score"])
    assert len(taken) == 2
    assert len(ours.ledger.folds) == len(y)
    assert ours.ledger.full is not None


def test_labels_of_any_kind(taken):
    X, y = data("SVC")
    y = np.array(["no", "yes"])[y]
    expected = theirs.cross_val_predict(MACHINES["SVC"], X, y, cv=LeaveOneOut())
    ours = cross_val_predict(MACHINES["SVC"], X, y, cv=LeaveOneOut())
    assert_array_equal(ours, expected)
    assert ours.dtype == expected.dtype
    assert taken


@pytest.mark.parametrize(
    "settings", [{"return_estimator": True}, {"scoring": "f1"}, {"seeding": "sir"}]
)
def test_where_models_are_wanted_they_are_fitted(settings, taken):
    X, y = data("SVC", n=30)
    with np.errstate(all="ignore"):
        cross_validate(MACHINES["SVC"], X, y, cv=LeaveOneOut(), **settings)
    assert not taken


def test_a_fold_that_cannot_be_fitted_is_for_scikit_learn():
    X, _ = data("SVC", n=30)
    y = (np.arange(30) == 7).astype(int)
    with pytest.warns(FitFailedWarning):
        expected = theirs.cross_val_score(MACHINES["SVC"], X, y, cv=LeaveOneOut())
    with pytest.warns(FitFailedWarning):
        ours = cross_val_score(MACHINES["SVC"], X, y, cv=LeaveOneOut())
    assert_array_equal(ours, expected)
    with pytest.raises(ValueError, match="number of classes"):
        cross_val_predict(MACHINES["SVC"], X, y, cv=LeaveOneOut())


def test_weights(taken):
    X, y = data("SVC")
    weight = np.random.default_rng(0).uniform(0.0, 2.0, len(y))
    params = {"sample_weight": weight}
    expected = theirs.cross_val_predict(MACHINES["SVC"], X, y, cv=LeaveOneOut(), params=params)
    ours = cross_val_predict(MACHINES["SVC"], X, y, cv=LeaveOneOut(), params=params)
    assert_array_equal(ours, expected)
    assert taken
