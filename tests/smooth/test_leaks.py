"""What a fold holds out says nothing of its labels, targets and weights, and equal rows are equal.

Folds are updates of the fit on all rows, so that other labels of held-out rows are another way to
the same optimum. What is left of the way is below the tolerance of a fit.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.model_selection import KFold

from onefit import (
    GridSearchCV,
    SmoothSVC,
    SmoothSVR,
    cross_val_predict,
    cross_validate,
    leave_one_out,
)
from smooth.problems import classes, numbers

TOL = 1e-8  # of a fit
LEFT = 0.1 * TOL

MACHINES = {
    "linear": {"kernel": "linear"},
    "wide": {"kernel": "linear"},
    "rbf": {"gamma": 0.2},
    "large C": {"gamma": 0.2, "C": 100.0},
    "dual": {"gamma": 0.2, "update": "dual"},
    "none": {"gamma": 0.2, "update": "none"},
    "beta": {"gamma": 0.2, "beta": 5.0},
    "least squares": {"gamma": 0.2, "loss": "squared"},
    "random": {"gamma": 0.2, "reduced": "random", "n_components": 12, "random_state": 0},
    "incremental": {"gamma": 0.2, "reduced": "incremental", "random_state": 0},
}
every_machine = pytest.mark.parametrize("name", MACHINES)
every_kind = pytest.mark.parametrize("kind", [SmoothSVC, SmoothSVR])


def problem(name, kind, n=80, seed=0):
    make = classes if kind is SmoothSVC else numbers
    X, y = make(n=n, d=150 if name == "wide" else 4, seed=seed)
    return kind(**MACHINES[name]), X, y


def other_targets(y, rows, size, seed=0):
    y, rng = y.copy(), np.random.default_rng(seed)
    y[rows] = rng.permutation(y[rows]) if y.dtype.kind == "U" else size * rng.normal(size=len(rows))
    return y


def first_value(model, X, y):
    """A scorer: the held-out value itself."""
    return (model.decision_function(X) if is_classifier(model) else model.predict(X))[0]


@pytest.mark.parametrize("stored", [True, False])
@every_kind
@every_machine
def test_folds_do_not_see_what_they_hold_out(name, kind, stored, monkeypatch):
    if not stored:
        monkeypatch.setattr("onefit.smooth.folds.Whole.can_store_influence", lambda self: False)
    machine, X, y = problem(name, kind)
    cv, test = KFold(2), np.arange(40, 80)
    method = "decision_function" if kind is SmoothSVC else "predict"
    params = {"sample_weight": np.ones(80)}
    expected = cross_val_predict(machine, X, y, cv=cv, method=method, params=params)[test]
    for size in (1.0, 1e3, 1e9):
        other, weights = other_targets(y, test, size), np.ones(80)
        weights[test] = np.random.default_rng(1).uniform(0.1, 1.0, size=40) * min(size, 1e3)
        params = {"sample_weight": weights}
        found = cross_val_predict(machine, X, other, cv=cv, method=method, params=params)[test]
        assert_allclose(found, expected, rtol=LEFT, atol=LEFT)
        scores = cross_validate(machine, X, other, cv=cv, scoring=first_value, params=params)
        assert_allclose(scores["test_score"][1], expected[0], rtol=LEFT, atol=LEFT)


@every_kind
@every_machine
def test_rows_left_out_do_not_see_their_own_targets(name, kind):
    machine, X, y = problem(name, kind, n=30)
    expected = leave_one_out(machine, X, y, sample_weight=np.ones(30)).decision_values
    for row, size in ((3, 1.0), (11, 1e6), (20, 1e9), (28, 1e12)):
        other, weights = y.copy(), np.ones(30)
        if kind is SmoothSVC:
            other[row] = "a" if y[row] == "b" else "b"
            weights[row] = min(size, 1e3)
        else:
            other[row] = size
        found = leave_one_out(machine, X, other, sample_weight=weights).decision_values[row]
        assert_allclose(found, expected[row], rtol=TOL, atol=TOL)


@every_kind
@pytest.mark.parametrize("gamma", [0.2, "scale"])
def test_searches_do_not_see_what_their_folds_hold_out(kind, gamma):
    machine, X, y = problem("rbf", kind)
    machine.set_params(gamma=gamma)
    other = other_targets(y, np.arange(40, 80), 100.0)
    found = [
        GridSearchCV(machine, {"C": [0.1, 10.0]}, cv=KFold(2), scoring=first_value)
        .fit(X, targets)
        .cv_results_["split1_test_score"]
        for targets in (y, other)
    ]
    assert_allclose(found[0], found[1], rtol=LEFT, atol=LEFT)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed"])
@pytest.mark.parametrize("reduced", [None, "random"])
def test_equal_rows_have_equal_values(kernel, reduced, n_classes, is_sparse):
    """Bit for bit, wherever they are among the rows that a fold holds out."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(150, 400)), int(rng.integers(5, 50))
        base = rng.normal(size=(n // 4, d))
        if is_sparse:
            base[np.abs(base) < 0.7] = 0.0
        codes = rng.integers(len(base), size=n)
        X, y = base[codes], rng.integers(n_classes, size=n)
        if kernel == "precomputed":
            X = (base @ base.T)[np.ix_(codes, codes)]
        elif is_sparse:
            X = sp.csr_array(X)
        machine = SmoothSVC(kernel=kernel, gamma=0.05, reduced=reduced, random_state=0)
        cv = KFold(2, shuffle=True, random_state=seed)
        values = cross_val_predict(machine, X, y, cv=cv, method="decision_function")
        if kernel == "precomputed":
            model = machine.fit(X, y)
            again = model.decision_function(X)
        else:
            model = machine.fit(X[: n // 2], y[: n // 2])
            again = model.decision_function(X)
        for _, test in cv.split(X):
            _, first, places = np.unique(codes[test], return_index=True, return_inverse=True)
            assert_array_equal(values[test], values[test][first][places])
        _, first, places = np.unique(codes, return_index=True, return_inverse=True)
        assert_array_equal(again, again[first][places])
