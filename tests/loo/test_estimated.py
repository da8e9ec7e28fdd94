"""Approximate leave-one-out, as people call it: against exact leave-one-out."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.preprocessing import StandardScaler
from strategies import classifications, drawn, nu_classifications, regressions

from loo.test_leave_one_out import MACHINES, data
from onefit import SVC, SVR, NuSVC, leave_one_out
from onefit.loo import DecidedBy

TOL = 1e-6
SIDES = 1e-2  # of values where only sides are asked, with the default tolerance


def both(machine, X, y, **settings):
    """Estimates, and what exact leave-one-out says."""
    estimate = leave_one_out(machine, X, y, method="approximate", **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        return estimate, leave_one_out(machine, X, y, **{**settings, "certify": False})


def assert_refined(estimate, exact, atol=1e-8):
    """Rows in doubt become exact, and no other changes.

    Where only sides were asked (``certify="auto"``) values are right up to the tolerance.
    """
    refined = estimate.refine()
    doubtful = ~estimate.reliable & estimate.predicted
    values = refined.decision_values
    assert_allclose(values[doubtful], exact.decision_values[doubtful], atol=atol)
    assert_array_equal(values[~doubtful], estimate.decision_values[~doubtful])
    if refined.classifies:
        assert_array_equal(refined.predictions[doubtful], exact.predictions[doubtful])
    assert_array_equal(refined.predictions[~doubtful], estimate.predictions[~doubtful])
    assert not (refined.decided_by == DecidedBy.DOUBTFUL).any()
    assert refined.n_iter[~doubtful].sum() == 0
    return refined


# ---- agreement ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", MACHINES)
def test_machines(name, layout):
    machine, (X, y) = clone(MACHINES[name]).set_params(tol=TOL), data(name, n=120)
    estimate, exact = both(machine, layout(X), y, certify=False)
    assert not estimate.exact
    assert estimate.predicted.all()
    assert estimate.decision_values.shape == exact.decision_values.shape
    assert_allclose(estimate.full_values, exact.full_values, atol=1e-5)
    values, exact_values = estimate.decision_values.ravel(), exact.decision_values.ravel()
    assert np.corrcoef(values, exact_values)[0, 1] > 0.95
    refined = assert_refined(estimate, exact)
    if exact.classifies:
        assert abs(estimate.error - exact.error) <= 5 / 120
        assert abs(refined.error - exact.error) <= 1 / 120
    else:
        assert estimate.error == pytest.approx(exact.error, rel=0.25)
        assert refined.error == pytest.approx(exact.error, rel=0.02)


@pytest.mark.parametrize("C", [1.0, 10.0, 100.0])
def test_refined_error_rates_of_real_data(C):
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    estimate, exact = both(SVC(C=C, gamma="auto"), X, y)
    assert abs(estimate.error - exact.error) <= 0.005
    assert estimate.reliable.mean() > 0.95
    refined = assert_refined(estimate, exact, SIDES)
    assert abs(refined.error - exact.error) <= 0.001
    assert refined.n_iter.sum() < 0.5 * exact.n_iter.sum()


def test_refined_error_rates_of_many_classes():
    X, y = load_digits(return_X_y=True)
    X, y = X[:500] / 16, y[:500]
    estimate, exact = both(SVC(C=10.0, gamma=0.02), X, y)
    assert round(500 * abs(estimate.error - exact.error)) <= 3  # rows
    assert estimate.reliable.mean() > 0.9
    assert assert_refined(estimate, exact, SIDES).error == exact.error


def test_refined_errors_of_a_real_regression():
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    estimate, exact = both(SVR(C=30.0, epsilon=7.7, gamma="auto"), X, y)  # a unit of its own
    assert estimate.error == pytest.approx(exact.error, rel=0.02)
    assert assert_refined(estimate, exact).error == pytest.approx(exact.error, rel=0.015)


@given(st.one_of(classifications(max_rows=30), nu_classifications(max_rows=30)))
@drawn(30)
def test_drawn_classifications(problem):
    machine = (NuSVC if "nu" in problem.params else SVC)(**problem.params)
    weights = problem.sample_weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)  # no margin
        try:
            estimate, exact = both(machine, problem.X, problem.y, sample_weight=weights)
        except ValueError as error:  # of a class that has no second row
            assert "class" in str(error) or "nu" in str(error)  # noqa: PT017
            return
        refined = estimate.refine()
    doubtful = ~estimate.reliable & estimate.predicted
    same = refined.predictions[doubtful] == exact.predictions[doubtful]
    assert same.all()
    if estimate.predicted.all():
        assert np.isfinite(estimate.decision_values[np.isfinite(exact.decision_values)]).all()


@given(regressions(max_rows=30))
@drawn(20)
def test_drawn_regressions(problem):
    weights = problem.sample_weight
    assume(len(problem.y) > 1 and (weights is None or (weights > 0).sum() > 1))
    estimate, exact = both(SVR(**problem.params), problem.X, problem.y, sample_weight=weights)
    assert_refined(estimate, exact)
    assert np.isfinite(estimate.predictions).all()


# ---- exact where theory says so -----------------------------------------------------------------


def test_all_rows_free():
    # Nothing meets a bound, so that every estimate is the value of a fit.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    machine = SVC(C=1e3, gamma=10.0, tol=TOL)
    assert len(clone(machine).fit(X, y).support_) == 40
    estimate, exact = both(machine, X, y, certify=False)
    assert_allclose(estimate.decision_values, exact.decision_values, atol=1e-4)
    assert np.abs(estimate.decision_values - estimate.full_values).min() > 0.01


def test_no_tube_and_no_bound_is_interpolation():
    # Without a row the function goes through all others: K b + o = y, Σb = 0.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 2))
    y = rng.normal(size=25)
    machine = SVR(C=1e4, gamma=5.0, epsilon=0.0, tol=TOL)
    K = np.exp(-5.0 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    expected = []
    for row in range(25):
        others = np.delete(np.arange(25), row)
        bordered = np.ones((25, 25))
        bordered[0, 0], bordered[1:, 1:] = 0.0, K[np.ix_(others, others)]
        solution = np.linalg.solve(bordered, np.append(0.0, y[others]))
        expected.append(K[row, others] @ solution[1:] + solution[0])
    assert np.abs(np.linalg.solve(K, y)).max() < 1e4  # no coefficient meets a bound
    estimate = leave_one_out(machine, X, y, method="approximate")
    assert_allclose(estimate.predictions, expected, atol=1e-3 * np.abs(expected).max())


def test_rows_that_are_no_support_vectors_are_exact():
    X, y = data("SVC", n=120)
    estimate, exact = both(SVC(C=3.0, gamma=0.1, tol=TOL), X, y)
    rows = estimate.decided_by == DecidedBy.NOT_SUPPORT
    assert rows.sum() > 20
    assert estimate.reliable[rows].all()
    assert_array_equal(estimate.decision_values[rows], estimate.full_values[rows])
    assert_array_equal(exact.decided_by[rows], DecidedBy.NOT_SUPPORT)


@pytest.mark.parametrize(
    "machine",
    [SVC(), SVC(gamma=0.1, class_weight="balanced"), NuSVC(nu=0.37, gamma=0.1)],
)
def test_nothing_is_exact_where_more_than_the_row_changes(machine):
    X, y = data("SVC", n=120)
    estimate = leave_one_out(machine, X, y, method="approximate")
    assert set(estimate.counts()) <= {DecidedBy.ESTIMATE, DecidedBy.DOUBTFUL}
    # What a change of kernel, bounds or sums could turn round is in doubt.
    typical = np.sqrt(np.mean(estimate.full_values**2))
    small = np.abs(estimate.decision_values) < typical / len(y)
    assert not estimate.reliable[small].any()


# ---- kernels that are given ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "NuSVC", "SVR", "NuSVR"])
@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_given_kernels(name, kernel):
    machine, (X, y) = clone(MACHINES[name]), data(name, n=80)

    def function(A, B):
        return (0.1 * A @ B.T + 1) ** 2

    expected = leave_one_out(
        clone(machine).set_params(kernel="poly", gamma=0.1, coef0=1.0, degree=2),
        X,
        y,
        method="approximate",
    )
    if kernel == "callable":
        machine.set_params(kernel=function)
    else:
        machine, X = machine.set_params(kernel="precomputed"), function(X, X)
    result = leave_one_out(machine, X, y, method="approximate")
    assert_allclose(result.decision_values, expected.decision_values, atol=1e-3)
    assert_array_equal(result.reliable, expected.reliable)


def test_a_matrix_that_is_not_symmetric_is_in_doubt():
    X, y = data("SVC")
    K = X @ X.T
    K[np.triu_indices(len(K), 1)] *= 1.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = leave_one_out(SVC(kernel="precomputed", C=0.1), K, y, method="approximate")
        assert_array_equal(result.reliable, result.decided_by == DecidedBy.NOT_SUPPORT)
        assert not result.reliable.all()
        assert result.refine().exact


def test_sigmoids():
    X, y = data("SVC", n=100)
    estimate, exact = both(SVC(kernel="sigmoid", gamma=0.05, C=2.0), X, y)
    refined = assert_refined(estimate, exact, SIDES)
    assert abs(refined.error - exact.error) <= 0.02


# ---- rows that cannot be estimated --------------------------------------------------------------


def test_without_a_free_row_all_rows_are_settled_exactly():
    X, _ = data("SVC", n=40)
    y = np.repeat([0, 1], 20)
    estimate, exact = both(SVC(C=1e-3, gamma=0.5), X, y)
    assert not estimate.reliable.any()
    refined = assert_refined(estimate, exact, SIDES)
    assert refined.exact
    assert_array_equal(refined.predictions, exact.predictions)


def test_a_fit_that_has_not_converged_says_nothing():
    X, y = data("SVC")
    with pytest.warns(ConvergenceWarning):
        estimate = leave_one_out(SVC(gamma=0.1, max_iter=5), X, y, method="approximate")
    assert not estimate.reliable.any()


def test_rows_without_which_a_class_is_missing():
    X, y = data("SVC, three classes")
    y = np.where(np.arange(len(y)) == 7, 5, y % 2)
    estimate, exact = both(SVC(C=3.0, gamma=0.1), X, y)
    assert estimate.predicted.all()
    assert estimate.predictions[7] == exact.predictions[7]
    assert estimate.predictions[7] != 5
    assert_refined(estimate, exact, SIDES)
    two = (np.arange(len(y)) == 7).astype(int)
    with pytest.warns(FitFailedWarning, match="1 of 60 rows cannot be left out"):
        estimate = leave_one_out(SVC(C=3.0, gamma=0.1), X, two, method="approximate")
    assert_array_equal(np.flatnonzero(~estimate.predicted), [7])
    assert not estimate.reliable[7]
    assert estimate.refine().predictions[7] is None


def test_rows_without_weight_are_those_of_the_fit():
    X, y = data("SVC", n=80)
    weights = np.where(np.arange(80) % 4 == 0, 0.0, 1.0)
    machine = SVC(gamma=0.1)
    estimate = leave_one_out(machine, X, y, method="approximate", sample_weight=weights)
    expected = clone(machine).fit(X, y, weights).decision_function(X)
    assert_allclose(estimate.decision_values[::4], expected[::4], atol=1e-3)


@pytest.mark.parametrize("break_ties", [False, True])
def test_offsets_that_leap(break_ties):
    # The free rows of a pair have room for one row more: without it all are at their bounds, and
    # values of -0.8 become positive.
    X, y = data("SVC, three classes", n=150)
    machine = SVC(C=0.02, gamma=0.1, break_ties=break_ties)
    estimate, exact = both(machine, X, y)
    assert (estimate.predictions != exact.predictions).mean() > 0.05
    refined = assert_refined(estimate, exact, SIDES)
    assert_array_equal(refined.predictions, exact.predictions)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_copies_that_stand_in_for_one_another(kernel):
    # Alone, none of the copies of a free row changes anything when it meets its bound; but they all
    # do, one after another.
    wrong = missed = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = np.round(rng.normal(size=(40, 2))), rng.integers(0, 2, 40)
        machine = SVC(kernel=kernel, gamma=0.5, C=[1.0, 10.0, 100.0][seed % 3])
        estimate = leave_one_out(machine, X, y, method="approximate")
        differs = estimate.predictions != leave_one_out(machine, X, y).predictions
        wrong += differs.sum()
        missed += (differs & estimate.reliable).sum()
    assert wrong > 50
    assert missed == 0


def test_ties_are_broken_by_values():
    # Votes are equal, and whoever wins does so by values, which an estimate may miss.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), rng.integers(0, 3, 90)
    machine = SVC(gamma=1.0, break_ties=True)
    ties = clone(machine).set_params(decision_function_shape="ovo", break_ties=False)
    pairs = leave_one_out(ties, X, y, method="approximate", certify=False)
    a, b, c = pairs.decision_values.T > 0
    tied = (a == c) & (a != b)  # each class beats one other
    moved = (pairs.decision_values != pairs.full_values).any(axis=1)
    estimate, exact = both(machine, X, y, certify=False)
    assert (tied & moved).any()
    assert not estimate.reliable[tied & moved].any()
    assert_refined(estimate, exact)


# ---- results ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def estimate():
    X, y = make_classification(120, 4, flip_y=0.2, random_state=0)
    result = leave_one_out(SVC(gamma=0.1, C=10.0), X, y, method="approximate")
    assert (~result.reliable).any()
    return result


def test_summaries(estimate):
    text = str(estimate)
    n_doubtful = (~estimate.reliable).sum()
    assert "Leave-one-out of 120 rows (estimate)" in text
    assert f"in doubt: {n_doubtful} rows, which refine() settles" in text
    assert "estimates " in text
    assert f"± {estimate.standard_error:.2g}" in text
    refined = estimate.refine()
    assert "in doubt" not in refined.summary()
    assert refined.counts()[DecidedBy.SOLVER] == n_doubtful
    assert refined.ledger.seconds > estimate.ledger.seconds
    assert refined.refine() is refined


def test_values_whose_side_is_certain_are_corrected_on_demand():
    X, y = make_classification(120, 4, flip_y=0.2, random_state=0)
    machine = SVC(gamma=0.1, C=10.0, tol=TOL)
    quick, exact = both(machine, X, y)
    careful, _ = both(machine, X, y, certify=False)
    assert_array_equal(quick.predictions, careful.predictions)
    assert_array_equal(quick.reliable, careful.reliable)
    off = [np.abs(r.decision_values - exact.decision_values).mean() for r in (quick, careful)]
    assert off[1] < off[0]


def test_the_estimator_is_not_changed_and_seeds_do_not_matter():
    X, y = data("SVC")
    machine = SVC(gamma=0.1)
    results = [
        leave_one_out(machine, X, y, method="approximate", seeding=seeding, n_jobs=2).refine()
        for seeding in ("auto", "none")
    ]
    assert not hasattr(machine, "support_")
    assert_array_equal(results[0].predictions, results[1].predictions)


def test_copies_cannot_be_refined(estimate):
    copy = pickle.loads(pickle.dumps(estimate))
    assert_array_equal(copy.predictions, estimate.predictions)
    assert_array_equal(copy.reliable, estimate.reliable)
    with pytest.raises(ValueError, match="it is a copy without the fit"):
        copy.refine()


def test_what_has_no_estimates():
    X, y = data("SVC")
    exact = leave_one_out(SVC(gamma=0.1), X, y)
    assert exact.refine() is exact
    assert exact.reliable.all()
    bound = leave_one_out(SVC(gamma=0.1), X, y, method="bound")
    assert_array_equal(bound.reliable, bound.decided_by != DecidedBy.UNDECIDED)
    with pytest.raises(ValueError, match=r"refine\(\) settles the estimates"):
        bound.refine()


def test_bad_input_is_refused_before_any_work():
    X, y = data("SVC")
    with pytest.raises(ValueError, match="sample_weight must be of shape"):
        leave_one_out(SVC(), X, y, method="approximate", sample_weight=1.0)
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        leave_one_out(SVC(), X, np.zeros(len(y)), method="approximate")
    with pytest.raises(ValueError, match="NaN"):
        leave_one_out(SVR(), X, np.where(y == 0, np.nan, y), method="approximate")


def test_plots_mark_what_is_in_doubt(estimate):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    ax = estimate.plot()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"estimate in doubt ({(~estimate.reliable).sum()})" in labels
    assert ax.get_ylabel().endswith("(estimated)")
    drawn = sum(len(points.get_offsets()) for points in ax.collections)
    assert drawn == len(estimate.y)
    pyplot.close("all")
