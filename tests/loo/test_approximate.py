"""Estimates of left-out values against values of problems that are solved without the row."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import LeaveOneOut
from sklearn.preprocessing import StandardScaler
from strategies import classifications, drawn, regressions

from onefit import SVC, SVR, NuSVC, NuSVR, _core, cross_val_predict
from onefit.loo import approximate
from onefit.loo.approximate import Estimates, left_out
from onefit.loo.checks import not_support
from onefit.loo.fits import Fit
from onefit.problem import Problem
from onefit.solver import Settings, solve
from onefit.voting import votes

TIGHT = 1e-7


@dataclass
class Fitted:
    """A machine's problems on all rows, solved tightly."""

    store: _core.KernelStore
    problems: list[Problem]
    solutions: list[_core.Solution]
    order: np.ndarray
    starts: list[int]

    @property
    def fits(self):
        solved = zip(self.problems, self.solutions, strict=True)
        return [Fit.of(problem, solution, TIGHT) for problem, solution in solved]

    def estimates(self, **options) -> Estimates:
        values = None
        if len(self.problems) > 1:
            values = np.column_stack([values_of(self, k) for k in range(len(self.problems))])
        return left_out(self.store, self.fits, values, **options)

    def exact(self, number=0, problem=None, row=None):
        """The value of each row of a problem in the optimum without it; of one row, if given."""
        problem = problem or self.problems[number]
        bounds = np.zeros(len(self.store))
        bounds[problem.rows] = np.maximum(-problem.lower, problem.upper)
        rows = problem.rows if row is None else [row]
        values = []
        for row in rows:
            rest = bounds.copy()
            rest[row] = 0.0
            without = problem.with_bounds(rest)
            [solution] = solve(self.store, [without], Settings(tol=TIGHT))
            at = int(np.flatnonzero(problem.rows == row)[0])
            values.append(problem.linear[at] - solution.gradient[at] + solution.offset)
        return np.array(values)


def fitted(machine, X, y, weights=None):
    machine.set_params(tol=TIGHT)
    X, y = machine._check_training_data(X, y)
    training = machine._training(y, weights, every_row=True)
    kernel = machine._resolve_kernel(X)
    store = machine._store(X, kernel, training.order)
    solutions = solve(store, training.problems, machine._settings())
    return Fitted(store, training.problems, solutions, training.order, training.starts)


def values_of(model, number):
    """The values of all rows in one of the problems."""
    problem, solution = model.problems[number], model.solutions[number]
    rows = np.arange(len(model.store), dtype=np.int32)
    return model.store.block(rows, problem.rows) @ solution.beta + solution.offset


def tolerance(model, fit):
    """Kernel entries are in single precision, and dependent rows count as a little independent."""
    rows = np.arange(len(model.store), dtype=np.int32)
    largest = model.store.block(rows, rows).diagonal().max()
    return 2e-4 + 5e-5 * np.abs(fit.beta).max() * max(1.0, largest)


