"""``onefit.NuSVC`` gives what ``sklearn.svm.NuSVC`` gives, over drawn problems and at the limits.

What is compared, and how closely: see ``estimators.comparison``. Decision values are those of the
dual divided by the margin ρ, and so are their tolerances.

There is no model where ρ is zero, that is where ν is so small that classes that overlap are not
kept apart: scikit-learn then says that something is not finite, or divides by what rounding left;
onefit says that there is no margin. Where ν is so large that all coefficients of a class are on
their bounds, ρ has no upper limit: scikit-learn says that something is not finite; onefit takes the
least ρ that is optimal.
"""

import re
from collections import Counter
from dataclasses import replace
from enum import Enum, auto

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, reject
from sklearn.exceptions import ConvergenceWarning
from strategies import drawn, kernels, largest_nu, nu_classifications

from estimators import comparison
from estimators.comparison import check_is_a_solution, check_same_answers
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
    with_weights,
)
from onefit import NuSVC


class Checked(Enum):
    NO_MARGIN = auto()
    SOLUTION = auto()
    ANSWERS = auto()


def fit_ours(problem, params=None, X_given=None):
    """Our model, or None where it found no margin and warned."""
    fitted = comparison.NU_SVC.fit_ours(problem, params, X_given)
    converged = fitted.model.fit_status_ == 0
    return None if converged and fitted.model.rho_.min() == 1e-3 * fitted.model.tol else fitted


def fit_theirs(problem):
    """scikit-learn's model, or None where it finds that ρ is zero or infinite."""
    try:
        return comparison.NU_SVC.fit_theirs(problem)
    except ValueError as error:
        if "not finite" not in str(error):
            raise
        return None


def check(problem, params=None, X_given=None, Z_given=None):
    """What could be checked: that there is no margin, the solution, or all answers."""
    ours = fit_ours(problem, params, X_given)
    if ours is None:
        check_no_margin(problem)
        return Checked.NO_MARGIN
    theirs = fit_theirs(problem)
    if ours.model.fit_status_ != 0 and theirs is not None and theirs.model.fit_status_ != 0:
        reject()  # beyond what float32 kernel entries allow, for LIBSVM too: another is drawn
    check_is_a_solution(ours, Z_given)
    check_margins(ours)
    # Below the gap a margin is what rounding left, for both.
    if all(part.scale > part.gap_tolerance for part in ours.parts):
        check_shares(ours)
        if theirs is not None and theirs.model.fit_status_ == 0:
            check_same_answers(ours, theirs, Z_given)
            return Checked.ANSWERS
    return Checked.SOLUTION


def check_drawn(check_one, n, problems):
    """Draws problems, and checks each, until all answers of so many were compared."""
    counted = Counter()

    @drawn(n)
    @given(problems)
    def each(problem):
        checked = check_one(problem)
        counted[checked] += 1
        assume(checked is Checked.ANSWERS)  # else another one is drawn

    each()
    assert counted[Checked.ANSWERS] >= n, counted
    assert counted[Checked.NO_MARGIN] > 0, counted


def check_no_margin(problem):
    """For some pair of classes the naive oracle finds no margin either."""
    params = {**comparison.DEFAULTS, **problem.params}
    K = comparison.kernel_matrix(problem, problem.X, problem.X)
    y = np.searchsorted(np.unique(problem.y), problem.y)
    weight = np.ones(len(y)) if problem.sample_weight is None else problem.sample_weight
    weight = np.maximum(weight, 0.0)

    def has_none(pair):
        K_pair = K[np.ix_(pair.rows, pair.rows)]
        dual = naive.nu_svc_dual(K_pair, pair.sign, weight[pair.rows], params["nu"])
        beta = dual.start
        for _ in range(100):  # an optimum of zero is neared slowly; being near it is enough
            reached = naive.solve(dual, start=beta, tol=params["tol"] / 10, max_iter=1000)
            beta = reached.beta
            # βᵀKβ = ρνΣw at the optimum, and is larger elsewhere.
            margin = beta @ K_pair @ beta / np.abs(beta).sum()
            if margin <= 2 * naive.gap_tolerance(dual, beta, params["tol"]):
                return True
            if reached.converged:
                return False
        return False

    assert any(has_none(pair) for pair in naive.pairs(y, y.max() + 1))


