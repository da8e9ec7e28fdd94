"""Certified predictions of held-out rows are those of the optimum, whatever the tolerance."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, NuSVC, cross_val_predict, cross_val_score, cross_validate


def noisy(n=150):
    return make_classification(
        n, 4, n_informative=4, n_redundant=0, flip_y=0.1, class_sep=0.5, random_state=0
    )


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gamma", [0.3, "scale"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_predictions_of_a_loose_solve_are_exact(C, kernel, gamma, layout):
    X, y = noisy()
    machine = SVC(kernel=kernel, C=C, gamma=gamma, degree=2, coef0=1.0, class_weight={0: 1.37})
    exact = cross_val_predict(clone(machine).set_params(tol=1e-10), layout(X), y, cv=5)
    loose = machine.set_params(tol=1.0)
    assert_array_equal(cross_val_predict(loose, layout(X), y, cv=5, certify=True), exact)
    scores = cross_validate(loose, layout(X), y, cv=5, certify=True)
    certified = scores.ledger.n_certified
    assert certified >= len(y) - 2  # some are next to the boundary
    assert f"{certified} held-out rows are certified" in str(scores.ledger)


def test_it_is_asked_for():
    X, y = noisy()
    plain, certified = (
        cross_validate(SVC(C=10.0, gamma=0.3), X, y, cv=5, certify=certify)
        for certify in (False, True)
    )
    assert plain.ledger.n_certified == 0
    assert "certified" not in str(plain.ledger)
    assert plain.ledger.n_iter < certified.ledger.n_iter


def test_rows_on_the_boundary_are_not_certified():
    # Two rows in the same place, of different classes, held out together.
    X = np.array([[0.0], [0.0], [-1.0], [-2.0], [1.0], [2.0]])
    y = np.array([0, 1, 0, 0, 1, 1])
    folds = [(np.arange(2, 6), np.arange(2))]
    scores = cross_validate(SVC(kernel="linear"), X, y, cv=folds, certify=True)
    assert scores.ledger.n_certified == 0


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(kernel="sigmoid"),
        SVC(kernel="poly", coef0=-1.0),
        SVC(kernel="precomputed"),
        SVC(kernel=lambda A, B: A @ B.T),
        NuSVC(),
        make_pipeline(StandardScaler(), SVC()),
    ],
    ids=["sigmoid", "poly", "precomputed", "callable", "NuSVC", "pipeline"],
)
def test_what_cannot_be_certified_is_refused(estimator):
    X, y = noisy(40)
    with pytest.raises(ValueError, match="certify=True is for onefit's SVC of two classes"):
        cross_val_score(estimator, X, y, certify=True)


def test_three_classes_are_refused():
    with pytest.raises(ValueError, match="3 classes"):
        cross_val_predict(SVC(), *load_iris(return_X_y=True), certify=True)


def test_folds_that_are_not_fitted_together_are_refused():
    X, y = noisy(40)
    twice = [(np.repeat(np.arange(20), 2), np.arange(20, 40))]
    with pytest.raises(ValueError, match="folds of different rows"):
        cross_val_predict(SVC(), X, y, cv=twice, certify=True)
