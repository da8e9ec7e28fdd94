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
        ("SVR", {"C": 100.0}, 0.6),  # 0.41 to 0.55, by instruction set
        ("NuSVR", {"C": 100.0}, 0.5),
        ("NuSVC", {"nu": 0.4}, 0.9),
    ],
)
def test_long_solves_take_a_part_of_the_iterations_of_libsvm(name, params, share):
    y = LABELS if "SVC" in name else TARGETS
    ours = getattr(onefit, name)(gamma=0.3, **params).fit(X, y)
    theirs = getattr(svm, name)(gamma=0.3, **params).fit(X, y)
    assert np.sum(ours.n_iter_) < share * np.sum(theirs.n_iter_)


other = np.random.default_rng(1)
bits = other.integers(0, 2, size=(300, 60)).astype(float)
BITS = np.vstack([bits, bits[:150]])
FIRST_BITS = (BITS[:, :5].sum(axis=1) + other.normal(size=450) > 2.5).astype(int)
WIDE = other.normal(size=(500, 24))
FIRST_COLUMN = (WIDE[:, 0] + 2 * other.normal(size=500) > 0).astype(int)


@pytest.mark.parametrize(
    ("name", "params", "X", "y"),
    [
        ("SVR", {"C": 1.0, "gamma": 0.067}, BITS, FIRST_BITS),
        ("NuSVC", {"nu": 0.3, "gamma": 0.067}, BITS, FIRST_BITS),
        ("NuSVC", {"nu": 0.5, "kernel": "linear"}, WIDE, FIRST_COLUMN),
    ],
)
def test_equal_rows_and_low_rank_settle_at_tight_tolerances(name, params, X, y):
    # Steps that are too long would send equal rows to and fro: 30,000 iterations and more.
    ours = getattr(onefit, name)(tol=1e-5, max_iter=20_000, **params).fit(X, y)
    theirs = getattr(svm, name)(tol=1e-5, **params).fit(X, y)
    assert ours.fit_status_ == 0
    assert np.sum(ours.n_iter_) < 3 * np.sum(theirs.n_iter_)
