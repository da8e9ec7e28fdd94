"""``onefit.SVC`` looks and behaves like ``sklearn.svm.SVC``: parameters, attributes, inputs."""

import copy
import inspect
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import SVC

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


# ------------------------------------------------------------------------------- constructor


def test_parameters_are_those_of_scikit_learn_and_n_jobs():
    ours = inspect.signature(SVC).parameters
    theirs = inspect.signature(svm.SVC).parameters
    assert list(ours) == [*theirs, "n_jobs"]
    assert {parameter.kind for parameter in ours.values()} == {inspect.Parameter.KEYWORD_ONLY}
    expected = {name: parameter.default for name, parameter in theirs.items()}
    expected |= {"cache_size": "auto", "n_jobs": None}
    assert {name: parameter.default for name, parameter in ours.items()} == expected


@pytest.mark.parametrize("probability", [False, "deprecated"])
def test_probability_may_be_declined(probability):
    model = SVC(probability=probability).fit(TOY_X, TOY_Y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")


def test_fit_returns_the_estimator_and_leaves_parameters_alone():
    model = SVC(gamma="scale", class_weight="balanced", C=2)
    before = model.get_params()
    assert model.fit(TOY_X, TOY_Y) is model
    assert model.get_params() == before


# ------------------------------------------------------------------------- fitted attributes


def test_signs_of_a_known_answer():
    model = SVC(kernel="linear").fit(TOY_X, TOY_Y)
    assert_array_equal(model.support_, [1, 3])
    assert_array_equal(model.support_vectors_, TOY_X[[1, 3]])
    assert_array_equal(model.n_support_, [1, 1])
    assert_allclose(model.dual_coef_, [[-0.25, 0.25]], rtol=1e-6)
    assert_allclose(model.intercept_, [0.0], atol=1e-6)
    assert_allclose(model.coef_, [[0.5, 0.5]], rtol=1e-6)
    assert_allclose(model.decision_function([[1, 1], [-3, -3]]), [1, -3], rtol=1e-6)
    assert_array_equal(model.predict([[1, 1], [-3, -3]]), [2, 1])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize(
    ("kernel", "layout"),
    [
        ("linear", np.asarray),
        ("linear", sp.csr_array),
        ("rbf", np.asarray),
        ("rbf", sp.csr_array),
        ("precomputed", np.asarray),
        (naive.linear_kernel, np.asarray),
    ],
)
def test_attributes_have_the_form_of_scikit_learn(kernel, layout, n_classes):
    X, y = classes(n_classes)
    X = X @ X.T if kernel == "precomputed" else layout(X)
    ours = SVC(kernel=kernel, class_weight="balanced").fit(X, y)
    theirs = svm.SVC(kernel=kernel, class_weight="balanced").fit(X, y)

    def form(values, n_support):
        # The number of support vectors is not unique: written as a word where it is an extent.
        shape = tuple("n_support" if extent == n_support else extent for extent in values.shape)
        return type(values), shape, values.dtype.kind

    names = ["support_", "support_vectors_", "n_support_", "dual_coef_", "intercept_", "n_iter_"]
    names += ["classes_", "class_weight_"] + (["coef_"] if kernel == "linear" else [])
    for name in names:
        expected = form(getattr(theirs, name), len(theirs.support_))
        assert form(getattr(ours, name), len(ours.support_)) == expected, name
    assert_array_equal(ours.classes_, theirs.classes_)
    assert_allclose(ours.class_weight_, theirs.class_weight_, rtol=1e-12)
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.shape_fit_ == theirs.shape_fit_
    assert getattr(ours, "n_features_in_", None) == getattr(theirs, "n_features_in_", None)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_support_vectors_are_rows_grouped_by_class(n_classes, layout):
    X, y = classes(n_classes)
    weight = np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.0)  # numbers must count these rows too
    model = SVC().fit(layout(X), y, weight)
    assert_array_equal(as_dense(model.support_vectors_), X[model.support_])
    owner = np.repeat(model.classes_, model.n_support_)
    assert_array_equal(y[model.support_], owner)
    for label in model.classes_:
        assert (np.diff(model.support_[owner == label]) > 0).all()
    assert (weight[model.support_] > 0).all()
    assert (as_dense(model.dual_coef_) != 0).any(axis=0).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_coef_gives_the_decision_values(n_classes, layout):
    X, y = classes(n_classes)
    model = SVC(kernel="linear", decision_function_shape="ovo").fit(layout(X), y)
    values = X @ as_dense(model.coef_).T + model.intercept_
    assert_allclose(np.squeeze(values), model.decision_function(layout(X)), rtol=1e-6, atol=1e-6)
    frozen = model.coef_.data if sp.issparse(model.coef_) else model.coef_
    with pytest.raises(ValueError, match="read-only"):
        frozen[:] = 0


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid", "precomputed"])
def test_coef_is_for_the_linear_kernel_only(kernel):
    X = TOY_X @ TOY_X.T if kernel == "precomputed" else TOY_X
    model = SVC(kernel=kernel).fit(X, TOY_Y)
    with pytest.raises(AttributeError, match="linear"):
        _ = model.coef_


