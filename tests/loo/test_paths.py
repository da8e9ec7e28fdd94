"""Paths end in the optimum without a row, and where they do not nothing is claimed."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from strategies import classifications, drawn, regressions

from loo.refits import refits
from onefit import SVC, SVR, leave_one_out
from onefit.loo import exact, paths
from onefit.loo.exact import LeaveOneOutFit

MACHINES = {
    "SVC": SVC(gamma=0.3),
    "SVC, C=100": SVC(C=100.0, gamma=0.3),
    "SVC, C infinite": SVC(C=np.inf, gamma=2.0),
    "SVC, linear": SVC(kernel="linear", C=0.1),
    "SVC, poly": SVC(kernel="poly", coef0=1.0, gamma=0.1, degree=2),
    "SVC, weights of classes": SVC(class_weight={0: 0.5, 1: 2.0}, gamma=0.2),
    "SVC, three classes": SVC(C=3.0, gamma=0.1),
    "SVR": SVR(C=3.0, gamma=0.1, epsilon=0.2),
    "SVR, C=100": SVR(C=100.0, gamma=0.3, epsilon=0.05),
    "SVR, epsilon 0": SVR(C=1.0, gamma=0.3, epsilon=0.0),
    "SVR, linear": SVR(kernel="linear", C=0.1),
}


def data(name, n=120):
    if "R" in name.split(",")[0]:
        X, y = make_regression(n, 4, noise=20.0, random_state=0)
        return X, y / y.std()
    return make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=3 if "three" in name else 2, random_state=0
    )


def ends(machine, X, y, weight=None, budget=1 << 30):
    """Values at the ends of the paths of all support vectors, and how exact each is."""
    fit = LeaveOneOutFit(machine, X, y, weight, "auto", 1, False)
    values = np.full((len(y), len(fit.whole.problems)), np.nan)
    gaps = values.copy()
    n_paths = 0
    for number, problem in enumerate(fit.whole.problems):
        fit._tighten(number)
        solved = fit._solved[number]
        variables = np.flatnonzero(solved.solution.beta)
        n_paths += len(variables)
        for end in paths.Paths(fit._store, problem, solved, fit._settings, budget).without(
            variables
        ):
            row = fit.whole.order[problem.rows[end.variable]]
            values[row, number] = problem.linear[end.variable] - end.excess
            gaps[row, number] = end.gap
    return values, gaps, n_paths


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MACHINES)
def test_ends_are_the_fits_without_a_row(name, weighted, layout):
    machine, (X, y) = MACHINES[name], data(name)
    weight = np.where(np.arange(len(y)) % 9, 1.0 + np.arange(len(y)) % 3, 0.0) if weighted else None
    values, gaps, n_paths = ends(machine, layout(X), y, weight)
    reached = ~np.isnan(values)
    assert reached.sum() > 0.95 * n_paths
    assert gaps[reached].max() < machine.tol
    assert np.median(gaps[reached]) < 0.11 * machine.tol  # that of the fit on all rows
    truth = refits(clone(machine).set_params(tol=1e-8), layout(X), y, weight)
    expected = np.array([np.atleast_1d(v) for v in truth.values])
    if values.shape[1] == 1:
        expected = in_its_problem(machine, expected)
    assert_allclose(values[reached], expected[reached], atol=2e-3)


def test_rows_that_are_there_many_times():
    X, y = data("SVC", 40)
    X, y = np.repeat(X, 4, axis=0), np.repeat(y, 4)
    y[::7] = 1 - y[::7]  # the same row in both classes
    machine = SVC(C=10.0, gamma=0.3)
    truth = refits(clone(machine).set_params(tol=1e-8), X, y)
    result = leave_one_out(machine, X, y, certify=False)
    assert_allclose(result.decision_values, np.ravel(truth.values), atol=1e-2)
    clear = np.abs(np.ravel(truth.values)) > 1e-3
    assert_array_equal(result.predictions[clear], np.array(truth.predictions)[clear])


@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "SVR, C=100"])
def test_it_does_not_matter_which_rows_are_near(name, monkeypatch):
    machine, (X, y) = MACHINES[name], data(name)
    expected, _, _ = ends(machine, X, y)
    for near, likely in ((-0.5, -0.5), (np.inf, np.inf), (0.05, 0.0)):
        monkeypatch.setattr(paths, "NEAR", near)
        monkeypatch.setattr(paths, "LIKELY", likely)
        values, _, _ = ends(machine, X, y)
        assert_allclose(values, expected, atol=1e-6)


@pytest.mark.parametrize("columns", [0, 30, 60, 90])
def test_what_has_no_room_is_left_to_the_solver(columns, monkeypatch):
    machine, (X, y) = SVC(C=10.0, gamma=0.3), data("SVC")
    expected = leave_one_out(machine, X, y, certify=False)
    budget = 8 * (len(y) + 1) * columns
    monkeypatch.setattr(exact, "budget_bytes", lambda *_: budget)
    result = leave_one_out(machine, X, y, certify=False)
    assert result.n_iter.sum() > expected.n_iter.sum()
    assert_array_equal(result.predictions, expected.predictions)
    assert_allclose(result.decision_values, expected.decision_values, atol=2e-3)


@pytest.mark.parametrize("name", ["SVC", "SVC, C=100", "SVC, three classes", "SVR"])
def test_paths_are_short(name):
    # If they were given up on the way, the solver would give the same answers.
    machine, (X, y) = MACHINES[name], data(name, 300)
    followed = leave_one_out(machine, X, y, certify=False)
    solved = leave_one_out(machine, X, y, certify=False, seeding="avg")
    assert followed.n_iter.sum() < 0.3 * solved.n_iter.sum()


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads(n_jobs):
    machine, (X, y) = MACHINES["SVC, C=100"], data("SVC", 300)
    one, many = leave_one_out(machine, X, y), leave_one_out(machine, X, y, n_jobs=n_jobs)
    # To rounding: threads of BLAS share sums out.
    assert_allclose(many.decision_values, one.decision_values, rtol=1e-9)
    assert_array_equal(many.predictions, one.predictions)


@drawn(60)
@given(problem=classifications(max_rows=30, max_classes=2, exponent_of_C=(-1, 3)))
def test_drawn_classifications(problem):
    check(SVC(), problem)


@drawn(40)
@given(problem=regressions(max_rows=30, exponent_of_C=(-1, 2)))
def test_drawn_regressions(problem):
    assume(np.abs(problem.y).max() < 100)
    check(SVR(), problem)


def check(machine, problem):
    # Leaving a row out changes nothing but its bound.
    fixed = {"gamma": 0.3} if problem.params.get("gamma") == "scale" else {}
    if problem.params.get("class_weight") == "balanced":
        fixed["class_weight"] = None
    machine = machine.set_params(**{**problem.params, **fixed, "tol": 1e-3})
    X, y, weight = problem.X, problem.y, problem.sample_weight
    X = X.tocsr() if sp.issparse(X) else X
    try:
        values, _, _ = ends(machine, X, y, weight)
    except ValueError:  # no fit
        assume(False)
    truth = refits(clone(machine).set_params(tol=1e-9), X, y, weight)
    for row in np.flatnonzero(~np.isnan(values[:, 0]) & np.array(truth.determined)):
        expected = in_its_problem(machine, truth.values[row][0])
        assert abs(values[row, 0] - expected) < 0.02, row


def in_its_problem(machine, values):
    """A value of the model in the units, and with the sign, of its problem."""
    return -np.asarray(values) if isinstance(machine, SVC) else np.asarray(values) / machine._unit
