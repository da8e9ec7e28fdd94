"""Smooth models: fits against the gradient and SciPy's minimum, folds and rows against refits.

The objective is ½‖θ‖² plus a convex loss, so that ‖θ - θ*‖ ≤ ‖gradient at θ‖: what two right
answers may differ by follows from their gradients.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from smooth import slow

import onefit
from campaign import draw as drawing
from campaign import splitters
from campaign.case import Case, Difference, NothingToCompareError
from campaign.snippet import keywords

WHAT = ("fit", "fit", "folds", "leave_one_out", "approximate")
LAYOUTS = ("dense", "float32", "csr", "csr array", "Fortran order")


def draw(name: str, rng: np.random.Generator) -> Case:
    model = drawing.one(rng, ["SmoothSVC", "SmoothSVR"])
    classifies = model == "SmoothSVC"
    n = int(rng.integers(6, 60))
    labels = drawing.labels(rng, n, 2)
    X = drawing.rows(rng, labels, int(rng.integers(1, 10)))
    y = labels if classifies else drawing.targets(rng, X)
    params = drawing.kernel(rng, ("linear", "rbf", "poly", "sigmoid"))
    params["gamma"] = drawing.one(rng, [0.01, 0.1, 1.0])
    params["C"] = float(10.0 ** rng.integers(-3, 3))
    params["beta"] = drawing.one(rng, [None, None, 5.0])
    params["update"] = drawing.one(rng, ["auto", "auto"])
    if not classifies:
        unit = float(np.abs(y).max()) or 1.0
        params["epsilon"] = unit * drawing.one(rng, [0.0, 0.1])
        params["loss"] = drawing.one(rng, ["squared", "squared_epsilon_insensitive"])
    if drawing.maybe(rng, 0.2):
        params["intercept_scaling"] = drawing.one(rng, [0.5, 2.0])
    if drawing.maybe(rng, 0.25):
        params |= {"reduced": "random", "n_components": max(1, n // 3), "random_state": 0}
    options = {"layout": drawing.one(rng, LAYOUTS), "what": drawing.one(rng, WHAT)}
    options["k"] = int(rng.integers(2, 5))
    weight = drawing.weights(rng, y, classifies)
    return Case(name, X, y, weight, model, params, options)


def check(case: Case) -> int:
    what = case.options.get("what", "fit")
    if case.classifies and len(np.unique(case.y)) < 2:
        raise NothingToCompareError("one class")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", ConvergenceWarning)
        try:
            return _check(case, what)
        except ValueError as error:
            if "no sample of positive weight" not in str(error):
                raise
            raise NothingToCompareError(str(error)) from error
        except Difference as difference:
            if any(issubclass(warning.category, ConvergenceWarning) for warning in raised):
                reason = "Newton's method says that it has not converged"
                raise NothingToCompareError(reason) from difference
            raise


def _check(case: Case, what: str) -> int:
    whole = built(case).fit(case.given, case.y, sample_weight=case.weight)
    error = _check_fit(case, whole, np.arange(len(case.y)), with_scipy=what == "fit")
    if what == "fit":
        return 0
    # A reduced set or γ of all rows would be others in a fold; only fixed kernels are compared.
    if what == "folds":
        return _check_folds(case)
    return _check_left_out(case, error)


def _check_fit(case: Case, model: Any, rows: np.ndarray, with_scipy: bool) -> float:
    """How far the model is from the minimum; raises where that is too far."""
    phi, theta, side, c = parts(case, model, rows)
    error = float(np.linalg.norm(slow.gradient(model, theta, phi, side, c)))
    A = np.abs(np.column_stack([np.full(len(phi), model.intercept_scaling), phi]))
    size = np.linalg.norm(theta) + np.linalg.norm(A.T @ (c * (A @ np.abs(theta) + np.abs(side))))
    if not error <= 1e-6 * max(size, 1e-12):
        raise Difference("gradient", f"‖gradient‖ = {error:.3g}, of a size of {size:.3g}")
    if with_scipy:
        ours = slow.objective(model, theta, phi, side, c)
        start = np.zeros(len(theta))
        other = minimize(
            lambda t: slow.objective(model, t, phi, side, c),
            start,
            jac=lambda t: slow.gradient(model, t, phi, side, c),
            method="L-BFGS-B",
        )
        if ours > other.fun + 1e-9 * (1 + abs(other.fun)):
            raise Difference("objective", f"{ours!r} is above SciPy's {other.fun!r}")
    return error


def _check_folds(case: Case) -> int:
    folds = splitters.every_kth(len(case.y), case.options.get("k", 2))
    if case.classifies and any(len(np.unique(case.y[train])) < 2 for train, _ in folds):
        raise NothingToCompareError("a fold of one class")
    method = "decision_function" if case.classifies else "predict"
    params = {} if case.weight is None else {"params": {"sample_weight": case.weight}}
    ours = onefit.cross_val_predict(
        built(case), case.given, case.y, cv=folds, method=method, **params
    )
    for train, test in folds:
        _compare(case, "held-out values of a smooth model", ours[test], train, test)
    return 0


def _check_left_out(case: Case, error: float) -> int:
    approximate = case.options["what"] == "approximate"
    method = "approximate" if approximate else "exact"
    ours = onefit.leave_one_out(
        built(case), case.given, case.y, method=method, sample_weight=case.weight
    )
    values = ours.decision_values if case.classifies else ours.predictions
    for row in range(len(case.y)):
        train = np.delete(np.arange(len(case.y)), row)
        if case.classifies and len(np.unique(case.y[train])) < 2:
            continue
        if not approximate or ours.exact_rows[row]:
            kind = (
                "exact_rows of a smooth model"
                if approximate
                else "left-out values of a smooth model"
            )
            _compare(case, kind, values[[row]], train, np.array([row]))
    return 0


def _compare(
    case: Case, kind: str, values: np.ndarray, train: np.ndarray, test: np.ndarray
) -> None:
    weight = None if case.weight is None else case.weight[train]
    if weight is not None and (weight > 0).sum() == 0:
        return
    other = built(case).fit(case.given[train], case.y[train], sample_weight=weight)
    error = _check_fit(case, other, train, with_scipy=False)
    expected = (
        other.decision_function(case.given[test])
        if case.classifies
        else other.predict(case.given[test])
    )
    phi = slow.phi_of(other, case.X[test], getattr(other, "components_", None))
    norms = np.sqrt(other.intercept_scaling**2 + (phi**2).sum(axis=1))
    # Both have gradients of this size; ours starts elsewhere.
    apart = norms * (100 * error + 1e-6 * (np.linalg.norm(theta_of(other)) + 1e-9))
    if not (np.abs(values - expected) <= apart).all():
        k = int(np.argmax(np.abs(values - expected) - apart))
        raise Difference(
            kind, f"row {test[k]}: {values[k]!r}, not {expected[k]!r} ± {apart[k]:.2g}"
        )


def parts(case: Case, model: Any, rows: np.ndarray) -> tuple[np.ndarray, ...]:
    phi = slow.phi_of(model, case.X[rows], getattr(model, "components_", None))
    y = case.y[rows]
    side = np.where(y == np.unique(case.y)[1], 1.0, -1.0) if case.classifies else y
    weight = np.ones(len(rows)) if case.weight is None else np.maximum(case.weight[rows], 0.0)
    return phi, theta_of(model), side, case.params.get("C", 1.0) * weight


def theta_of(model: Any) -> np.ndarray:
    coef = model.dual_coef_ if hasattr(model, "dual_coef_") else model.coef_
    return np.concatenate([[model.intercept_[0] / model.intercept_scaling], coef[0]])


def built(case: Case) -> Any:
    return getattr(onefit, case.model)(**{"gamma": 0.1, **case.params})


def code(case: Case) -> str:
    text = f"onefit.{case.model}({keywords({'gamma': 0.1, **case.params})})"
    what = case.options.get("what", "fit")
    method = "decision_function" if case.classifies else "predict"
    if what == "fit":
        return (
            f"model = {text}.fit(X, y, sample_weight=w)\nprint(model.{method}(X), model.intercept_)"
        )
    lines = [f"machine = {text}"]
    refit = f"machine.fit(X[train], y[train], None if w is None else w[train]).{method}"
    if what == "folds":
        lines += [
            splitters.text_of_every_kth(len(case.y), case.options.get("k", 2)),
            f"how = dict(cv=folds, method={method!r}, params={{'sample_weight': w}})",
            "print(onefit.cross_val_predict(machine, X, y, **how))",
            "for train, test in folds:",
            f"    print({refit}(X[test]))",
        ]
        return "\n".join(lines)
    kind = "approximate" if what == "approximate" else "exact"
    lines += [
        f"result = onefit.leave_one_out(machine, X, y, method={kind!r}, sample_weight=w)",
        "print(result.decision_values, result.predictions, result.exact_rows)",
        "for row in range(len(y)):",
        "    train = np.delete(np.arange(len(y)), row)",
        f"    print({refit}(X[[row]]))",
    ]
    return "\n".join(lines)
