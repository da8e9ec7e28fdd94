"""Folds and left-out rows of smooth machines, by updates, against a fit to each of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit, StratifiedKFold

from onefit import (
    SmoothSVC,
    SmoothSVR,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    leave_one_out,
)
from onefit.model_selection.smooth_left_out import SettledBy
from onefit.smooth.systems import UPDATES
from smooth.problems import classes, numbers, sparse

EXACT = 1e-8

CLASSIFIERS = {
    "linear": SmoothSVC(kernel="linear"),
    "wide": SmoothSVC(kernel="linear", C=0.1),
    "rbf": SmoothSVC(gamma=0.2, C=10.0),
    "poly": SmoothSVC(kernel="poly", gamma=0.1, degree=2, coef0=1.0),
    "smooth": SmoothSVC(gamma=0.2, beta=5.0),
    "least squares": SmoothSVC(gamma=0.2, loss="squared"),
    "random": SmoothSVC(gamma=0.2, reduced="random", n_components=12, random_state=0),
    "auto size": SmoothSVC(gamma=0.2, reduced="random", random_state=0),
    "incremental": SmoothSVC(gamma=0.2, reduced="incremental", random_state=0),
    "batches": SmoothSVC(gamma=0.2, reduced="incremental", batch_size=5, random_state=0),
    "scale": SmoothSVC(),
    "balanced": SmoothSVC(gamma=0.2, class_weight="balanced"),
}
REGRESSORS = {
    "linear": SmoothSVR(kernel="linear"),
    "rbf": SmoothSVR(gamma=0.2, C=10.0),
    "smooth": SmoothSVR(kernel="linear", beta=5.0),
    "random": SmoothSVR(gamma=0.2, reduced="random", n_components=12, random_state=0),
}
# All machines by the way that is chosen, and those that differ most by all others.
EVERY_WAY = [(name, "auto") for name in CLASSIFIERS] + [
    (name, update)
    for name in ("linear", "wide", "rbf", "smooth", "random")
    for update in UPDATES
    if update != "auto"
]
every_regressor = pytest.mark.parametrize("name", REGRESSORS)


def data_for(name, k=2, n=60):
    return classes(n=n, d=150 if name == "wide" else 4, k=k)


def assert_same_values(machine, X, y, cv, **params):
    method = "decision_function" if is_classifier(machine) else "predict"
    ours = cross_val_predict(machine, X, y, cv=cv, method=method, params=params or None)
    theirs = model_selection.cross_val_predict(
        machine, X, y, cv=cv, method=method, params=params or None
    )
    assert_allclose(ours, theirs, atol=EXACT)


@pytest.mark.parametrize(("name", "update"), EVERY_WAY)
def test_folds_of_classifiers(name, update):
    X, y = data_for(name)
    machine = clone(CLASSIFIERS[name]).set_params(update=update)
    assert_same_values(machine, X, y, StratifiedKFold(5))
    ours = cross_validate(machine, X, y, cv=5, return_estimator=True)
    theirs = model_selection.cross_validate(machine, X, y, cv=5, return_estimator=True)
    assert_array_equal(ours["test_score"], theirs["test_score"])
    for one, other in zip(ours["estimator"], theirs["estimator"], strict=True):
        assert_allclose(one.intercept_, other.intercept_, atol=EXACT)
        coef = "coef_" if machine.kernel == "linear" else "dual_coef_"
        assert_allclose(getattr(one, coef), getattr(other, coef), atol=EXACT)
        if coef == "dual_coef_":
            assert_array_equal(one.component_indices_, other.component_indices_)
        assert_allclose(one.decision_function(X), other.decision_function(X), atol=EXACT)


def test_folds_with_weights_of_classes():
    X, y = classes()
    machine = SmoothSVC(kernel="linear", class_weight={0: 3.0})
    assert_same_values(machine, X, (y == "b").astype(int), KFold(6))
    assert_same_values(machine, X, (y == "b").astype(int), LeaveOneOut())


@every_regressor
def test_folds_of_regressors(name):
    X, y = numbers()
    machine = REGRESSORS[name]
    assert_same_values(machine, X, y, KFold(4))
    expected = model_selection.cross_val_score(machine, X, y, cv=4)
    assert_allclose(cross_val_score(machine, X, y, cv=4), expected, atol=1e-7)


@pytest.mark.parametrize("name", ["linear", "rbf", "random", "incremental"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_folds_of_more_classes(name, multi_class):
    X, y = data_for(name, k=3, n=54)
    machine = clone(CLASSIFIERS[name]).set_params(multi_class=multi_class)
    assert_same_values(machine, X, y, StratifiedKFold(3))
    assert_same_values(machine, X, y, LeaveOneOut())


@pytest.mark.parametrize(("name", "update"), EVERY_WAY)
def test_left_out_rows_of_classifiers(name, update):
    X, y = data_for(name, n=32)
    machine = clone(CLASSIFIERS[name]).set_params(update=update)
    theirs = model_selection.cross_val_predict(
        machine, X, y, cv=LeaveOneOut(), method="decision_function"
    )
    result = leave_one_out(machine, X, y)
    assert result.exact
    assert_allclose(result.decision_values, theirs, atol=EXACT)
    assert_array_equal(result.predictions, np.where(theirs > 0, "b", "a"))
    assert result.error == np.mean(result.predictions != y)
    ours = cross_val_predict(machine, X, y, cv=LeaveOneOut(), method="decision_function")
    assert_allclose(ours, theirs, atol=EXACT)
    assert_array_equal(cross_val_score(machine, X, y, cv=LeaveOneOut()), result.predictions == y)


@every_regressor
def test_left_out_rows_of_regressors(name):
    X, y = numbers(n=40)
    theirs = model_selection.cross_val_predict(REGRESSORS[name], X, y, cv=LeaveOneOut())
    result = leave_one_out(REGRESSORS[name], X, y)
    assert_allclose(result.predictions, theirs, atol=EXACT)
    assert "exact" in str(result)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    name=st.sampled_from(["linear", "wide", "rbf", "poly", "random", "incremental"]),
    update=st.sampled_from(UPDATES),
    C=st.sampled_from([1e-3, 1.0, 100.0]),
    is_sparse=st.booleans(),
    weighted=st.booleans(),
    copies=st.booleans(),
    folds=st.sampled_from([2, 5, 35]),
)
def test_drawn_folds(seed, name, update, C, is_sparse, weighted, copies, folds):
    X, y = classes(n=35, d=80 if name == "wide" else 4, seed=seed)
    if copies:  # a column leaves with the last of its rows
        X[::3] = X[0]
    X = sparse(X) if is_sparse else X
    machine = clone(CLASSIFIERS[name]).set_params(update=update, C=C)
    params = {}
    if weighted:
        weights = np.random.default_rng(seed).integers(0, 3, size=35) + 0.0
        for label in "ab":
            weights[np.flatnonzero(y == label)[:3]] = 1.0
        params["sample_weight"] = weights
    cv = KFold(folds, shuffle=True, random_state=seed)
    ours = cross_val_predict(machine, X, y, cv=cv, method="decision_function", params=params)
    theirs = model_selection.cross_val_predict(
        machine, X, y, cv=cv, method="decision_function", params=params
    )
    assert_allclose(ours, theirs, atol=EXACT * max(1.0, np.abs(theirs).max()))


def test_folds_start_from_all_rows_and_say_so():
    X, y = classes(n=150)
    machine = SmoothSVC(gamma=0.2)
    ledger = cross_validate(machine, X, y, cv=5).ledger
    cold = [fit.n_iter_[0] for fit in _fits(machine, X, y)]
    assert all(work.seeded_from == "all rows" for work in ledger.folds)
    assert sum(work.n_iter for work in ledger.folds) < sum(cold)
    assert "total" in str(ledger)


def _fits(machine, X, y):
    return model_selection.cross_validate(machine, X, y, cv=5, return_estimator=True)["estimator"]


def test_a_row_that_is_no_support_vector_changes_nothing():
    X, y = classes(n=80)
    X[y == "b"] += 2.0
    machine = SmoothSVC(kernel="linear")
    result = leave_one_out(machine, X, y)
    full = machine.fit(X, y).decision_function(X)
    outside = np.where(y == "b", full, -full) > 1
    assert outside.any()
    assert (result.decided_by[outside] == SettledBy.FULL_FIT).all()
    assert_allclose(result.decision_values[outside], full[outside], atol=1e-12)
    assert_allclose(result.full_values, full, atol=EXACT)
    assert (result.influence[~outside] > 0).all()
    assert result.ledger.full.n_iter > 0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_estimates(kernel):
    X, y = classes(n=120)
    machine = SmoothSVC(kernel=kernel, gamma=0.2)
    exact = leave_one_out(machine, X, y)
    result = leave_one_out(machine, X, y, method="approximate")
    assert not result.exact
    assert "(estimate)" in str(result)
    sure = result.exact_rows
    assert 0 < sure.sum() < 120
    assert_allclose(result.decision_values[sure], exact.decision_values[sure], atol=EXACT)
    assert np.corrcoef(result.decision_values, exact.decision_values)[0, 1] > 0.999
    assert abs(result.error - exact.error) <= 0.02


def test_estimates_of_a_quadratic_loss_are_exact():
    X, y = numbers()
    machine = SmoothSVR(kernel="rbf", gamma=0.1, loss="squared")
    result = leave_one_out(machine, X, y, method="approximate")
    theirs = model_selection.cross_val_predict(machine, X, y, cv=LeaveOneOut())
    assert result.exact_rows.all()
    assert_allclose(result.predictions, theirs, atol=EXACT)


@pytest.mark.parametrize("reduced", [None, "random", "incremental"])
def test_estimates_of_more_classes_and_reduced_sets(reduced):
    X, y = classes(n=60, k=3)
    machine = SmoothSVC(gamma="scale", reduced=reduced, random_state=0)
    exact = leave_one_out(machine.set_params(gamma=0.2), X, y)
    result = leave_one_out(machine, X, y, method="approximate")
    assert np.corrcoef(result.decision_values.ravel(), exact.decision_values.ravel())[0, 1] > 0.98


def test_a_class_of_one_row():
    X, y = classes(n=40, k=3)
    y[:] = np.where(y == "c", "b", y)
    y[7] = "c"
    machine = SmoothSVC(gamma=0.2)
    result = leave_one_out(machine, X, y)
    alone = machine.fit(np.delete(X, 7, axis=0), np.delete(y, 7))
    assert result.predictions[7] == alone.predict(X[[7]])[0]
    two = np.where(np.arange(40) == 7, "c", "b")
    with pytest.warns(FitFailedWarning, match="1 of 40 rows"):
        result = leave_one_out(machine, X, two)
    assert result.decided_by[7] == SettledBy.FAILED
    assert result.predictions[7] is None


def test_a_fold_of_one_class_fails_as_in_scikit_learn():
    X, _ = classes(n=40)
    y = np.repeat(["a", "b"], [35, 5])
    machine = SmoothSVC(gamma=0.2)
    with pytest.warns(FitFailedWarning, match="1 fits failed"):
        ours = cross_val_score(machine, X, y, cv=KFold(4))
    with pytest.warns(FitFailedWarning, match="1 fits failed"):
        theirs = model_selection.cross_val_score(machine, X, y, cv=KFold(4))
    assert_array_equal(ours, theirs)
    assert np.isnan(ours[3])


def test_other_splitters_and_scorers():
    X, y = classes(n=80)
    machine = SmoothSVC(gamma=0.2)
    cv = ShuffleSplit(4, test_size=0.3, random_state=0)
    for scoring in ("roc_auc", "f1_macro", ["accuracy", "balanced_accuracy"]):
        ours = cross_validate(machine, X, y, cv=cv, scoring=scoring, return_train_score=True)
        theirs = model_selection.cross_validate(
            machine, X, y, cv=cv, scoring=scoring, return_train_score=True
        )
        assert set(ours) == set(theirs)
        for key in set(ours) - {"fit_time", "score_time"}:
            assert_allclose(ours[key], theirs[key], atol=1e-9)


def test_what_drifts_is_repaired(monkeypatch):
    """A matrix with errors far above rounding still gives the answers of fits."""
    from onefit.smooth.systems import DualSystem, PrimalSystem

    X, y = classes(n=60)
    machine = SmoothSVC(gamma=0.2)
    expected = {
        cv: model_selection.cross_val_predict(machine, X, y, cv=cv, method="decision_function")
        for cv in (KFold(5), LeaveOneOut())
    }
    for system in (PrimalSystem, DualSystem):
        right = system.influence

        def wrong(self, columns, right=right):
            matrix = right(self, columns)
            noise = np.random.default_rng(0).normal(size=matrix.shape)
            return matrix * (1 + 1e-5 * (noise + noise.T))

        monkeypatch.setattr(system, "influence", wrong)
    for cv, values in expected.items():
        ours = cross_val_predict(machine, X, y, cv=cv, method="decision_function")
        assert_allclose(ours, values, atol=EXACT)


def test_rows_of_the_influence_are_those_of_the_matrix(monkeypatch):
    """Where the matrix does not fit in memory, its rows are computed as they are asked for."""
    X, y = classes(n=120)
    machine = SmoothSVC(kernel="linear")
    expected = leave_one_out(machine, X, y).decision_values
    monkeypatch.setattr("onefit.smooth.folds.Whole.can_store_influence", lambda self: False)
    assert_allclose(leave_one_out(machine, X, y).decision_values, expected, atol=1e-10)
    folds = cross_val_predict(machine, X, y, cv=10, method="decision_function")
    theirs = model_selection.cross_val_predict(machine, X, y, cv=10, method="decision_function")
    assert_allclose(folds, theirs, atol=EXACT)


def test_bad_methods_are_named():
    X, y = classes()
    with pytest.raises(ValueError, match="'exact', 'approximate' for SmoothSVC; got 'bound'"):
        leave_one_out(SmoothSVC(), X, y, method="bound")


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("reduced", ["random", "incremental"])
def test_folds_of_a_reduced_kernel_less_their_share_of_the_hessian(update, reduced, monkeypatch):
    X, y = classes(n=400)
    machine = SmoothSVC(gamma=0.5, reduced=reduced, n_components=60, random_state=0, update=update)
    machine.set_params(threshold=0.01, failures=50)
    monkeypatch.setattr("onefit.smooth.folds.Whole.can_store_influence", lambda self: False)
    assert_same_values(machine, X, y, StratifiedKFold(4))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_what_fits_in_no_system_is_solved_by_conjugate_gradients(kernel, monkeypatch):
    X, y = classes(n=60, d=90)
    machine = SmoothSVC(kernel=kernel, gamma=0.01)
    expected = clone(machine).fit(X, y).decision_function(X)
    rows = leave_one_out(machine, X, y).decision_values
    estimates = leave_one_out(machine, X, y, method="approximate").decision_values
    for module in ("smooth", "smooth_folds"):
        monkeypatch.setattr(f"onefit.estimators.{module}.budget_for", lambda size, n: 8 * 60 * 60)
    assert_allclose(machine.fit(X, y).decision_function(X), expected, atol=1e-7)
    assert_allclose(leave_one_out(machine, X, y).decision_values, rows, atol=1e-7)
    ours = leave_one_out(machine, X, y, method="approximate").decision_values
    assert_allclose(ours, estimates, atol=1e-2)


def test_a_fold_with_data_far_from_scaled():
    """Rounding eats the unit matrix in H; what cannot be updated is fitted."""
    X, y = classes(n=40, d=60)
    X = 1e3 * X
    machine = SmoothSVC(kernel="linear")
    for cv in (KFold(5), LeaveOneOut()):
        ours = cross_val_predict(machine, X, y, cv=cv, method="decision_function")
        theirs = model_selection.cross_val_predict(machine, X, y, cv=cv, method="decision_function")
        assert_allclose(ours, theirs, atol=1e-6)


def test_a_random_state_that_is_a_generator():
    X, y = classes(n=60)
    machine = SmoothSVC(
        gamma=0.2, reduced="random", n_components=9, random_state=np.random.RandomState(3)
    )
    assert_same_values(machine, X, y, KFold(5))