def check_margins(fitted):
    """``rho_`` is the factor between the coefficients and those of the dual, ``C_`` is 1/ρ."""
    rho = np.array([part.scale for part in fitted.parts])
    np.testing.assert_allclose(fitted.model.rho_, rho, rtol=1e-9)
    np.testing.assert_array_equal(fitted.model.C_, 1 / fitted.model.rho_)


def distances(part):
    """Decision values of the rows of a pair, positive on the right side; 1 is the margin."""
    sign = np.where(part.dual.groups == 0, 1.0, -1.0)
    return sign * (part.dual.K @ part.coef + part.intercept)


def check_shares(fitted):
    """At most a share ν of the rows of a pair, by weight, is inside of the margin; at least ν are
    support vectors."""
    for part in fitted.parts:
        weight = fitted.weight[part.rows]
        share = fitted.params["nu"] * weight.sum()
        inside = distances(part) < 1 - 2 * part.gap_tolerance / part.scale
        assert weight[inside].sum() <= share * (1 + 1e-9)
        assert weight[part.coef != 0].sum() >= share * (1 - 1e-9)


# ------------------------------------------------------------------------------- drawn problems


def test_same_answers_on_drawn_problems():
    check_drawn(check, 125, nu_classifications())


@drawn(40)
@given(nu_classifications(max_classes=2))
def test_c_is_that_of_the_same_svc(problem):
    ours = fit_ours(problem)
    assume(ours is not None and ours.model.fit_status_ == 0)
    [part] = ours.parts
    # Else ρ, and with it C, is not known to more than a percent.
    assume(part.scale > 100 * part.gap_tolerance)
    # As tight a tolerance as that of ν-SVC: it too is divided by ρ. Class weights count for SVC.
    params = {**problem.params, "C": part.scale**-1, "tol": part.gap_tolerance / part.scale}
    params = {name: params[name] for name in params if name not in ("nu", "class_weight")}
    of_svc = comparison.SVC.fit_ours(replace(problem, params=params))
    assume(of_svc.model.fit_status_ == 0)  # else it is beyond what float32 kernel entries allow
    [other] = of_svc.parts
    tolerance = naive.tolerance(other.dual, part.coef, other.beta, 2 * params["tol"])
    squared_norms = np.array([ours.kernel_matrix(z, z)[0, 0] for z in problem.Z[:, None, :]])
    apart = np.abs(ours.values(problem.Z) - of_svc.values(problem.Z))[:, 0]
    assert (apart <= tolerance.of_decisions(squared_norms)).all()


@drawn(30)
@given(nu_classifications(max_rows=40, kernel=kernels(("sigmoid",))))
def test_sigmoid_kernel_reaches_a_stationary_point(problem):
    # The kernel is indefinite: two correct solvers may end in different local optima, and the
    # margin of one may be negative.
    ours = fit_ours(problem)
    assume(ours is not None)
    check_is_a_solution(ours)


def test_precomputed_kernel_is_the_same_problem():
    # scikit-learn gets the rows: with a zero among the weights its own precomputed kernel reads
    # the wrong columns when it predicts.
    def check_one(problem):
        K, K_Z = (comparison.kernel_matrix(problem, X, problem.X) for X in (problem.X, problem.Z))
        return check(problem, {"kernel": "precomputed"}, K, K_Z)

    check_drawn(check_one, 20, nu_classifications(max_rows=40))


@drawn(30)
@given(nu_classifications(max_rows=16, max_classes=3))
def test_same_objective_and_margin_as_the_naive_solver(problem):
    assume(fit_ours(problem) is not None)
    comparison.NU_SVC.check_against_naive(problem)


# --------------------------------------------------------------------------------- limit cases


