"""``onefit.NuSVR`` gives what ``sklearn.svm.NuSVR`` gives, over drawn problems and at the limits.

What is compared, and how closely: see ``estimators.comparison``. scikit-learn does not tell the
width of the tube; it is held against the naive oracle, and against ``onefit.SVR``.
"""

from dataclasses import replace

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from strategies import drawn, kernels, regressions

from estimators import comparison
from estimators.comparison import check_is_a_solution
from estimators.limits import (
    all_empty,
    all_the_same,
    all_zero,
    constant_features,
    curve,
    duplicated,
    scaled,
    shifted,
    some_empty,
    with_rows,
    with_targets,
    with_weights,
)


def check_share_outside(fitted):
    """At most a share ν of the rows, by weight, is outside of the tube; at least ν has a part in
    the function, unless the tube has no width."""
    [part] = fitted.parts
    weight, share = fitted.weight, fitted.params["nu"] * fitted.weight.sum()
    epsilon = fitted.model.epsilon_
    distance = np.abs(fitted.problem.y - fitted.gram @ part.coef - part.intercept)
    outside = distance > epsilon + 2 * part.gap_tolerance
    assert weight[outside].sum() <= share * (1 + 1e-9)
    if epsilon > 2 * part.gap_tolerance:
        assert weight[part.coef != 0].sum() >= share * (1 - 1e-9)


def same_tube(problem, epsilon):
    """The problem as one of ε-SVR."""
    params = {name: value for name, value in problem.params.items() if name != "nu"}
    return replace(problem, params={**params, "epsilon": epsilon})


def check_is_the_epsilon_svr(fitted):
    """``SVR`` with the width that was found has the same function."""
    [part] = fitted.parts
    of_svr = comparison.SVR.fit_ours(same_tube(fitted.problem, fitted.model.epsilon_))
    if of_svr.model.fit_status_ != 0:
        return  # beyond what float32 kernel entries allow
    [other] = of_svr.parts
    # Each end of the tube is known to a gap, and so is each row to its end.
    tolerance = naive.tolerance(other.dual, part.coef, other.beta, 4 * part.gap_tolerance)
    Z = fitted.problem.Z
    squared_norms = np.array([fitted.kernel_matrix(z, z)[0, 0] for z in Z[:, None, :]])
    apart = np.abs(fitted.values(Z) - of_svr.values(Z))[:, 0]
    assert (apart <= tolerance.of_decisions(squared_norms)).all()


# ------------------------------------------------------------------------------- drawn problems


@drawn(150)
@given(regressions(nu=True))
def test_same_answers_on_drawn_problems(problem):
    comparison.NU_SVR.check(problem)


@drawn(40)
@given(regressions(nu=True))
def test_nu_is_the_share_of_rows_outside_of_the_tube(problem):
    fitted = comparison.NU_SVR.fit_ours(problem)
    if fitted.model.fit_status_ == 0:
        check_share_outside(fitted)


@drawn(40)
@given(regressions(nu=True, exponent_of_C=(-3, 1)))
def test_epsilon_is_that_of_the_same_svr(problem):
    check_is_the_epsilon_svr(comparison.NU_SVR.fit_ours(problem))


@drawn(30)
@given(regressions(nu=True, max_rows=40, kernel=kernels(("sigmoid",)), exponent_of_C=(-3, 1)))
def test_sigmoid_kernel_reaches_a_stationary_point(problem):
    # The kernel is indefinite: two correct solvers may end in different local optima.
    check_is_a_solution(comparison.NU_SVR.fit_ours(problem))


@drawn(30)
@given(regressions(nu=True, max_rows=40, exponent_of_C=(-3, 1)))
def test_precomputed_kernel_is_the_same_problem(problem):
    # scikit-learn gets the rows: with a zero among the weights its own precomputed kernel reads
    # the wrong columns when it predicts.
    comparison.NU_SVR.check_precomputed(problem)


@drawn(30)
@given(regressions(nu=True, max_rows=14, exponent_of_C=(-3, 1)))
def test_same_objective_and_tube_as_the_naive_solver(problem):
    comparison.NU_SVR.check_against_naive(problem)


