"""Cross-validation gives what scikit-learn's gives, whatever a fold starts from."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as theirs
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onefit
from model_selection.problems import check_same_scores, data
from onefit import SVC, SVR, NuSVC, NuSVR, cross_val_predict, cross_val_score, cross_validate
from onefit.seeding import STRATEGIES

# Decision values of these well-conditioned problems follow the KKT gap, at most TOL.
TOL = 1e-7
ATOL = 1e-5

SEEDINGS = ["auto", *STRATEGIES]
MACHINES = {
    "SVC": SVC(C=3.0, gamma=0.1, tol=TOL),
    "SVC, three classes": SVC(C=3.0, gamma=0.1, tol=TOL),
    "SVC, linear": SVC(kernel="linear", C=0.1, tol=TOL),
    "SVC, scale": SVC(tol=TOL),
    "SVC, balanced": SVC(class_weight="balanced", gamma=0.2, tol=TOL),
    # No whole number of rows: with all variables at bounds the offsets would not be unique.
    "NuSVC": NuSVC(nu=0.37, gamma=0.1, tol=TOL),
    "SVR": SVR(C=3.0, gamma=0.1, epsilon=0.2, tol=TOL),
    "SVR, scale": SVR(C=3.0, epsilon=0.05, tol=TOL),
    "NuSVR": NuSVR(C=3.0, nu=0.37, gamma=0.1, tol=TOL),
}


def values(function, machine, X, y, **settings):
    method = "decision_function" if hasattr(machine, "decision_function") else "predict"
    return function(machine, X, y, method=method, **settings)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("seeding", SEEDINGS)
@pytest.mark.parametrize("name", MACHINES)
def test_values_of_held_out_rows(name, seeding, layout):
    machine = MACHINES[name]
    X, y = data(name, n=90)
    ours = values(cross_val_predict, machine, layout(X), y, cv=5, seeding=seeding)
    expected = values(theirs.cross_val_predict, machine, layout(X), y, cv=5)
    assert_allclose(ours, expected, atol=ATOL)


SPLITTERS = {
    "stratified": StratifiedKFold(4),
    "shuffled": KFold(4, shuffle=True, random_state=0),
    "sorted by class": KFold(3),  # with sorted rows: folds that lack a class, or hold only one
    "groups": GroupKFold(4),
    "repeated": RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    "partial and overlapping": ShuffleSplit(4, test_size=0.2, train_size=0.5, random_state=0),
    "time": TimeSeriesSplit(4),
    "pairs of indices": [(np.arange(60), np.arange(60, 90)), (np.arange(30, 90), np.arange(10))],
    "leave one out": LeaveOneOut(),
    "lists": [(list(range(30, 90)), list(range(30))), (list(range(60)), list(range(60, 90)))],
}


@pytest.mark.parametrize("seeding", SEEDINGS)
@pytest.mark.parametrize("cv", SPLITTERS)
@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "SVC, scale", "NuSVC", "NuSVR"])
def test_scores_with_any_splitter(name, cv, seeding):
    machine = MACHINES[name]
    X, y = data(name, n=36 if cv == "leave one out" else 90)
    if cv == "sorted by class":
        X, y = X[np.argsort(y)], np.sort(y)
    settings = {"cv": SPLITTERS[cv]}
    if cv == "groups":
        settings["groups"] = np.arange(len(y)) % 7
    if "R" in name:
        settings["scoring"] = "neg_mean_absolute_error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        try:
            expected = theirs.cross_val_score(machine, X, y, **settings)
        except ValueError as error:  # every fold failed, or it is not for such targets
            with pytest.raises(ValueError, match=re.escape(str(error)[:40])):
                cross_val_score(machine, X, y, **settings, seeding=seeding)
            return
        ours = cross_val_score(machine, X, y, **settings, seeding=seeding)
    assert_allclose(ours, expected, atol=ATOL)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "NuSVR"])
def test_everything_that_scikit_learn_returns(name, n_jobs):
    machine = MACHINES[name]
    X, y = data(name, n=90)
    settings = {
        "cv": 4,
        "return_train_score": True,
        "return_estimator": True,
        "return_indices": True,
        "scoring": ["r2", "neg_mean_squared_error"] if "R" in name else ["accuracy", "f1_macro"],
    }
    ours = cross_validate(machine, X, y, **settings, n_jobs=n_jobs)
    expected = theirs.cross_validate(machine, X, y, **settings)
    check_same_scores(ours, expected, ATOL)
    for part in ("train", "test"):
        for one, other in zip(ours["indices"][part], expected["indices"][part], strict=True):
            assert_array_equal(one, other)
    for one, other in zip(ours["estimator"], expected["estimator"], strict=True):
        assert vars(one).keys() == vars(other).keys()
        assert one.shape_fit_ == other.shape_fit_
        assert one.support_.max() < one.shape_fit_[0]
        assert_array_equal(one.support_vectors_, X[ours["indices"]["train"][0]][one.support_]) if (
            one is ours["estimator"][0]
        ) else None
        assert_allclose(one.predict(X), other.predict(X), atol=ATOL)


@pytest.mark.parametrize("seeding", SEEDINGS)
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "SVR", "NuSVR"])
def test_weights_travel_with_their_rows(name, seeding):
    machine = MACHINES[name]
    X, y = data(name, n=90)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    weight[::9] = 0.0
    params = {"sample_weight": weight}
    ours = values(cross_val_predict, machine, X, y, cv=4, params=params, seeding=seeding)
    expected = values(theirs.cross_val_predict, machine, X, y, cv=4, params=params)
    assert_allclose(ours, expected, atol=ATOL)


@pytest.mark.parametrize("seeding", [name for name in STRATEGIES if name != "none"])
@pytest.mark.parametrize("name", ["SVC", "SVC, scale", "SVC, three classes", "NuSVC", "NuSVR"])
def test_seeds_cut_iterations(name, seeding):
    if (name, seeding) == ("NuSVC", "top"):
        pytest.skip(
            "TOP hands out row by row: with two fixed sums it takes more iterations, not less"
        )
    # A start that is dropped on the way would give the same answers.
    machine = clone(MACHINES[name]).set_params(tol=1e-3)
    X, y = data(name, n=280)
    settings = {"cv": 20, "scoring": "neg_mean_absolute_error" if "R" in name else None}
    seeded = cross_validate(machine, X, y, **settings, seeding=seeding).ledger
    cold = cross_validate(machine, X, y, **settings, seeding="none").ledger
    assert seeded.n_iter < 0.9 * cold.n_iter
    assert {fold.seeded_from for fold in cold.folds} == {"nothing"}
    assert "nothing" not in {fold.seeded_from for fold in seeded.folds[1:]}


@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "SVR", "NuSVC", "NuSVR"])
def test_core_starts_where_the_strategy_says(name, monkeypatch):
    machine = clone(MACHINES[name]).set_params(tol=1e-3)
    X, y = data(name, n=120)
    inside = cross_validate(machine, X, y, cv=5, seeding="avg").ledger
    monkeypatch.setattr(STRATEGIES["avg"], "in_core", False, raising=False)
    outside = cross_validate(machine, X, y, cv=5, seeding="avg").ledger
    assert [f.n_iter for f in inside.folds] == [f.n_iter for f in outside.folds]


def test_folds_of_many_rows():
    # So many, and so long solves, that folds begin with the rows near the margin of the whole fit.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5200, 6))
    y = X[:, 0] ** 2 + X[:, 1] + 0.7 * rng.normal(size=5200) > 1
    machine = SVC(C=100, gamma=0.2, tol=1e-4)
    assert machine.fit(X, y).n_iter_ > len(X)
    values = [
        cross_val_predict(machine, X, y, cv=6, method="decision_function", seeding=seeding)
        for seeding in ("avg", "none")
    ]
    assert_allclose(*values, atol=20 * machine.tol)


def test_kernel_entries_are_evaluated_once():
    X, y = data("SVC", n=300)
    ledger = cross_validate(SVC(gamma=0.1), X, y, cv=10, seeding="none").ledger
    assert ledger.kernel_entries <= 300 * 300
    assert "iterations" in str(ledger)


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), SVC()),
    ],
)
def test_what_cannot_be_shared_is_left_to_scikit_learn(estimator):
    X, y = data("SVC", n=90)
    assert_array_equal(
        cross_val_score(estimator, X, y, cv=4), theirs.cross_val_score(estimator, X, y, cv=4)
    )


def test_a_fold_that_cannot_be_fitted_has_the_error_score():
    X, y = data("NuSVC", n=90)
    train = np.concatenate((np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:3]))
    cv = [(train, np.flatnonzero(y == 1)[3:]), (np.arange(60), np.arange(60, 90))]
    with pytest.warns(FitFailedWarning, match="infeasible"):
        scores = cross_val_score(NuSVC(nu=0.5), X, y, cv=cv, error_score=-7.0)
    assert scores[0] == -7.0
    assert 0 <= scores[1] <= 1
    with pytest.raises(ValueError, match="infeasible"):
        cross_val_score(NuSVC(nu=0.5), X, y, cv=cv, error_score="raise")


def test_a_machine_that_cannot_predict_has_the_error_score():
    X, y = data("SVC, three classes", 60)
    machine = SVC(gamma=0.1, break_ties=True, decision_function_shape="ovo")
    with pytest.warns(match="break_ties must be False"):
        assert np.isnan(cross_val_score(machine, X, y)).all()
    for function in (cross_val_predict, onefit.leave_one_out):
        with pytest.raises(ValueError, match="break_ties must be False"):
            function(machine, X, y)


def test_unknown_seeding():
    with pytest.raises(ValueError, match=r"seeding must be one of 'auto', 'none'.*; got 'best'"):
        cross_val_score(SVC(), *data("SVC", n=90), seeding="best")


def test_the_estimator_is_left_alone():
    machine = SVC()
    cross_val_score(machine, *data("SVC", n=90))
    assert vars(machine).keys() == vars(onefit.SVC()).keys()


@pytest.mark.parametrize(
    ("machine", "spoil"),
    [
        (SVC(C=-1.0), lambda X: X),
        (SVC(kernel="nonsense"), lambda X: X),
        (SVC(), lambda X: np.where(X > 1, np.nan, X)),
        (NuSVC(nu=1.0), lambda X: X),
        (SVC(probability=True), lambda X: X),
    ],
)
def test_errors_are_those_of_scikit_learn(machine, spoil):
    X, y = data("SVC", n=90)
    y = np.where(np.arange(len(y)) < 20, 0, 1)
    messages = []
    for function in (cross_val_score, theirs.cross_val_score):
        with pytest.raises(ValueError, match=r"\w") as caught:
            function(machine, spoil(X), y, cv=3, error_score="raise")
        messages.append(str(caught.value))
    assert messages[0].replace("cross_validate", "cross_val_score") == messages[1]


@pytest.mark.parametrize("name", ["SVC", "SVC, three classes", "SVR"])
def test_the_estimators_own_score_by_name_or_not(name):
    X, y = data(name, n=90)
    own = "r2" if "R" in name else "accuracy"
    machine = MACHINES[name]
    expected = theirs.cross_val_score(machine, X, y)
    for scoring in (None, own, make_scorer(get_scorer(own)._score_func)):
        assert_allclose(cross_val_score(machine, X, y, scoring=scoring), expected, atol=ATOL)
        scores = cross_validate(machine, X, y, scoring=scoring)
        assert list(scores) == ["fit_time", "score_time", "test_score"]
        assert_allclose(scores["test_score"], expected, atol=ATOL)


def almost_identity():
    """Balanced classes and a kernel matrix that is almost the identity: all |f| are about 1e-4."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(96, 40)), np.tile([0, 1], 48), SVC(gamma=0.2)


