"""Weights of rows and of classes: what they stand for."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import is_classifier
from strategies import drawn

from estimators.examples import (
    ATOL,
    ESTIMATORS,
    TOL,
    TOY_X,
    TOY_Y,
    as_dense,
    assert_same_values,
    dense_and_sparse,
    every_classifier,
    every_estimator,
    of_scikit_learn,
    problem,
    values,
)
from onefit import SVC, SVR, NuSVC, NuSVR

# A number for gamma: "scale" counts every row once, whatever its weight.
PARAMS = {
    SVC: {"gamma": 0.2, "tol": TOL, "C": 2.0},
    SVR: {"gamma": 0.2, "tol": TOL, "C": 2.0},
    NuSVC: {"gamma": 0.2, "tol": TOL, "nu": 0.3},
    NuSVR: {"gamma": 0.2, "tol": TOL, "nu": 0.3, "C": 2.0},
}


# ------------------------------------------------------------------- what a weight stands for


@drawn(120)
@given(
    cls=st.sampled_from(ESTIMATORS),
    n=st.integers(20, 70),
    seed=st.integers(0, 10_000),
    least=st.sampled_from([-1, 0, 1]),
    kernel=st.sampled_from(["rbf", "linear"]),
    layout=st.sampled_from([np.asarray, sp.csr_matrix, sp.csr_array]),
)
def test_a_weight_of_k_is_a_row_given_k_times(cls, n, seed, least, kernel, layout):
    X, y = problem(cls, n, seed)
    weight = np.random.default_rng(seed).integers(least, 4, n).astype(float)
    params = {**PARAMS[cls], "kernel": kernel}
    if is_classifier(cls()):
        weight[np.unique(y, return_index=True)[1]] = 1.0  # every class keeps a row
    if cls is NuSVC:
        # nu has to be possible: at most twice the share of the smaller class of each pair. And
        # with a linear kernel overlapping classes may have no margin.
        totals = np.sort(np.bincount(y, np.maximum(weight, 0)))
        params["nu"] = min(0.3, 1.9 * totals[0] / (totals[0] + totals[-1]))
        params["kernel"] = "rbf"
    times = np.maximum(weight, 0).astype(int)  # none for a weight of 0 or less
    weighted = cls(**params).fit(layout(X), y, weight)
    repeated = cls(**params).fit(layout(np.repeat(X, times, axis=0)), np.repeat(y, times))
    assert_same_values(weighted, repeated, layout(X), atol=weighting_atol(weighted))
    assert (weight[weighted.support_] > 0).all()


def weighting_atol(model):
    """ATOL; the values of NuSVC are the solver's, divided by the margin ρ."""
    return ATOL * max(1.0, np.max(getattr(model, "C_", 1.0)))


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize("empty", [0.0, -1.0])
def test_rows_of_no_weight_are_as_if_not_there(cls, empty, layout):
    X, y = problem(cls)
    weight = np.where(np.arange(len(y)) % 3 == 0, empty, 1.0)
    kept = weight > 0
    weighted = cls(**PARAMS[cls]).fit(layout(X), y, weight)
    without = cls(**PARAMS[cls]).fit(layout(X[kept]), y[kept])
    assert_same_values(weighted, without, X)
    assert_array_equal(weighted.support_, np.flatnonzero(kept)[without.support_])
    assert weighted.shape_fit_ == (60, 5)


@every_estimator
@pytest.mark.parametrize("kernel", ["precomputed", lambda A, B: A @ B.T])
def test_rows_of_no_weight_keep_their_columns_in_a_given_kernel(cls, kernel):
    X, y = problem(cls)
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    rows = X @ X.T if kernel == "precomputed" else X
    by_matrix = cls(kernel=kernel, tol=TOL).fit(rows, y, weight)
    by_rows = cls(kernel="linear", tol=TOL).fit(X, y, weight)
    assert_same_values(by_matrix, by_rows, rows, X)