def noisy_classes(n=150, seed=0, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, np.where(X[:, 0] + np.sin(2 * X[:, 1]) + 0.7 * rng.normal(size=n) > 0, 1, 0)


def noisy_function(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)


# ---- exact where no row changes its status ------------------------------------------------------


def assert_exact_where_said(model, number=0):
    found, fit = model.estimates(), model.fits[number]
    at = found.is_known[fit.rows] & (found.share[fit.rows] == 1.0)
    exact = np.array([model.exact(number, row=row)[0] for row in fit.rows[at]])
    assert_allclose(found.values[fit.rows[at], number], exact, atol=tolerance(model, fit))
    return at


@given(classifications(max_rows=40, max_classes=2, exponent_of_C=(-2, 2)))
@drawn(40)
def test_values_of_classifiers_are_exact_where_no_row_changes(problem):
    model = fitted(SVC(**problem.params), problem.X, problem.y, problem.sample_weight)
    assert_exact_where_said(model)


@given(regressions(max_rows=40, exponent_of_C=(-2, 2)))
@drawn(40)
def test_values_of_regressors_are_exact_where_no_row_changes(problem):
    scale = problem.params["tol"] / 1e-6
    params = {**problem.params, "C": problem.params["C"] / scale, "shrinking": True}
    params["epsilon"] = problem.params["epsilon"] / scale
    model = fitted(SVR(**params), problem.X, problem.y / scale, problem.sample_weight)
    assert_exact_where_said(model)


@pytest.mark.parametrize("C", [0.3, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_some_support_vectors_are_exact(C, weighted):
    X, y = noisy_classes()
    weights = np.random.default_rng(4).uniform(0.2, 2.0, len(y)) if weighted else None
    model = fitted(SVC(C=C, gamma=0.5), X, y, weights)
    at = assert_exact_where_said(model)
    assert (model.fits[0].beta[at] != 0).sum() >= 5


@given(classifications(max_rows=30, max_classes=4, exponent_of_C=(-2, 2)))
@drawn(30)
def test_support_vectors_are_the_rows_that_checks_do_not_settle(problem):
    model = fitted(SVC(**problem.params), problem.X, problem.y, problem.sample_weight)
    expected = np.zeros(len(model.store), dtype=bool)
    for part, solution in zip(model.problems, model.solutions, strict=True):
        expected[part.rows[~not_support(part, solution)]] = True
    assert_array_equal(model.estimates().is_support, expected)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_on_the_line_of_a_regression(weighted):
    # With epsilon = 0 these are between their bounds, with no coefficient or with one.
    y = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], 8)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, len(y)) if weighted else None
    model = fitted(SVR(epsilon=0.0, C=0.5, kernel="linear"), np.zeros((len(y), 1)), y, weights)
    [fit], found = model.fits, model.estimates()
    assert (fit.is_free & (fit.beta == 0)).any()
    assert (fit.is_free & (fit.beta != 0)).any() == weighted
    settled = not_support(model.problems[0], model.solutions[0])
    assert settled.any() == weighted  # else any row may be the next to the offset
    assert_array_equal(found.is_support, ~settled)


@given(classifications(max_rows=40, max_classes=3, exponent_of_C=(-1, 3)))
@drawn(30)
def test_estimates_lie_in_their_range(problem):
    model = fitted(SVC(**problem.params), problem.X, problem.y, problem.sample_weight)
    found = model.estimates()
    known = found.is_known
    rounding = 1e-9 * (1.0 + np.abs(found.values[known]))
    assert (found.values[known] >= found.low[known] - rounding).all()
    assert (found.values[known] <= found.high[known] + rounding).all()


@given(classifications(max_rows=30, max_classes=2, exponent_of_C=(-1, 2)))
@drawn(30)
def test_a_left_out_row_never_gains(problem):
    # Along the way out every S is positive, whatever the rows do.
    model = fitted(SVC(**problem.params), problem.X, problem.y, problem.sample_weight)
    [fit], found = model.fits, model.estimates()
    some = np.flatnonzero((fit.beta != 0) & found.is_known[fit.rows])[:8]
    exact = np.array([model.exact(row=row)[0] for row in fit.rows[some]])
    lost = (fit.values[some] - exact) * np.sign(fit.beta[some])
    estimated = (fit.values - found.values[fit.rows, 0])[some] * np.sign(fit.beta[some])
    assert (estimated >= 0).all()
    # Where the left-out problem has no free row its offset is any of an interval.
    assert (lost > -tolerance(model, fit)).sum() >= 0.75 * len(some) - 1


@pytest.mark.parametrize("C", [0.5, 3.0, 30.0])
def test_most_values_are_exact_where_one_row_changes(C):
    # The correction is exact, unless that row makes others change.
    exact = []
    for seed in range(4):
        X, y = noisy_classes(100, seed=seed)
        model = fitted(SVC(C=C, gamma=0.5), X, y)
        [fit], found = model.fits, model.estimates()
        for row in np.flatnonzero((found.changes == 1) & (found.share < 1.0)):
            error = abs(found.values[row, 0] - model.exact(row=row)[0])
            exact.append(error < tolerance(model, fit))
    assert len(exact) > 20
    assert np.mean(exact) > 0.7