@pytest.mark.parametrize("seeding", ["auto", *STRATEGIES])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_below_the_tolerance_are_decided(seeding, n_classes):
    # LIBSVM's own answer depends on where it starts there: it stops before anything is decided.
    X, y, machine = almost_identity()
    y = np.arange(len(y)) % n_classes
    exact = clone(machine).set_params(tol=1e-10, decision_function_shape="ovo")
    truth = theirs.cross_val_predict(exact, X, y, cv=8, method="decision_function")
    assert np.median(np.abs(truth)) < 0.5 * machine.tol
    assert np.min(np.abs(truth)) > 1e-8
    ours = cross_val_predict(machine, X, y, cv=8, seeding=seeding)
    assert np.array_equal(ours, theirs.cross_val_predict(exact, X, y, cv=8))


@pytest.mark.parametrize("seeding", ["auto", *STRATEGIES])
@pytest.mark.parametrize("tol", [1e-3, 1e-9])
@pytest.mark.parametrize(
    "machine",
    [
        lambda of, tol: of.SVC(kernel="linear", class_weight="balanced", shrinking=False, tol=tol),
        lambda of, tol: of.SVC(C=1e-3, gamma=0.5, class_weight="balanced", tol=tol),
        lambda of, tol: of.NuSVR(C=0.1, nu=0.5, gamma=0.5, tol=tol),
    ],
    ids=["linear", "a small C", "NuSVR"],
)
def test_offsets_where_no_row_is_free(machine, tol, seeding):
    """Any offset between two values is right there; every seed has that of a cold fit."""
    if isinstance(machine(onefit, tol), onefit.SVC):
        x = [-0.70373524, -1.26542147, -0.62327446, 0.04132598, -2.32503077, -0.21879166]
        X, y, cv = np.reshape(x, (-1, 1)), np.array([0, 1, 1, 0, 0, 0]), LeaveOneOut()
    else:
        (X, y), cv = data("NuSVR", 60), 3
    ours = values(cross_val_predict, machine(onefit, tol), X, y, cv=cv, seeding=seeding)
    expected = values(theirs.cross_val_predict, machine(svm, tol), X, y, cv=cv)
    assert_allclose(ours, expected, atol=max(10 * tol, ATOL))


