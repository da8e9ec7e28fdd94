"""``onefit.SVC`` gives what ``sklearn.svm.SVC`` gives, over drawn problems and at the limits.

Only what is unique is compared: the dual objective, the KKT gap, the decision values and the
predictions that follow from them; never the set of support vectors. How far two correct solvers
may be apart follows from ``tol``, and is computed in ``naive.tolerance``.
"""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from sklearn import svm
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from strategies import Classification, classifications, drawn, kernels

from onefit import SVC

TOL = 1e-6

# LIBSVM cycles for ever on some problems at this tolerance, where float32 kernel entries make a
# curvature negative that is zero in truth. A limit ends the cycle.
MAX_ITER = 2_000_000


class Fitted:
    """A fitted model beside the two-class problems that it claims to have solved."""

    def __init__(self, model, problem, *, support=None, kernel=None):
        params = {"kernel": "rbf", "gamma": "scale", "coef0": 0.0, "degree": 3, **problem.params}
        self.model = model
        self.n_classes = len(model.classes_)
        self.kernel_options = {
            "gamma": naive.gamma_value(params["gamma"], problem.X),
            "coef0": params["coef0"],
            "degree": params["degree"],
        }
        self.kernel = params["kernel"] if kernel is None else kernel
        labels = np.searchsorted(np.unique(problem.y), problem.y)
        weight = np.ones(len(labels)) if problem.sample_weight is None else problem.sample_weight
        class_weight = compute_class_weight(
            params.get("class_weight"), classes=np.unique(problem.y), y=problem.y
        )
        bound = params.get("C", 1.0) * class_weight[labels] * np.maximum(weight, 0)
        K = self.kernel_matrix(problem.X, problem.X)
        self.pairs = naive.unpack_pairs(
            labels,
            self.n_classes,
            model.dual_coef_,
            model.n_support_,
            model.support_ if support is None else support,
        )
        self.duals = [
            naive.c_svc_dual(K[np.ix_(pair.rows, pair.rows)], pair.sign, bound[pair.rows])
            for pair in self.pairs
        ]
        # LIBSVM's sign: positive for the first class of each pair.
        self.offsets = -model.intercept_ if self.n_classes == 2 else model.intercept_

    def kernel_matrix(self, X, Z):
        return naive.kernel_matrix(self.kernel, X, Z, **self.kernel_options)

    def decisions(self, Z):
        """The model's own decision values, one column per pair, positive for the first class."""
        values = self.model.decision_function(Z)
        return -values[:, None] if self.n_classes == 2 else values


def check_is_a_solution(fitted, problem, Z_given=None):
    """What the model says of itself is feasible and optimal, and its values are what it says."""
    Z = problem.Z
    decisions = fitted.decisions(Z if Z_given is None else Z_given)
    K_Z = fitted.kernel_matrix(Z, problem.X)
    assert fitted.model.fit_status_ == 0
    for k, (pair, dual) in enumerate(zip(fitted.pairs, fitted.duals, strict=True)):
        beta = pair.beta
        slack = naive.bound_slack(dual)
        assert (beta >= dual.lo - slack).all()
        assert (beta <= dual.hi + slack).all()
        # A sum kept by adding and taking away drifts by an ulp a step, at most MAX_ITER steps.
        assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
        gap_tolerance = naive.gap_tolerance(dual, beta, TOL)
        assert naive.kkt_gap(dual, beta) <= gap_tolerance
        ends = np.concatenate(naive.offset_interval(dual, beta))
        assert ends.min() - gap_tolerance <= fitted.offsets[k] <= ends.max() + gap_tolerance
        if naive.exactly_on_bounds(dual, beta):
            middle = naive.offset(dual, beta)[0]
            assert abs(fitted.offsets[k] - middle) <= gap_tolerance

        # Values are evaluated in float64: nothing near float32's rounding is left to them.
        K_pair = K_Z[:, pair.rows]
        np.testing.assert_allclose(
            decisions[:, k],
            K_pair @ beta + fitted.offsets[k],
            rtol=1e-12,
            atol=1e-12 + 0.01 * naive.rounding(K_pair, beta),
        )