# ---- agreement ----------------------------------------------------------------------------------

MACHINES = {
    "rbf": SVC(C=1.0, gamma=0.5),
    "rbf, large C": SVC(C=30.0, gamma=0.5),
    "linear, more free rows than features": SVC(C=0.5, kernel="linear"),
    "poly": SVC(C=0.2, kernel="poly", degree=2, coef0=1.0, gamma=0.5),
    "class weights": SVC(C=1.0, gamma=0.5, class_weight={0: 2.0, 1: 0.5}),
    "svr": SVR(C=1.0, epsilon=0.2, gamma=0.5),
    "svr, no tube": SVR(C=1.0, epsilon=0.0, gamma=0.5),
    "svr, large C": SVR(C=30.0, epsilon=0.3, gamma=0.5),
}


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("name", MACHINES)
def test_estimates_agree_with_exact_values(name, layout):
    machine = MACHINES[name]
    X, y = noisy_function() if isinstance(machine, SVR) else noisy_classes()
    model = fitted(machine, sp.csr_array(X) if layout == "sparse" else X, y)
    found, exact, [fit] = model.estimates(), model.exact(), model.fits
    values, low, high = found.values[:, 0], found.low[:, 0], found.high[:, 0]
    support = fit.beta != 0
    assert found.is_known.mean() > 0.9  # a linear kernel has few free rows; all may meet bounds
    assert np.corrcoef(values[support], exact[support])[0, 1] > 0.8
    slack = tolerance(model, fit)
    assert ((exact > low - slack) & (exact < high + slack)).mean() > 0.95
    doubt = found.value_in_doubt(y) if isinstance(machine, SVR) else found.sign_in_doubt
    assert doubt.mean() < 0.35
    if isinstance(machine, SVR):
        typical = np.sqrt(np.mean((y - exact) ** 2))
        assert np.abs(values - exact)[~doubt].max() < 0.5 * typical
        assert np.sqrt(np.mean((y - values) ** 2)) == pytest.approx(typical, rel=0.1)
        settled = np.where(doubt, exact, values)
        assert np.sqrt(np.mean((y - settled) ** 2)) == pytest.approx(typical, rel=0.02)
    else:
        assert ((values > 0) == (exact > 0))[~doubt].all()
        assert ((values > 0) != (exact > 0)).mean() <= 0.04


def test_duplicates_take_each_others_place():
    X, y = noisy_classes(60)
    model = fitted(SVC(C=1.0, gamma=0.5), np.repeat(X, 2, axis=0), np.repeat(y, 2))
    found, exact, [fit] = model.estimates(), model.exact(), model.fits
    assert np.abs(found.values[:, 0] - exact).mean() < 0.05
    assert ((found.values[:, 0] > 0) == (exact > 0))[~found.sign_in_doubt].all()
    # Two rows that are the same may share their coefficients in any way: now equally.
    even = replace(fit, beta=np.repeat(fit.beta.reshape(-1, 2).mean(axis=1), 2))
    found = left_out(model.store, [even])
    replaced = even.is_free & (np.abs(even.beta) < 0.49)  # the other can take it all
    assert replaced.sum() >= 4
    assert_allclose(found.values[replaced, 0], fit.values[replaced], atol=1e-3)
    assert_allclose(exact[replaced], fit.values[replaced], atol=1e-3)