def test_what_cannot_be_decided_is_left(recwarn):
    # Every kernel value but those of the diagonal is 0, and with balanced classes so is f.
    X, y, machine = almost_identity()
    ledger = cross_validate(machine.set_params(gamma=100.0), X, y, cv=8, seeding="none").ledger
    assert ledger.n_iter <= 8 * len(y)
    assert not recwarn.list


def test_a_fold_that_may_not_go_on_is_left_as_it_is():
    X, y, machine = almost_identity()
    with pytest.warns(ConvergenceWarning):
        ledger = cross_validate(machine.set_params(max_iter=3), X, y, cv=8, seeding="none").ledger
    assert ledger.n_iter <= 8 * 3


def test_a_splitter_is_asked_once():
    # Where folds cannot be shared (a row twice), scikit-learn gets those that were drawn.
    X, y = data("SVC", n=60)
    twice = [(np.repeat(train, 2), test) for train, test in KFold(3).split(X)]
    for estimator in (SVC(), make_pipeline(StandardScaler(), SVC())):
        ours = cross_val_score(estimator, X, y, cv=iter(twice))
        assert_allclose(ours, theirs.cross_val_score(estimator, X, y, cv=twice))
        drawn = cross_val_score(
            estimator, X, y, cv=ShuffleSplit(3, random_state=np.random.RandomState(0))
        )
        expected = theirs.cross_val_score(
            estimator, X, y, cv=ShuffleSplit(3, random_state=np.random.RandomState(0))
        )
        assert_allclose(drawn, expected)