def check_same_answers(ours, theirs, problem, Z_given=None):
    """Objectives, decision values and predictions agree as far as they are unique."""
    Z = problem.Z
    Z_given = Z if Z_given is None else Z_given
    decisions_of_ours, decisions_of_theirs = ours.decisions(Z_given), theirs.decisions(Z)
    squared_norms = np.array([theirs.kernel_matrix(z, z)[0, 0] for z in Z[:, None, :]])
    clear = np.ones(len(Z), dtype=bool)
    for k, dual in enumerate(ours.duals):
        beta_of_ours, beta_of_theirs = ours.pairs[k].beta, theirs.pairs[k].beta
        tolerance = naive.tolerance(dual, beta_of_ours, beta_of_theirs, TOL)
        np.testing.assert_allclose(
            naive.objective(dual, beta_of_ours),
            naive.objective(dual, beta_of_theirs),
            rtol=0,
            atol=tolerance.objective,
        )
        # Infinite where the offset is not unique; then nothing is compared for this pair.
        apart = tolerance.of_decisions(squared_norms)
        difference = np.abs(decisions_of_ours[:, k] - decisions_of_theirs[:, k])
        assert (difference <= apart).all()
        clear &= np.abs(decisions_of_theirs[:, k]) > apart
    np.testing.assert_array_equal(
        ours.model.predict(Z_given)[clear], theirs.model.predict(Z)[clear]
    )


def fit_both(problem, ours_params=None, X_given=None):
    """Both models at ``TOL``, and the rows that are scikit-learn's support vectors."""
    common = {"tol": TOL, "max_iter": MAX_ITER, "decision_function_shape": "ovo"}
    ours = SVC(**{**problem.params, **common, **(ours_params or {})})
    theirs = svm.SVC(**{**problem.params, **common})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours.fit(problem.X if X_given is None else X_given, problem.y, problem.sample_weight)
        theirs.fit(problem.X, problem.y, problem.sample_weight)
    # scikit-learn numbers the support vectors among the rows of positive weight only.
    rows = np.arange(len(problem.y))
    if problem.sample_weight is not None:
        rows = rows[problem.sample_weight > 0]
    return ours, theirs, rows[theirs.support_]


def check(problem, ours_params=None, X_given=None, Z_given=None):
    ours, theirs, support = fit_both(problem, ours_params, X_given)
    if ours.fit_status_ != 0 and theirs.fit_status_ != 0:
        return  # beyond what float32 kernel entries allow, for LIBSVM too: nothing to compare
    fitted = Fitted(ours, problem)
    check_is_a_solution(fitted, problem, Z_given)
    if theirs.fit_status_ == 0:
        check_same_answers(fitted, Fitted(theirs, problem, support=support), problem, Z_given)


# ------------------------------------------------------------------------------- drawn problems


@drawn(200)
@given(classifications())
def test_same_answers_on_drawn_problems(problem):
    check(problem)


@drawn(40)
@given(classifications(max_rows=40, kernel=kernels(("sigmoid",)), exponent_of_C=(-3, 1)))
def test_sigmoid_kernel_reaches_a_stationary_point(problem):
    # Not compared with scikit-learn: the kernel is indefinite, so that the problem has several
    # local optima and two correct solvers may end in different ones. Each must be stationary.
    ours = SVC(**problem.params, tol=TOL, max_iter=MAX_ITER, decision_function_shape="ovo")
    ours.fit(problem.X, problem.y, problem.sample_weight)
    check_is_a_solution(Fitted(ours, problem), problem)


@drawn(40)
@given(classifications(max_rows=40, kernel=kernels(("linear",)), exponent_of_C=(-3, 1)))
def test_precomputed_kernel_is_the_same_problem(problem):
    # scikit-learn gets the rows and the linear kernel instead of the matrix: with a zero among
    # the weights its own precomputed kernel reads the wrong columns when it predicts.
    K = naive.linear_kernel(problem.X, problem.X)
    K_Z = naive.linear_kernel(problem.Z, problem.X)
    check(problem, {"kernel": "precomputed"}, K, K_Z)


@drawn(30)
@given(classifications(max_rows=16, max_classes=3, exponent_of_C=(-3, 1)))
def test_same_objective_as_the_naive_solver(problem):
    model = SVC(**problem.params, tol=TOL, max_iter=MAX_ITER, decision_function_shape="ovo")
    fitted = Fitted(model.fit(problem.X, problem.y, problem.sample_weight), problem)
    for pair, dual in zip(fitted.pairs, fitted.duals, strict=True):
        reference = naive.solve(dual, tol=TOL / 10)
        assert reference.converged
        tolerance = naive.tolerance(dual, pair.beta, reference.beta, TOL)
        assert abs(naive.objective(dual, pair.beta) - reference.objective) <= tolerance.objective


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


