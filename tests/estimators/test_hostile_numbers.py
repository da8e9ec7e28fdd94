"""Numbers near the ends of what floats hold: an answer, a warning or an error, never a crash."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from onefit import SVC, SVR, NuSVC, NuSVR, _core
from onefit.model_selection import cross_val_score

FAR = 1e6 + np.random.default_rng(0).normal(size=(75, 1))
LIMIT = 100_000  # iterations: enough for what converges, little for what cannot


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    before = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(before)


def values(model, X):
    return model.predict(X) if isinstance(model, SVR | NuSVR) else model.decision_function(X)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("cls", [SVC, SVR, NuSVC, NuSVR])
def test_gradients_beyond_1e30_end_with_a_warning(cls):
    y = np.arange(75) % 2
    with pytest.warns(ConvergenceWarning, match="max_iter|KKT gap"):
        model = cls(kernel="poly", max_iter=LIMIT).fit(FAR, y)
    assert np.isfinite(values(model, FAR)).all()


@pytest.mark.usefixtures("instruction_set")
def test_a_linear_kernel_of_1e33_is_solved():
    X = 8e16 * np.array([[1.0], [-1.0], [0.5]])
    model = SVC(kernel="linear").fit(X, [0, 1, 1])
    np.testing.assert_allclose(model.decision_function(X), [-1.0, 7.0, 1.0], atol=2e-3)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("n_features", [1, 3])
def test_the_units_of_the_data_do_not_matter(n_features):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, n_features)), np.arange(60) % 2
    expected = SVC(kernel="linear").fit(X, y)
    for power in (-50, -20, 20, 50):
        unit = 2.0**power
        model = SVC(kernel="linear", C=unit**-2).fit(X * unit, y)
        np.testing.assert_array_equal(model.dual_coef_ * unit**2, expected.dual_coef_)


def test_without_curvature_a_fit_ends_at_the_bounds():
    for C in (1.0, 1e30, 1e300):
        model = SVC(kernel="linear", C=C).fit(np.zeros((3, 2)), [0, 1, 1])
        assert np.abs(model.dual_coef_).tolist() == [[C, C]]
        assert model.intercept_ == 1.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_contradicting_rows_have_no_solution_without_a_finite_bound(kernel):
    with pytest.raises(ValueError, match="finite C"):
        SVC(kernel=kernel, C=np.inf).fit([[1.0], [1.0], [2.0]], [0, 1, 1])


def test_kernel_values_that_overflow_off_the_diagonal_are_an_error():
    X = 1e6 * np.random.default_rng(1).normal(size=(40, 3))
    y = np.arange(40) % 2
    model = SVC(kernel="poly", gamma=1.0, coef0=-1e13)
    with pytest.raises(ValueError, match="kernel values overflow"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="overflow"):
        cross_val_score(model, X, y, error_score="raise")


def test_an_objective_that_overflows_is_an_error():
    X, y = np.zeros((6, 1)), np.arange(6) % 2
    for cls, params in ((SVC, {}), (SVR, {"epsilon": 0.0})):
        with pytest.raises(ValueError, match="overflow"):
            cls(kernel="linear", C=1e308, **params).fit(X, 2 * y - 1)


def test_an_epsilon_that_is_too_large_is_named():
    with pytest.raises(ValueError, match="epsilon"):
        SVR(epsilon=1e40).fit(FAR, np.arange(75.0))


@st.composite
def hostile(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n, d = draw(st.sampled_from([3, 5, 12, 33, 75, 210])), draw(st.integers(1, 3))
    X = rng.normal(size=(n, d))
    shape = draw(st.sampled_from(["plain", "constant", "twice", "near", "rows", "far"]))
    if shape == "constant":
        X[:] = 1.0
    elif shape == "twice":
        X[n // 2 :] = X[: n - n // 2]
    elif shape == "near":
        X = X[:1] + 1e-9 * X
    elif shape == "rows":
        X *= 10.0 ** rng.integers(-8, 9, size=(n, 1))
    elif shape == "far":
        X += 10.0 ** rng.integers(0, 9)
    X *= 10.0 ** draw(st.sampled_from([0, -300, -160, -30, -10, 6, 9, 12, 18, 100, 150, 290]))
    cls = draw(st.sampled_from([SVC, SVR, NuSVC, NuSVR]))
    params = {"kernel": draw(st.sampled_from(["linear", "poly", "rbf", "sigmoid"]))}
    params["gamma"] = draw(st.sampled_from(["scale", 1.0, 1e-20, 1e20]))
    params["coef0"] = draw(st.sampled_from([0.0, -1.0, 1e6, -1e13, 1e100]))
    params["degree"] = draw(st.sampled_from([2, 3, 20]))
    if cls is NuSVC:
        params["nu"] = 0.2
    else:
        params["C"] = 10.0 ** draw(st.sampled_from([0, -300, -30, 6, 15, 30, 100, 300]))
    y = rng.permutation(np.arange(n) % 2)
    if cls in (SVR, NuSVR):
        y = rng.normal(size=n) * 10.0 ** draw(st.sampled_from([0, -300, 10, 29, 300]))
    return cls, params, X, y


@given(hostile())
@settings(max_examples=150, deadline=None)
def test_a_fit_gives_finite_values_or_an_error(problem):
    cls, params, X, y = problem
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            model = cls(max_iter=LIMIT, **params).fit(X, y)
        except ValueError:
            return
        assert np.isfinite(model.dual_coef_).all()
        assert np.isfinite(model.intercept_).all()


@given(st.integers(0, 10_000), st.sampled_from([1e-8, 1e-3, 1e3, 1e8]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_where_scikit_learn_converges_decision_values_agree(seed, unit, classes):
    rng = np.random.default_rng(seed)
    X, C = unit * rng.normal(size=(40, 3)), 0.1 / unit**2
    y = (X[:, 0] + 0.5 * unit * rng.normal(size=40)) / unit
    ours, theirs = (SVC, svm.SVC) if classes else (SVR, svm.SVR)
    y = (y > 0).astype(int) if classes else y
    expected = values_of(theirs(kernel="linear", C=C, tol=1e-6).fit(X, y), X)
    found = values_of(ours(kernel="linear", C=C, tol=1e-6).fit(X, y), X)
    # Without a free support vector the intercept is not unique.
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-3)


def values_of(model, X):
    return getattr(model, "decision_function", model.predict)(X)
