"""Data and comparisons that the tests of the estimators share."""

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification

# Tight, so that what is left between two ways to the same answer is small against ATOL.
TOL = 1e-6
# Decision values of these well-conditioned problems follow the KKT gap (at most TOL) and float32
# rounding of kernel entries (6e-8 times Σ|β|, which is below 100 here), with room for both.
ATOL = 2e-5

# Two classes with one support vector each: the answer is exact, and known.
TOY_X = np.array([[-2, -1], [-1, -1], [-1, -2], [1, 1], [1, 2], [2, 1]], dtype=float)
TOY_Y = np.array([1, 1, 1, 2, 2, 2])


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


def assert_same_decisions(model, other, X, other_X=None):
    assert_allclose(
        model.decision_function(X),
        other.decision_function(X if other_X is None else other_X),
        rtol=0,
        atol=ATOL,
    )


def as_dense(values):
    return values.toarray() if sp.issparse(values) else values
