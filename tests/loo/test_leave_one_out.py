"""Leave-one-out gives what n fits give, whatever settles a row."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut
from strategies import classifications, drawn, kernels, nu_classifications, regressions

from loo.refits import refits
from onefit import SVC, SVR, NuSVC, NuSVR, leave_one_out
from onefit.loo import DecidedBy

TOL = 1e-9
ATOL = 1e-5  # as between any two fits: entries of the kernel are float32

MACHINES = {
    "SVC": SVC(C=3.0, gamma=0.1, tol=TOL),
    "SVC, C=100": SVC(C=100.0, gamma=0.3, tol=TOL),
    "SVC, linear": SVC(kernel="linear", C=0.1, tol=TOL),
    "SVC, poly": SVC(kernel="poly", coef0=1.0, gamma=0.1, degree=2, tol=TOL),
    "SVC, scale": SVC(tol=TOL),
    "SVC, poly and scale": SVC(kernel="poly", coef0=1.0, tol=TOL),
    "SVC, balanced": SVC(class_weight="balanced", gamma=0.2, tol=TOL),
    "SVC, weights of classes": SVC(class_weight={0: 0.5, 1: 2.0}, gamma=0.2, tol=TOL),
    "SVC, three classes": SVC(C=3.0, gamma=0.1, tol=TOL),
    "SVC, three classes, ovo": SVC(gamma=0.1, tol=TOL, decision_function_shape="ovo"),
    "SVC, three classes, balanced": SVC(gamma=0.1, tol=TOL, class_weight="balanced"),
    "SVC, three classes, scale": SVC(tol=TOL),
    "SVC, three classes, ties": SVC(C=0.5, gamma=0.1, tol=TOL, break_ties=True),
    # No whole number of rows: with all variables at bounds the offsets would not be unique.
    "NuSVC": NuSVC(nu=0.37, gamma=0.1, tol=TOL),
    "NuSVC, three classes": NuSVC(nu=0.37, gamma=0.1, tol=TOL),
    "SVR": SVR(C=3.0, gamma=0.1, epsilon=0.2, tol=TOL),
    "SVR, scale": SVR(C=3.0, epsilon=0.05, tol=TOL),
    "NuSVR": NuSVR(C=3.0, nu=0.37, gamma=0.1, tol=TOL),
}


def data(name, n=60):
    if "R" in name.split(",")[0]:
        X, y = make_regression(n, 4, noise=5.0, random_state=0)
        return X, y / y.std()
    return make_classification(
        n,
        5,
        n_informative=4,
        n_redundant=0,
        n_classes=3 if "three" in name else 2,
        class_sep=0.8,
        random_state=0,
    )


def theirs_of(machine, X, y, **settings):
    method = "decision_function" if hasattr(machine, "decision_function") else "predict"
    cv = LeaveOneOut()
    values = theirs.cross_val_predict(machine, X, y, cv=cv, method=method, **settings)
    return values, theirs.cross_val_predict(machine, X, y, cv=cv, **settings)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", MACHINES)
def test_values_and_predictions(name, layout):
    machine, (X, y) = MACHINES[name], data(name)
    values, predictions = theirs_of(machine, layout(X), y)
    all_values = leave_one_out(machine, layout(X), y, certify=False)
    assert_allclose(all_values.decision_values, values, atol=ATOL)
    for result in (all_values, leave_one_out(machine, layout(X), y)):
        assert result.exact
        if result.classifies:
            assert_array_equal(result.predictions, predictions)
            assert result.error == np.mean(predictions != y)
        else:
            assert_allclose(result.predictions, predictions, atol=ATOL)
            assert result.error == pytest.approx(np.mean((predictions - y) ** 2))
        known = ~np.isnan(result.decision_values)
        assert_allclose(result.decision_values[known], values[known], atol=ATOL)


@pytest.mark.parametrize("seeding", ["none", "avg", "top"])
@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "SVC, scale", "NuSVC", "NuSVR"])
def test_seeds_change_nothing(name, seeding):
    machine, (X, y) = MACHINES[name], data(name)
    values, _ = theirs_of(machine, X, y)
    ours = leave_one_out(machine, X, y, certify=False, seeding=seeding)
    assert_allclose(ours.decision_values, values, atol=ATOL)


@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "SVR", "NuSVR"])
def test_the_full_fit_saves_iterations(name):
    # A start that is dropped on the way would give the same answers.
    machine, (X, y) = clone(MACHINES[name]).set_params(tol=1e-3), data(name, n=200)
    seeded = leave_one_out(machine, X, y, certify=False)
    cold = leave_one_out(machine, X, y, certify=False, seeding="none")
    assert seeded.ledger.n_iter < 0.6 * cold.ledger.n_iter


@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "NuSVC", "SVR", "NuSVR"])
@pytest.mark.parametrize("kernel", ["precomputed", "callable"])
def test_given_kernels(name, kernel):
    machine, (X, y) = clone(MACHINES[name]), data(name)

    def function(A, B):
        return (A @ B.T + 1) ** 2 / 10

    if kernel == "callable":
        machine.set_params(kernel=function)
    else:
        machine, X = machine.set_params(kernel="precomputed"), function(X, X)
    values, predictions = theirs_of(machine, X, y)
    result = leave_one_out(machine, X, y)
    assert_allclose(result.decision_values, values, atol=ATOL)
    assert_allclose(result.predictions, predictions, atol=ATOL)


def test_a_matrix_that_is_not_symmetric():
    X, y = data("SVC")
    K = X @ X.T
    K += 0.05 * np.random.default_rng(0).normal(size=K.shape) * (y[:, None] == 0)
    K = np.where(np.triu(np.ones_like(K), 1) > 0, K, X @ X.T)
    machine = SVC(kernel="precomputed", C=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = leave_one_out(machine, K, y)
        values, _ = theirs_of(machine, K, y)
    assert np.mean(np.sign(result.decision_values) == np.sign(values)) > 0.9


@pytest.mark.parametrize("name", ["SVC", "SVC, balanced", "SVC, three classes", "NuSVC", "SVR"])
def test_weights(name):
    machine, (X, y) = MACHINES[name], data(name)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    weight[::9] = 0.0
    values, predictions = theirs_of(machine, X, y, params={"sample_weight": weight})
    result = leave_one_out(machine, X, y, sample_weight=weight, certify=False)
    assert_allclose(result.decision_values, values, atol=ATOL)
    signs = leave_one_out(machine, X, y, sample_weight=weight)
    assert_allclose(signs.predictions, predictions, atol=ATOL)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads(n_jobs):
    machine, (X, y) = MACHINES["SVC, three classes"], data("SVC, three classes")
    one, many = leave_one_out(machine, X, y), leave_one_out(machine, X, y, n_jobs=n_jobs)
    assert_array_equal(one.decision_values, many.decision_values)
    assert_array_equal(one.n_iter, many.n_iter)


# ---- drawn problems ------------------------------------------------------------------------------


def compare(machine, problem):
    """Both ways of ours with n fits, on what is determined."""
    X, y, weight = problem.X, problem.y, problem.sample_weight
    machine = machine.set_params(**problem.params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = refits(machine, _plain(X), y, weight)
        if not expected.fitted.any():
            with pytest.raises(ValueError, match=r"\w"):
                leave_one_out(machine, X, y, sample_weight=weight)
            return
        try:
            results = [
                leave_one_out(machine, X, y, sample_weight=weight, certify=certify)
                for certify in ("auto", False)
            ]
        except ValueError:  # the fit on all rows
            with pytest.raises(ValueError, match=r"\w"):
                clone(machine).fit(_plain(X), y, weight)
            return
    scale = max(1.0, float(np.abs(y).max())) if not results[0].classifies else 1.0
    for result in results:
        assert_array_equal(result.predicted, expected.fitted)
        for row in np.flatnonzero(expected.fitted):
            ours, theirs_ = result.predictions[row], expected.predictions[row]
            where = f"row {row}, {result.decided_by[row]}"
            values = expected.values[row]
            if not expected.determined[row]:
                continue
            if not result.classifies:
                assert_allclose(ours, theirs_, atol=10 * ATOL * scale, err_msg=where)
            elif np.abs(values).min() > 10 * ATOL:  # else a tie, or as good as one
                assert ours == theirs_, f"{where}: {values}"
    return results


def _plain(X):
    return X.tocsr() if sp.issparse(X) else X


TIGHT = st.sampled_from([1e-9, 1e-10])


@drawn(60)
@given(problem=classifications(max_rows=24, exponent_of_C=(-2, 2)), tol=TIGHT)
def test_drawn_c_svc(problem, tol):
    results = compare(SVC(tol=tol), problem)
    if results is not None and results[0].exact:
        signs, values = results
        known = ~np.isnan(signs.decision_values)
        assert_allclose(signs.decision_values[known], values.decision_values[known], atol=10 * ATOL)


@drawn(30)
@given(problem=nu_classifications(max_rows=20), tol=TIGHT)
def test_drawn_nu_svc(problem, tol):
    # Where a margin is next to nothing the model is hardly determined.
    assume(problem.params["nu"] > 0.05)
    compare(NuSVC(tol=tol), problem)


@drawn(40)
@given(problem=regressions(max_rows=20, exponent_of_C=(-2, 1)))
def test_drawn_svr(problem):
    params = {**problem.params, "tol": 1e-3 * problem.params["tol"]}
    assume(np.abs(problem.y).max() < 100)
    compare(SVR(), replace(problem, params=params))


@drawn(30)
@given(problem=regressions(nu=True, max_rows=20, exponent_of_C=(-2, 1)))
def test_drawn_nu_svr(problem):
    params = {**problem.params, "tol": 1e-3 * problem.params["tol"]}
    assume(np.abs(problem.y).max() < 100)
    compare(NuSVR(), replace(problem, params=params))


@drawn(40)
@given(
    problem=classifications(
        max_rows=40, exponent_of_C=(-2, 2), kernel=kernels(("linear", "rbf", "poly"))
    )
)
def test_bound_is_an_upper_bound(problem):
    params = {**problem.params, "class_weight": None, "tol": 1e-6}
    if params.get("gamma") == "scale":
        params["gamma"] = 0.2
    machine = SVC(**params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            exact = leave_one_out(machine, problem.X, problem.y)
        except ValueError:
            with pytest.raises(ValueError, match=r"\w"):
                leave_one_out(machine, problem.X, problem.y, method="bound")
            return
        bound = leave_one_out(machine, problem.X, problem.y, method="bound")
    assert not bound.exact
    assert bound.error >= exact.error
    settled = ~np.isin(bound.decided_by, [DecidedBy.UNDECIDED, DecidedBy.FAILED])
    right = exact.predictions == problem.y
    assert_array_equal((bound.predictions == problem.y)[settled], right[settled])


# ---- what may go wrong ---------------------------------------------------------------------------


def test_a_row_without_which_one_class_is_left():
    X, y = data("SVC", n=30)
    y = np.where(np.arange(30) == 7, 1, 0)
    with pytest.warns(FitFailedWarning, match="1 of 30 rows cannot be left out"):
        result = leave_one_out(SVC(gamma=0.1), X, y)
    assert result.predictions[7] is None
    assert result.decided_by[7] == DecidedBy.FAILED
    assert result.error == 0.0
    assert len(result.losses) == 29
    assert "without a prediction: 1 rows" in result.summary()


@pytest.mark.parametrize("method", ["exact", "bound"])
def test_a_row_without_which_a_class_of_three_is_missing(method):
    X, y = data("SVC, three classes")
    y = np.where(y == 2, 1, y)
    y[5] = 2
    machine = MACHINES["SVC, three classes"]
    result = leave_one_out(machine, X, y, method=method)
    expected = refits(machine, X, y)
    assert result.predictions[5] in (0, 1)
    assert result.predictions[5] == expected.predictions[5]
    if method == "exact":
        assert_array_equal(result.predictions, expected.predictions)


def test_nothing_can_be_left_out():
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        leave_one_out(SVC(gamma=1.0), np.eye(2), np.array([0, 1]))
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        leave_one_out(SVR(gamma=1.0), np.eye(1), np.array([1.0]))


def test_labels_are_kept():
    X, y = data("SVC")
    names = np.array(["no", "yes"])[y]
    result = leave_one_out(MACHINES["SVC"], X, names)
    assert result.predictions.dtype == names.dtype
    expected = leave_one_out(MACHINES["SVC"], X, y).predictions
    assert_array_equal(result.predictions, np.array(["no", "yes"])[expected])


def test_values_below_the_tolerance_are_decided():
    # A kernel matrix that is almost the identity: all |f| are about 1e-4.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(48, 40)), rng.integers(0, 2, 48)
    machine = SVC(gamma=0.2)
    expected = theirs.cross_val_predict(
        clone(machine).set_params(tol=1e-10), X, y, cv=LeaveOneOut()
    )
    assert_array_equal(leave_one_out(machine, X, y).predictions, expected)


def test_what_did_not_converge_is_not_exact():
    X, y = data("SVC")
    with pytest.warns(ConvergenceWarning):
        result = leave_one_out(SVC(gamma=0.1, max_iter=2), X, y)
    assert not result.exact
    assert "not converged" in result.summary()


def test_the_estimator_is_left_alone():
    machine = SVC(gamma=0.1)
    leave_one_out(machine, *data("SVC"))
    assert vars(machine).keys() == vars(SVC()).keys()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "guess"}, "method must be one of 'exact', 'approximate', 'bound'; got 'guess'"),
        ({"seeding": "sir"}, "seeding must be one of 'auto', 'none', 'avg', 'top'; got 'sir'"),
        ({"certify": "maybe"}, "certify must be 'auto', True or False; got 'maybe'"),
        ({"sample_weight": [1.0]}, "incompatible shapes"),
    ],
)
def test_bad_choices(settings, message):
    with pytest.raises(ValueError, match=message):
        leave_one_out(SVC(gamma=0.1), *data("SVC"), **settings)


def test_unknown_estimators():
    with pytest.raises(TypeError, match="got LogisticRegression"):
        leave_one_out(LogisticRegression(), *data("SVC"))
    with pytest.raises(ValueError, match="'C' parameter of SVC"):
        leave_one_out(SVC(C=-1.0), *data("SVC"))


@pytest.mark.parametrize(
    "machine",
    [SVC(), SVC(gamma=0.1, class_weight="balanced"), NuSVC(gamma=0.1), SVR(gamma=0.1)],
)
def test_bound_is_refused_where_nothing_is_proven(machine):
    with pytest.raises(ValueError, match="method='bound' is for SVC"):
        leave_one_out(machine, *data("SVC"), method="bound")
