"""Memory budgets: the peak of a fit stays within ``cache_size`` plus a stated allowance.

The peak is the process's own (VmHWM of Linux), so that each case has a process of its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import onefit
from campaign import draw as drawing
from campaign.case import Case, Difference, NothingToCompareError
from campaign.snippet import keywords

ALONE = True
MEGABYTE = 1 << 20
# What a fit may take beside its kernel rows: chunks of 8 MB that the core keeps, and numpy's own.
ALLOWANCE = 64 * MEGABYTE
STATUS = Path("/proc/self/status")


def draw(name: str, rng: np.random.Generator) -> Case:
    n = int(rng.integers(1500, 4500))
    y = np.arange(n) % 2
    X = rng.standard_normal((n, int(rng.integers(2, 20)))) + 0.5 * y[:, None]
    options = {
        "work": drawing.one(rng, ["fit", "fit", "cross_val_score", "leave_one_out", "search"]),
        "callable": drawing.maybe(rng, 0.3),
    }
    model = drawing.one(rng, ["SVC", "SVR"])
    params = {"cache_size": drawing.one(rng, [1, 8, 32]), "gamma": 0.1, "tol": 0.1}
    return Case(name, X, y if model == "SVC" else X[:, 0], None, model, params, options)


def check(case: Case) -> int:
    if not STATUS.exists():
        raise NothingToCompareError("only Linux tells the peak of a process")
    work(case, case.X[:50], case.y[:50])  # imports and small buffers
    before = peak()
    work(case, case.X, case.y)
    used = peak() - before
    # Predictions and copies of the rows are the user's own.
    allowed = case.params.get("cache_size", 200) * MEGABYTE + ALLOWANCE + 8 * case.X.nbytes
    if used > allowed:
        raise Difference(
            "memory",
            f"{used / MEGABYTE:.0f} MB, allowed {allowed / MEGABYTE:.0f} MB "
            f"({len(case.y)} rows, {case.options.get('work', 'fit')})",
        )
    return 0


def peak() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text())
    assert found is not None
    return int(found[1]) * 1024


def work(case: Case, X: np.ndarray, y: np.ndarray) -> Any:
    params = dict(case.params)
    if case.options.get("callable"):
        params["kernel"] = dot
    machine = getattr(onefit, case.model)(**params)
    how = case.options.get("work", "fit")
    if how == "cross_val_score":
        return onefit.cross_val_score(machine, X, y, cv=3)
    if how == "leave_one_out":
        return onefit.leave_one_out(machine, X[:800], y[:800])
    if how == "search":
        return onefit.GridSearchCV(machine, {"C": [0.1, 1.0]}, cv=3).fit(X, y)
    return machine.fit(X, y)


def dot(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A @ B.T


def code(case: Case) -> str:
    kernel = ", kernel=lambda A, B: A @ B.T" if case.options.get("callable") else ""
    built = f"onefit.{case.model}({keywords(case.params)}{kernel})"
    how = case.options.get("work", "fit")
    calls = {
        "fit": f"{built}.fit(X, y)",
        "cross_val_score": f"onefit.cross_val_score({built}, X, y, cv=3)",
        "leave_one_out": f"onefit.leave_one_out({built}, X[:800], y[:800])",
        "search": f"onefit.GridSearchCV({built}, {{'C': [0.1, 1.0]}}, cv=3).fit(X, y)",
    }
    return f"{calls[how]}\nprint(open('/proc/self/status').read())"
