"""Fits: SVC, SVR, NuSVC and NuSVR against scikit-learn's and the optimality conditions."""

from __future__ import annotations

import warnings
from typing import Any

import naive
import numpy as np
from estimators import comparison
from sklearn import svm
from strategies import Problem

import onefit
from campaign import draw as drawing
from campaign.case import Case, Difference, NothingToCompareError
from campaign.kernels import of_user
from campaign.reference import MAX_ITER, OWN, PAIRINGS, Reference, is_sparse, scale_of
from campaign.snippet import keywords

# How the kernel is given: by name, as a matrix, or as a function.
GIVEN = ("name", "name", "name", "precomputed", "callable")


def draw(name: str, rng: np.random.Generator) -> Case:
    case = drawing.case(name, rng, kernels=("linear", "poly", "rbf", "rbf", "sigmoid"))
    case.options["given"] = drawing.one(rng, GIVEN)
    case.options["jobs"] = drawing.one(rng, [1, 1, 2])
    return case


def check(case: Case) -> int:
    ours, theirs = attempt(lambda: fit(case)), attempt(lambda: reference(case))
    compare_errors(ours, theirs, lambda: fit_theirs(case))
    problem = Problem(case.X, case.y, case.X, case.weight, params_of_rows(case))
    fitted = PAIRINGS[case.model].fitted(ours, problem)
    check_solution(case, fitted, theirs)
    intervals = theirs.intervals(case.X)
    values = values_of(case, ours)
    if case.params.get("kernel") == "sigmoid":
        return 0  # not an inner product: solutions need not be the same
    if not (inside := intervals.contain(values)).all():
        row = int(np.flatnonzero(~inside)[0])
        raise Difference(
            "decision values",
            f"row {row}: {values[row]}, right are {intervals.low[row]} to {intervals.high[row]}",
        )
    ties = intervals.ties
    if case.classifies:
        predictions = ours.predict(rows_given(case))
        wrong = (predictions != intervals.labels) & ~ties
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise Difference(
                "predictions",
                f"row {row}: {predictions[row]}, not {intervals.labels[row]}; "
                f"values {intervals.low[row]} to {intervals.high[row]}",
            )
    return int(ties.sum())


def compare_errors(ours: Any, reference: Any, fit_theirs: Any) -> None:
    """Both fit, or both raise; ``reference`` is tight, ``fit_theirs`` fits as ours was fitted."""
    if not isinstance(ours, Exception) and not isinstance(reference, Exception):
        return
    theirs = attempt(fit_theirs)
    if isinstance(ours, Exception) and not isinstance(ours, ValueError):
        raise ours
    if isinstance(ours, Exception) and not isinstance(theirs, Exception):
        if "no sample of positive weight" in str(ours):
            raise NothingToCompareError(str(ours)) from ours  # refused here
        raise Difference("only onefit raises", f"{type(ours).__name__}: {ours}") from ours
    if isinstance(theirs, Exception) and not isinstance(ours, Exception):
        # The margin of ν-SVC is zero; a variance of sparse rows that rounding made negative.
        if "not finite" in str(theirs) or "gamma < 0" in str(theirs):
            raise NothingToCompareError(str(theirs))
        raise Difference("only scikit-learn raises", f"{type(theirs).__name__}: {theirs}")
    raise NothingToCompareError(str(reference))


