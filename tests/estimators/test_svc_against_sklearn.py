"""``onefit.SVC`` gives what ``sklearn.svm.SVC`` gives, over drawn problems and at the limits.

What is compared, and how closely: see ``estimators.comparison``.
"""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn import svm
from sklearn.datasets import make_blobs
from strategies import TOL, classifications, drawn, kernels

from estimators import comparison
from estimators.comparison import check_is_a_solution
from estimators.limits import (
    all_empty,
    all_the_same,
    all_zero,
    blobs,
    constant_features,
    duplicated,
    opposite,
    scaled,
    shifted,
    some_empty,
    with_rows,
    with_targets,
)
from onefit import SVC

# ------------------------------------------------------------------------------- drawn problems


@drawn(200)
@given(classifications())
def test_same_answers_on_drawn_problems(problem):
    comparison.SVC.check(problem)


@drawn(40)
@given(classifications(max_rows=40, kernel=kernels(("sigmoid",)), exponent_of_C=(-3, 1)))
def test_sigmoid_kernel_reaches_a_stationary_point(problem):
    # Not compared with scikit-learn: the kernel is indefinite, so that the problem has several
    # local optima and two correct solvers may end in different ones. Each must be stationary.
    check_is_a_solution(comparison.SVC.fit_ours(problem))


@drawn(40)
@given(classifications(max_rows=40, exponent_of_C=(-3, 1)))
def test_precomputed_kernel_is_the_same_problem(problem):
    # scikit-learn gets the rows: with a zero among the weights its own precomputed kernel reads
    # the wrong columns when it predicts.
    comparison.SVC.check_precomputed(problem)


@drawn(30)
@given(classifications(max_rows=16, max_classes=3, exponent_of_C=(-3, 1)))
def test_same_objective_as_the_naive_solver(problem):
    comparison.SVC.check_against_naive(problem)


@drawn(30)
@given(classifications(max_rows=30))
def test_votes_and_one_versus_rest_follow_from_the_pairs(problem):
    model = SVC(**problem.params, decision_function_shape="ovo")
    model.fit(problem.X, problem.y, problem.sample_weight)
    n_classes = len(model.classes_)
    decisions = model.decision_function(problem.Z)
    if n_classes == 2:
        decisions = -decisions[:, None]
    predicted = model.predict(problem.Z)
    np.testing.assert_array_equal(predicted, model.classes_[naive.vote(decisions, n_classes)])

    model.set_params(decision_function_shape="ovr")
    np.testing.assert_array_equal(model.predict(problem.Z), predicted)
    if n_classes > 2:
        rest = naive.one_versus_rest(decisions, n_classes)
        np.testing.assert_allclose(model.decision_function(problem.Z), rest, rtol=1e-12)
        model.set_params(break_ties=True)
        np.testing.assert_array_equal(model.predict(problem.Z), model.classes_[rest.argmax(axis=1)])


# --------------------------------------------------------------------------------- limit cases

