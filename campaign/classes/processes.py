"""Threads, forks and pickles: the same bits wherever a model is fitted or loaded."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import onefit
from campaign import draw as drawing
from campaign.case import Case, Difference, NothingToCompareError
from campaign.classes.fits import attempt, model, rows_given
from campaign.snippet import keywords

WAYS = ("threads", "fork", "pickle", "copy", "fork and threads")
WORK = ("fit", "fit", "cross_val_predict", "leave_one_out")
LIMIT = 30  # seconds of a forked child


def draw(name: str, rng: np.random.Generator) -> Case:
    case = drawing.case(name, rng, n_rows=(10, 120), tols=(1e-3, 1e-6))
    if case.options["layout"] == "csr int64":  # scikit-learn takes these in folds, not in fits
        case.options["layout"] = "csr"
    case.options["way"] = drawing.one(rng, WAYS)
    case.options["work"] = drawing.one(rng, WORK)
    case.options["jobs"] = drawing.one(rng, [1, 2])
    return case


def check(case: Case) -> int:
    expected = attempt(lambda: values(case))
    if isinstance(expected, Exception):
        raise NothingToCompareError(str(expected))
    way = case.options.get("way", "threads")
    if way == "threads":
        found = in_threads(case)
    elif way in ("pickle", "copy"):
        fitted = model(case).fit(rows_given(case), case.y, case.weight)
        again = pickle.loads(pickle.dumps(fitted)) if way == "pickle" else copy.deepcopy(fitted)
        found, expected = [answers(case, again)], answers(case, fitted)
    else:
        found = [in_child(case, threads=way != "fork")]
    for one in found:
        if not np.array_equal(one, expected, equal_nan=True):
            k = int(np.flatnonzero(np.ravel(one != expected))[0])
            raise Difference(
                f"other values by {way}", f"{np.ravel(one)[k]!r}, not {np.ravel(expected)[k]!r}"
            )
    return 0


def values(case: Case) -> np.ndarray:
    work = case.options.get("work", "fit")
    X, y = rows_given(case), case.y
    if work == "cross_val_predict":
        return np.asarray(onefit.cross_val_predict(model(case), X, y, cv=3), dtype=float)
    if work == "leave_one_out":
        return np.asarray(onefit.leave_one_out(model(case), X, y).decision_values, dtype=float)
    return answers(case, model(case).fit(X, y, case.weight))


def answers(case: Case, fitted: Any) -> np.ndarray:
    X = rows_given(case)
    return np.asarray(fitted.decision_function(X) if case.classifies else fitted.predict(X))


def in_threads(case: Case) -> list[np.ndarray]:
    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(lambda _: values(case), range(6)))


def in_child(case: Case, threads: bool) -> np.ndarray:
    """What a forked child computes; it sends its answer through a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        found = attempt(lambda: in_threads(case)[0] if threads else values(case))
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(writing)
    end = time.monotonic() + LIMIT
    import select

    with os.fdopen(reading, "rb") as pipe:
        ready = select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]
        data = pipe.read() if ready else b""
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not ready:
        raise Difference("a forked child hangs", f"no answer in {LIMIT} s")
    if os.WIFSIGNALED(status) or not data:
        raise Difference("a forked child crashes", f"status {status}")
    found = pickle.loads(data)
    if isinstance(found, Exception):
        raise found
    return found


def code(case: Case) -> str:
    defaults = getattr(onefit, case.model)().get_params()
    params = {k: v for k, v in model(case).get_params().items() if v != defaults[k]}
    work = case.options.get("work", "fit")
    method = "decision_function" if case.classifies else "predict"
    built = f"onefit.{case.model}({keywords(params)})"
    calls = {
        "fit": f"{built}.fit(X, y, w).{method}(X)",
        "cross_val_predict": f"onefit.cross_val_predict({built}, X, y, cv=3)",
        "leave_one_out": f"onefit.leave_one_out({built}, X, y).decision_values",
    }
    return "\n".join(
        [
            "from concurrent.futures import ThreadPoolExecutor",
            f"values = lambda _=0: {calls[work]}",
            f"# the way of this case: {case.options.get('way', 'threads')}",
            "print(values())",
            "print(list(ThreadPoolExecutor(3).map(values, range(6))))",
        ]
    )
