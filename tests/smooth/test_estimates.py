"""Estimates of left-out rows: what counts as exact is what a fit without the row gives."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from onefit import SmoothSVC, SmoothSVR, leave_one_out
from onefit.smooth.reduced import random_set, unchanged_without
from smooth.problems import classes, numbers, sparse

MACHINES = {
    "linear": {"kernel": "linear"},
    "rbf": {"gamma": 0.3},
    "scale": {"gamma": "scale"},
    "poly": {"kernel": "poly", "gamma": 0.2, "degree": 2, "coef0": 1.0},
    "random": {"gamma": 0.3, "reduced": "random", "n_components": 6},
    "auto size": {"gamma": 0.3, "reduced": "random"},
    "all rows": {"gamma": 0.3, "reduced": "random", "n_components": 100},
    "incremental": {"gamma": 0.3, "reduced": "incremental"},
    "reduced linear": {"kernel": "linear", "reduced": "random", "n_components": 4},
}


def values_of(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def assert_exact_rows_are_exact(machine, X, y, weights=None):
    result = leave_one_out(machine, X, y, method="approximate", sample_weight=weights)
    tight = clone(machine).set_params(tol=1e-12)
    for row in np.flatnonzero(result.exact_rows):
        others = np.delete(np.arange(len(y)), row)
        some = None if weights is None else weights[others]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the tolerance may be too tight
            expected = values_of(tight.fit(X[others], y[others], some), X[[row]])[0]
        scale = max(1.0, np.abs(expected).max())
        assert_allclose(result.decision_values[row], expected, atol=1e-8 * scale)
    return result


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(9, 30),
    name=st.sampled_from(list(MACHINES)),
    C=st.sampled_from([1e-3, 1.0, 100.0, 1e6]),
    regression=st.booleans(),
    n_classes=st.sampled_from([2, 3]),
    multi_class=st.sampled_from(["ovr", "ovo"]),
    class_weight=st.sampled_from([None, "balanced", {"a": 2.0}]),
    quadratic=st.booleans(),
    is_sparse=st.booleans(),
    weighted=st.booleans(),
    copies=st.booleans(),
)
def test_drawn_machines(
    seed,
    n,
    name,
    C,
    regression,
    n_classes,
    multi_class,
    class_weight,
    quadratic,
    is_sparse,
    weighted,
    copies,
):
    settings_ = {**MACHINES[name], "C": C, "random_state": 0}
    if quadratic:
        settings_["loss"] = "squared"
    if regression:
        (X, y), machine = numbers(n=n, d=3, seed=seed), SmoothSVR(**settings_)
    else:
        X, y = classes(n=n, d=3, k=n_classes, seed=seed)
        machine = SmoothSVC(**settings_, multi_class=multi_class, class_weight=class_weight)
    if copies:
        X[::3] = X[0]
    weights = None
    if weighted:
        weights = np.random.default_rng(seed).integers(-1, 3, size=n).astype(float)
        weights[:9] = 1.0
        _, first = np.unique(y, return_index=True)
        weights[first] = 1.0
    assert_exact_rows_are_exact(machine, sparse(X) if is_sparse else X, y, weights)


def test_rows_of_a_reduced_set_are_not_exact_and_others_are():
    """Without one of its columns a fit draws another row in its place."""
    X, y = classes(n=60)
    machine = SmoothSVC(gamma=0.2, reduced="random", n_components=12, random_state=0)
    result = assert_exact_rows_are_exact(machine, X, y)
    columns = machine.fit(X, y).component_indices_
    assert not result.exact_rows[columns].any()
    assert result.exact_rows.sum() > 10


@pytest.mark.parametrize("size", [None, 3, 7, 40])
@pytest.mark.parametrize("n", [2, 8, 9, 30, 64, 65])
def test_which_random_sets_stay(n, size):
    keys = np.random.default_rng(n).permutation(n).astype(np.uint64)
    keys[: n // 4] = keys[-1]
    chosen = np.unique(keys[random_set(keys, size)])
    for row, same in enumerate(unchanged_without(keys, size)):
        rest = np.delete(keys, row)
        assert same == np.array_equal(np.unique(rest[random_set(rest, size)]), chosen)


def test_a_row_without_which_a_class_is_gone():
    X, y = classes(n=40, k=2)
    y[7] = "c"
    result = leave_one_out(SmoothSVC(gamma=0.2, loss="squared"), X, y, method="approximate")
    assert_array_equal(np.flatnonzero(~result.exact_rows), [7])


@pytest.mark.parametrize("other", [{"gamma": "scale"}, {"class_weight": "balanced"}])
def test_what_changes_with_every_row_is_never_exact(other):
    X, y = classes(n=40)
    machine = SmoothSVC(**{"gamma": 0.2, "loss": "squared", **other})
    result = leave_one_out(machine, X, y, method="approximate")
    assert not result.exact_rows.any()


@pytest.mark.parametrize("seed", [5, 14, 16])
def test_large_weights_leave_rounding_that_is_seen(seed):
    X, y = classes(n=25, d=3, seed=seed)
    machine = SmoothSVC(kernel="poly", gamma=0.7, degree=2, coef0=1.0, C=1e6)
    assert_exact_rows_are_exact(machine, X, y)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_the_fit_on_all_rows_is_that_of_the_estimator(kernel, multi_class):
    X, y = classes(n=60, k=3)
    weights = np.tile([1.0, 2.0, 0.0, -1.0], 15)
    data = X @ X.T if kernel == "precomputed" else X
    for reduced in (None, "random"):
        machine = SmoothSVC(kernel=kernel, reduced=reduced, multi_class=multi_class, random_state=0)
        result = leave_one_out(machine, data, y, method="approximate", sample_weight=weights)
        expected = machine.fit(data, y, sample_weight=weights).decision_function(data)
        assert_allclose(result.full_values, expected, atol=1e-7)