@pytest.mark.parametrize("name", ["coef_", "n_support_", "support_", "n_iter_"])
def test_fitted_attributes_do_not_exist_before_fit(name):
    assert not hasattr(SVC(kernel="linear"), name)


# ---------------------------------------------------------------------- decisions and ties


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_shapes_of_decision_functions(n_classes):
    X, y = make_classification(
        n_samples=80, n_features=8, n_informative=8, n_redundant=0, n_classes=n_classes,
        n_clusters_per_class=1, random_state=0,
    )  # fmt: skip
    n_pairs = n_classes * (n_classes - 1) // 2
    ovo = SVC(decision_function_shape="ovo").fit(X, y).decision_function(X)
    ovr = SVC(decision_function_shape="ovr").fit(X, y).decision_function(X)
    assert ovo.shape == ((80,) if n_classes == 2 else (80, n_pairs))
    assert ovr.shape == ((80,) if n_classes == 2 else (80, n_classes))


def test_break_ties_takes_the_largest_decision_value():
    X, y = classes(3)
    Z = np.random.default_rng(0).standard_normal((2000, 5))
    model = SVC(kernel="linear").fit(X, y)
    values = model.decision_function(Z)
    # One vote for each class, and less than half a vote by decision values.
    tied = (np.abs(values - 1) < 0.5).all(axis=1)
    assert tied.any()
    assert (model.predict(Z)[tied] == 0).all()  # LIBSVM: the lowest class
    model.set_params(break_ties=True)
    assert_array_equal(model.predict(Z), values.argmax(axis=1))
    assert (model.predict(Z)[tied] != 0).any()


def test_break_ties_needs_one_versus_rest():
    model = SVC(break_ties=True, decision_function_shape="ovo").fit(TOY_X, TOY_Y)
    with pytest.raises(ValueError, match="break_ties"):
        model.predict(TOY_X)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_decision_value_of_zero_goes_to_the_second_class_of_the_pair(n_classes):
    # All rows are the same, hence all decision values are zero: LIBSVM's rule decides alone.
    X, y = np.ones((6, 2)), np.arange(6) % n_classes
    ours = SVC(decision_function_shape="ovo").fit(X, y)
    theirs = svm.SVC().fit(X, y)
    assert not ours.decision_function(X).any()
    assert_array_equal(ours.predict(X), theirs.predict(X))


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


# ----------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint16, bool])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_numbers_of_any_type(dtype, layout):
    X, y = classes(3)
    X = (np.round(2 * X) > 0).astype(dtype) if dtype is bool else np.round(2 * X + 20).astype(dtype)
    model = SVC(gamma=0.1, tol=TOL).fit(layout(X), y)
    reference = SVC(gamma=0.1, tol=TOL).fit(X.astype(float), y)
    assert_same_decisions(model, reference, layout(X), X.astype(float))


