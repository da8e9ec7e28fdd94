"""A callable kernel whose matrix is larger than ``cache_size`` is evaluated by blocks of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from estimators.examples import ATOL, every_estimator, problem, values
from onefit import SVC, GridSearchCV, cross_val_score

MEGABYTE = 1 << 20
N = 600  # a matrix of 2.7 MB


def rbf(A, B):
    """Each value from its two rows alone, whatever others there are."""
    return np.exp(-0.2 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


class Recorded:
    def __init__(self, fail_at=None, error=None):
        self.shapes, self._fail_at, self._error = [], fail_at, error

    def __call__(self, A, B):
        self.shapes.append((len(A), len(B)))
        if len(self.shapes) == self._fail_at:
            raise self._error("mine")
        return rbf(A, B)

    @property
    def largest(self):
        return max(8 * rows * columns for rows, columns in self.shapes)


@every_estimator
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blocks_are_within_the_budget_and_give_the_same(cls, n_jobs):
    X, y = problem(cls, n=N)
    whole, parts = Recorded(), Recorded()
    expected = cls(kernel=whole, cache_size=100, tol=1e-5).fit(X, y)
    assert whole.shapes == [(N, N)]
    found = cls(kernel=parts, cache_size=1, tol=1e-5, n_jobs=n_jobs).fit(X, y)
    assert len(parts.shapes) > 1
    assert parts.largest <= MEGABYTE / 2
    assert_allclose(values(found, X), values(expected, X), rtol=0, atol=ATOL)


def test_any_rows_that_have_a_length():
    words = [("ab" * k, k) for k in range(1, 61)]
    y = np.arange(60) // 30

    def shared(A, B):
        return np.array([[min(a[1], b[1]) for b in B] for a in A], dtype=float)

    expected = SVC(kernel=shared, cache_size=1).fit(words, y).decision_function(words)
    small = SVC(kernel=shared, cache_size=0.01).fit(words, y)
    assert_allclose(small.decision_function(words), expected, rtol=0, atol=1e-2)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
@pytest.mark.parametrize("fail_at", [1, 12, 20])
def test_what_the_function_raises_comes_through(n_jobs, kind, fail_at):
    X, y = problem(SVC, n=N)
    kernel = Recorded(fail_at, kind)
    with pytest.raises(kind, match="mine"):
        SVC(kernel=kernel, cache_size=1, n_jobs=n_jobs).fit(X, y)
    assert len(kernel.shapes) >= fail_at


def test_a_shape_that_is_wrong_is_named():
    X, y = problem(SVC, n=N)
    with pytest.raises(ValueError, match=r"kernel function returned an array of shape"):
        SVC(kernel=lambda A, B: rbf(A, B)[:, :5], cache_size=1).fit(X, y)


def test_folds_and_searches_stay_within_the_budget():
    X, y = problem(SVC, n=N)
    whole = SVC(kernel=rbf, cache_size=100)
    sizes = []

    def kernel(A, B):  # a function: clones share it
        sizes.append(8 * len(A) * len(B))
        return rbf(A, B)

    small = SVC(kernel=kernel, cache_size=1)
    assert_allclose(cross_val_score(small, X, y, cv=3), cross_val_score(whole, X, y, cv=3))
    assert 0 < max(sizes) <= MEGABYTE
    sizes.clear()
    grid = {"C": [0.1, 1.0]}
    found = GridSearchCV(small, grid, cv=3, refit=False).fit(X, y)
    expected = GridSearchCV(whole, grid, cv=3, refit=False).fit(X, y)
    key = "mean_test_score"
    assert_allclose(found.cv_results_[key], expected.cv_results_[key])
    assert 0 < max(sizes) <= MEGABYTE