def test_doubt_finds_what_is_wrong_on_real_data():
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = SVC(C=10.0, gamma=1 / 30)
    exact = cross_val_predict(machine, X, y, cv=LeaveOneOut())
    model = fitted(machine, X, y)
    found = model.estimates()
    # The problem's first class is positive.
    labels = np.empty_like(y)
    labels[model.order] = found.values[:, 0] <= 0
    doubt = np.empty(len(y), dtype=bool)
    doubt[model.order] = found.sign_in_doubt
    assert doubt.mean() < 0.05
    assert (labels == exact)[~doubt].all()


def test_blocks_do_not_change_the_answer():
    X, y = noisy_classes(200)
    model = fitted(SVC(C=3.0, gamma=0.5), X, y)
    whole, parts = model.estimates(), model.estimates(budget_bytes=1)
    assert len(model.fits[0].rows) > 2 * 64
    for name in ("values", "low", "high", "share"):
        assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-4)


@pytest.mark.parametrize("C", [1.0, 30.0])
def test_single_precision_does_where_rows_are_far_apart(C, monkeypatch):
    X, y = noisy_classes(500, n_features=8)
    # Copies at bounds that are so small that it does not matter, though their values are free.
    X, y = np.concatenate((X, X[:60])), np.concatenate((y, y[:60]))
    weights = np.where(np.arange(len(y)) < 500, 1.0, 1e-6)
    model = fitted(SVC(C=C, gamma=0.5), X, y, weights)
    [fit] = model.fits
    is_copy = model.order >= 500
    beta = np.where(is_copy, np.where(y[model.order] == 0, fit.upper, fit.lower), fit.beta)
    fit = replace(fit, beta=beta)
    assert fit.is_free.sum() >= approximate.SINGLE_FROM
    assert (np.abs(np.abs(fit.values[is_copy]) - 1) < 1e-5).any()
    single = left_out(model.store, [fit])
    monkeypatch.setattr(approximate, "SINGLE_FROM", 10_000)
    double = left_out(model.store, [fit])
    assert (single.values != double.values).any()
    assert_allclose(single.values, double.values, atol=2e-3)
    assert_array_equal(single.sign_in_doubt, double.sign_in_doubt)


@pytest.mark.parametrize("name", ["rbf", "rbf, large C", "poly"])
def test_signs_are_the_same_without_the_corrections_that_do_not_matter(name):
    X, y = noisy_classes(200)
    model = fitted(MACHINES[name], X, y)
    whole, signs = model.estimates(), model.estimates(signs_only=True)
    assert_array_equal(signs.values > 0, whole.values > 0)
    assert_array_equal(signs.sign_in_doubt, whole.sign_in_doubt)
    exact = signs.share == 1.0
    assert_array_equal(exact & (whole.share < 1.0), False)
    assert_allclose(signs.values[exact], whole.values[exact])


# ---- machines -----------------------------------------------------------------------------------


def test_a_nu_svc_is_estimated_as_its_c_svc():
    X, y = noisy_classes()
    nu = NuSVC(nu=0.5, gamma=0.5)
    model = fitted(nu, X, y)
    C = float(nu.fit(X, y).C_[0])
    other = fitted(SVC(C=C, gamma=0.5), X, y)
    assert_allclose(model.estimates().values, other.estimates().values, atol=1e-3)
    exact = other.exact()
    assert np.corrcoef(model.estimates().values[:, 0], exact)[0, 1] > 0.99


def test_a_nu_svr_is_estimated_as_its_epsilon_svr():
    X, y = noisy_function()
    nu = NuSVR(nu=0.4, C=2.0, gamma=0.5)
    model = fitted(nu, X, y)
    other = fitted(SVR(C=2.0, epsilon=nu.fit(X, y).epsilon_, gamma=0.5), X, y)
    assert_allclose(model.estimates().values, other.estimates().values, atol=1e-3)
    assert len(model.estimates().values) == len(y)


