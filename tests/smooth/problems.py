"""Problems that tests of smooth machines share."""

import numpy as np
import scipy.sparse as sp


def classes(n=60, d=5, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * rng.normal(size=n)
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, k + 1)[1:-1]))
    return X, np.array(["a", "b", "c", "d"])[y]


def numbers(n=60, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)


def sparse(X):
    return sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
