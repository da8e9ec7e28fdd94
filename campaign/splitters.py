"""Splitters to draw: all of scikit-learn's, and explicit folds."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import model_selection as ms

# Splitters that hold every row out once, and the others.
PARTITIONS = (
    "int",
    "KFold",
    "StratifiedKFold",
    "GroupKFold",
    "StratifiedGroupKFold",
    "LeaveOneGroupOut",
    "LeaveOneOut",
    "PredefinedSplit",
    "lists",
)
OTHERS = (
    "RepeatedKFold",
    "RepeatedStratifiedKFold",
    "ShuffleSplit",
    "StratifiedShuffleSplit",
    "GroupShuffleSplit",
    "LeavePGroupsOut",
    "TimeSeriesSplit",
    "overlapping",
    "masks",
)


def draw(rng: np.random.Generator, *, partition: bool = False, n: int = 60) -> dict[str, Any]:
    """A splitter as numbers and words; ``partition`` holds every row out once."""
    names = PARTITIONS if partition else PARTITIONS + OTHERS
    if n > 30:
        names = tuple(name for name in names if name != "LeaveOneOut")
    k = int(rng.integers(2, 6))
    return {"name": names[rng.integers(len(names))], "k": k, "state": int(rng.integers(1000))}


def groups_of(n: int) -> np.ndarray:
    return np.arange(n) * 5 % 11 % 6


def built(spec: dict[str, Any], n: int) -> Any:
    """What to give as ``cv``; groups are ``groups_of(n)``."""
    name, k, state = spec.get("name", "int"), spec.get("k", 3), spec.get("state", 0)
    rng = np.random.default_rng(state)
    shuffled = {"shuffle": True, "random_state": state} if state % 2 else {}
    repeated = {"n_splits": k, "n_repeats": 2, "random_state": state}
    partial = {"n_splits": k, "test_size": 0.3, "train_size": 0.6, "random_state": state}
    order = rng.permutation(n)
    parts = np.array_split(order, k)
    rest = [np.concatenate([p for p in parts if p is not part]) for part in parts]
    makers = {
        "int": lambda: k,
        "KFold": lambda: ms.KFold(k, **shuffled),
        "StratifiedKFold": lambda: ms.StratifiedKFold(k, **shuffled),
        "GroupKFold": lambda: ms.GroupKFold(k),
        "StratifiedGroupKFold": lambda: ms.StratifiedGroupKFold(k),
        "LeaveOneGroupOut": ms.LeaveOneGroupOut,
        "LeavePGroupsOut": lambda: ms.LeavePGroupsOut(2),
        "LeaveOneOut": ms.LeaveOneOut,
        "PredefinedSplit": lambda: ms.PredefinedSplit(np.arange(n) % k),
        "RepeatedKFold": lambda: ms.RepeatedKFold(**repeated),
        "RepeatedStratifiedKFold": lambda: ms.RepeatedStratifiedKFold(**repeated),
        "ShuffleSplit": lambda: ms.ShuffleSplit(**partial),
        "StratifiedShuffleSplit": lambda: ms.StratifiedShuffleSplit(**partial),
        "GroupShuffleSplit": lambda: ms.GroupShuffleSplit(**partial),
        "TimeSeriesSplit": lambda: ms.TimeSeriesSplit(k),
        "lists": lambda: [(r.tolist(), p.tolist()) for r, p in zip(rest, parts, strict=True)],
        "overlapping": lambda: [
            (rng.permutation(n)[: 2 * n // 3 + 1], rng.permutation(n)[: n // 3 + 1]) for _ in parts
        ],
        "masks": lambda: [(~np.isin(np.arange(n), p), np.isin(np.arange(n), p)) for p in parts],
    }
    return makers[name]()


def text(spec: dict[str, Any], n: int) -> str:
    """The same as Python; arrays as lists."""
    cv = built(spec, n)
    if isinstance(cv, list):
        return f"[{', '.join(f'({_array(train)}, {_array(test)})' for train, test in cv)}]"
    if isinstance(cv, ms.PredefinedSplit):
        return f"sklearn.model_selection.PredefinedSplit(np.arange(len(y)) % {spec.get('k', 3)})"
    return repr(cv) if isinstance(cv, int) else f"sklearn.model_selection.{cv!r}"


def _array(rows: Any) -> str:
    return f"np.array({np.asarray(rows).tolist()})"


def every_kth(n: int, k: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds of every k-th row."""
    rows = np.arange(n) % k
    return [(np.flatnonzero(rows != j), np.flatnonzero(rows == j)) for j in range(k)]


def text_of_every_kth(n: int, k: int) -> str:
    return (
        f"rows = np.arange({n}) % {k}\n"
        f"folds = [(np.flatnonzero(rows != j), np.flatnonzero(rows == j)) for j in range({k})]"
    )
