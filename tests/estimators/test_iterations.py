"""Steps that are longer, and steps of many variables, are no help if they are dropped unnoticed."""

import numpy as np
import pytest
from sklearn import svm

import onefit

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 4))
LABELS = (X[:, 0] + X[:, 1] ** 2 - 1 + 0.7 * rng.normal(size=600) > 0).astype(int)
TARGETS = np.sin(X[:, 0]) + 0.3 * rng.normal(size=600)


@pytest.mark.parametrize(
    ("name", "params", "share"),
    [
        ("SVC", {"C": 1.0}, 1.0),
        ("SVC", {"C": 100.0}, 0.5),
        ("SVC", {"C": 1000.0}, 0.5),
        ("SVR", {"C": 100.0}, 0.5),
        ("NuSVR", {"C": 100.0}, 0.5),
        ("NuSVC", {"nu": 0.4}, 0.9),
    ],
)
def test_long_solves_take_a_part_of_the_iterations_of_libsvm(name, params, share):
    y = LABELS if "SVC" in name else TARGETS
    ours = getattr(onefit, name)(gamma=0.3, **params).fit(X, y)
    theirs = getattr(svm, name)(gamma=0.3, **params).fit(X, y)
    assert np.sum(ours.n_iter_) < share * np.sum(theirs.n_iter_)


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize(
    ("name", "params"),
    [("SVC", {"C": 100.0}), ("SVR", {"C": 1.0}), ("NuSVR", {"C": 100.0}), ("NuSVC", {"nu": 0.2})],
)
def test_equal_rows_and_tight_tolerances_settle(name, params, tol):
    # Steps that are too long go to and fro between rows that are (almost) equal.
    X = np.random.default_rng(1).integers(0, 2, size=(400, 9)).astype(float)
    X[200:] += 1e-4 * np.random.default_rng(2).normal(size=(200, 9))
    y = (X.sum(axis=1) + np.random.default_rng(3).normal(size=400) > 4.5).astype(int)
    ours = getattr(onefit, name)(gamma=0.1, tol=tol, max_iter=500_000, **params).fit(X, y)
    theirs = getattr(svm, name)(gamma=0.1, tol=tol, **params).fit(X, y)
    assert ours.fit_status_ == 0
    assert np.sum(ours.n_iter_) < 2 * np.sum(theirs.n_iter_)
