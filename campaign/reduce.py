"""Make a failing case smaller while it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from campaign.case import Case
from campaign.worker import Outcome

DECIMALS = (0, 1, 2, 4)


def reduced(
    case: Case, kind: str, run: Callable[[Case], Outcome], seconds: float
) -> tuple[Case, int]:
    """The smallest case found that still fails as ``kind`` does, and how many were tried."""
    end = time.monotonic() + seconds
    tried = 0
    improved = True
    while improved:
        improved = False
        for step in (without_rows, without_entries, without_columns, with_rounder_numbers):
            going_on = True
            while going_on:
                going_on = False
                for smaller in step(case):
                    if time.monotonic() > end:
                        return case, tried
                    tried += 1
                    outcome = run(smaller)
                    if outcome.failed and outcome.kind == kind:
                        case, improved, going_on = smaller, True, True
                        break
    return case, tried


def without_rows(case: Case) -> Iterator[Case]:
    """Halves, then quarters, … then single rows removed."""
    n = len(case.y)
    size = n // 2
    while size >= 1:
        for begin in range(0, n, size):
            kept = np.delete(np.arange(n), np.s_[begin : begin + size])
            if len(kept):
                weight = None if case.weight is None else case.weight[kept]
                yield replace(case, X=case.X[kept], y=case.y[kept], weight=weight)
        size //= 2


def without_columns(case: Case) -> Iterator[Case]:
    for column in range(case.X.shape[1] if case.X.shape[1] > 1 else 0):
        yield replace(case, X=np.delete(case.X, column, axis=1))


def without_entries(case: Case) -> Iterator[Case]:
    """Weights, parameters and options that can be left out."""
    if case.weight is not None:
        yield replace(case, weight=None)
        if (case.weight != 1).any():
            yield replace(case, weight=np.ceil(case.weight))
    for name in case.options:
        rest = {key: value for key, value in case.options.items() if key != name}
        yield replace(case, options=rest)
    for name in case.params:
        rest = {key: value for key, value in case.params.items() if key != name}
        yield replace(case, params=rest)


def with_rounder_numbers(case: Case) -> Iterator[Case]:
    with np.errstate(over="ignore", invalid="ignore"):
        for decimals in DECIMALS:
            rounded = np.round(case.X, decimals)
            if not np.array_equal(rounded, case.X, equal_nan=True):
                yield replace(case, X=rounded)
        if case.y.dtype.kind == "f":
            for decimals in DECIMALS:
                rounded = np.round(case.y, decimals)
                if not np.array_equal(rounded, case.y, equal_nan=True):
                    yield replace(case, y=rounded)
