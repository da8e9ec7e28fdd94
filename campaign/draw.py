"""What classes of cases draw alike: rows, targets, weights, kernels and layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
from strategies import largest_nu

from campaign.case import LAYOUTS, Case

CLASSIFIERS = ("SVC", "NuSVC")
REGRESSORS = ("SVR", "NuSVR")
# Kernels that are inner products: only for these is the solution unique.
KERNELS = ("linear", "poly", "rbf")

# Instruction sets of the core; a machine that lacks one takes its widest.
ISAS = ("avx512", "avx2", "plain")


def one(rng: np.random.Generator, choices: Any) -> Any:
    """One of the choices, as it is (numpy would turn it into its own type)."""
    choices = list(choices)
    return choices[int(rng.integers(len(choices)))]


def maybe(rng: np.random.Generator, share: float) -> bool:
    return bool(rng.random() < share)


def rows(rng: np.random.Generator, labels: np.ndarray, n_columns: int) -> np.ndarray:
    """Rows around a centre for each class; at times duplicates, constant columns, many zeros."""
    spread = one(rng, [0.0, 0.3, 1.0, 3.0])
    centres = spread * rng.standard_normal((labels.max(initial=0) + 1, n_columns))
    X = centres[labels] + rng.standard_normal((len(labels), n_columns))
    kind = one(rng, ["plain", "plain", "grid", "zeros", "constant", "shifted", "repeated"])
    if kind == "grid":
        X = np.round(X)
    elif kind == "zeros":
        X[rng.random(X.shape) < 0.6] = 0.0
    elif kind == "constant":
        X[:, 0] = one(rng, [0.0, 1.0, -2.5])
    elif kind == "shifted":
        X += 10.0
    elif kind == "repeated":
        X = X[rng.integers(0, max(1, len(X) // 2), len(X))]
    return X.astype(np.float32).astype(np.float64)  # the same rows in either precision


def labels(rng: np.random.Generator, n: int, n_classes: int) -> np.ndarray:
    """Class numbers, each at least twice; at times far from balanced."""
    share = rng.dirichlet(np.full(n_classes, one(rng, [1.0, 10.0])))
    drawn = rng.choice(n_classes, n, p=share)
    drawn[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)
    return rng.permutation(drawn)


def targets(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    noise = rng.standard_normal(len(X))
    function = np.sin(2 * X[:, 0]) + X.mean(axis=1)
    y = one(rng, [function, function + 0.3 * noise, noise, np.round(2 * noise)])
    return np.round(y * one(rng, [1.0, 1.0, 1e-3, 1e3]), 12)


def weights(rng: np.random.Generator, y: np.ndarray, classifies: bool) -> np.ndarray | None:
    """No weights mostly; else weights of which some may be zero, but not all of a class."""
    kind = one(rng, ["none", "none", "positive", "some zero"])
    if kind == "none":
        return None
    weight = np.ceil(8 * rng.uniform(0.1, 3.0, len(y))) / 8  # sums are exact in any order
    if kind == "some zero":
        weight[rng.random(len(y)) < 0.3] = 0.0
        for label in np.unique(y) if classifies else [y[0]]:
            weight[np.flatnonzero(y == label)[:2]] = 1.0
    return weight


def kernel(rng: np.random.Generator, names: Any = KERNELS) -> dict[str, Any]:
    params: dict[str, Any] = {"kernel": one(rng, names)}
    if params["kernel"] == "rbf":
        params["gamma"] = one(rng, ["scale", "auto", 0.01, 0.3, 3.0])
    elif params["kernel"] != "linear":
        params["gamma"] = one(rng, ["scale", "auto", 0.05])
        params["coef0"] = one(rng, [0.0, 1.0] if params["kernel"] == "poly" else [-0.5, 0.0, 0.5])
    if params["kernel"] == "poly":
        params["degree"] = int(rng.integers(1, 4))
    return params


def case(
    name: str,
    rng: np.random.Generator,
    *,
    models: Any = CLASSIFIERS + REGRESSORS,
    n_rows: tuple[int, int] = (6, 80),
    kernels: Any = KERNELS,
    tols: Any = (1e-3, 1e-5, 1e-7, 1e-9),
    weighted: bool = True,
) -> Case:
    """A problem with a model, and a layout among the options."""
    model = one(rng, models)
    classifies = model.endswith("SVC")
    n_classes = int(one(rng, [2, 2, 2, 3, 4, 5])) if classifies else 1
    n = int(rng.integers(max(n_rows[0], 3 * n_classes), n_rows[1] + 1))
    y = labels(rng, n, n_classes) if classifies else np.zeros(n, dtype=int)
    X = rows(rng, y, int(rng.integers(1, 8)))
    if not classifies:
        y = targets(rng, X)
    weight = weights(rng, y, classifies) if weighted else None
    params = kernel(rng, kernels)
    unit = 1.0 if classifies else max(1e-12, float(np.abs(y).max()))
    params["tol"] = one(rng, tols) * unit
    if model != "NuSVC":
        params["C"] = float(10.0 ** rng.integers(-3, 4)) * (unit if maybe(rng, 0.5) else 1.0)
    if model == "SVR":
        params["epsilon"] = unit * one(rng, [0.0, 0.01, 0.1, 0.5])
    elif model == "NuSVC":
        # Not a whole number of rows: every variable at a bound leaves the offsets undetermined.
        params["nu"] = largest_nu(y, weight) * one(rng, [0.13, 0.37, 0.71, 0.93])
    elif model == "NuSVR":
        params["nu"] = one(rng, [0.05, 0.31, 0.53, 0.97])
    if model == "SVC" and maybe(rng, 0.3):
        shares = [0.5, 2.0, 1.0, 3.0, 0.25]
        params["class_weight"] = one(rng, ["balanced", dict(enumerate(shares[:n_classes]))])
    if maybe(rng, 0.2):
        params["shrinking"] = False
    if maybe(rng, 0.2):
        params["cache_size"] = one(rng, [0.001, 0.01, 1])
    options = {"layout": one(rng, LAYOUTS), "isa": one(rng, ISAS)}
    return Case(name, X, y, weight, model, params, options)
