"""Copies of models, and fits beside each other."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import joblib
import naive
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from estimators.examples import dense_and_sparse, every_estimator, problem, values


def by_pickle(model):
    return pickle.loads(pickle.dumps(model))


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize("kernel", ["linear", "rbf", naive.linear_kernel])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, by_pickle])
def test_a_copy_predicts_the_same(cls, copied, kernel, layout):
    X, y = problem(cls)
    X = layout(X)
    model = cls(kernel=kernel).fit(X, y)
    again = copied(model)
    assert again.get_params() == model.get_params()
    # Not to the last bit: A @ B.T takes another road in BLAS when A and B are one array, and a
    # callable kernel of the original meets the very rows that it was fitted on.
    assert_allclose(values(again, X), values(model, X), rtol=1e-9, atol=1e-12)
    assert vars(again).keys() == vars(model).keys()


@every_estimator
def test_a_precomputed_kernel_survives_pickling(cls):
    X, y = problem(cls)
    model = cls(kernel="precomputed").fit(X @ X.T, y)
    assert_array_equal(values(by_pickle(model), X @ X.T), values(model, X @ X.T))


@every_estimator
def test_a_deep_copy_does_not_share_the_model(cls):
    X, y = problem(cls)
    model = cls().fit(X, y)
    other, expected = copy.deepcopy(model), values(model, X)
    other.dual_coef_[:] = 0
    other.fit(X[:40], y[:40])
    assert_array_equal(values(model, X), expected)


@every_estimator
@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_a_model_in_a_file(cls, mmap_mode, tmp_path):
    X, y = problem(cls)
    model = cls().fit(X, y)
    joblib.dump(model, tmp_path / "model")
    again = joblib.load(tmp_path / "model", mmap_mode=mmap_mode)
    assert_array_equal(values(again, X), values(model, X))


@every_estimator
def test_an_estimator_that_is_not_fitted_can_be_pickled(cls):
    again = by_pickle(cls(gamma=0.3, n_jobs=2))
    assert again.get_params() == cls(gamma=0.3, n_jobs=2).get_params()
    assert not hasattr(again, "support_")


@every_estimator
def test_a_clone_has_the_parameters_and_is_not_fitted(cls):
    X, y = problem(cls)
    model = cls(kernel=naive.linear_kernel, tol=1e-4, cache_size=7, n_jobs=2).fit(X, y)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "support_")
    assert_array_equal(values(other.fit(X, y), X), values(model, X))


@every_estimator
def test_fits_in_several_threads_do_not_disturb_each_other(cls):
    # A fit lets other Python threads run, so two may be inside the solver at once.
    problems = [problem(cls, n=150, seed=seed) for seed in range(8)]
    alone = [values(cls(gamma=0.5).fit(X, y), X) for X, y in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda p: values(cls(gamma=0.5).fit(*p), p[0]), problems))
    for expected, found in zip(alone, together, strict=True):
        assert_array_equal(found, expected)


@every_estimator
def test_one_model_answers_in_several_threads(cls):
    X, y = problem(cls, n=150)
    model = cls().fit(X, y)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: values(model, X), range(16)):
            assert_array_equal(found, values(model, X))


@every_estimator
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_fits_in_threads_of_joblib(cls, n_jobs):
    X, y = problem(cls, n=150)
    expected = cross_val_score(cls(), X, y, cv=4)
    with joblib.parallel_config("threading", n_jobs=2):
        assert_array_equal(cross_val_score(cls(n_jobs=n_jobs), X, y, cv=4), expected)


@every_estimator
def test_two_fits_of_one_estimator_are_the_same_to_the_last_bit(cls):
    X, y = problem(cls, n=150)
    first, second = cls().fit(X, y), cls().fit(X, y)
    assert_array_equal(first.dual_coef_, second.dual_coef_)
    assert_array_equal(first.intercept_, second.intercept_)
    assert_array_equal(np.asarray(first.n_iter_), np.asarray(second.n_iter_))
