"""Drawn problems, shared by the tests: small, awkward on purpose, and of a size to check by eye."""

import os
from dataclasses import dataclass, field

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


SPARSE_FORMATS = ("csr", "csc", "coo")


@dataclass(frozen=True)
class Classification:
    """Rows ``X`` with labels ``y`` to fit, rows ``Z`` to predict, and parameters for ``SVC``."""

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
    """No weights, weights, or weights of which some are zero while every class keeps a row."""
    kind = draw(st.sampled_from(["none", "positive", "some zero"]))
    if kind == "none":
        return None
    drawn = rng.uniform(0.1, 3.0, len(labels))
    if kind == "some zero":
        drawn[rng.random(len(labels)) < 0.3] = 0.0
        first_of_class = np.unique(labels, return_index=True)[1]
        drawn[first_of_class] = 1.0
    return drawn


@st.composite
def classifications(
    draw, *, max_rows=80, max_classes=4, kernel=None, exponent_of_C=(-3, 3), weighted=True
):
    """A classification problem over shape x dtype x sparsity x weights x classes x kernel."""
    n_classes = draw(st.integers(2, max_classes))
    n = draw(st.integers(n_classes, max_rows))
    n_features = draw(st.integers(1, 6))
    spread = draw(st.sampled_from([0.0, 0.5, 2.0]))  # classes on top of each other … apart
    grid = draw(st.sampled_from([0.0, 0.5, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    labels = rng.integers(0, n_classes, n)
    labels[:n_classes] = np.arange(n_classes)  # every class has a row
    labels = rng.permutation(labels)
    X = _rows(rng, labels, n_features, spread, grid)
    Z = _rows(rng, rng.integers(0, n_classes, 15), n_features, spread, grid)
    if draw(st.booleans()):
        X[:, 0] = Z[:, 0] = draw(st.sampled_from([0.0, 1.0, -2.5]))  # a constant feature
    layout = draw(st.sampled_from(["dense", "sparse"]))
    dtype = draw(st.sampled_from([np.float64, np.float32]))
    X, Z = X.astype(dtype), Z.astype(dtype)
    if layout == "sparse":
        X = np.where(rng.random(X.shape) < 0.5, X, 0).astype(dtype)
        X = sp.coo_array(X).asformat(draw(st.sampled_from(SPARSE_FORMATS)))

    params = dict(draw(kernels() if kernel is None else kernel))
    params["C"] = 10.0 ** draw(st.integers(*exponent_of_C))
    params["shrinking"] = draw(st.booleans())
    if weighted:
        params["class_weight"] = draw(
            st.sampled_from([None, "balanced", dict(enumerate([0.5, 2.0, 1.0, 3.0][:n_classes]))])
        )
    sample_weight = draw(weights(labels, rng)) if weighted else None
    return Classification(X, labels, Z, sample_weight, params)
