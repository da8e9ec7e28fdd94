"""Data and comparisons that the tests of the estimators share."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn import svm
from sklearn.base import is_classifier
from sklearn.datasets import make_classification

from onefit import SVC, SVR, NuSVC, NuSVR

CLASSIFIERS = [SVC, NuSVC]
REGRESSORS = [SVR, NuSVR]
ESTIMATORS = [SVC, SVR, NuSVC, NuSVR]

every_estimator = pytest.mark.parametrize("cls", ESTIMATORS)
every_classifier = pytest.mark.parametrize("cls", CLASSIFIERS)
every_regressor = pytest.mark.parametrize("cls", REGRESSORS)
dense_and_sparse = pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])

# Tight, so that what is left between two ways to the same answer is small against ATOL.
TOL = 1e-6
# Decision values of these well-conditioned problems follow the KKT gap (at most TOL) and float32
# rounding of kernel entries (6e-8 times Σ|β|, which is below 100 here), with room for both.
ATOL = 2e-5

# Two classes with one support vector each: the answer is exact, and known.
TOY_X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]], dtype=float)
TOY_Y = np.array([1, 1, 1, 2, 2, 2])


def of_scikit_learn(cls):
    """scikit-learn's class of the same name."""
    return getattr(svm, cls.__name__)


def classes(n_classes, n=60, seed=0):
    """Overlapping classes, so that there are free and bounded support vectors in each."""
    return make_classification(
        n_samples=n,
        n_features=5,
        n_informative=4,
        n_redundant=0,
        n_classes=n_classes,
        n_clusters_per_class=1,
        class_sep=0.8,
        random_state=seed,
    )


def numbers(n=60, seed=0):
    """A curve in 5 dimensions and noise of several times ``epsilon`` around it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 5))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.4 * rng.standard_normal(n)


def problem(cls, n=60, seed=0):
    """Rows and targets for an estimator: three classes, or numbers."""
    return classes(3, n, seed) if is_classifier(cls()) else numbers(n, seed)


def values(model, X):
    """The numbers that a model's answers follow from."""
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def assert_same_values(model, other, X, other_X=None, atol=ATOL):
    expected = values(other, X if other_X is None else other_X)
    assert_allclose(values(model, X), expected, rtol=0, atol=atol)


def as_dense(values):
    return values.toarray() if sp.issparse(values) else values