@pytest.mark.parametrize("container", ["array", "matrix"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_rows_of_any_format(format, container):
    X, y = classes(3)
    X = np.where(X > 0, X, 0)
    make = sp.csr_array if container == "array" else sp.csr_matrix
    rows = make(X).asformat(format)
    model = SVC(gamma=0.2, tol=TOL).fit(rows, y)
    dense = SVC(gamma=0.2, tol=TOL).fit(X, y)
    assert_same_decisions(model, dense, rows, X)  # sparse in, sparse asked
    assert_same_decisions(model, dense, X)  # sparse in, dense asked
    theirs = svm.SVC(gamma=0.2).fit(rows, y)
    assert type(model.dual_coef_) is type(theirs.dual_coef_)
    assert type(model.support_vectors_) is type(theirs.support_vectors_)


def test_sparse_rows_with_indices_out_of_order_and_stored_zeros():
    X, y = classes(2)
    X[::2, 1] = 0.0
    n, d = X.shape
    order = np.array([3, 1, 4, 0, 2])
    rows = sp.csr_array(
        (X[:, order].ravel(), np.tile(order, n).astype(np.int32),
         np.arange(0, n * d + 1, d).astype(np.int32)), shape=(n, d),
    )  # fmt: skip
    assert not rows.has_sorted_indices
    model = SVC(gamma=0.2, tol=TOL).fit(rows, y)
    assert_same_decisions(model, SVC(gamma=0.2, tol=TOL).fit(X, y), rows, X)


@pytest.mark.parametrize("ask", ["predict", "decision_function"])
def test_a_model_of_dense_rows_refuses_sparse_rows(ask):
    model = SVC().fit(TOY_X, TOY_Y)
    with pytest.raises(ValueError, match="sparse"):
        getattr(model, ask)(sp.csr_array(TOY_X))


def strided(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@pytest.mark.parametrize(
    "present", [np.asfortranarray, strided, read_only, lambda X: X[::-1, ::-1][::-1, ::-1], list]
)
def test_memory_layout_does_not_matter(present):
    X, y = classes(3)
    weight = np.linspace(0.5, 2, len(y))
    model = SVC(tol=TOL).fit(present(X), y, weight)
    assert_array_equal(
        model.decision_function(present(X)),
        SVC(tol=TOL).fit(X, y, weight).decision_function(X),
    )


def test_read_only_labels_weights_and_sparse_rows():
    X, y = classes(2)
    rows = sp.csr_array(X)
    weight = np.linspace(0.5, 2, len(y))
    for array in (rows.data, rows.indices, rows.indptr, y, weight):
        array.flags.writeable = False
    model = SVC(tol=TOL).fit(rows, y, weight)
    assert_same_decisions(model, SVC(tol=TOL).fit(X, y, weight), rows, X)


@pytest.mark.parametrize("layout", [np.array, sp.csr_array])
def test_inputs_are_not_changed(layout):
    X, y = classes(3)
    weight = np.linspace(0.5, 2, len(y))
    X_given, y_given, weight_given = layout(X), y.copy(), weight.copy()
    SVC().fit(X_given, y_given, weight_given).predict(X_given)
    assert_array_equal(as_dense(X_given), X)
    assert_array_equal(y_given, y)
    assert_array_equal(weight_given, weight)


def test_a_model_does_not_change_when_its_data_do():
    X, y = classes(2)
    X_given, Z = X.copy(), X[:5].copy()
    model = SVC().fit(X_given, y)
    before = model.decision_function(Z)
    X_given[:] = 0
    assert_array_equal(model.decision_function(Z), before)


@pytest.mark.parametrize(
    "labels", [["ham", "spam", "tofu"], [-1, 5, 7], [10.0, 20.0, 30.0], list("cab")]
)
def test_labels_of_any_kind(labels):
    X, y = classes(3)
    labels = np.array(labels)
    model = SVC().fit(X, labels[y])
    assert_array_equal(model.classes_, np.unique(labels))
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert_array_equal(predicted, svm.SVC().fit(X, labels[y]).predict(X))


def test_labels_that_are_true_or_false():
    model = SVC().fit(TOY_X, TOY_Y == 2)
    assert_array_equal(model.predict(TOY_X), TOY_Y == 2)
    assert model.predict(TOY_X).dtype == bool


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_give_feature_names(frame):
    names = ["one", "two"]
    X = frame(dict(zip(names, TOY_X.T, strict=True)))
    model = SVC(tol=TOL).fit(X, TOY_Y)
    assert_array_equal(model.feature_names_in_, names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = model.decision_function(X)
    assert_array_equal(predicted, SVC(tol=TOL).fit(TOY_X, TOY_Y).decision_function(TOY_X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[names[::-1]])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(TOY_X)


def test_arrays_give_no_feature_names():
    assert not hasattr(SVC().fit(TOY_X, TOY_Y), "feature_names_in_")


# ---------------------------------------------------------- settings that change no answer


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_jobs", [2, -1])
def test_n_jobs_does_not_change_the_answer(n_classes, layout, n_jobs):
    X, y = classes(n_classes, n=200)
    X = layout(X)
    one, more = SVC(C=10).fit(X, y), SVC(C=10, n_jobs=n_jobs).fit(X, y)
    assert_array_equal(more.support_, one.support_)
    assert_array_equal(as_dense(more.dual_coef_), as_dense(one.dual_coef_))
    assert_array_equal(more.intercept_, one.intercept_)
    assert_array_equal(more.decision_function(X), one.decision_function(X))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cache_size", [0.001, 0.1, 200, 1e5])
def test_cache_size_does_not_change_the_answer(cache_size, layout):
    # A whole kernel matrix of 200 rows in float32 takes 0.16 MB; 0.001 MB is one row.
    X, y = classes(2, n=200)
    X = layout(X)
    model = SVC(cache_size=cache_size, C=10, tol=TOL).fit(X, y)
    assert_same_decisions(model, SVC(C=10, tol=TOL).fit(X, y), X)


def test_shrinking_does_not_change_the_answer():
    X, y = classes(3, n=200)
    shrunk = SVC(shrinking=True, C=10, tol=TOL).fit(X, y)
    assert_same_decisions(shrunk, SVC(shrinking=False, C=10, tol=TOL).fit(X, y), X)


def test_the_order_of_rows_does_not_change_the_answer():
    X, y = classes(3)
    order = np.random.default_rng(0).permutation(len(y))
    model = SVC(C=10, tol=TOL).fit(X[order], y[order])
    assert_same_decisions(model, SVC(C=10, tol=TOL).fit(X, y), X)


def test_fits_in_several_threads_do_not_disturb_each_other():
    # A fit lets other Python threads run, so two may be inside the solver at once.
    problems = [classes(3, n=150, seed=seed) for seed in range(8)]
    alone = [SVC(C=10).fit(X, y).decision_function(X) for X, y in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda p: SVC(C=10).fit(*p).decision_function(p[0]), problems))
    for expected, found in zip(alone, together, strict=True):
        assert_array_equal(found, expected)


def test_a_second_fit_forgets_the_first():
    X, y = classes(4)
    model = SVC(kernel="linear").fit(X, y)
    model.fit(TOY_X, TOY_Y)
    fresh = SVC(kernel="linear").fit(TOY_X, TOY_Y)
    for name in ("classes_", "support_", "dual_coef_", "intercept_", "n_iter_", "coef_"):
        assert_array_equal(getattr(model, name), getattr(fresh, name))
    assert model.n_features_in_ == 2
    assert model.shape_fit_ == (6, 2)


def test_nothing_is_printed(capfd):
    SVC().fit(*classes(3)).predict(classes(3)[0])
    assert capfd.readouterr() == ("", "")


# ------------------------------------------------------------------ life of an estimator


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["linear", "rbf", naive.linear_kernel])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_predicts_the_same(copied, kernel, layout):
    X, y = classes(3)
    X = layout(X)
    model = SVC(kernel=kernel).fit(X, y)
    again = copied(model)
    assert again.get_params() == model.get_params()
    # Not to the last bit: A @ B.T takes another road in BLAS when A and B are one array, and a
    # callable kernel of the original meets the very rows that it was fitted on.
    assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-9, atol=1e-12)
    assert_array_equal(again.predict(X), model.predict(X))


def test_a_clone_has_the_parameters_and_is_not_fitted():
    model = SVC(kernel=naive.linear_kernel, C=3, cache_size=7, n_jobs=2).fit(TOY_X, TOY_Y)
    other = clone(model)
    assert other.get_params() == model.get_params()
    assert not hasattr(other, "support_")


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_cross_validation_cuts_a_precomputed_kernel_both_ways(kernel):
    X, y = load_iris(return_X_y=True)
    X = X @ X.T if kernel == "precomputed" else X
    ours = cross_val_score(SVC(kernel=kernel, tol=TOL), X, y)
    theirs = cross_val_score(svm.SVC(kernel=kernel, tol=TOL), X, y)
    assert_array_equal(ours, theirs)


def test_grid_search_over_a_pipeline():
    X, y = load_iris(return_X_y=True)
    grid = {"svc__C": [0.1, 1, 10], "svc__gamma": ["scale", 0.5]}
    ours, theirs = (
        GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3).fit(X, y)
        for model in (SVC(tol=TOL), svm.SVC(tol=TOL))
    )
    assert_array_equal(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"])
    assert ours.best_params_ == theirs.best_params_


def test_score_takes_weights():
    X, y = classes(3)
    model, weight = SVC().fit(X, y), np.linspace(0, 1, len(y))
    assert model.score(X, y, weight) == pytest.approx(
        np.average(model.predict(X) == y, weights=weight)
    )


# The two that scikit-learn declares for its own SVC. They compare to the seventh digit what is
# only determined to tol=1e-3, and gamma="scale" counts every row alike, whatever its weight.
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": "equivalent only up to tol and gamma",
    "check_sample_weight_equivalence_on_sparse_data": "equivalent only up to tol and gamma",
}


@parametrize_with_checks(
    [SVC(), SVC(kernel="linear", n_jobs=2), SVC(kernel="precomputed")],
    expected_failed_checks=lambda _: EXPECTED_FAILED_CHECKS,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# ----------------------------------------------------------------- stopping before the end


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_iter", [0, 1, 5])
def test_max_iter_stops_with_a_warning(max_iter, n_classes):
    X, y = classes(n_classes, n=100)
    with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter}"):
        model = SVC(C=100, max_iter=max_iter).fit(X, y)
    assert model.fit_status_ == 1
    assert_array_equal(model.n_iter_, np.full(n_classes * (n_classes - 1) // 2, max_iter))
    assert model.predict(X).shape == (100,)


def test_max_iter_that_is_not_reached_gives_no_warning():
    X, y = classes(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(max_iter=100_000).fit(X, y)
    assert model.fit_status_ == 0
    assert (model.n_iter_ > 0).all()
    assert (model.n_iter_ < 100_000).all()


INTERRUPTED = """
    import numpy as np
    from onefit import SVC

    n, n_classes, n_jobs = {n}, {n_classes}, {n_jobs}
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 5)), rng.integers(0, n_classes, n)
    print("fitting", flush=True)
    try:
        SVC(C=1e6, tol=1e-9, n_jobs=n_jobs).fit(X, y)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    else:
        print("ended by itself", flush=True)
    print(SVC(kernel="linear").fit([[-1.0], [1.0]], [0, 1]).predict([[-2.0], [2.0]]), flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="no SIGINT for a child process on Windows")
@pytest.mark.parametrize(
    ("n", "n_classes", "n_jobs"), [(20_000, 2, None), (9_000, 3, 2)], ids=["one", "pairs"]
)
def test_ctrl_c_ends_a_long_fit(n, n_classes, n_jobs):
    # Labels are random and C is large: such a fit takes minutes.
    code = textwrap.dedent(INTERRUPTED.format(n=n, n_classes=n_classes, n_jobs=n_jobs))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        watchdog = threading.Timer(20, child.kill)  # else a deaf fit would hang this test
        try:
            assert child.stdout.readline() == "fitting\n"
            watchdog.start()
            time.sleep(1.5)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            assert child.stdout.readline() == "interrupted\n"
            assert time.monotonic() - sent < 2.0
            assert child.stdout.readline() == "[0 1]\n"
        finally:
            watchdog.cancel()
            child.kill()