def unequal(problem):
    """Two classes, one of them 1.5 times the other."""
    return with_targets(problem, np.arange(len(problem.y)) % 5 // 3)


LIMIT_CASES = {
    "two rows": blobs(2, 2),
    "two rows, linear": blobs(2, 2, kernel="linear"),
    "two rows, nu to zero": blobs(2, 2, nu=1e-3),
    "one row per class": blobs(5, 5),
    "twelve classes": blobs(60, 12),
    "twelve classes, linear": blobs(48, 12, kernel="linear"),
    "one feature": blobs(40, 2, n_features=1, apart=0.5, nu=0.9),
    "more features than rows": blobs(12, 3, n_features=50),
    "duplicate rows": duplicated(blobs(20, 3, apart=1)),
    "some rows with both labels": duplicated(
        blobs(20, 2, nu=0.6), np.where(np.arange(20) < 4, opposite(blobs(20, 2)), blobs(20, 2).y)
    ),
    "some rows empty, sparse": some_empty(blobs(30, 2, apart=1, nu=0.9)),
    "constant features": constant_features(blobs(30, 2, apart=1, nu=0.9)),
    "kernel matrix almost the identity": blobs(40, 2, apart=0, gamma=1e6),
    "kernel matrix almost constant": blobs(40, 2, apart=1, gamma=1e-4, nu=0.9),
    "nu to zero, separable": blobs(40, 2, apart=8, nu=1e-4, kernel="linear", seed=1),
    "nu to zero, rbf": blobs(40, 3, apart=1, nu=1e-3, gamma=10.0),
    "nu almost as large as possible": blobs(40, 2, apart=1, nu=0.9999),
    "nu almost as large as possible, unequal classes": unequal(blobs(40, 2, apart=1, nu=0.7999)),
    # Here ‖x‖² + ‖z‖² - 2x·z cancels: in float32 nothing would be left of the distances.
    "rows far from the origin": shifted(blobs(40, 2, apart=1, gamma=0.3), 1e3),
    "tiny features": scaled(blobs(40, 2, apart=1), 1e-6),
    "features of unequal scale": scaled(blobs(40, 2, apart=1, gamma=1e-3), [1e-3, 1.0, 1e2]),
}


@pytest.mark.parametrize("case", LIMIT_CASES)
def test_limit_cases(case):
    assert fit_ours(LIMIT_CASES[case]) is not None
    assert fit_theirs(LIMIT_CASES[case]) is not None
    assert check(LIMIT_CASES[case]) is Checked.ANSWERS


NU_AS_LARGE_AS_POSSIBLE = {
    "two rows": blobs(2, 2, nu=1.0),
    "equal classes": blobs(40, 2, apart=1, nu=1.0),
    "equal classes, linear": blobs(40, 2, apart=1, nu=1.0, kernel="linear"),
    "three equal classes": blobs(30, 3, apart=1, nu=1.0),
    "unequal classes": unequal(blobs(40, 2, apart=1, nu=0.8)),
    "unequal weights": with_weights(blobs(4, 2, nu=0.5), [0.5, 1.0, 0.5, 2.0]),
}


@pytest.mark.parametrize("case", NU_AS_LARGE_AS_POSSIBLE)
def test_all_coefficients_of_a_class_on_their_bounds(case):
    problem = NU_AS_LARGE_AS_POSSIBLE[case]
    assert fit_theirs(problem) is None
    fitted = fit_ours(problem)
    check_is_a_solution(fitted)
    check_margins(fitted)
    check_shares(fitted)
    for part in fitted.parts:
        reference = naive.solve(part.dual, tol=part.tol / 10)
        np.testing.assert_allclose(part.offsets, reference.offset, rtol=0, atol=1e-5)
        # Of all ρ that are optimal the least: some row of the class is on the margin.
        on_bounds = np.isclose(np.abs(part.beta), part.dual.hi - part.dual.lo, rtol=1e-9)
        full = part.dual.groups == (0 if on_bounds[part.dual.groups == 0].all() else 1)
        assert on_bounds[full].all()
        assert abs(distances(part)[full].max() - 1) <= 2 * part.gap_tolerance / part.scale


NO_MARGIN = {
    "all rows the same": all_the_same(blobs(12, 2)),
    "all rows the same, linear": all_the_same(blobs(12, 2, kernel="linear")),
    "all rows zero": all_zero(blobs(12, 3, kernel="linear")),
    "all rows empty, sparse": all_empty(blobs(12, 3, kernel="linear")),
    "every row with both labels": duplicated(
        blobs(20, 2, apart=1, kernel="linear"), opposite(blobs(20, 2))
    ),
    "gamma zero": blobs(20, 2, gamma=0.0),
    "polynomial of degree zero": blobs(20, 2, kernel="poly", degree=0),
    "classes that overlap, nu to zero": blobs(60, 2, apart=0, nu=0.01, kernel="linear"),
}


@pytest.mark.parametrize("case", NO_MARGIN)
def test_no_margin(case):
    # In exact arithmetic there is no model. Rounding may leave a margin that is next to nothing.
    problem = NO_MARGIN[case]
    check_no_margin(problem)
    fitted = fit_ours(problem)
    assert fitted is None or all(part.scale <= part.gap_tolerance for part in fitted.parts)


def test_larger_nu_leaves_a_margin():
    problem = blobs(60, 2, apart=0.5, kernel="linear")
    with pytest.warns(ConvergenceWarning, match="A larger nu may leave a margin"):
        NuSVC(kernel="linear", nu=0.01).fit(problem.X, problem.y)
    assert NuSVC(kernel="linear", nu=0.95).fit(problem.X, problem.y).rho_ > 0.1


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n", [15, 64, 129, 257])
def test_sizes_at_the_edges_of_vectors_and_tiles(n, layout):
    problem = blobs(n, 2, n_features=8, apart=0.3)
    check(with_rows(problem, layout(problem.X)))


@pytest.mark.parametrize("cache_size", ["auto", 1])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_enough_rows_for_shrinking(n_classes, cache_size):
    check(blobs(1400, n_classes, apart=4, gamma=5.0, nu=0.2), {"cache_size": cache_size})


# ---------------------------------------------------------------------------------- infeasible ν


def never(X, Z):
    pytest.fail("the kernel was evaluated for a nu that is infeasible")


INFEASIBLE = {
    "two classes": (np.arange(20) % 5 // 3, None),
    "three classes": (np.arange(20) % 7 % 3, None),
    "two classes of equal size, weights": (np.arange(6) % 2, [1.0, 2.0, 0.5, 2.0, 0.5, 1.0]),
    "three classes, weights": (np.arange(6) % 3, [1.0, 2.0, 0.3, 2.0, 0.7, 1.0]),
    "weights of zero and less": (np.arange(6) % 2, [1.0, 2.0, 0.0, 2.0, -3.0, 1.0]),
    "weights that are no sums of halves": (np.arange(12) % 2, np.linspace(0.1, 1.3, 12)),
}


@pytest.mark.parametrize("case", INFEASIBLE)
def test_infeasible_nu_is_refused_before_the_kernel_is_evaluated(case):
    y, sample_weight = INFEASIBLE[case]
    X = np.random.default_rng(0).standard_normal((len(y), 2)) + 3 * y[:, None]
    weight = None if sample_weight is None else np.asarray(sample_weight)
    largest = largest_nu(y, weight)
    with pytest.raises(ValueError, match="infeasible") as refusal:
        NuSVC(kernel=never, nu=largest * (1 + 1e-9)).fit(X, y, sample_weight)

    # The nu that the message names is possible, and is nearly the largest one.
    named = float(re.search(r"at most ([0-9.e-]+) is possible", str(refusal.value)).group(1))
    assert largest - 1e-6 <= named <= largest
    for nu in (named, largest * (1 - 1e-12)):
        assert NuSVC(nu=nu).fit(X, y, sample_weight).fit_status_ == 0


@drawn(50)
@given(nu_classifications())
def test_largest_nu_is_feasible_and_the_next_number_is_not(problem):
    y, sample_weight = problem.y, problem.sample_weight
    largest = largest_nu(y, sample_weight)
    model = NuSVC(kernel="precomputed", nu=largest).fit(np.eye(len(y)), y, sample_weight)
    assert model.fit_status_ == 0
    if largest < 1:
        with pytest.raises(ValueError, match="infeasible"):
            NuSVC(kernel=never, nu=np.nextafter(largest, 1)).fit(problem.X, y, sample_weight)