def check_solution(case: Case, fitted: comparison.Fitted, theirs: Reference) -> None:
    """Feasible, with a KKT gap below ``tol`` and an offset that fits: exact, without an oracle."""
    if fitted.model.fit_status_ != 0:
        precision = max(one.rounding for one in theirs.ranges)
        if theirs.model.fit_status_ != 0 or theirs.tol < 4 * precision:
            raise NothingToCompareError("tol is below the precision of float32 kernel entries")
        raise Difference("not converged", f"fit_status_={fitted.model.fit_status_}")
    for k, part in enumerate(fitted.parts):
        dual, beta = part.dual, part.beta
        slack = naive.bound_slack(dual)
        if (beta < dual.lo - slack).any() or (beta > dual.hi + slack).any():
            raise Difference("bounds", f"pair {k}: coefficients {beta}")
        gap, allowed = naive.kkt_gap(dual, beta), part.gap_tolerance
        if gap > allowed:
            raise Difference("KKT gap", f"pair {k}: {gap:.3g}, allowed {allowed:.3g}")
        is_positive = part.scale is None or case.params.get("kernel") != "sigmoid"
        if part.offsets is not None and is_positive:
            low, high = np.sort(naive.offset_interval(dual, beta), axis=0)
            if (part.offsets < low - allowed).any() or (part.offsets > high + allowed).any():
                raise Difference("offset", f"pair {k}: {part.offsets}, right {low} to {high}")


# ------------------------------------------------------------------------- the two models


def attempt(action: Any) -> Any:
    """What it returns, or the exception that it raises."""
    try:
        return action()
    except Exception as error:
        return error


def params_of_rows(case: Case) -> dict[str, Any]:
    """Parameters of a model of the rows, which the reference is."""
    params = {name: case.params[name] for name in case.params if name not in OWN}
    if case.options.get("given") == "callable":
        params["kernel"] = of_user
    precomputed = case.options.get("given") == "precomputed"
    if params.get("gamma", "scale") == "scale" and (precomputed or case.kind == "fits"):
        # Of all rows, whatever a fold trains on.
        params["gamma"] = scale_of(case.X, is_sparse(case) and not precomputed)
    return {"tol": 1e-3, **params}


def rows_given(case: Case) -> Any:
    if case.options.get("given") == "precomputed":
        problem = Problem(case.X, case.y, case.X, None, params_of_rows(case))
        return comparison.kernel_matrix(problem, case.X, case.X)
    return case.given


def model(case: Case, **more: Any) -> Any:
    params = {**case.params, "max_iter": MAX_ITER}
    given = case.options.get("given", "name")
    if given != "name":
        params["kernel"] = of_user if given == "callable" else "precomputed"
    if case.classifies:
        params.setdefault("decision_function_shape", "ovo")
    if case.options.get("jobs", 1) != 1:
        params["n_jobs"] = case.options["jobs"]
    return getattr(onefit, case.model)(**params, **more)


def fit(case: Case) -> Any:
    return model(case).fit(rows_given(case), case.y, case.weight)


def fit_theirs(case: Case) -> Any:
    params = {name: value for name, value in model(case).get_params().items() if name not in OWN}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(svm, case.model)(**params)
        return theirs.fit(rows_given(case), case.y, case.weight)


def reference(case: Case) -> Reference:
    return Reference(case, case.X, case.y, case.weight, params_of_rows(case))


def values_of(case: Case, fitted: Any) -> np.ndarray:
    """Decision values, one column per pair, positive for the first class; or predictions."""
    if not case.classifies:
        return np.asarray(fitted.predict(rows_given(case)))[:, None]
    values = fitted.decision_function(rows_given(case))
    return -values[:, None] if values.ndim == 1 else values


def code(case: Case) -> str:
    params = model(case).get_params()
    defaults = getattr(onefit, case.model)().get_params()
    changed = {name: value for name, value in params.items() if value != defaults[name]}
    of_theirs = {name: value for name, value in changed.items() if name not in OWN}
    method = "decision_function" if case.classifies else "predict"
    lines = []
    if changed.get("kernel") == "precomputed":
        lines.append(f"# kernel matrix of {keywords(params_of_rows(case))}")
        lines.append(f"X = {np.array2string(rows_given(case), separator=', ', threshold=10**9)}")
    lines += [
        f"ours = onefit.{case.model}({keywords(changed)}).fit(X, y, w)",
        f"theirs = sklearn.svm.{case.model}({keywords(of_theirs)}).fit(X, y, w)",
        f"print(ours.{method}(X))",
        f"print(theirs.{method}(X))",
    ]
    return "\n".join(lines)
