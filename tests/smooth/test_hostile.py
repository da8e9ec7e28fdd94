"""Data and weights at the ends of what numbers can be: the right answer, or a clear error."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn import model_selection
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, LeaveOneOut

from onefit import SmoothSVC, SmoothSVR, cross_val_predict, leave_one_out
from onefit.smooth.design import norm_of, quiet
from onefit.smooth.systems import UPDATES
from smooth import slow
from smooth.problems import classes, numbers

POWERS = st.sampled_from([-300, -150, -20, -8, 0, 0, 0, 8, 20, 150, 300])


def spoilt(X, how, power, rng):
    """Rows that are huge, tiny, constant, equal, far apart or of different scales."""
    with np.errstate(over="ignore"):
        factor = 10.0**power
        if how == "scaled":
            X = X * factor
        elif how == "one row":
            X[0] *= factor
        elif how == "one feature":
            X[:, 0] *= factor
        elif how == "far away":
            X[:, 0] += factor
        elif how == "equal":
            X[:] = X[0]
        elif how == "copies":
            X = X[rng.integers(3, size=len(X))]
        elif how == "nothing":
            X[:] = 0.0
    return np.nan_to_num(X, posinf=1e308, neginf=-1e308)


def predicted_values(result):
    """Of rows without which there is no fit, and a warning said so, there is no value."""
    return result.decision_values[result.predicted]


def test_a_value_that_overflows_is_no_prediction():
    X, y = classes(n=24, d=3, seed=0)
    X[0] = 1e150
    machine = SmoothSVC(C=1e-300, kernel="poly", gamma="scale")
    with pytest.warns(FitFailedWarning, match="not finite"):
        result = leave_one_out(machine, X, y)
    assert not result.predicted[0]
    assert np.isfinite(result.decision_values[1:]).all()


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 1_000),
    how=st.sampled_from(
        ["as it is", "scaled", "one row", "one feature", "far away", "equal", "copies", "nothing"]
    ),
    power=POWERS,
    C=POWERS,
    targets=POWERS,
    regression=st.booleans(),
    kernel=st.sampled_from(["linear", "rbf", "poly", "sigmoid"]),
    gamma=st.sampled_from([0.3, "scale", 1e-200, 1e200]),
    reduced=st.sampled_from([None, None, "random", "incremental"]),
    beta=st.sampled_from([None, None, 5.0, 1e-200, 1e200]),
    update=st.sampled_from(UPDATES),
)
def test_an_answer_or_an_error(
    seed, how, power, C, targets, regression, kernel, gamma, reduced, beta, update
):
    rng = np.random.default_rng(seed)
    X, y = (numbers if regression else classes)(n=24, d=3, seed=seed)
    X = spoilt(X, how, power, rng)
    known = {"C": 10.0**C, "kernel": kernel, "gamma": gamma, "reduced": reduced, "beta": beta}
    if regression:
        y = y * 10.0**targets
        machine = SmoothSVR(**known, update=update, random_state=0)
    else:
        machine = SmoothSVC(**known, update=update, random_state=0)
    method = "predict" if regression else "decision_function"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        for answer in (
            lambda: getattr(machine.fit(X, y), method)(X),
            lambda: cross_val_predict(machine, X, y, cv=KFold(3), method=method),
            lambda: predicted_values(leave_one_out(machine, X, y)),
            lambda: predicted_values(leave_one_out(machine, X, y, method="approximate")),
        ):
            try:
                values = answer()
            except ValueError as error:
                assert "not finite" in str(error)  # noqa: PT017, an answer will do as well
            else:
                assert np.isfinite(values).all()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1_000),
    how=st.sampled_from(["scaled", "one row", "one feature", "far away", "equal", "copies"]),
    power=st.integers(-140, 60),
    C=st.integers(-300, 100),
    kernel=st.sampled_from(["linear", "rbf"]),
    update=st.sampled_from(UPDATES),
)
def test_what_counts_as_converged_is_an_optimum(seed, how, power, C, kernel, update):
    X, y = classes(n=24, d=3, seed=seed)
    X = spoilt(X, how, power, np.random.default_rng(seed))
    model = SmoothSVC(kernel=kernel, gamma=0.5, C=10.0**C, update=update)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            model.fit(X, y)
        except ValueError as error:
            assert "not finite" in str(error)  # noqa: PT017, an answer will do as well
            return
    if said:
        assert {warning.category for warning in said} == {ConvergenceWarning}
        return
    Z = getattr(model, "components_", None)
    phi = (X if Z is None else np.exp(-0.5 * cdist(X, Z) ** 2)).astype(np.longdouble)
    coef = model.coef_ if Z is None else model.dual_coef_
    theta = np.concatenate([model.intercept_, coef[0]]).astype(np.longdouble)
    A = np.column_stack([np.ones(24), phi])
    c, signs = np.longdouble(10.0**C), np.where(y == "b", 1.0, -1.0)
    slope = slow.losses(model, A @ theta, signs)[1]
    gradient = theta + A.T @ (c * slope)
    rounding = np.abs(theta) + np.abs(A).T @ (c * np.abs(slope) + c * (np.abs(A) @ np.abs(theta)))
    row = np.sqrt(np.mean(np.sum(A * A, axis=1)))
    allowed = 1e-6 * max(1 / row, np.linalg.norm(theta)) + 1e-11 * np.linalg.norm(rounding)
    assert np.linalg.norm(gradient) <= allowed


@pytest.mark.parametrize("C", [1e-300, 1e-100, 1e-10])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_tiny_weights(kernel, C):
    """θ = C Σ y a as long as all rows are errors."""
    X, y = classes(n=40)
    model = SmoothSVC(kernel=kernel, gamma=0.2, C=C).fit(X, y)
    phi = X if kernel == "linear" else rbf_kernel(X, X, gamma=0.2)
    coef = model.coef_ if kernel == "linear" else model.dual_coef_
    signs = np.where(y == "b", 1.0, -1.0)
    np.testing.assert_allclose(coef[0] / C, phi.T @ signs, atol=1e-6)
    assert len(np.unique(model.predict(X))) == 2


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("C", [1e-300, 1e-100, 1e-10])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_folds_of_tiny_weights_are_not_the_fit_on_all_rows(kernel, C, stored, monkeypatch):
    if not stored:
        monkeypatch.setattr("onefit.smooth.folds.Whole.can_store_influence", lambda self: False)
    X, y = classes(n=40)
    machine = SmoothSVC(kernel=kernel, gamma=0.2, C=C)
    for cv in (KFold(4), LeaveOneOut()):
        ours = cross_val_predict(machine, X, y, cv=cv, method="decision_function")
        theirs = model_selection.cross_val_predict(machine, X, y, cv=cv, method="decision_function")
        np.testing.assert_allclose(ours / C, theirs / C, atol=1e-6)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("C", [1e10, 1e20, 1e100, 1e300])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_step_makes_the_objective_larger(kernel, C, update):
    """Where rounding leaves nothing of a Newton step, it is not taken."""
    X, y = numbers(n=40)
    model = SmoothSVR(kernel=kernel, gamma=0.2, C=C, update=update)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            values = model.fit(X, y).predict(X)
        except ValueError as error:
            assert "not finite" in str(error)  # noqa: PT017, an answer will do as well
            return
    outside = np.maximum(np.abs(values - y) - model.epsilon, 0.0)
    of_nothing = np.maximum(np.abs(y) - model.epsilon, 0.0)
    assert np.sum(outside**2) <= np.sum(of_nothing**2) * (1 + 1e-9)


def test_a_left_out_row_that_does_not_converge_is_said():
    X, y = numbers(n=40)
    with pytest.warns(ConvergenceWarning, match="did not converge without 40 of 40 rows"):
        result = leave_one_out(SmoothSVR(kernel="linear", C=1e20), X, y)
    assert not result.exact


@quiet()
def test_lengths_of_extreme_vectors():
    for power in (-320, -300, -150, 0, 150, 300):
        vector = 10.0**power * np.array([3.0, -4.0])
        assert norm_of(vector) == pytest.approx(np.hypot(*vector), rel=1e-12)
    assert norm_of(np.zeros(3)) == 0.0
    assert norm_of(np.array([1.0, np.inf])) == np.inf
    assert np.isnan(norm_of(np.array([1.0, np.nan])))
