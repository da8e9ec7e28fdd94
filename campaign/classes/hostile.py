"""Hostile numbers and matrices: scikit-learn's answer or a clear error, never a crash."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import model_selection, svm

import onefit
from campaign import draw as drawing
from campaign.case import Case, Difference, NothingToCompareError
from campaign.classes.fits import attempt
from campaign.snippet import keywords

# Each in a process of its own: memory that one overwrites is no fault of the next.
ALONE = True
NUMBERS = (
    "1e6",
    "1e20",
    "1e38",
    "1e150",
    "1e300",
    "1e-30",
    "1e-300",
    "mixed",
    "constant",
    "duplicates",
    "nearly singular",
    "nan",
    "inf",
    "subnormal",
)
MALFORMED = (
    "index too large",
    "index negative",
    "indptr decreasing",
    "indptr too long",
    "data too short",
    "unsorted",
    "doubled",
)
ENTRIES = ("fit", "fit", "cross_val_score", "leave_one_out", "smooth", "search")
PARAMETERS = {
    "C": [1e-30, 1e30, 1e300],
    "gamma": [1e-300, 1e30, 0.0],
    "tol": [1e-300, 1e10],
    "coef0": [1e30, -1e30],
    "degree": [0, 50],
}
# A clear error names a parameter or what is wrong with the rows.
CLEAR = re.compile(
    r"\b(X|y|C|nu|gamma|tol|coef0|degree|epsilon|kernel|sample_weight|NaN|infinity|finite|large|indices|indptr|sparse|class|classes|overflow\w*|samples?)\b"
)


def draw(name: str, rng: np.random.Generator) -> Case:
    model = drawing.one(rng, ["SVC", "SVC", "SVR", "NuSVC", "NuSVR"])
    n = int(rng.integers(6, 40))
    labels = drawing.labels(rng, n, 2)
    X = rng.standard_normal((n, int(rng.integers(1, 5)))) + labels[:, None]
    y = labels if model.endswith("SVC") else X[:, 0] * drawing.one(rng, [1.0, 1.0, 1e150, 1e-300])
    params: dict[str, Any] = drawing.kernel(rng, ("linear", "poly", "rbf", "sigmoid"))
    options: dict[str, Any] = {
        "isa": drawing.one(rng, drawing.ISAS),
        "entry": drawing.one(rng, ENTRIES),
    }
    kind = drawing.one(rng, ["numbers", "numbers", "malformed", "parameter"])
    if kind == "numbers":
        X = hostile(rng, X, drawing.one(rng, NUMBERS))
        options["layout"] = drawing.one(rng, ["dense", "csr", "float32"])
    elif kind == "malformed":
        options["malformed"] = drawing.one(rng, MALFORMED)
        X = np.where(rng.random(X.shape) < 0.7, X, 0.0)
    else:
        parameter = drawing.one(rng, PARAMETERS)
        params[parameter] = drawing.one(rng, PARAMETERS[parameter])
    if model == "NuSVC":
        params.pop("C", None)
        params["nu"] = 0.2
    return Case(name, X, y, None, model, params, options)


def hostile(rng: np.random.Generator, X: np.ndarray, kind: str) -> np.ndarray:
    X = X.copy()
    if kind in ("nan", "inf"):
        X[0, 0] = float(kind)
    elif kind == "mixed":
        X[0] *= 1e25
    elif kind == "constant":
        X[:] = drawing.one(rng, [0.0, 1.0, 1e10])
    elif kind == "duplicates":
        X[:] = X[rng.integers(0, 2, len(X))]
    elif kind == "nearly singular":
        X = np.tile(X[:, :1], (1, 3)) + 1e-9 * rng.standard_normal((len(X), 3))
    elif kind == "subnormal":
        X *= 1e-310
    else:
        X *= float(kind)
    return X


def check(case: Case) -> int:
    with np.errstate(all="ignore"):
        rows = given(case)
        ours = attempt(lambda: call(case, rows, onefit))
        if isinstance(ours, Exception):
            return _check_error(case, ours)
        if case.options.get("malformed") not in (None, "unsorted", "doubled"):
            raise Difference("malformed matrix is taken", f"{case.options['malformed']}: {ours!r}")
        if not np.isfinite(np.asarray(ours, dtype=float)).all():
            return _check_missing(case, rows, ours)
        return 0


def _check_error(case: Case, error: Exception) -> int:
    if not isinstance(error, ValueError | MemoryError):
        raise error
    if not CLEAR.search(str(error)):
        raise Difference("unclear error", f"{type(error).__name__}: {error}")
    if isinstance(error, MemoryError):
        raise Difference("out of memory", str(error))
    return 0


def _check_missing(case: Case, rows: Any, ours: Any) -> int:
    """NaN or infinity where scikit-learn has numbers is silent nonsense."""
    if case.options.get("entry", "fit") in ("leave_one_out", "smooth"):
        raise NothingToCompareError("NaN stands for a proven sign, or there is no rival")
    theirs = attempt(lambda: call(case, rows, None))
    if isinstance(theirs, Exception) or not np.isfinite(np.asarray(theirs, dtype=float)).all():
        raise NothingToCompareError("scikit-learn has no numbers either")
    raise Difference("not finite", f"{ours!r}; scikit-learn has {theirs!r}")


def given(case: Case) -> Any:
    kind = case.options.get("malformed")
    if kind is None:
        return case.given
    X = sp.csr_matrix(case.X)
    X.sort_indices()
    if X.nnz < 2:
        raise NothingToCompareError("too few entries")
    if kind == "index too large":
        X.indices[-1] = X.shape[1] + 5
    elif kind == "index negative":
        X.indices[0] = -1
    elif kind == "indptr decreasing":
        X.indptr[1] = X.indptr[-1] + 3
    elif kind == "indptr too long":
        X.indptr[-1] += 5
    elif kind == "data too short":
        X.data = X.data[:-1]
    elif kind == "unsorted":
        X.indices[:], X.data[:] = _unsorted(X)
    elif kind == "doubled":
        X = sp.csr_matrix(
            (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), X.shape
        )
    return X


def _unsorted(X: sp.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    order = np.concatenate(
        [np.arange(a, b)[::-1] for a, b in zip(X.indptr, X.indptr[1:], strict=False)]
    )
    return X.indices[order], X.data[order]


def call(case: Case, rows: Any, module: Any) -> Any:
    """Values of the entry point; of scikit-learn's where ``module`` is None."""
    entry = case.options.get("entry", "fit")
    limit = {} if module is onefit else {"max_iter": 100_000}
    if entry == "smooth":
        name = "SmoothSVC" if case.classifies else "SmoothSVR"
        machine = getattr(onefit, name)(**smooth_params(case))
        return machine.fit(rows, case.y).predict(rows)
    machine = getattr(module or svm, case.model)(**case.params, **limit)
    how = {"cv": 3, "error_score": "raise"}  # a fold that cannot be fitted has an error, not NaN
    if entry == "cross_val_score":
        return (module or model_selection).cross_val_score(machine, rows, case.y, **how)
    if entry == "leave_one_out":
        return onefit.leave_one_out(machine, rows, case.y).decision_values
    if entry == "search":
        grid = {"tol": [1e-3, 1e-2]}
        search = (
            (module or model_selection)
            .GridSearchCV(machine, grid, **{**how, "cv": 2})
            .fit(rows, case.y)
        )
        return search.cv_results_["mean_test_score"]
    machine.fit(rows, case.y)
    return machine.decision_function(rows) if case.classifies else machine.predict(rows)


