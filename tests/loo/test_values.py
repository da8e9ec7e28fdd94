"""Left-out values, where they are asked, are those of the optimum and depend on nothing else."""

import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import LeaveOneOut

from onefit import SVC, SVR, NuSVC, NuSVR, cross_val_predict, leave_one_out

PRECISION = 1e-7  # as documented, while entries are in double precision

MACHINES = {
    "SVC": SVC(gamma=0.1),
    "SVC, C=100": SVC(C=100.0, gamma=0.3),
    "SVC, linear": SVC(kernel="linear", C=0.1),
    "SVC, poly": SVC(kernel="poly", coef0=1.0, gamma=0.1, degree=2),
    "SVC, scale": SVC(),
    "SVC, balanced": SVC(class_weight="balanced", gamma=0.2),
    "SVC, C=1e-3": SVC(C=1e-3, gamma=0.1),
    "SVC, three classes": SVC(C=3.0, gamma=0.1),
    "SVC, three classes, ovo": SVC(gamma=0.1, decision_function_shape="ovo"),
    "NuSVC": NuSVC(nu=0.37, gamma=0.1),
    "NuSVC, three classes": NuSVC(nu=0.37, gamma=0.1),
    "SVR": SVR(C=3.0, gamma=0.1, epsilon=0.2),
    "SVR, scale": SVR(C=3.0, epsilon=0.05),
    "SVR, linear": SVR(kernel="linear", C=0.3, epsilon=0.1),
    "NuSVR": NuSVR(C=3.0, nu=0.37, gamma=0.1),
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


def values_of(machine, X, y, sample_weight=None):
    return leave_one_out(machine, X, y, sample_weight=sample_weight, certify=False).decision_values


def binary(seed, n=100):
    """Rows with many copies, of either class."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, (n, 3)).astype(float), rng.integers(0, 2, n)


def oracle(problem, K, row):
    """The value of a left-out row at the optimum, with kernel entries in double precision."""
    lo, hi = problem.lo.copy(), problem.hi.copy()
    lo[row] = hi[row] = 0.0
    without = naive.dual(problem.K, problem.p, lo, hi, epsilon=problem.epsilon)
    solved = naive.solve(without, tol=1e-11)
    assert solved.gap < 1e-9
    return K[row] @ solved.beta + solved.offset[0]


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("features", ["normal", "binary"])
def test_values_are_those_of_the_optimum(features, C):
    X, y = data("SVC", n=40) if features == "normal" else binary(3, n=40)
    K = naive.rbf_kernel(X, X, gamma=0.2)
    problem = naive.c_svc_dual(K, np.where(y == 1, 1.0, -1.0), C)
    expected = [oracle(problem, K, row) for row in range(len(y))]
    assert_allclose(values_of(SVC(C=C, gamma=0.2), X, y), expected, atol=PRECISION)
    X, y = data("SVR", n=40) if features == "normal" else (X, X @ [1.0, 2.0, -1.0] + y / 3)
    K = naive.rbf_kernel(X, X, gamma=0.2)
    problem = naive.svr_dual(K, y, C, 0.1)
    expected = [oracle(problem, K, row) for row in range(len(y))]
    assert_allclose(values_of(SVR(C=C, gamma=0.2, epsilon=0.1), X, y), expected, atol=PRECISION)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("name", MACHINES)
def test_values_do_not_depend_on_the_tolerance(name, layout):
    machine, (X, y) = MACHINES[name], data(name)
    X = layout(X)
    tight = values_of(clone(machine).set_params(tol=1e-9), X, y)
    assert_allclose(values_of(machine, X, y), tight, atol=PRECISION)
    asked = {"method": "decision_function"} if hasattr(machine, "decision_function") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted = cross_val_predict(machine, X, y, cv=LeaveOneOut(), **asked)
    assert_allclose(predicted, tight, atol=PRECISION)


@pytest.mark.parametrize("seed", range(5))
def test_ranks_of_binary_features(seed):
    # Left-out values of a row and of its copy in the other class are often equal: which of them is
    # the larger must not depend on the label.
    X, y = binary(seed)
    machine = SVC(gamma=0.5)
    values = values_of(machine, X, y)
    tight = clone(machine).set_params(tol=1e-10)
    expected = [
        tight.fit(np.delete(X, row, 0), np.delete(y, row)).decision_function(X[[row]])[0]
        for row in range(len(y))
    ]
    assert_allclose(values, expected, atol=PRECISION)
    score = roc_auc_score(y, np.round(expected, 5))
    assert roc_auc_score(y, values) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize("name", MACHINES)
def test_values_do_not_depend_on_the_own_target_or_weight(name):
    machine, (X, y) = MACHINES[name], data(name, n=40)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, len(y))
    before = values_of(machine, X, y, weight)
    for row in range(0, len(y), 5):
        other, weights = y.copy(), weight.copy()
        other[row] = rng.choice(np.unique(y[y != y[row]]))
        weights[row] = rng.uniform(0.5, 2.0)
        after = values_of(machine, X, other, weights)
        assert_allclose(after[row], before[row], atol=PRECISION, err_msg=f"row {row}")


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_equal_rows_have_equal_values(C):
    X, y = binary(1)
    for machine, targets in ((SVC(C=C, gamma=0.5), y), (SVR(C=C, gamma=0.5), y / 2)):
        values = values_of(machine, X, targets)
        _, groups = np.unique(np.column_stack((X, y)), axis=0, return_inverse=True)
        for group in np.unique(groups):
            assert np.ptp(values[groups.ravel() == group]) < PRECISION


def test_rows_that_are_no_support_vectors_keep_their_value():
    machine, (X, y) = MACHINES["SVC"], data("SVC")
    result = leave_one_out(machine, X, y, certify=False)
    kept = result.decided_by == "not a support vector"
    assert kept.any()
    assert_array_equal(result.decision_values[kept], result.full_values[kept])
    assert_array_equal(result.influence[kept], 0.0)
