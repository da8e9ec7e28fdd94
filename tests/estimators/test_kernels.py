"""Weights and kernels of ``onefit.SVC``."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from estimators.examples import ATOL, TOL, TOY_X, TOY_Y, assert_same_decisions, classes
from onefit import SVC

# ------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("class_weight", [{0: 3.0}, {0: 0.2, 1: 1, 2: 5}, "balanced"])
def test_class_weight_is_a_factor_on_the_penalty(class_weight):
    X, y = classes(3)
    y = np.where(np.arange(len(y)) < 30, np.minimum(y, 1), y)  # unequal classes
    by_class = SVC(class_weight=class_weight, tol=TOL).fit(X, y)
    by_row = SVC(tol=TOL).fit(X, y, sample_weight=by_class.class_weight_[y])
    assert_same_decisions(by_class, by_row, X)
    assert not np.allclose(by_class.decision_function(X), SVC().fit(X, y).decision_function(X))


def test_class_weight_takes_string_labels():
    labels = np.array(["spam", "ham"])[TOY_Y - 1]
    model = SVC(class_weight={"spam": 2.0}).fit(TOY_X, labels)
    assert_array_equal(model.class_weight_, [1.0, 2.0])


def test_scaling_all_weights_is_scaling_the_penalty():
    X, y = classes(3)
    weighted = SVC(C=2.0, tol=TOL).fit(X, y, np.full(len(y), 0.25))
    assert_same_decisions(weighted, SVC(C=0.5, tol=TOL).fit(X, y), X)


@pytest.mark.parametrize("empty", [0.0, -1.0])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_rows_of_no_weight_are_as_if_not_there(empty, layout):
    X, y = classes(3)
    weight = np.where(np.arange(len(y)) % 3 == 0, empty, 1.0)
    kept = weight > 0
    weighted = SVC(gamma=0.2, tol=TOL).fit(layout(X), y, weight)
    without = SVC(gamma=0.2, tol=TOL).fit(layout(X[kept]), y[kept])
    assert_same_decisions(weighted, without, X)


def test_rows_of_no_weight_keep_their_columns_in_a_precomputed_kernel():
    X, y = classes(2)
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    by_matrix = SVC(kernel="precomputed", tol=TOL).fit(X @ X.T, y, weight)
    by_rows = SVC(kernel="linear", tol=TOL).fit(X, y, weight)
    assert_same_decisions(by_matrix, by_rows, X @ X.T, X)


def test_a_weight_of_two_is_a_row_given_twice():
    X, y = classes(2)
    repeats = 1 + np.arange(len(y)) % 3
    weighted = SVC(gamma=0.2, tol=TOL).fit(X, y, repeats)
    repeated = SVC(gamma=0.2, tol=TOL).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    assert_same_decisions(weighted, repeated, X)


# --------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_by_name(gamma, layout):
    X, y = classes(2)
    X = layout(np.where(X > 0, X, 0))
    by_name = SVC(gamma=gamma, tol=TOL).fit(X, y)
    by_value = SVC(gamma=naive.gamma_value(gamma, X), tol=TOL).fit(X, y)
    assert_same_decisions(by_name, by_value, X)


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "linear"},
        {"kernel": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 2},
        {"kernel": "rbf", "gamma": 0.3},
    ],
    ids=lambda params: params["kernel"],
)
def test_named_precomputed_and_callable_kernels_agree(params):
    X, y = classes(3)
    Z = classes(3, seed=1)[0]
    options = {name: value for name, value in params.items() if name != "kernel"}

    def kernel(A, B):
        return naive.kernel_matrix(params["kernel"], A, B, **options)

    named = SVC(**params, tol=TOL).fit(X, y)
    called = SVC(kernel=kernel, tol=TOL).fit(X, y)
    precomputed = SVC(kernel="precomputed", tol=TOL).fit(kernel(X, X), y)
    assert_same_decisions(called, named, Z)
    assert_same_decisions(precomputed, named, kernel(Z, X), Z)


def test_callable_kernel_takes_what_is_no_array():
    texts = ["A A", "A", "B", "B B", "A B"]
    y = [1, 1, 2, 2, 1]
    counts = np.array([[text.count("A"), text.count("B")] for text in texts], dtype=float)

    def kernel(A, B):
        return np.array([[a.count("A") * b.count("A") + a.count("B") * b.count("B") for b in B]
                         for a in A], dtype=float)  # fmt: skip

    model = SVC(kernel=kernel, tol=TOL).fit(texts, y)
    assert_same_decisions(model, SVC(kernel="linear", tol=TOL).fit(counts, y), texts, counts)
    assert_array_equal(model.predict(texts), y)
    assert model.shape_fit_ == (5,)


def test_callable_kernel_takes_sparse_rows():
    X, y = classes(2)
    rows = sp.csr_array(X)
    # Both a dense and a sparse matrix are fine as what the kernel returns.
    for kernel in (lambda A, B: (A @ B.T).toarray(), lambda A, B: A @ B.T):
        model = SVC(kernel=kernel, tol=TOL).fit(rows, y)
        assert_same_decisions(model, SVC(kernel="linear", tol=TOL).fit(X, y), rows, X)
        assert not sp.issparse(model.dual_coef_)
        assert model.support_vectors_.shape == (0, 0)


def test_decision_values_do_not_depend_on_what_else_is_asked():
    X, y = classes(3, n=100)
    Z = classes(3, n=300, seed=1)[0]
    model = SVC(decision_function_shape="ovo").fit(X, y)
    together = model.decision_function(Z)
    for n in (1, 7, 64, 65):
        assert_allclose(model.decision_function(Z[:n]), together[:n], rtol=0, atol=ATOL)
