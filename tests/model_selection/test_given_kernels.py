"""Folds of a kernel that is given by its values are scikit-learn's, fitted one by one."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import model_selection as theirs
from sklearn.base import is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, ShuffleSplit
from strategies import drawn

from model_selection.problems import check_same_scores, data
from onefit import SVC, SVR, NuSVC, NuSVR, cross_val_predict, cross_val_score, cross_validate
from onefit.seeding import STRATEGIES

# Decision values of these well-conditioned problems follow the KKT gap, at most TOL.
TOL = 1e-7
ATOL = 1e-5

MACHINES = {
    "SVC": SVC(C=3.0, tol=TOL),
    "SVC, three classes": SVC(C=3.0, tol=TOL, class_weight="balanced"),
    "SVC, pairs": SVC(C=3.0, tol=TOL, decision_function_shape="ovo"),
    "NuSVC": NuSVC(nu=0.37, tol=TOL),
    "SVR": SVR(C=3.0, epsilon=0.2, tol=TOL),
    "NuSVR": NuSVR(C=3.0, nu=0.37, tol=TOL),
}


class Counted:
    """A kernel function that notes how many values it was asked for."""

    values = 0

    def __call__(self, A, B):
        Counted.values += A.shape[0] * B.shape[0]
        return rbf_kernel(A, B, gamma=0.1)


def with_kernel(machine, X, kind):
    """The machine with the RBF kernel given in this way, and what it takes for X."""
    if kind == "precomputed":
        return type(machine)(**{**machine.get_params(), "kernel": kind}), rbf_kernel(X, gamma=0.1)
    return type(machine)(**{**machine.get_params(), "kernel": Counted()}), X


def methods(machine):
    return ["predict", "decision_function"] if is_classifier(machine) else ["predict"]


@pytest.mark.parametrize("seeding", ["auto", *STRATEGIES])
@pytest.mark.parametrize("kind", ["precomputed", "callable"])
@pytest.mark.parametrize("name", MACHINES)
def test_values_of_held_out_rows(name, kind, seeding):
    X, y = data(name)
    machine, X = with_kernel(MACHINES[name], X, kind)
    for method in methods(machine)[-1 if seeding != "auto" else 0 :]:
        ours = cross_val_predict(machine, X, y, cv=4, method=method, seeding=seeding)
        expected = theirs.cross_val_predict(machine, X, y, cv=4, method=method)
        assert_allclose(ours, expected, atol=ATOL)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", ["precomputed", "callable"])
@pytest.mark.parametrize("name", MACHINES)
def test_everything_that_scikit_learn_returns(name, kind, n_jobs):
    X, y = data(name)
    machine, X = with_kernel(MACHINES[name], X, kind)
    settings = {
        "cv": KFold(4, shuffle=True, random_state=0),
        "return_train_score": True,
        "return_estimator": True,
        "return_indices": True,
        "scoring": ["accuracy", "f1_macro"] if is_classifier(machine) else ["r2"],
    }
    ours = cross_validate(machine, X, y, **settings, n_jobs=n_jobs)
    expected = theirs.cross_validate(machine, X, y, **settings)
    check_same_scores(ours, expected, ATOL)
    assert len(ours.ledger.folds) == 4
    for one, other, train in zip(
        ours["estimator"], expected["estimator"], ours["indices"]["train"], strict=True
    ):
        assert vars(one).keys() == vars(other).keys()
        assert one.shape_fit_ == other.shape_fit_
        assert one.support_.max() < len(train)
        coef = np.zeros((2, len(train)))
        for row, model in zip(coef, (one, other), strict=True):
            row[model.support_] = np.abs(model.dual_coef_).sum(axis=0)
        assert_allclose(coef[0], coef[1], atol=1e-3)
        new = X[:, train] if kind == "precomputed" else X
        assert_allclose(one.predict(new), other.predict(new), atol=ATOL)


@pytest.mark.parametrize("kind", ["precomputed", "callable"])
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(sorted(MACHINES)))
@drawn(25)
def test_weights_types_and_folds_that_lack_a_class(kind, seed, name):
    rng = np.random.default_rng(seed)
    X, y = data(name, n=int(rng.integers(20, 50)))
    if rng.random() < 0.5:  # folds that lack a class, or hold only one
        X, y = X[np.argsort(y)], np.sort(y)
    machine, X = with_kernel(MACHINES[name], X, kind)
    X = X.astype(rng.choice([np.float32, np.float64]))
    if kind == "callable" and rng.random() < 0.5:
        X = sp.csr_array(X) if rng.random() < 0.5 else sp.coo_matrix(X)
    settings = {"cv": [KFold(3), ShuffleSplit(3, test_size=0.3, random_state=0)][seed % 2]}
    if rng.random() < 0.5:
        weight = rng.uniform(0.5, 2.0, len(y))
        weight[rng.random(len(y)) < 0.2] = 0.0
        settings["params"] = {"sample_weight": weight}
    settings["scoring"] = None if is_classifier(machine) else "neg_mean_absolute_error"
    seeding = str(rng.choice(list(STRATEGIES)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        try:
            expected = theirs.cross_val_score(machine, X, y, **settings)
        except ValueError as error:  # every fold failed
            with pytest.raises(ValueError, match=str(error)[:20]):
                cross_val_score(machine, X, y, **settings, seeding=seeding)
            return
        ours = cross_val_score(machine, X, y, **settings, seeding=seeding)
    assert_allclose(ours, expected, atol=ATOL)


def rows_of_text(A, B):
    return np.array([[len(set(a) & set(b)) + 1.0 for b in B] for a in A])


CONTAINERS = {
    "list": list,
    "array of text": np.array,
    "array of objects": lambda rows: np.array(rows, dtype=object),
    "series": pd.Series,
    "list of arrays": lambda rows: [np.frombuffer(row.encode(), np.uint8) for row in rows],
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_rows_of_anything(container):
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdef"), 5)) for _ in range(40)]
    X, y = CONTAINERS[container](texts), np.array([text.count("a") > 0 for text in texts])
    machine = SVC(kernel=rows_of_text, tol=TOL)
    for method in methods(machine):
        ours = cross_val_predict(machine, X, y, cv=4, method=method)
        expected = theirs.cross_val_predict(machine, X, y, cv=4, method=method)
        assert_allclose(ours, expected, atol=1e-4)
    settings = {"cv": 4, "scoring": "roc_auc", "return_train_score": True}
    ours = cross_validate(machine, X, y, **settings)
    expected = theirs.cross_validate(machine, X, y, **settings)
    assert_allclose(ours["test_score"], expected["test_score"], atol=ATOL)
    assert_allclose(ours["train_score"], expected["train_score"], atol=ATOL)
    assert len(ours.ledger.folds) == 4


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_the_function_is_called_once_on_all_rows(scoring):
    X, y = data("SVC")
    Counted.values = 0
    cross_validate(SVC(kernel=Counted()), X, y, scoring=scoring)
    assert Counted.values == len(X) ** 2


def test_the_function_is_not_called_on_rows_that_nobody_needs():
    X, y = data("SVC")
    Counted.values = 0
    cv = ShuffleSplit(2, train_size=0.4, test_size=0.2, random_state=0)
    cross_validate(SVC(kernel=Counted()), X, y, cv=cv)
    assert Counted.values == 2 * (24 * 24 + 12 * 24)


@pytest.mark.parametrize("function", [cross_val_score, theirs.cross_val_score])
def test_what_a_function_raises(function):
    def failing(A, B):
        raise KeyError("no such kernel")

    X, y = data("SVC")
    with pytest.raises(KeyError, match="no such kernel"):
        function(SVC(kernel=failing), X, y, error_score="raise")
    with pytest.raises(ValueError, match="All the 5 fits failed"):
        function(SVC(kernel=failing), X, y)


@pytest.mark.parametrize("seeding", ["sir", "avg"])
@pytest.mark.parametrize("kind", ["precomputed", "callable"])
def test_seeds_cut_iterations(kind, seeding):
    X, y = data("SVC", n=300)
    machine, X = with_kernel(SVC(), X, kind)
    seeded = cross_validate(machine, X, y, cv=20, seeding=seeding).ledger
    cold = cross_validate(machine, X, y, cv=20, seeding="none").ledger
    assert seeded.n_iter < 0.9 * cold.n_iter
    assert cold.kernel_entries <= 300 * 300


def test_a_matrix_that_is_not_symmetric_is_read_as_scikit_learn_reads_it():
    X, y = data("SVC")
    K = rbf_kernel(X, gamma=0.1)
    test = np.arange(0, 60, 4)
    train = np.setdiff1d(np.arange(60), test)
    K[np.ix_(train, test)] = 7.0  # never read: rows are those to predict, columns those of the fit
    machine, cv = SVC(kernel="precomputed", tol=TOL), [(train, test)]
    ours = cross_validate(machine, K, y, cv=cv, scoring="roc_auc")
    expected = theirs.cross_validate(machine, K, y, cv=cv, scoring="roc_auc")
    assert_array_equal(ours["test_score"], expected["test_score"])
    assert_array_equal(
        cross_val_score(machine, K, y, cv=cv), theirs.cross_val_score(machine, K, y, cv=cv)
    )
