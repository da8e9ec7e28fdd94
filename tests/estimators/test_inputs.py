"""What the estimators take: numbers, memory layouts, sparse formats, labels and targets."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import cross_val_score

from estimators.examples import (
    ATOL,
    TOL,
    TOY_X,
    TOY_Y,
    as_dense,
    assert_same_values,
    classes,
    dense_and_sparse,
    every_classifier,
    every_estimator,
    every_regressor,
    of_scikit_learn,
    problem,
    values,
)
from onefit import SVC, SVR, NuSVR

# --------------------------------------------------------------------- numbers and dense rows


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, np.int64, np.int32, np.int8, np.uint16, bool, object]
)
def test_numbers_of_any_type(cls, dtype, layout):
    if layout is sp.csr_array and dtype in (np.float16, object):
        pytest.skip("scipy has no sparse arrays of these")
    X, y = problem(cls)
    X = (np.round(2 * X) > 0).astype(dtype) if dtype is bool else np.round(2 * X + 20).astype(dtype)
    model = cls(gamma=0.1, tol=TOL).fit(layout(X), y)
    reference = cls(gamma=0.1, tol=TOL).fit(X.astype(float), y)
    assert_same_values(model, reference, layout(X), X.astype(float))
    assert model.support_vectors_.dtype == np.float64


def strided(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), np.nan, dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def reversed_twice(X):
    """The same rows behind negative strides."""
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def nested_lists(X):
    return X.tolist()


def other_byte_order(X):
    return X.astype(X.dtype.newbyteorder())


PRESENTATIONS = [
    np.asfortranarray,
    strided,
    reversed_twice,
    read_only,
    list,
    nested_lists,
    other_byte_order,
]


@every_estimator
@pytest.mark.parametrize("present", PRESENTATIONS)
def test_memory_layout_does_not_matter(cls, present):
    X, y = problem(cls)
    weight = np.linspace(0.5, 2, len(y))
    model = cls(tol=TOL).fit(present(X), y, weight)
    expected = values(cls(tol=TOL).fit(X, y, weight), X)
    assert_array_equal(values(model, present(X)), expected)


@every_estimator
@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_rows_in_a_memory_mapped_file(cls, mode, tmp_path):
    X, y = problem(cls)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    rows = np.load(tmp_path / "X.npy", mmap_mode=mode)
    targets = np.load(tmp_path / "y.npy", mmap_mode=mode)
    assert isinstance(rows, np.memmap)
    model = cls().fit(rows, targets)
    assert_array_equal(values(model, rows), values(cls().fit(X, y), X))
    assert_array_equal(np.load(tmp_path / "X.npy"), X)


@every_estimator
def test_rows_that_joblib_maps_read_only(cls):
    from joblib import parallel_config

    X, y = problem(cls)
    with parallel_config("loky", max_nbytes=100):  # arrays above 100 bytes go through a file
        scores = cross_val_score(cls(), X, y, cv=3, n_jobs=2)
    assert_allclose(scores, cross_val_score(cls(), X, y, cv=3))


@every_estimator
@dense_and_sparse
def test_read_only_targets_weights_and_rows(cls, layout):
    X, y = problem(cls)
    rows = layout(X.copy())
    weight = np.linspace(0.5, 2, len(y))
    parts = (rows.data, rows.indices, rows.indptr) if sp.issparse(rows) else (rows,)
    for array in (*parts, y, weight):
        array.flags.writeable = False
    model = cls(tol=TOL).fit(rows, y, weight)
    assert_same_values(model, cls(tol=TOL).fit(X, y, weight), rows, X)


@every_estimator
@dense_and_sparse
def test_inputs_are_not_changed(cls, layout):
    X, y = problem(cls)
    weight = np.linspace(0.5, 2, len(y))
    X_given, y_given, weight_given = layout(X.copy()), y.copy(), weight.copy()
    cls().fit(X_given, y_given, weight_given).predict(X_given)
    assert_array_equal(as_dense(X_given), X)
    assert_array_equal(y_given, y)
    assert_array_equal(weight_given, weight)


@every_estimator
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@dense_and_sparse
def test_a_model_does_not_change_when_its_data_do(cls, kernel, layout):
    X, y = problem(cls)
    X_given, y_given, Z = layout(X.copy()), y.copy(), layout(X[:5])
    model = cls(kernel=kernel).fit(X_given, y_given)
    before = values(model, Z)
    (X_given.data if sp.issparse(X_given) else X_given)[:] = 0
    y_given[:] = 0
    assert_array_equal(values(model, Z), before)


@every_estimator
def test_rows_far_from_the_origin(cls):
    X, y = problem(cls)
    X = np.round(X, 3)  # exact at the distance too, or nearly so
    near = cls(gamma=0.5, tol=TOL).fit(X, y)
    far = cls(gamma=0.5, tol=TOL).fit(X + 1e8, y)
    assert_allclose(values(far, X + 1e8), values(near, X), atol=1e-3)


# -------------------------------------------------------------------------------- sparse rows


@every_estimator
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_sparse_rows_of_any_format(cls, format, container):
    X, y = problem(cls)
    X = np.where(X > 0, X, 0)
    rows = container(X).asformat(format)
    model = cls(gamma=0.2, tol=TOL).fit(rows, y)
    dense = cls(gamma=0.2, tol=TOL).fit(X, y)
    assert_same_values(model, dense, rows, X)  # sparse in, sparse asked
    assert_same_values(model, dense, X)  # sparse in, dense asked
    theirs = of_scikit_learn(cls)(gamma=0.2).fit(rows, y)
    assert type(model.dual_coef_) is type(theirs.dual_coef_)
    assert type(model.support_vectors_) is type(theirs.support_vectors_)
    assert_array_equal(rows.toarray(), X)


def out_of_order(X):
    """CSR rows whose indices are not sorted, and that store the zeros too."""
    n, d = X.shape
    order = np.random.default_rng(0).permutation(d)
    indices = np.tile(order, n).astype(np.int32)
    indptr = np.arange(0, n * d + 1, d, dtype=np.int32)
    return sp.csr_array((X[:, order].ravel(), indices, indptr), shape=(n, d))


def duplicated(X):
    """CSR rows that store every entry as two parts that sum to it."""
    n, d = X.shape
    data = np.stack([X / 4, 3 * X / 4], axis=2).ravel()
    indices = np.tile(np.repeat(np.arange(d), 2), n).astype(np.int32)
    indptr = np.arange(0, 2 * n * d + 1, 2 * d, dtype=np.int32)
    return sp.csr_array((data, indices, indptr), shape=(n, d))


def long_indices(X):
    rows = sp.csr_array(X)
    rows.indices, rows.indptr = rows.indices.astype(np.int64), rows.indptr.astype(np.int64)
    return rows


@every_estimator
@pytest.mark.parametrize("make", [out_of_order, duplicated])
def test_sparse_rows_that_are_not_in_canonical_form(cls, make):
    X, y = problem(cls)
    X[::2, 1] = 0.0
    rows = make(X)
    assert not rows.has_canonical_format
    stored = [part.copy() for part in (rows.data, rows.indices, rows.indptr)]
    model = cls(gamma=0.2, tol=TOL).fit(rows, y)
    assert_same_values(model, cls(gamma=0.2, tol=TOL).fit(X, y), rows, X)
    for part, before in zip((rows.data, rows.indices, rows.indptr), stored, strict=True):
        assert_array_equal(part, before)


@every_estimator
def test_sparse_rows_with_long_indices_are_as_in_scikit_learn(cls):
    X, y = problem(cls)
    for model in (cls(), of_scikit_learn(cls)()):
        with pytest.raises(ValueError, match="32-bit"):
            model.fit(long_indices(X), y)


@every_estimator
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
def test_hashed_columns_cost_what_they_store(cls, kernel, container):
    X, y = problem(cls)
    X, Z = X[:40], X[40:]
    columns = np.random.default_rng(0).choice(2**20, X.shape[1] + 1, replace=False)

    def hashed(rows, unseen):
        """The same numbers in few of many columns, and one that only some rows use."""
        wide = sp.lil_array((len(rows), 2**20))
        for k in range(rows.shape[1]):
            wide[:, [columns[k]]] = rows[:, [k]]
        wide[0, columns[-1]] = unseen
        return container(wide.tocsr())

    plain = np.hstack([Z, np.zeros((len(Z), 1))])
    plain[0, -1] = 0.7
    model = cls(kernel=kernel, gamma=0.2, tol=TOL).fit(hashed(X, 0.0), y[:40])
    dense = cls(kernel=kernel, gamma=0.2, tol=TOL).fit(np.hstack([X, np.zeros((40, 1))]), y[:40])
    assert_allclose(values(model, hashed(Z, 0.7)), values(dense, plain), atol=ATOL)


@pytest.mark.parametrize("cls", [SVC, SVR, NuSVR])
def test_sparse_rows_that_store_nothing(cls):
    X, y = sp.csr_array((6, 3)), np.arange(6) % 2
    ours, theirs = (c().fit(X, y) for c in (cls, of_scikit_learn(cls)))
    assert_same_values(ours, theirs, X)


# ------------------------------------------------------------------------- labels and targets


@every_classifier
@pytest.mark.parametrize(
    "labels",
    [["ham", "spam", "tofu"], [-1, 5, 7], [10.0, 20.0, 30.0], list("cab")],
)
def test_labels_of_any_kind(cls, labels):
    X, y = classes(3)
    labels = np.array(labels)
    model = cls(tol=TOL).fit(X, labels[y])
    assert_array_equal(model.classes_, np.unique(labels))
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert_array_equal(predicted, of_scikit_learn(cls)(tol=TOL).fit(X, labels[y]).predict(X))


@every_classifier
def test_labels_that_are_objects(cls):
    X, y = classes(3)
    labels = np.array(["ham", "spam", "tofu"], dtype=object)
    model = cls().fit(X, labels[y])
    assert model.classes_.dtype == object
    assert set(model.predict(X)) <= set(labels)
    assert model.score(X, labels[y]) == cls().fit(X, y).score(X, y)
    listed = cls().fit(X, labels[y].tolist())
    assert_array_equal(listed.predict(X), model.predict(X))


@every_classifier
def test_labels_that_are_true_or_false(cls):
    model = cls().fit(TOY_X, TOY_Y == 2)
    assert_array_equal(model.predict(TOY_X), TOY_Y == 2)
    assert model.predict(TOY_X).dtype == bool


@every_regressor
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.float32, np.float16, object])
def test_targets_of_any_type(cls, dtype):
    X, y = problem(cls)
    y = np.round(3 * y + 20).astype(dtype)
    model = cls().fit(X, y)
    assert_array_equal(model.predict(X), cls().fit(X, y.astype(float)).predict(X))
    assert model.predict(X).dtype == np.float64
    assert_array_equal(cls().fit(X, y.tolist()).predict(X), model.predict(X))


@every_regressor
def test_targets_that_are_true_or_false(cls):
    X, y = problem(cls)
    assert_array_equal(cls().fit(X, y > 0).predict(X), cls().fit(X, (y > 0) * 1.0).predict(X))


@every_estimator
def test_targets_in_a_column_are_taken_with_a_warning(cls):
    X, y = problem(cls)
    with pytest.warns(DataConversionWarning, match="1d array"):
        model = cls().fit(X, y[:, None])
    assert_array_equal(values(model, X), values(cls().fit(X, y), X))


@every_estimator
@pytest.mark.parametrize("present", [read_only, lambda y: np.repeat(y, 3)[::3], list])
def test_memory_layout_of_targets_does_not_matter(cls, present):
    X, y = problem(cls)
    assert_array_equal(values(cls().fit(X, present(y)), X), values(cls().fit(X, y), X))


def test_more_classes_than_a_word_has_bits():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(280, 4)), np.repeat(np.arange(70), 4)
    assert_same_values(SVC(tol=TOL).fit(X, y), of_scikit_learn(SVC)(tol=TOL).fit(X, y), X)


@every_estimator
@pytest.mark.parametrize("n", [2, 3])
def test_as_few_rows_as_there_can_be(cls, n):
    X, y = problem(cls)
    y = np.arange(60) if is_classifier(cls()) else y
    ours, theirs = (c(gamma=0.2, tol=TOL).fit(X[:n], y[:n]) for c in (cls, of_scikit_learn(cls)))
    assert_same_values(ours, theirs, X)