def code(case: Case) -> str:
    lines = []
    if case.options.get("malformed") is not None:
        X = given(case)
        lines += ["import scipy.sparse as sp", f"X = sp.csr_matrix({case.X.shape})"]
        for name in ("data", "indices", "indptr"):
            part = getattr(X, name)
            lines.append(f"X.{name} = np.array({part.tolist()}, dtype={part.dtype.name!r})")
    lines.append(f"machine = onefit.{case.model}({keywords(case.params)})")
    entry = case.options.get("entry", "fit")
    if entry == "smooth":
        name = "SmoothSVC" if case.classifies else "SmoothSVR"
        lines[-1] = f"machine = onefit.{name}({keywords(smooth_params(case))})"
    search = "onefit.GridSearchCV(machine, {'tol': [1e-3, 1e-2]}, cv=2).fit(X, y)"
    calls = {
        "fit": "machine.fit(X, y).predict(X)",
        "smooth": "machine.fit(X, y).predict(X)",
        "cross_val_score": "onefit.cross_val_score(machine, X, y, cv=3)",
        "leave_one_out": "onefit.leave_one_out(machine, X, y).decision_values",
        "search": f"{search}.cv_results_['mean_test_score']",
    }
    return "\n".join([*lines, f"print({calls[entry]})"])


def smooth_params(case: Case) -> dict[str, Any]:
    known = ("C", "kernel", "gamma", "degree", "coef0")
    return {name: value for name, value in case.params.items() if name in known}
