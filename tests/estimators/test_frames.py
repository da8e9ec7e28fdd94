"""pandas and polars frames: feature names, their own types of columns, targets in a series."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.examples import (
    ATOL,
    TOL,
    every_classifier,
    every_estimator,
    every_regressor,
    problem,
    values,
)

NAMES = ["one", "two", "three", "four", "five"]


def pandas_frame(X):
    return pd.DataFrame(X, columns=NAMES)


def polars_frame(X):
    return pl.DataFrame(X, schema=NAMES)


# An older scikit-learn asks for a protocol that polars 2 does not have.
names_of_polars = pytest.mark.skipif(
    not hasattr(StandardScaler().fit(polars_frame(np.eye(5))), "feature_names_in_"),
    reason="this scikit-learn does not read the names of this polars",
)
frames = pytest.mark.parametrize(
    "frame",
    [
        pytest.param(pandas_frame, id="pandas"),
        pytest.param(polars_frame, id="polars", marks=names_of_polars),
    ],
)


# ------------------------------------------------------------------------------ feature names


@every_estimator
@frames
def test_frames_give_feature_names(cls, frame):
    X, y = problem(cls)
    model = cls().fit(frame(X), y)
    assert_array_equal(model.feature_names_in_, NAMES)
    assert model.feature_names_in_.dtype == object
    assert model.n_features_in_ == 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = values(model, frame(X))
    assert_array_equal(predicted, values(cls().fit(X, y), X))


@every_estimator
@frames
def test_other_names_at_predict_are_refused(cls, frame):
    X, y = problem(cls)
    model = cls().fit(frame(X), y)
    for ask in (model.predict, lambda Z: values(model, Z)):
        with pytest.raises(ValueError, match="feature names"):
            ask(frame(X)[NAMES[::-1]])
        with pytest.raises(ValueError, match="feature names"):
            ask(frame(X)[NAMES[:4]])
    names = [*NAMES[:4], "fifth"]
    other = pd.DataFrame(X, columns=names) if frame is pandas_frame else pl.DataFrame(X, names)
    with pytest.raises(ValueError, match=r"(?s)unseen.*fifth.*missing.*five"):
        model.predict(other)


@every_estimator
@frames
def test_names_on_one_side_only_give_a_warning(cls, frame):
    X, y = problem(cls)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        cls().fit(frame(X), y).predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        cls().fit(X, y).predict(frame(X))


@every_estimator
@frames
@pytest.mark.parametrize("second", [np.array, np.asfortranarray, np.float32])
def test_a_second_fit_on_an_array_has_no_names(cls, frame, second):
    X, y = problem(cls)
    model = cls().fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    model.fit(frame(X), y)
    assert hasattr(model, "feature_names_in_")
    model.fit(second(X), y)
    assert not hasattr(model, "feature_names_in_")


@every_estimator
def test_names_that_are_no_strings(cls):
    X, y = problem(cls)
    assert not hasattr(cls().fit(pd.DataFrame(X), y), "feature_names_in_")
    with pytest.raises(TypeError, match="feature names"):
        cls().fit(pd.DataFrame(X, columns=["a", 1, "b", 2, "c"]), y)


@every_estimator
@frames
def test_names_go_through_a_pipeline_that_gives_frames(cls, frame):
    X, y = problem(cls)
    transform = "pandas" if frame is pandas_frame else "polars"
    pipeline = make_pipeline(StandardScaler(), cls()).set_output(transform=transform)
    pipeline.fit(frame(X), y)
    assert_array_equal(pipeline[-1].feature_names_in_, NAMES)
    assert isinstance(pipeline.predict(frame(X)), np.ndarray)
    plain = make_pipeline(StandardScaler(), cls()).fit(X, y)
    assert_allclose(values(pipeline, frame(X)), values(plain, X), rtol=0, atol=1e-9)


@every_estimator
def test_there_is_no_set_output(cls):
    assert not hasattr(cls(), "set_output")  # it is for what transforms


# --------------------------------------------------------------------------- types of columns


@every_estimator
@pytest.mark.parametrize("dtype", ["Float64", "Float32", "Int64", "Int8", "UInt16", "boolean"])
def test_columns_of_pandas_nullable_types(cls, dtype):
    X, y = problem(cls)
    X = (X > 0) if dtype == "boolean" else np.round(10 * np.abs(X))
    frame = pandas_frame(X).astype(dtype)
    assert_array_equal(values(cls().fit(frame, y), frame), values(cls().fit(X * 1.0, y), X * 1.0))


@every_estimator
def test_columns_of_several_types(cls):
    X, y = problem(cls)
    X[:, 0], X[:, 1] = np.round(X[:, 0]), X[:, 1] > 0
    X[:, 2] = X[:, 2].astype(np.float32)
    columns = {
        "one": X[:, 0].astype(int),
        "two": X[:, 1].astype(bool),
        "three": X[:, 2].astype(np.float32),
        "four": X[:, 3],
        "five": X[:, 4],
    }
    expected = values(cls().fit(X, y), X)
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        assert_array_equal(values(cls().fit(frame, y), frame), expected)


@every_estimator
def test_a_missing_value_in_a_frame_is_refused(cls):
    X, y = problem(cls)
    missing = [
        pandas_frame(X).where(X < 2),
        pandas_frame(X).astype("Float64").where(X < 2),
        polars_frame(X).with_columns(pl.when(pl.col("one") < 1).then("one").alias("one")),
    ]
    for frame in missing:
        with pytest.raises(ValueError, match="NaN"):
            cls().fit(frame, y)


@every_estimator
def test_sparse_columns_of_pandas(cls):
    X, y = problem(cls)
    X = np.where(X > 0, X, 0.0)
    frame = pandas_frame(X).astype(pd.SparseDtype(float, 0.0))
    model = cls(tol=TOL).fit(frame, y)
    assert_allclose(values(model, frame), values(cls(tol=TOL).fit(X, y), X), rtol=0, atol=ATOL)


# --------------------------------------------------------------------------- targets, weights


@every_estimator
def test_targets_and_weights_in_a_series(cls):
    X, y = problem(cls)
    weight = np.linspace(0.5, 2, len(y))
    expected = values(cls().fit(X, y, weight), X)
    odd = np.random.default_rng(0).permutation(1000)[: len(y)]  # an index is not looked at
    in_pandas = pd.Series(y, index=odd, name="y"), pd.Series(weight, index=odd[::-1])
    in_polars = pl.Series("y", y), pl.Series("weight", weight)
    for targets, weights in (in_pandas, in_polars):
        assert_array_equal(values(cls().fit(X, targets, weights), X), expected)
    frame = pd.DataFrame(X, columns=NAMES, index=odd[::-1])
    assert_array_equal(values(cls().fit(frame, *in_pandas), frame), expected)


@every_classifier
@pytest.mark.parametrize("dtype", ["object", "category", "string", "str"])
def test_labels_of_pandas_types(cls, dtype):
    X, y = problem(cls)
    labels = np.array(["ham", "spam", "tofu"], dtype=object)[y]
    model = cls().fit(X, pd.Series(labels).astype(dtype))
    assert_array_equal(model.predict(X), cls().fit(X, labels).predict(X))
    assert_array_equal(model.classes_, ["ham", "spam", "tofu"])


@every_classifier
@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float64"])
def test_labels_of_pandas_nullable_types(cls, dtype):
    X, y = problem(cls)
    y = y > 0 if dtype == "boolean" else y
    model = cls().fit(X, pd.Series(y).astype(dtype))
    assert_array_equal(model.predict(X), cls().fit(X, y).predict(X))


@every_classifier
def test_labels_of_polars_types(cls):
    X, y = problem(cls)
    labels = np.array(["ham", "spam", "tofu"], dtype=object)[y]
    for series in (pl.Series(labels.tolist()), pl.Series(labels.tolist(), dtype=pl.Categorical)):
        assert_array_equal(cls().fit(X, series).predict(X), cls().fit(X, labels).predict(X))


@every_regressor
@pytest.mark.parametrize("dtype", ["Int64", "Int8", "Float32", "Float64", "float32", "object"])
def test_targets_of_pandas_types(cls, dtype):
    X, y = problem(cls)
    y = np.round(10 * y)
    model = cls().fit(X, pd.Series(y).astype(dtype))
    assert_array_equal(model.predict(X), cls().fit(X, y).predict(X))


@every_estimator
@pytest.mark.parametrize("dtype", ["Int64", "Float64"])
def test_a_missing_target_is_refused(cls, dtype):
    X, y = problem(cls)
    targets = pd.Series(np.round(y)).astype(dtype)
    targets[3] = pd.NA
    with pytest.raises(ValueError, match=r"NaN|NA"):
        cls().fit(X, targets)


@every_estimator
def test_a_frame_of_one_column_as_targets(cls):
    X, y = problem(cls)
    with pytest.warns(match="1d array"):
        model = cls().fit(X, pd.DataFrame({"y": y}))
    assert_array_equal(values(model, X), values(cls().fit(X, y), X))
    assert is_classifier(model) == hasattr(model, "classes_")