def test_a_fold_without_the_row_that_overflows_has_its_score():
    X, y = data("SVC", n=60)
    X[7] = 1e25
    machine = SVC(kernel="linear")
    with pytest.warns(FitFailedWarning):
        ours = cross_val_score(machine, X, y, cv=3)
    with pytest.warns(FitFailedWarning):
        expected = theirs.cross_val_score(machine, X, y, cv=3)
    assert_array_equal(ours, expected)
    assert np.isfinite(ours).sum() == 1


@pytest.mark.parametrize("gamma", [0.1, "auto"])
def test_a_row_far_away_does_not_move_the_others(gamma):
    X, y = data("SVC", n=60)
    X[7] = 1e25
    machine = SVC(gamma=gamma)
    expected = theirs.cross_val_predict(svm.SVC(gamma=gamma), X, y, cv=3)
    assert_array_equal(cross_val_predict(machine, X, y, cv=3), expected)
    assert_array_equal(theirs.cross_val_predict(machine, X, y, cv=3), expected)


@pytest.mark.parametrize("name", ["SVC", "SVC, scale", "SVR"])
@pytest.mark.parametrize("error_score", [np.nan, 7.0, "raise"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_fold_that_holds_nothing_out(name, error_score):
    X, y = data(name, 40)
    splits = [(np.arange(25), np.arange(25, 40)), (np.arange(30), np.arange(0))]
    machine = MACHINES[name]
    if error_score == "raise":
        with pytest.raises(ValueError, match="minimum of 1"):
            cross_validate(machine, X, y, cv=splits, error_score="raise")
        return
    known = {name: getattr(machine, name) for name in ("C", "gamma", "tol")}
    known |= {"epsilon": machine.epsilon} if name == "SVR" else {}
    their_machine = getattr(svm, type(machine).__name__)(**known)
    check_same_scores(
        cross_validate(machine, X, y, cv=splits, error_score=error_score),
        theirs.cross_validate(their_machine, X, y, cv=splits, error_score=error_score),
        atol=1e-4,
    )


@pytest.mark.parametrize("seeding", SEEDINGS)
def test_a_start_whose_gradient_float32_does_not_carry(seeding):
    # The gradient of the fit on all rows, in double precision, must not be shifted by float32
    # entries where coefficients are this large.
    X = np.array([[-0.8, 1.0], [0.2, -1.3], [-1.5, -0.5], [-1.2, 1.2]])
    y = np.array([-930.0, -181.0, -1190.0, -669.0])
    machine = SVR(kernel="linear", C=180_728.3, tol=1.8e-5)
    found = cross_val_predict(machine, X, y, cv=3, seeding=seeding)
    expected = theirs.cross_val_predict(svm.SVR(kernel="linear", C=180_728.3, tol=1e-7), X, y, cv=3)
    assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize("seeding", SEEDINGS)
def test_a_fold_solved_again_is_a_neighbour(seeding):
    # Without a free row a fold is solved again from nothing, and the next may start from there.
    X = np.array([4, 2, 2, 4, 2, 0, 1, 1, 0, 1, 3, 3, 2.0])[:, None]
    y = np.array([0, 0, 3, 4, 3, 0, 2, 0, 1, 2, 4, 1, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes with few rows
        found = cross_val_predict(SVC(kernel="linear"), X, y, cv=3, seeding=seeding)
        cold = cross_val_predict(SVC(kernel="linear"), X, y, cv=3, seeding="none")
    assert found.shape == cold.shape