def blobs(n, n_classes, *, n_features=3, apart=4.0, seed=0, **params):
    """Classes around centres; far ``apart`` they can be separated, at 0 they coincide."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centres = apart * rng.standard_normal((n_classes, n_features))
    X = centres[y] + rng.standard_normal((n, n_features))
    Z = centres[rng.integers(0, n_classes, 15)] + rng.standard_normal((15, n_features))
    return Classification(X, y, Z, None, params)


def with_rows(problem, X, y=None):
    return Classification(X, problem.y if y is None else y, problem.Z, None, problem.params)


def duplicated(problem, *, opposite_labels):
    y = (problem.y + 1) % (problem.y.max() + 1) if opposite_labels else problem.y
    return with_rows(problem, np.vstack([problem.X] * 2), np.concatenate([problem.y, y]))


def shifted(problem, by):
    return Classification(problem.X + by, problem.y, problem.Z + by, None, problem.params)


def scaled(problem, by):
    return Classification(problem.X * by, problem.y, problem.Z * by, None, problem.params)


LIMIT_CASES = {
    "two rows": blobs(2, 2),
    "two rows, linear": blobs(2, 2, kernel="linear"),
    "one row per class": blobs(5, 5, C=10.0),
    "twelve classes": blobs(60, 12),
    "twelve classes, linear": blobs(48, 12, kernel="linear", C=0.1),
    "one feature": blobs(40, 2, n_features=1, apart=0.5),
    "more features than rows": blobs(12, 3, n_features=50),
    "duplicate rows": duplicated(blobs(20, 3, apart=1), opposite_labels=False),
    "duplicate rows with opposite labels": duplicated(blobs(20, 2, apart=1), opposite_labels=True),
    "all rows the same": with_rows(blobs(12, 2), np.ones((12, 3))),
    "all rows the same, linear": with_rows(blobs(12, 2, kernel="linear"), np.ones((12, 3))),
    "all rows zero": with_rows(blobs(12, 3), np.zeros((12, 3))),
    "all rows empty, sparse": with_rows(blobs(12, 3), sp.csr_matrix((12, 3))),
    "some rows empty, sparse": with_rows(
        blobs(30, 2, apart=1), sp.csr_matrix(blobs(30, 2).X * (np.arange(30) % 3 > 0)[:, None])
    ),
    "constant features": with_rows(
        blobs(30, 2, apart=1), np.column_stack([blobs(30, 2, apart=1).X[:, 0], np.ones((30, 2))])
    ),
    "kernel matrix almost the identity": blobs(40, 2, apart=0, gamma=1e6),
    "kernel matrix almost the identity, small C": blobs(40, 2, apart=0, gamma=1e6, C=1e-3),
    "kernel matrix almost constant": blobs(40, 2, apart=0, gamma=1e-8),
    "gamma zero": blobs(20, 2, gamma=0.0),
    "polynomial of degree zero": blobs(20, 2, kernel="poly", degree=0),
    "C to zero": blobs(40, 2, apart=1, C=1e-6),
    "C to zero, unequal classes": with_rows(
        blobs(40, 2, apart=1, C=1e-6), blobs(40, 2, apart=1).X, np.arange(40) % 5 // 3
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
    check(LIMIT_CASES[case])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("n_features", [1, 8, 33])
@pytest.mark.parametrize("n", [15, 64, 129, 257])
def test_sizes_at_the_edges_of_vectors_and_tiles(n, n_features, layout, kernel):
    # C is small for the linear kernel: where it is large, LIBSVM takes for ever at this tolerance.
    params = {"kernel": kernel, "C": 0.05 if kernel == "linear" else 2.0}
    problem = blobs(n, 2, n_features=n_features, apart=0.3, **params)
    check(with_rows(problem, layout(problem.X)))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("cache_size", ["auto", 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_enough_rows_for_shrinking(n_classes, cache_size, layout):
    # Rows are dropped from the problem on the way only where there are many, most of them easy,
    # and 1 MB holds but a part of the kernel matrix.
    problem = blobs(1400, n_classes, apart=1.5, C=5.0, gamma=0.5)
    check(with_rows(problem, layout(problem.X)), {"cache_size": cache_size})


def test_sigmoid_kernel_has_the_same_answer_where_it_is_unique():
    # C is so small, and the classes so balanced, that every row ends on its bound whatever the
    # kernel: here even an indefinite kernel has one answer.
    problem = blobs(40, 2, apart=1, kernel="sigmoid", gamma=0.1, coef0=0.2, C=1e-3)
    ours, theirs, _ = fit_both(problem)
    assert np.isclose(np.abs(theirs.dual_coef_), problem.params["C"], rtol=1e-9).all()
    np.testing.assert_allclose(
        ours.decision_function(problem.Z), theirs.decision_function(problem.Z), rtol=0, atol=TOL
    )


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
