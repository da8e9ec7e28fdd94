"""Drawn problems, shared by the tests: small, awkward on purpose, and of a size to check by eye."""

import os
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

LONG_FACTOR = 10


def drawn(max_examples):
    """Settings of a test that draws problems; the long tier draws ten times as many.

    Derandomised: the same problems in every run, so that a failure is the change's, not luck's.
    """
    return settings(
        max_examples=max_examples * (LONG_FACTOR if "ONEFIT_LONG" in os.environ else 1),
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


# Tight: what two correct solvers may differ by follows from it.
TOL = 1e-6

SPARSE_FORMATS = ("csr", "csc", "coo")


@dataclass(frozen=True)
class Problem:
    """Rows ``X`` with targets ``y`` to fit, rows ``Z`` to predict, and parameters of the model."""

    X: object  # an array, or a sparse array
    y: np.ndarray
    Z: np.ndarray
    sample_weight: np.ndarray | None = None
    params: dict = field(default_factory=dict)


def _rows(rng, labels, n_features, spread, grid):
    """Rows around one centre per class; on a coarse ``grid`` many rows are duplicates."""
    centres = spread * rng.standard_normal((labels.max() + 1, n_features))
    rows = centres[labels] + rng.standard_normal((len(labels), n_features))
    return np.round(rows / grid) * grid if grid else rows


@st.composite
def kernels(draw, names=("linear", "poly", "rbf")):
    """Parameters of one kernel whose values stay of moderate size on the rows drawn here."""
    name = draw(st.sampled_from(names))
    params = {"kernel": name}
    if name == "rbf":
        params["gamma"] = draw(st.sampled_from(["scale", "auto", 0.01, 0.3, 3.0]))
    elif name == "poly":
        params["gamma"] = draw(st.sampled_from(["scale", "auto", 0.05]))
        params["degree"] = draw(st.integers(0, 3))
        params["coef0"] = draw(st.sampled_from([0.0, 1.0]))
    elif name == "sigmoid":
        params["gamma"] = draw(st.sampled_from(["scale", "auto", 0.05]))
        params["coef0"] = draw(st.sampled_from([-0.5, 0.0, 0.5]))
    return params


@st.composite
def weights(draw, labels, rng):
    """No weights, weights, or weights of which some are zero, or less, while a row of each class
    keeps one that is positive."""
    kind = draw(st.sampled_from(["none", "positive", "some zero"]))
    if kind == "none":
        return None
    drawn = rng.uniform(0.1, 3.0, len(labels))
    if kind == "some zero":
        drawn[rng.random(len(labels)) < 0.3] = 0.0
        drawn[rng.random(len(labels)) < 0.1] = -1.0  # taken for zero
        first_of_class = np.unique(labels, return_index=True)[1]
        drawn[first_of_class] = 1.0
    return drawn


@st.composite
def layouts(draw, X, Z, rng):
    """X and Z in one of the layouts and types that models accept, now and then with a constant
    feature; Z stays dense."""
    if draw(st.booleans()):
        X[:, 0] = Z[:, 0] = draw(st.sampled_from([0.0, 1.0, -2.5]))
    layout = draw(st.sampled_from(["dense", "sparse"]))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    X, Z = X.astype(dtype), Z.astype(dtype)
    if layout == "sparse":
        X = np.where(rng.random(X.shape) < 0.5, X, 0).astype(dtype)
        X = sp.coo_array(X).asformat(draw(st.sampled_from(SPARSE_FORMATS)))
    return X, Z


@st.composite
def classifications(
    draw,
    *,
    max_rows=80,
    max_classes=4,
    spreads=(0.0, 0.5, 2.0),
    kernel=None,
    exponent_of_C=(-3, 3),
    weighted=True,
):
    """A classification problem over shape x dtype x sparsity x weights x classes x kernel.

    The classes are on top of each other where the spread is 0, and apart where it is 2.
    """
    n_classes = draw(st.integers(2, max_classes))
    n = draw(st.integers(n_classes, max_rows))
    n_features = draw(st.integers(1, 6))
    spread = draw(st.sampled_from(spreads))
    grid = draw(st.sampled_from([0.0, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    labels = rng.integers(0, n_classes, n)
    labels[:n_classes] = np.arange(n_classes)  # every class has a row
    labels = rng.permutation(labels)
    X = _rows(rng, labels, n_features, spread, grid)
    Z = _rows(rng, rng.integers(0, n_classes, 15), n_features, spread, grid)
    X, Z = draw(layouts(X, Z, rng))

    params = dict(draw(kernels() if kernel is None else kernel))
    params["C"] = 10.0 ** draw(st.integers(*exponent_of_C))
    params["shrinking"] = draw(st.booleans())
    if weighted:
        params["class_weight"] = draw(
            st.sampled_from([None, "balanced", dict(enumerate([0.5, 2.0, 1.0, 3.0][:n_classes]))])
        )
    sample_weight = draw(weights(labels, rng)) if weighted else None
    return Problem(X, labels, Z, sample_weight, params)


@st.composite
def nu_classifications(draw, **options):
    """A classification problem with ν in place of C, from tiny to the largest that is feasible.

    The classes are further apart than for C-SVC: where they are not and ν is small, the margin is
    zero and there is no model.
    """
    problem = draw(classifications(spreads=(0.5, 2.0, 4.0), exponent_of_C=(0, 0), **options))
    sample_weight = problem.sample_weight
    if sample_weight is not None:
        # Eighths: their sums are exact in any order, so that the largest ν is the same for all.
        sample_weight = np.where(sample_weight > 0, np.ceil(8 * sample_weight) / 8, sample_weight)
    largest = largest_nu(problem.y, sample_weight)
    share = draw(st.sampled_from([1e-3, 0.2, 0.5, 0.8, 0.9, 0.99, 1.0]))
    params = {key: value for key, value in problem.params.items() if key != "C"}
    params["nu"] = share * largest
    return replace(problem, sample_weight=sample_weight, params=params)


def largest_nu(labels, sample_weight=None):
    """The largest ν for which νΣw/2 of each pair of classes is at most Σw of either."""
    weight = np.ones(len(labels)) if sample_weight is None else np.maximum(sample_weight, 0.0)
    totals = np.array([weight[labels == label].sum() for label in np.unique(labels)])
    smallest, largest = totals.min(), totals.max()
    nu = 2 * smallest / (smallest + largest)
    # The quotient may be an ulp beside the last number for which this holds.
    while nu * (smallest + largest) / 2 > smallest:
        nu = np.nextafter(nu, 0)
    while (above := np.nextafter(nu, 2)) <= 1 and above * (smallest + largest) / 2 <= smallest:
        nu = above
    return float(nu)


@st.composite
def regressions(draw, *, nu=False, max_rows=80, kernel=None, exponent_of_C=(-3, 3)):
    """A regression problem over shape x dtype x sparsity x weights x targets x kernel.

    ``tol`` and epsilon are in units of the targets. So is C, but for large targets, where it may
    be small against them: all coefficients are on their bounds then.
    """
    n = draw(st.integers(1, max_rows))
    n_features = draw(st.integers(1, 6))
    grid = draw(st.sampled_from([0.0, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = _rows(rng, np.zeros(n, dtype=int), n_features, 0.0, grid)
    Z = _rows(rng, np.zeros(15, dtype=int), n_features, 0.0, grid)

    # On a grid rows are duplicates: their targets are equal, all but equal, or have nothing in
    # common.
    kind = draw(st.sampled_from(["function", "noisy function", "noise", "whole", "constant"]))
    y = {
        "function": lambda: np.sin(2 * X[:, 0]) + X.mean(axis=1),
        "noisy function": lambda: np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n),
        "noise": lambda: rng.standard_normal(n),
        "whole": lambda: rng.integers(-3, 4, n),
        "constant": lambda: np.full(n, 1.5),
    }[kind]()
    scale = draw(st.sampled_from([1, 1000_000] if kind == "whole" else [1.0, 1e-6, 1e6]))
    unit_of_C = draw(st.sampled_from([scale, 1.0])) if scale > 1 else scale
    y = y * scale
    X, Z = draw(layouts(X, Z, rng))

    params = dict(draw(kernels() if kernel is None else kernel))
    params["C"] = unit_of_C * 10.0 ** draw(st.integers(*exponent_of_C))
    params["shrinking"] = draw(st.booleans())
    params["tol"] = TOL * scale
    if nu:
        params["nu"] = draw(st.sampled_from([1e-3, 0.1, 0.3, 0.5, 0.9, 1.0]))
    else:
        # 100 is more than the targets are apart.
        params["epsilon"] = scale * draw(st.sampled_from([0.0, 0.01, 0.1, 0.7, 100.0]))
    return Problem(X, y, Z, draw(weights(np.zeros(n, dtype=int), rng)), params)
