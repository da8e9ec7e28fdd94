"""Fits of smooth machines against the objective written down."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import ReducedKernel, SmoothSVC, SmoothSVR
from onefit.smooth.design import StoredDesign
from onefit.smooth.systems import UPDATES, IterativeSystem, make_system
from smooth import slow
from smooth.problems import classes, numbers, sparse

KERNELS = ["linear", "rbf", "poly", "sigmoid"]


def theta_of(model, number=0):
    coef = model.dual_coef_ if hasattr(model, "dual_coef_") else model.coef_
    return np.concatenate([[model.intercept_[number] / model.intercept_scaling], coef[number]])


def phi_of(model, X):
    return slow.phi_of(model, X, getattr(model, "components_", None))


@parametrize_with_checks(
    [
        SmoothSVC(),
        SmoothSVC(kernel="linear", multi_class="ovo", beta=5.0),
        SmoothSVR(),
        ReducedKernel(selection="incremental"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("beta", [None, 5.0])
@pytest.mark.parametrize("update", UPDATES)
def test_two_classes(kernel, beta, update):
    X, y = classes(n=80, d=60 if kernel == "linear" else 6)
    model = SmoothSVC(kernel=kernel, gamma=0.1, coef0=0.3, beta=beta, update=update, C=2.0)
    model.fit(X, y)
    expected = slow.fit(model, phi_of(model, X), np.where(y == "b", 1.0, -1.0), np.full(80, 2.0))
    assert_allclose(theta_of(model), expected, atol=1e-8)
    f = phi_of(model, X) @ expected[1:] + expected[0]
    assert_allclose(model.decision_function(X), f, atol=1e-8)
    assert_array_equal(model.predict(X), np.where(f > 0, "b", "a"))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("beta", [None, 5.0])
@pytest.mark.parametrize("loss", ["squared_epsilon_insensitive", "squared"])
def test_regression(kernel, beta, loss):
    X, y = numbers()
    model = SmoothSVR(kernel=kernel, gamma=0.1, beta=beta, loss=loss, C=3.0, epsilon=0.2)
    model.set_params(intercept_scaling=2.0).fit(X, y)
    expected = slow.fit(model, phi_of(model, X), y, np.full(60, 3.0))
    assert_allclose(theta_of(model), expected, atol=1e-8)
    values = phi_of(model, X) @ expected[1:] + 2.0 * expected[0]
    assert_allclose(model.predict(X), values, atol=1e-8)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kernel=st.sampled_from(KERNELS),
    update=st.sampled_from(UPDATES),
    C=st.sampled_from([1e-3, 1.0, 100.0]),
    wide=st.booleans(),
    weighted=st.booleans(),
    is_sparse=st.booleans(),
)
def test_drawn_problems(seed, kernel, update, C, wide, weighted, is_sparse):
    X, y = classes(n=40, d=70 if wide else 3, seed=seed)
    X = sparse(X) if is_sparse else X
    weights = (
        np.random.default_rng(seed).integers(0, 3, size=40).astype(float) if weighted else None
    )
    if weights is not None:
        weights[[list(y).index("a"), list(y).index("b")]] = 1.0
    model = SmoothSVC(kernel=kernel, gamma=0.05, C=C, update=update, class_weight={"a": 2.0})
    model.fit(X, y, sample_weight=weights)
    c = C * np.where(y == "a", 2.0, 1.0) * (1.0 if weights is None else weights)
    y = np.where(y == "b", 1.0, -1.0)
    phi = phi_of(model, X)
    grad = slow.gradient(model, theta_of(model), phi, y, c)
    size = max(1.0, np.linalg.norm(theta_of(model)))
    assert np.linalg.norm(grad) <= 1e-7 * size * max(1.0, np.abs(phi).max())


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("reduced", [None, "random"])
def test_more_classes_are_several_fits_of_two(kernel, multi_class, reduced):
    X, y = classes(n=90, k=3)
    both = {"kernel": kernel, "gamma": 0.2}
    model = SmoothSVC(**both, multi_class=multi_class, reduced=reduced, random_state=0).fit(X, y)
    names = ["a", "b", "c"]
    if multi_class == "ovr":
        sides = [(y == y, y == name) for name in names]
    else:
        sides = [((y == i) | (y == j), y == j) for i, j in combinations(names, 2)]
    for number, (rows, positive) in enumerate(sides):
        side = np.where(positive[rows], 1.0, -1.0)
        if reduced is None:
            alone = SmoothSVC(**both).fit(X[rows], side)
            expected = alone.decision_function(X)
        else:
            theta = slow.fit(model, phi_of(model, X[rows]), side, np.ones(len(side)))
            expected = phi_of(model, X) @ theta[1:] + theta[0]
        assert_allclose(model._values(X)[:, number], expected, atol=1e-8)
    votes = model.decision_function(X)
    assert votes.shape == (90, 3)
    assert_array_equal(model.predict(X), np.array(names)[votes.argmax(axis=1)])


def test_objective_of_a_linear_svc():
    X, y = classes(n=200, d=8)
    ours = SmoothSVC(kernel="linear", C=2.0).fit(X, y)
    theirs = LinearSVC(C=1.0, tol=1e-10, dual=False, max_iter=100_000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_sparse_rows_are_dense_rows(kernel):
    X, y = classes()
    few = sparse(X)
    dense = SmoothSVC(kernel=kernel, gamma=0.1).fit(few.toarray(), y)
    model = SmoothSVC(kernel=kernel, gamma=0.1).fit(few, y)
    assert_allclose(model.decision_function(few), dense.decision_function(few.toarray()), atol=1e-9)
    assert_allclose(model.decision_function(few.toarray()), model.decision_function(few))


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_rows_without_weight_take_no_part(kernel):
    X, y = classes()
    weights = np.tile([1.0, 2.0, 0.0], 20)
    some = weights > 0
    machine = SmoothSVC(kernel=kernel, gamma=0.3)
    given_, part = (
        (X @ X.T, (X @ X.T)[np.ix_(some, some)]) if kernel == "precomputed" else (X, X[some])
    )
    queries = (X @ X.T, (X @ X.T)[:, some]) if kernel == "precomputed" else (X, X)
    whole = clone(machine).fit(given_, y, sample_weight=weights)
    alone = clone(machine).fit(part, y[some], sample_weight=weights[some])
    assert_allclose(
        whole.decision_function(queries[0]), alone.decision_function(queries[1]), atol=1e-9
    )


def test_given_kernels():
    X, y = classes()
    rbf = SmoothSVC(gamma=0.3).fit(X, y)
    K = slow.phi_of(rbf, X, X)
    called = SmoothSVC(kernel=lambda a, b: slow.phi_of(rbf, a, b)).fit(X, y)
    computed = SmoothSVC(kernel="precomputed").fit(K, y)
    assert_allclose(called.decision_function(X), rbf.decision_function(X), atol=1e-8)
    assert_allclose(computed.decision_function(K), rbf.decision_function(X), atol=1e-8)


def test_a_warm_start_saves_steps():
    X, y = classes(n=300)
    model = SmoothSVC(kernel="linear", warm_start=True).fit(X, y)
    cold = model.n_iter_[0]
    assert cold > 1
    assert model.fit(X, y).n_iter_[0] == 0
    X[0] *= 1.01
    assert 0 < model.fit(X, y).n_iter_[0] < cold


def test_an_early_end_is_said():
    X, y = classes()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        SmoothSVC(max_iter=1, tol=1e-12, gamma=0.1).fit(X, y)


def test_what_does_not_fit_is_said():
    X, y = classes(n=5_000)
    with pytest.raises(MemoryError, match="reduced='random'"):
        SmoothSVC(cache_size=1.0).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [("C", 0), ("beta", -1.0), ("reduced", "some"), ("update", "woodbury"), ("n_components", 0)],
)
def test_bad_parameters_are_named(name, value):
    X, y = classes()
    with pytest.raises(ValueError, match=f"'{name}' parameter"):
        SmoothSVC(**{name: value}).fit(X, y)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_extreme_weights(kernel):
    X, y = classes()
    for C in (1e-8, 1e8):
        model = SmoothSVC(kernel=kernel, gamma=0.5, C=C).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all()
    flat = SmoothSVC(kernel=kernel, C=1e-8, gamma=0.5).fit(X, y)
    assert np.abs(flat.decision_function(X)).max() < 1e-3


def test_rows_of_text_are_solved_by_products():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.normal(size=(1_200, 3_000)) * (rng.random((1_200, 3_000)) < 0.003))
    y = np.where(X @ rng.normal(size=3_000) > 0, 1, -1)
    assert isinstance(make_system("auto", StoredDesign(X)), IterativeSystem)
    ours = SmoothSVC(kernel="linear").fit(X, y)
    direct = SmoothSVC(kernel="linear", update="dual").fit(X, y)
    assert_allclose(ours.coef_, direct.coef_, atol=1e-7)
