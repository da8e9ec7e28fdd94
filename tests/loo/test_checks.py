"""Rules that settle left-out rows never say what a fit without the row does not."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from onefit import SVC, leave_one_out
from onefit.kernels import Kernel
from onefit.loo import DecidedBy
from onefit.loo.checks import feature_spans

KERNELS = {
    "linear": Kernel("linear"),
    "rbf": Kernel("rbf", gamma=0.3),
    "poly": Kernel("poly", gamma=0.5, coef0=1.0, degree=3),
}


def values(kernel, X):
    products = X @ X.T
    if kernel.name == "linear":
        return products
    if kernel.name == "poly":
        return (kernel.gamma * products + kernel.coef0) ** kernel.degree
    squares = products.diagonal()
    return np.exp(-kernel.gamma * (squares[:, None] + squares - 2 * products))


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_spans_are_no_less_than_any_distance(name, layout, shift):
    X = np.random.default_rng(0).normal(size=(40, 3)) + shift
    K = values(KERNELS[name], X)
    squares = K.diagonal()
    distances = squares[:, None] + squares - 2 * K
    spans = feature_spans(layout(X), KERNELS[name])
    assert (spans >= distances.max(axis=1)).all()
    assert name == "poly" or (spans <= 5 * distances.max()).all()


@pytest.mark.parametrize(
    "kernel",
    [None, Kernel("sigmoid"), Kernel("poly", coef0=-1.0)],
    ids=["given", "sigmoid", "poly"],
)
def test_kernels_that_may_be_no_inner_product(kernel):
    assert feature_spans(np.eye(3), kernel) is None


@pytest.mark.parametrize("C", [0.01, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_each_rule_is_right(kernel, C, n_classes):
    X, y = make_classification(
        150, 4, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.1, random_state=1
    )
    X = X / 3  # so that spans are of the size of 1 / C
    machine = SVC(kernel=kernel, C=C, gamma=0.2, coef0=1.0, degree=2)
    truth = leave_one_out(machine.set_params(tol=1e-9), X, y, certify=False)
    for tol in (1e-2, 1e-3, 1e-9):
        result = leave_one_out(machine.set_params(tol=tol), X, y)
        settled = ~np.isin(result.decided_by, [DecidedBy.SOLVER])
        assert (result.predictions[settled] == truth.predictions[settled]).all()


def test_all_rules_are_used():
    X, y = make_classification(200, 4, flip_y=0.1, random_state=0)
    result = leave_one_out(SVC(C=0.5, gamma=0.05), X, y)
    rules = {DecidedBy.NOT_SUPPORT, DecidedBy.MISCLASSIFIED, DecidedBy.BOUND, DecidedBy.SOLVER}
    assert rules <= set(result.counts())
    right = result.predictions == y
    assert right[result.decided_by == DecidedBy.NOT_SUPPORT].all()
    assert right[result.decided_by == DecidedBy.BOUND].all()
    assert not right[result.decided_by == DecidedBy.MISCLASSIFIED].any()
    solved = result.decided_by == DecidedBy.SOLVER
    certified = result.decided_by == DecidedBy.CERTIFICATE
    assert (result.n_iter[~solved & ~certified] == 0).all()
    assert np.isnan(result.decision_values[result.decided_by == DecidedBy.BOUND]).all()
    assert np.isfinite(result.decision_values[solved]).all()
    assert (result.influence[result.decided_by == DecidedBy.NOT_SUPPORT] == 0).all()
