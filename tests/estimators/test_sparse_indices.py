"""A sparse matrix whose indices lead out of it is refused before anything follows them.

scipy accepts such matrices and takes their indices on trust; what is written at one of them is
written to memory of somebody else.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from onefit import (
    SVC,
    SVR,
    GridSearchCV,
    NuSVC,
    NuSVR,
    RandomizedSearchCV,
    ReducedKernel,
    SmoothSVC,
    SmoothSVR,
    _core,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    leave_one_out,
)

N, COLUMNS = 60, 3
Y = np.arange(N) % 2


def valid(layout="csr", index=np.int32):
    rng = np.random.default_rng(0)
    dense = rng.uniform(size=(N, COLUMNS)) * (rng.uniform(size=(N, COLUMNS)) < 0.5)
    X = sp.csr_array(dense).asformat(layout)
    if layout == "coo":
        X.row, X.col = X.row.astype(index), X.col.astype(index)
    else:
        X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X


def broken(column, layout="csr", index=np.int32):
    """The matrix with an index out of range."""
    X = valid(layout, index)
    if layout == "coo":
        X.col[5] = column
    else:
        X.indices[5] = column
    return X


ESTIMATORS = [SVC, NuSVC, SVR, NuSVR, SmoothSVC, SmoothSVR]
every_estimator = pytest.mark.parametrize("cls", ESTIMATORS)
every_index = pytest.mark.parametrize("column", [COLUMNS, 99_999, -1, -(2**31)])


@every_estimator
@every_index
@pytest.mark.parametrize("weighted", [False, True])
def test_fits(cls, column, weighted):
    weights = {"sample_weight": np.ones(N)} if weighted else {}
    with pytest.raises(ValueError, match=rf"X .* index {column} is out of range.*0 to 2"):
        cls().fit(broken(column), Y, **weights)


def test_the_matrix_that_scipy_makes():
    X = sp.csr_matrix(
        (np.ones(60), np.full(60, 99_999, dtype=np.int32), np.arange(61)), shape=(60, 3)
    )
    with pytest.raises(ValueError, match=r"X .* index 99999"):
        SVC().fit(X, Y)


@every_estimator
@every_index
def test_predictions(cls, column):
    model = cls().fit(valid(), Y)
    for method in {"predict", "decision_function"} & set(dir(model)):
        with pytest.raises(ValueError, match=f"X .* index {column} is out of range"):
            getattr(model, method)(broken(column))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("act", ["fit", "predict"])
def test_other_layouts(layout, index, act):
    size = {"csc": N, "coo": COLUMNS}.get(layout, COLUMNS)
    model = SVC().fit(valid(), Y)
    for wrong in (size, -1):
        X = broken(wrong, layout, index)
        with pytest.raises(ValueError, match=f"X .* {wrong} is out of range.*0 to {size - 1}"):
            model.fit(X, Y) if act == "fit" else model.predict(X)


@pytest.mark.parametrize(
    ("indptr", "words"),
    [
        ({0: 1}, "indptr begins with 1"),
        ({10: 80}, "indptr falls"),
        ({10: -5}, "indptr falls"),
        ({60: 10_000}, "indptr ends with 10000"),
    ],
)
@pytest.mark.parametrize("layout", ["csr", "bsr"])
def test_rows_out_of_place(indptr, words, layout):
    X, model = valid(layout), SVC().fit(valid(), Y)
    for at, value in indptr.items():
        X.indptr[at] = value
    with pytest.raises(ValueError, match=f"X .*{words}"):
        SVC().fit(X, Y)
    with pytest.raises(ValueError, match=f"X .*{words}"):
        model.predict(X)


def test_arrays_of_different_lengths():
    X = valid()
    X.data = X.data[:10]
    with pytest.raises(ValueError, match=r"X .*at most 10"):
        SVC().fit(X, Y)
    X = valid()
    X.indptr = X.indptr[:20]
    with pytest.raises(ValueError, match=r"X .*indptr has 20 entries.*61"):
        SVC().fit(X, Y)


def test_room_behind_the_stored_values_is_not_read():
    X = valid()
    longer = valid()
    longer.data = np.concatenate([X.data, np.ones(7)])
    longer.indices = np.concatenate([X.indices, np.full(7, 99, dtype=np.int32)])
    expected = SVC().fit(X, Y).decision_function(X)
    assert np.array_equal(SVC().fit(longer, Y).decision_function(longer), expected)


def roads():
    grid = {"C": [1, 10], "gamma": [0.1, 1]}
    pipeline = make_pipeline(MaxAbsScaler(), SVC())
    yield "cross_validate", lambda X: cross_validate(SVC(), X, Y)
    yield "one C", lambda X: cross_validate(SVC(gamma=1), X, Y, return_train_score=True)
    yield "cross_val_score", lambda X: cross_val_score(SVR(), X, Y)
    yield "cross_val_predict", lambda X: cross_val_predict(NuSVC(), X, Y)
    yield "values", lambda X: cross_val_predict(SVC(), X, Y, method="decision_function")
    yield "each row", lambda X: cross_val_score(SVC(), X, Y, cv=LeaveOneOut())
    yield "pipeline", lambda X: cross_val_score(pipeline, X, Y)
    yield "weights", lambda X: cross_validate(SVC(), X, Y, params={"sample_weight": np.ones(N)})
    yield "smooth folds", lambda X: cross_validate(SmoothSVC(), X, Y)
    yield "smooth function", lambda X: cross_val_predict(SmoothSVR(), X, Y)
    for method in ("exact", "approximate", "bound"):
        yield method, lambda X, method=method: leave_one_out(SVC(gamma=1), X, Y, method=method)
    yield "smooth rows", lambda X: leave_one_out(SmoothSVC(), X, Y)
    yield "grid", lambda X: GridSearchCV(SVC(), grid).fit(X, Y)
    yield "screened", lambda X: GridSearchCV(SVC(), grid, screen="approximate").fit(X, Y)
    yield "draws", lambda X: RandomizedSearchCV(SVR(), grid, n_iter=2).fit(X, Y)
    yield "search of a pipeline", lambda X: GridSearchCV(pipeline, {"svc__C": [1, 2]}).fit(X, Y)
    yield "selection", lambda X: ReducedKernel(n_components=5).fit(X)
    yield "its values", lambda X: ReducedKernel(n_components=5).fit(valid()).transform(X)
    yield "any function", lambda X: SVC(kernel=lambda A, B: (A @ B.T).toarray()).fit(X, Y)


@pytest.mark.parametrize("road", [pytest.param(road, id=name) for name, road in roads()])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_every_road(road, layout):
    for column in (99_999, -1):
        with pytest.raises(ValueError, match=f"X .* {column} is out of range"):
            road(broken(column, layout))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"indices": [0, 3, 1]}, "column 3 is not in the matrix"),
        ({"indices": [0, -1, 1]}, "column -1 is not in the matrix"),
        ({"indptr": [1, 1, 3]}, "do not fit together"),
        ({"indptr": [0, 4, 3]}, "do not fit together"),
        ({"indptr": [0, 1, 4]}, "do not fit together"),
        ({"indices": [0, 1]}, "do not fit together"),
        ({"cols": 2**62}, "32 bits"),
    ],
)
def test_the_core_looks_too(change, words):
    parts = {"data": [1.0, 2.0, 3.0], "indices": [0, 2, 1], "indptr": [0, 1, 3], "cols": 3}
    parts |= change
    data = np.array(parts["data"])
    indices = np.array(parts["indices"], dtype=np.int32)
    indptr = np.array(parts["indptr"], dtype=np.int64)
    with pytest.raises(ValueError, match=words):
        _core.Points(data, indices, indptr, parts["cols"])
    kernel = _core.Kernel(_core.KernelKind.linear)
    with pytest.raises(ValueError, match=words):
        _core.KernelStore.from_csr(data, indices, indptr, parts["cols"], kernel, 1 << 20)