# --------------------------------------------------------------------------------- limit cases

ROWS_OF_40 = curve(40)

LIMIT_CASES = {
    "one row": curve(1),
    "one row, every row outside": curve(1, nu=1.0),
    "two rows": curve(2),
    "two rows, linear": curve(2, kernel="linear", nu=1.0),
    "one feature": curve(40, n_features=1),
    "more features than rows": curve(12, n_features=50),
    "nu to zero": curve(40, nu=1e-6),
    "nu to zero, linear": curve(40, nu=1e-6, kernel="linear"),
    "nu one": curve(40, nu=1.0),
    "nu one, linear": curve(40, nu=1.0, kernel="linear", C=0.1),
    "nu one, small C": curve(40, nu=1.0, C=1e-6),
    "nu one, odd number of rows, small C": curve(41, nu=1.0, C=1e-6),
    "one row of positive weight": with_weights(curve(5), [0, 0, 2.0, 0, -1.0]),
    "constant targets": with_targets(curve(20), np.full(20, -2.5)),
    "all targets zero": with_targets(curve(20), np.zeros(20)),
    "two values of targets": with_targets(curve(40), np.arange(40) % 2),
    "whole targets": with_targets(curve(40), np.arange(40) % 7),
    "targets far from zero": with_targets(curve(40), ROWS_OF_40.y + 1e4),
    "tiny targets": with_targets(curve(40, C=1e-7, tol=1e-14), 1e-8 * ROWS_OF_40.y),
    "large targets": with_targets(curve(40, C=1e8, tol=1e2), 1e8 * ROWS_OF_40.y),
    "large targets, small C": with_targets(curve(40, tol=1e-3), 1e8 * ROWS_OF_40.y),
    "duplicate rows": duplicated(curve(20)),
    "duplicate rows with other targets": duplicated(curve(20), -curve(20).y),
    "all rows the same": all_the_same(curve(12)),
    "all rows the same, linear": all_the_same(curve(12, kernel="linear")),
    "all rows zero": all_zero(curve(12)),
    "all rows empty, sparse": all_empty(curve(12)),
    "some rows empty, sparse": some_empty(curve(30)),
    "constant features": constant_features(curve(30)),
    "kernel matrix almost the identity": curve(40, gamma=1e6),
    "kernel matrix almost the identity, nu one": curve(40, gamma=1e6, nu=1.0, C=1e3),
    "kernel matrix almost constant": curve(40, gamma=1e-8),
    "gamma zero": curve(20, gamma=0.0),
    "polynomial of degree zero": curve(20, kernel="poly", degree=0),
    "C to zero": curve(40, C=1e-6),
    "C large, rbf": curve(40, C=1e6, gamma=1.0),
    # Here ‖x‖² + ‖z‖² - 2x·z cancels: in float32 nothing would be left of the distances.
    "rows far from the origin": shifted(curve(40, gamma=0.3), 1e3),
    "tiny features": scaled(ROWS_OF_40, 1e-6),
    "features of unequal scale": scaled(curve(40, gamma=1e-3), [1e-3, 1.0, 1e2]),
}


@pytest.mark.parametrize("case", LIMIT_CASES)
def test_limit_cases(case):
    comparison.NU_SVR.check(LIMIT_CASES[case])
    fitted = comparison.NU_SVR.fit_ours(LIMIT_CASES[case])
    check_share_outside(fitted)
    check_is_the_epsilon_svr(fitted)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [15, 64, 129, 257])
def test_sizes_at_the_edges_of_vectors_and_tiles(n, layout):
    problem = curve(n, n_features=8, C=2.0)
    comparison.NU_SVR.check(with_rows(problem, layout(problem.X)))


@pytest.mark.parametrize("cache_size", ["auto", 1])
def test_enough_rows_for_shrinking(cache_size):
    # Rows on their bounds and rows inside of the tube: both kinds are dropped on the way.
    comparison.NU_SVR.check(curve(1000, C=2.0, nu=0.3, noise=0.3), {"cache_size": cache_size})
