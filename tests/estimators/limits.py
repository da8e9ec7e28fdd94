"""Small made problems, and ways to make awkward ones of them."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from strategies import Problem


def blobs(n, n_classes, *, n_features=3, apart=4.0, seed=0, **params):
    """Classes around centres; far ``apart`` they can be separated, at 0 they coincide."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centres = apart * rng.standard_normal((n_classes, n_features))
    X = centres[y] + rng.standard_normal((n, n_features))
    Z = centres[rng.integers(0, n_classes, 15)] + rng.standard_normal((15, n_features))
    return Problem(X, y, Z, None, params)


def curve(n, *, n_features=3, noise=0.1, seed=0, **params):
    """A wave along the first feature, with noise."""
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((n, n_features)), rng.standard_normal((15, n_features))
    y = np.sin(2 * X[:, 0]) + X.mean(axis=1) + noise * rng.standard_normal(n)
    return Problem(X, y, Z, None, params)


def with_rows(problem, X, y=None):
    return replace(problem, X=X, y=problem.y if y is None else y)


def with_targets(problem, y):
    return replace(problem, y=np.asarray(y))


def with_weights(problem, sample_weight):
    return replace(problem, sample_weight=np.asarray(sample_weight, dtype=np.float64))


def all_the_same(problem):
    return with_rows(problem, np.ones(problem.X.shape))


def all_zero(problem):
    return with_rows(problem, np.zeros(problem.X.shape))


def all_empty(problem):
    return with_rows(problem, sp.csr_matrix(problem.X.shape))


def some_empty(problem):
    kept = np.arange(len(problem.y)) % 3 > 0
    return with_rows(problem, sp.csr_matrix(problem.X * kept[:, None]))


def constant_features(problem):
    X = np.ones(problem.X.shape)
    X[:, 0] = problem.X[:, 0]
    return with_rows(problem, X)


def duplicated(problem, y_of_copies=None):
    y = problem.y if y_of_copies is None else y_of_copies
    return with_rows(problem, np.vstack([problem.X] * 2), np.concatenate([problem.y, y]))


def opposite(problem):
    """Labels of which none is the one that the row has."""
    return (problem.y + 1) % (problem.y.max() + 1)


def shifted(problem, by):
    return replace(problem, X=problem.X + by, Z=problem.Z + by)


def scaled(problem, by):
    return replace(problem, X=problem.X * by, Z=problem.Z * by)
