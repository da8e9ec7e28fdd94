"""Kernels by name, as a matrix and as a function."""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier

from estimators.examples import (
    ATOL,
    TOL,
    as_dense,
    assert_same_values,
    dense_and_sparse,
    every_estimator,
    every_regressor,
    of_scikit_learn,
    problem,
    values,
)
from onefit import SVC, SVR


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_by_name(cls, gamma, layout):
    X, y = problem(cls)
    X = layout(np.where(X > 0, X, 0))
    by_name = cls(gamma=gamma, tol=TOL).fit(X, y)
    by_value = cls(gamma=naive.gamma_value(gamma, X), tol=TOL).fit(X, y)
    assert_same_values(by_name, by_value, X)


KERNELS = [
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 2},
    {"kernel": "rbf", "gamma": 0.3},
    {"kernel": "sigmoid", "gamma": 0.02, "coef0": 0.1},
]


@every_estimator
@pytest.mark.parametrize("params", KERNELS, ids=lambda params: params["kernel"])
def test_named_precomputed_and_callable_kernels_agree(cls, params):
    X, y = problem(cls)
    Z = problem(cls, seed=1)[0]
    options = {name: value for name, value in params.items() if name != "kernel"}

    def kernel(A, B):
        return naive.kernel_matrix(params["kernel"], A, B, **options)

    named = cls(**params, tol=TOL).fit(X, y)
    called = cls(kernel=kernel, tol=TOL).fit(X, y)
    precomputed = cls(kernel="precomputed", tol=TOL).fit(kernel(X, X), y)
    sparse = cls(**params, tol=TOL).fit(sp.csr_array(X), y)
    assert_same_values(called, named, Z)
    assert_same_values(precomputed, named, kernel(Z, X), Z)
    assert_same_values(sparse, named, sp.csr_array(Z), Z)


@every_estimator
def test_callable_kernel_takes_what_is_no_array(cls):
    texts = ["A A", "A", "B", "B B", "A B"]
    y = [1, 1, 2, 2, 1]
    counts = np.array([[text.count("A"), text.count("B")] for text in texts], dtype=float)

    def kernel(A, B):
        return np.array([[a.count("A") * b.count("A") + a.count("B") * b.count("B") for b in B]
                         for a in A], dtype=float)  # fmt: skip

    model = cls(kernel=kernel, tol=TOL).fit(texts, y)
    assert_same_values(model, cls(kernel="linear", tol=TOL).fit(counts, y), texts, counts)
    if is_classifier(model):
        assert_array_equal(model.predict(texts), y)
    assert model.shape_fit_ == (5,)


@every_estimator
def test_callable_kernel_takes_sparse_rows(cls):
    X, y = problem(cls)
    rows = sp.csr_array(X)
    # Both a dense and a sparse matrix are fine as what the kernel returns.
    for kernel in (lambda A, B: (A @ B.T).toarray(), lambda A, B: A @ B.T):
        model = cls(kernel=kernel, tol=TOL).fit(rows, y)
        assert_same_values(model, cls(kernel="linear", tol=TOL).fit(X, y), rows, X)
        assert not sp.issparse(model.dual_coef_)
        assert model.support_vectors_.shape == (0, 0)


@every_estimator
@dense_and_sparse
def test_values_do_not_depend_on_what_else_is_asked(cls, layout):
    X, y = problem(cls, n=100)
    Z = problem(cls, n=300, seed=1)[0]
    model = cls().fit(layout(X), y)
    together = values(model, layout(Z))
    for n in (1, 7, 64, 65):
        assert_allclose(values(model, layout(Z[:n])), together[:n], rtol=0, atol=ATOL)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@dense_and_sparse
def test_a_tube_that_holds_all_rows_needs_no_support_vectors(kernel, layout):
    X, y = problem(SVR)
    params = {"epsilon": 10.0, "kernel": kernel}
    ours, theirs = (c(**params).fit(layout(X), y) for c in (SVR, of_scikit_learn(SVR)))
    assert ours.support_.shape == (0,)
    assert ours.support_vectors_.shape == (0, 5)
    assert ours.dual_coef_.shape == (1, 0)
    assert_array_equal(ours.n_support_, [0])
    assert_same_values(ours, theirs, layout(X))
    if kernel == "linear":
        assert_array_equal(as_dense(ours.coef_), np.zeros((1, 5)))


@every_regressor
@dense_and_sparse
def test_targets_that_are_all_the_same(cls, layout):
    X, _ = problem(cls)
    model = cls().fit(layout(X), np.full(len(X), 3.0))
    assert_allclose(model.predict(layout(X)), 3.0, atol=ATOL)


def test_a_polynomial_of_rows_far_from_the_origin_ends():
    # Kernel values of 1e12, alike to the sixth digit: float32 entries are off by 1e5, and even a
    # gradient in float64 by 0.01. scikit-learn says that it converged, with an objective of 7e4.
    rng = np.random.RandomState(0)
    X, y = rng.normal(loc=100, size=(100, 2)), rng.randint(low=0, high=2, size=100)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Solver stopped at a KKT gap")
        model = SVC(kernel="poly", max_iter=1_000_000).fit(X, y)
    beta = model.dual_coef_[0]
    K = (model._gamma * model.support_vectors_ @ model.support_vectors_.T) ** 3
    assert beta @ K @ beta / 2 - np.abs(beta).sum() == pytest.approx(-92.05, abs=0.1)
