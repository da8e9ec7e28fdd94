"""``onefit.SVR`` gives what ``sklearn.svm.SVR`` gives, over drawn problems and at the limits.

What is compared, and how closely: see ``estimators.comparison``.
"""

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
from onefit import SVR

# ------------------------------------------------------------------------------- drawn problems


@drawn(150)
@given(regressions())
def test_same_answers_on_drawn_problems(problem):
    comparison.SVR.check(problem)


@drawn(30)
@given(regressions(max_rows=40, kernel=kernels(("sigmoid",)), exponent_of_C=(-3, 1)))
def test_sigmoid_kernel_reaches_a_stationary_point(problem):
    # The kernel is indefinite: two correct solvers may end in different local optima.
    check_is_a_solution(comparison.SVR.fit_ours(problem))


@drawn(30)
@given(regressions(max_rows=40, exponent_of_C=(-3, 1)))
def test_precomputed_kernel_is_the_same_problem(problem):
    # scikit-learn gets the rows: with a zero among the weights its own precomputed kernel reads
    # the wrong columns when it predicts.
    comparison.SVR.check_precomputed(problem)


@drawn(30)
@given(regressions(max_rows=14, exponent_of_C=(-3, 1)))
def test_same_objective_as_the_naive_solver(problem):
    comparison.SVR.check_against_naive(problem)


# --------------------------------------------------------------------------------- limit cases

ROWS_OF_40 = curve(40)

LIMIT_CASES = {
    "one row": curve(1),
    "one row, linear": curve(1, kernel="linear", epsilon=0.0),
    "two rows": curve(2),
    "two rows, linear": curve(2, kernel="linear", epsilon=0.0),
    "one feature": curve(40, n_features=1),
    "more features than rows": curve(12, n_features=50),
    "no tube": curve(40, epsilon=0.0),
    "no tube, linear": curve(40, epsilon=0.0, kernel="linear", C=0.1),
    "tube of tiny width": curve(40, epsilon=1e-9),
    "tube as wide as the targets": curve(40, epsilon=np.ptp(ROWS_OF_40.y) / 2),
    "tube a little less wide": curve(40, epsilon=0.499 * np.ptp(ROWS_OF_40.y)),
    "tube much wider than the targets": curve(40, epsilon=1e6),
    # Float32 does not have this width: 10000000.3 would become 10000000.
    "tube of a width that takes double precision": with_targets(
        curve(40, epsilon=1e7 + 0.3, tol=1e-3), 1e8 * ROWS_OF_40.y
    ),
    "one row of positive weight": with_weights(curve(5), [0, 0, 2.0, 0, -1.0]),
    "constant targets": with_targets(curve(20), np.full(20, -2.5)),
    "constant targets, no tube": with_targets(curve(20, epsilon=0.0), np.full(20, 7.0)),
    "all targets zero": with_targets(curve(20), np.zeros(20)),
    "two values of targets": with_targets(curve(40), np.arange(40) % 2),
    "whole targets": with_targets(curve(40), np.arange(40) % 7),
    "targets far from zero": with_targets(curve(40), ROWS_OF_40.y + 1e4),
    "tiny targets": with_targets(curve(40, C=1e-7, epsilon=1e-9, tol=1e-14), 1e-8 * ROWS_OF_40.y),
    "large targets": with_targets(curve(40, C=1e8, epsilon=1e7, tol=1e2), 1e8 * ROWS_OF_40.y),
    "large targets, small C": with_targets(curve(40, epsilon=1e7, tol=1e-3), 1e8 * ROWS_OF_40.y),
    "duplicate rows": duplicated(curve(20)),
    "duplicate rows with other targets": duplicated(curve(20), -curve(20).y),
    "all rows the same": all_the_same(curve(12)),
    "all rows the same, linear": all_the_same(curve(12, kernel="linear")),
    "all rows zero": all_zero(curve(12)),
    "all rows empty, sparse": all_empty(curve(12)),
    "some rows empty, sparse": some_empty(curve(30)),
    "constant features": constant_features(curve(30)),
    "kernel matrix almost the identity": curve(40, gamma=1e6),
    "kernel matrix almost the identity, large C": curve(40, gamma=1e6, C=1e3, epsilon=0.0),
    "kernel matrix almost constant": curve(40, gamma=1e-8),
    "gamma zero": curve(20, gamma=0.0),
    "polynomial of degree zero": curve(20, kernel="poly", degree=0),
    "C to zero": curve(40, C=1e-6),
    "C to infinity, rbf": curve(40, C=1e6, gamma=1.0),
    "C infinite": curve(40, C=np.inf, gamma=1.0),
    # Here ‖x‖² + ‖z‖² - 2x·z cancels: in float32 nothing would be left of the distances.
    "rows far from the origin": shifted(curve(40, gamma=0.3), 1e3),
    "tiny features": scaled(ROWS_OF_40, 1e-6),
    "features of unequal scale": scaled(curve(40, gamma=1e-3), [1e-3, 1.0, 1e2]),
}


@pytest.mark.parametrize("case", LIMIT_CASES)
def test_limit_cases(case):
    comparison.SVR.check(LIMIT_CASES[case])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_support_vectors(kernel):
    # The tube holds all targets: a constant in their middle, and nothing to sum.
    problem = curve(20, kernel=kernel)
    y = problem.y
    model = SVR(kernel=kernel, epsilon=10.0).fit(problem.X, y)
    assert model.support_.shape == (0,)
    assert model.support_vectors_.shape == (0, 3)
    assert model.dual_coef_.shape == (1, 0)
    np.testing.assert_allclose(model.predict(problem.Z), (y.min() + y.max()) / 2, rtol=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [15, 64, 129, 257])
def test_sizes_at_the_edges_of_vectors_and_tiles(n, layout):
    problem = curve(n, n_features=8, C=2.0)
    comparison.SVR.check(with_rows(problem, layout(problem.X)))


@pytest.mark.parametrize("cache_size", ["auto", 1])
def test_enough_rows_for_shrinking(cache_size):
    # Rows on their bounds and rows inside of the tube: both kinds are dropped on the way.
    comparison.SVR.check(curve(1400, C=2.0, epsilon=0.3, noise=0.3), {"cache_size": cache_size})