LIMIT_CASES = {
    "two rows": blobs(2, 2),
    "two rows, linear": blobs(2, 2, kernel="linear"),
    "one row per class": blobs(5, 5, C=10.0),
    "twelve classes": blobs(60, 12),
    "twelve classes, linear": blobs(48, 12, kernel="linear", C=0.1),
    "one feature": blobs(40, 2, n_features=1, apart=0.5),
    "more features than rows": blobs(12, 3, n_features=50),
    "duplicate rows": duplicated(blobs(20, 3, apart=1)),
    "duplicate rows with opposite labels": duplicated(
        blobs(20, 2, apart=1), opposite(blobs(20, 2, apart=1))
    ),
    "all rows the same": all_the_same(blobs(12, 2)),
    "all rows the same, linear": all_the_same(blobs(12, 2, kernel="linear")),
    "all rows zero": all_zero(blobs(12, 3)),
    "all rows empty, sparse": all_empty(blobs(12, 3)),
    "some rows empty, sparse": some_empty(blobs(30, 2, apart=1)),
    "constant features": constant_features(blobs(30, 2, apart=1)),
    "kernel matrix almost the identity": blobs(40, 2, apart=0, gamma=1e6),
    "kernel matrix almost the identity, small C": blobs(40, 2, apart=0, gamma=1e6, C=1e-3),
    "kernel matrix almost constant": blobs(40, 2, apart=0, gamma=1e-8),
    "gamma zero": blobs(20, 2, gamma=0.0),
    "polynomial of degree zero": blobs(20, 2, kernel="poly", degree=0),
    "C to zero": blobs(40, 2, apart=1, C=1e-6),
    "C to zero, unequal classes": with_targets(
        blobs(40, 2, apart=1, C=1e-6), np.arange(40) % 5 // 3
    ),
    "C to zero, three classes": blobs(40, 3, apart=1, C=1e-6),
    "C to infinity, separable": blobs(40, 2, apart=8, C=1e6, kernel="linear", seed=1),
    "C to infinity, rbf": blobs(40, 3, apart=1, C=1e6, gamma=1.0),
    "C infinite": blobs(40, 2, apart=8, C=np.inf, kernel="linear", seed=1),
    # Here ‖x‖² + ‖z‖² - 2x·z cancels: in float32 nothing would be left of the distances.
    "rows far from the origin": shifted(blobs(40, 2, apart=1, gamma=0.3), 1e3),
    "tiny features": scaled(blobs(40, 2, apart=1), 1e-6),
    "features of unequal scale": scaled(blobs(40, 2, apart=1, gamma=1e-3), [1e-3, 1.0, 1e2]),
}


@pytest.mark.parametrize("case", LIMIT_CASES)
def test_limit_cases(case):
    comparison.SVC.check(LIMIT_CASES[case])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("n_features", [1, 8, 33])
@pytest.mark.parametrize("n", [15, 64, 129, 257])
def test_sizes_at_the_edges_of_vectors_and_tiles(n, n_features, layout, kernel):
    # C is small for the linear kernel: where it is large, LIBSVM takes for ever at this tolerance.
    params = {"kernel": kernel, "C": 0.05 if kernel == "linear" else 2.0}
    problem = blobs(n, 2, n_features=n_features, apart=0.3, **params)
    comparison.SVC.check(with_rows(problem, layout(problem.X)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cache_size", ["auto", 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_enough_rows_for_shrinking(n_classes, cache_size, layout):
    # Rows are dropped from the problem on the way only where there are many, most of them easy,
    # and 1 MB holds but a part of the kernel matrix.
    problem = blobs(1400, n_classes, apart=1.5, C=5.0, gamma=0.5)
    comparison.SVC.check(with_rows(problem, layout(problem.X)), {"cache_size": cache_size})


def test_sigmoid_kernel_has_the_same_answer_where_it_is_unique():
    # C is so small, and the classes so balanced, that every row ends on its bound whatever the
    # kernel: here even an indefinite kernel has one answer.
    problem = blobs(40, 2, apart=1, kernel="sigmoid", gamma=0.1, coef0=0.2, C=1e-3)
    ours, theirs = comparison.SVC.fit_ours(problem), comparison.SVC.fit_theirs(problem)
    assert np.isclose(np.abs(theirs.model.dual_coef_), problem.params["C"], rtol=1e-9).all()
    np.testing.assert_allclose(ours.values(problem.Z), theirs.values(problem.Z), rtol=0, atol=TOL)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_default_tolerance_gives_nearly_the_same_predictions(kernel):
    # At the default tol two solvers differ in decision values by a few tol; rows of this data
    # that lie closer to the border than that are left out.
    X, y = make_blobs(n_samples=300, centers=3, cluster_std=3.0, random_state=0)
    ours = SVC(kernel=kernel, decision_function_shape="ovo").fit(X, y)
    theirs = svm.SVC(kernel=kernel, decision_function_shape="ovo").fit(X, y)
    clear = (np.abs(theirs.decision_function(X)) > 10 * theirs.tol).all(axis=1)
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(ours.predict(X)[clear], theirs.predict(X)[clear])