def test_left_out_labels_of_nu_machines_are_near_those_of_the_same_nu():
    X, y = noisy_classes()
    model = fitted(NuSVC(nu=0.5, gamma=0.5), X, y)
    exact = cross_val_predict(NuSVC(nu=0.5, gamma=0.5), X, y, cv=LeaveOneOut())
    labels = np.empty_like(y)
    labels[model.order] = model.estimates().values[:, 0] <= 0
    assert (labels != exact).mean() <= 0.02
    X, y = noisy_function()
    model = fitted(NuSVR(nu=0.5, gamma=0.5), X, y)
    exact = cross_val_predict(NuSVR(nu=0.5, gamma=0.5), X, y, cv=LeaveOneOut())
    assert np.corrcoef(model.estimates().values[:, 0], exact)[0, 1] > 0.99


def test_a_nu_svc_without_a_margin_is_not_known():
    X = np.zeros((6, 1))
    y = np.repeat([0, 1], 3)
    model = fitted(NuSVC(nu=0.5, gamma=1.0), X, y)
    assert not model.estimates().is_known.any()


def test_only_pairs_of_a_row_change():
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = SVC(C=1.0, gamma=0.25)
    model = fitted(machine, X, y)
    found = model.estimates()
    full = np.column_stack([values_of(model, k) for k in range(3)])
    for number, fit in enumerate(model.fits):
        others = np.setdiff1d(np.arange(len(y)), fit.rows)
        assert_allclose(found.values[others, number], full[others, number])
        alone = replace(fit, rows=fit.rows)
        pair = left_out(model.store, [alone], full[:, [number]])
        assert_allclose(found.values[fit.rows, number], pair.values[fit.rows, 0])
        assert (found.share[fit.rows] <= pair.share[fit.rows]).all()
    exact = cross_val_predict(machine, X, y, cv=LeaveOneOut())[model.order]
    labels = votes(found.values, 3)
    assert (labels == exact)[~found.sign_in_doubt].all()
    assert (labels != exact).sum() <= 1


def test_real_regression():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    y = (y - y.mean()) / y.std()
    machine = SVR(C=1.0, gamma=0.1)
    exact = cross_val_predict(machine, X, y, cv=LeaveOneOut())
    found = fitted(machine, X, y).estimates()
    error = np.mean((y - exact) ** 2)
    assert np.mean((y - found.values[:, 0]) ** 2) == pytest.approx(error, rel=0.02)
    settled = np.where(found.value_in_doubt(y), exact, found.values[:, 0])
    assert np.mean((y - settled) ** 2) == pytest.approx(error, rel=0.01)


# ---- rows that cannot be estimated --------------------------------------------------------------


def test_without_a_free_row_nothing_is_known():
    # Equal classes and a small C: all coefficients are at their bounds.
    X, y = noisy_classes(40)
    y = np.repeat([0, 1], 20)
    model = fitted(SVC(C=1e-3, gamma=0.5), X, y)
    assert not model.fits[0].is_free.any()
    found = model.estimates()
    assert not found.is_known.any()
    assert found.sign_in_doubt.all()
    assert found.value_in_doubt(np.zeros(40)).all()


def test_the_only_free_row_is_not_known():
    X, _ = noisy_classes(40)
    y = np.repeat([0, 1], 20)
    weights = np.where(y == 0, 1.02, 1.0)  # a little of the first class is left over
    model = fitted(SVC(C=1e-3, gamma=0.5), X, y, weights)
    [fit], found = model.fits, model.estimates()
    assert fit.is_free.sum() == 1
    assert not found.is_known[fit.rows[fit.is_free]].any()


def test_rows_that_take_no_part_keep_their_value():
    X, y = noisy_classes(80)
    weights = np.ones(80)
    weights[::4] = 0.0
    model = fitted(SVC(C=1.0, gamma=0.5), X, y, weights)
    [fit], found = model.fits, model.estimates()
    idle = ~fit.takes_part
    assert idle.sum() == 20
    assert_allclose(found.values[fit.rows[idle], 0], fit.values[idle])
    assert (found.share[fit.rows[idle]] == 1.0).all()
    assert not found.sign_in_doubt[fit.rows[idle]].any()
