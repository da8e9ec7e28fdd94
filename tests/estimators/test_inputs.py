"""What ``onefit.SVC`` takes: numbers, containers, memory layouts, labels."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import svm

from estimators.examples import ATOL, TOL, TOY_X, TOY_Y, as_dense, assert_same_decisions, classes
from onefit import SVC

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


def test_rows_far_from_the_origin():
    X, y = classes(2)
    X = np.round(X, 3)  # exact at the distance too, or nearly so
    near = SVC(gamma=0.5, tol=TOL).fit(X, y)
    far = SVC(gamma=0.5, tol=TOL).fit(X + 1e8, y)
    assert_allclose(far.decision_function(X + 1e8), near.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hashed_columns_cost_what_they_store(kernel):
    X, y = classes(3)
    X, Z = X[:40], X[40:]
    columns = np.random.default_rng(0).choice(2**20, X.shape[1] + 1, replace=False)

    def hashed(rows, unseen):
        """The same numbers in few of many columns, and one that only some rows use."""
        wide = sp.lil_array((len(rows), 2**20))
        for k in range(rows.shape[1]):
            wide[:, [columns[k]]] = rows[:, [k]]
        wide[0, columns[-1]] = unseen
        return wide.tocsr()

    plain = np.hstack([Z, np.zeros((len(Z), 1))])
    plain[0, -1] = 0.7
    model = SVC(kernel=kernel, gamma=0.2, tol=TOL).fit(hashed(X, 0.0), y[:40])
    dense = SVC(kernel=kernel, gamma=0.2, tol=TOL).fit(np.hstack([X, np.zeros((40, 1))]), y[:40])
    assert_allclose(
        model.decision_function(hashed(Z, 0.7)), dense.decision_function(plain), atol=ATOL
    )


def test_more_classes_than_a_word_has_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(280, 4)), np.repeat(np.arange(70), 4)
    assert_same_decisions(SVC(tol=TOL).fit(X, y), svm.SVC(tol=TOL).fit(X, y), X)