@every_estimator
@dense_and_sparse
@pytest.mark.parametrize("seed", range(3))
def test_weights_mean_what_they_mean_to_scikit_learn(cls, layout, seed):
    X, y = problem(cls, seed=seed)
    weight = np.random.default_rng(seed).uniform(-0.2, 3.0, len(y))
    ours = cls(**PARAMS[cls]).fit(layout(X), y, weight)
    theirs = of_scikit_learn(cls)(**PARAMS[cls]).fit(layout(X), y, weight)
    assert_same_values(ours, theirs, layout(X))
    plain = cls(**PARAMS[cls]).fit(layout(X), y)
    assert not np.allclose(values(ours, layout(X)), values(plain, layout(X)), atol=0.01)


@pytest.mark.parametrize("cls", [SVC, SVR, NuSVR])
def test_scaling_all_weights_is_scaling_the_penalty(cls):
    X, y = problem(cls)
    weighted = cls(C=2.0, tol=TOL).fit(X, y, np.full(len(y), 0.25))
    assert_same_values(weighted, cls(C=0.5, tol=TOL).fit(X, y), X)
    more = cls(C=0.5, tol=TOL).fit(X, y, np.full(len(y), 4.0))
    assert_same_values(more, cls(C=2.0, tol=TOL).fit(X, y), X)


def test_scaling_all_weights_changes_no_decision_of_nu_svc():
    # The penalty is 1/ρ in units of the weights; ρ grows with them.
    X, y = problem(NuSVC)
    plain = NuSVC(tol=TOL).fit(X, y)
    weighted = NuSVC(tol=TOL).fit(X, y, np.full(len(y), 4.0))
    assert_same_values(weighted, plain, X)
    np.testing.assert_allclose(weighted.rho_, 4 * plain.rho_, rtol=1e-4)


@every_estimator
def test_weights_of_one_are_no_weights(cls):
    X, y = problem(cls)
    plain = cls().fit(X, y)
    for ones in (np.ones(60), np.ones(60, dtype=int), [1] * 60, np.ones(60, dtype=np.float32)):
        assert_array_equal(values(cls().fit(X, y, ones), X), values(plain, X))


@every_estimator
def test_weights_of_zero_for_all_but_two_rows(cls):
    X, y = problem(cls)
    y = np.arange(60) % 2 if is_classifier(cls()) else y
    weight = np.zeros(60)
    weight[[10, 11]] = 1.0
    model = cls(**PARAMS[cls]).fit(X, y, weight)
    assert set(model.support_) <= {10, 11}
    pair = cls(**PARAMS[cls]).fit(X[[10, 11]], y[[10, 11]])
    assert_same_values(model, pair, X)


# ------------------------------------------------------------------------------- class_weight


@pytest.mark.parametrize("class_weight", [{0: 3.0}, {0: 0.2, 1: 1, 2: 5}, "balanced"])
def test_class_weight_is_a_factor_on_the_penalty(class_weight):
    X, y = problem(SVC)
    y = np.where(np.arange(len(y)) < 30, np.minimum(y, 1), y)  # unequal classes
    by_class = SVC(class_weight=class_weight, tol=TOL).fit(X, y)
    by_row = SVC(tol=TOL).fit(X, y, sample_weight=by_class.class_weight_[y])
    assert_same_values(by_class, by_row, X)
    assert not np.allclose(by_class.decision_function(X), SVC().fit(X, y).decision_function(X))


def test_class_weight_has_no_effect_on_nu_svc_as_in_scikit_learn():
    X, y = problem(NuSVC)
    weights = {0: 3.0, 1: 0.5}
    ours, theirs = (c(class_weight=weights).fit(X, y) for c in (NuSVC, of_scikit_learn(NuSVC)))
    assert_array_equal(ours.class_weight_, theirs.class_weight_)
    assert_array_equal(as_dense(ours.dual_coef_), as_dense(NuSVC().fit(X, y).dual_coef_))


@every_classifier
def test_class_weight_takes_string_labels(cls):
    labels = np.array(["spam", "ham"])[TOY_Y - 1]
    model = cls(class_weight={"spam": 2.0}).fit(TOY_X, labels)
    assert_array_equal(model.class_weight_, [1.0, 2.0])
