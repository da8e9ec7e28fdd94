"""Broken checkpoints: bytes flipped, cut, added or zeroed give a clear error or a right search."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

import onefit
from campaign import draw as drawing
from campaign.case import Case, Difference
from campaign.snippet import keywords

FILE = "broken.db"
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 0.5]}
DAMAGES = ("flip", "cut", "grow", "zero", "swap", "empty")


def draw(name: str, rng: np.random.Generator) -> Case:
    n = int(rng.integers(12, 40))
    y = drawing.labels(rng, n, 2)
    options = {
        "damage": drawing.one(rng, DAMAGES),
        "place": float(rng.random()),
        "size": int(rng.integers(1, 64)),
        "done": bool(rng.random() < 0.5),
    }
    return Case(name, drawing.rows(rng, y, 2), y, None, "SVC", {"tol": 1e-6}, options)


def check(case: Case) -> int:
    for old in Path().glob(FILE + "*"):
        old.unlink()
    expected = search(case).fit(case.X, case.y)
    search(case, FILE).fit(case.X, case.y)
    if not case.options.get("done", True):
        _undo_half()
    path = Path(FILE)
    content = path.read_bytes()
    path.write_bytes(damaged(case, content))
    for name in (FILE + "-wal", FILE + "-shm", FILE + "-journal"):
        Path(name).unlink(missing_ok=True)
    try:
        found = search(case, FILE).fit(case.X, case.y)
    except ValueError as error:
        if "checkpoint" not in str(error) and FILE not in str(error):
            raise Difference("unclear error", f"{type(error).__name__}: {error}") from error
        return 0
    for key, values in expected.cv_results_.items():
        if "score" not in key or "time" in key:
            continue
        if not np.array_equal(found.cv_results_[key], values, equal_nan=True):
            raise Difference(
                "wrong continuation", f"{key}: {found.cv_results_[key]!r}, not {values!r}"
            )
    return 0


def _undo_half() -> None:
    with sqlite3.connect(FILE) as connection:
        connection.execute("DELETE FROM cells WHERE rowid % 2 = 0")
    connection.close()


def damaged(case: Case, content: bytes) -> bytes:
    data = bytearray(content)
    place = int(case.options.get("place", 0.5) * len(data))
    size = case.options.get("size", 1)
    damage = case.options.get("damage", "flip")
    if damage == "flip":
        data[place] ^= 1 << (size % 8)
    elif damage == "cut":
        del data[place:]
    elif damage == "grow":
        data += bytes(size * 100)
    elif damage == "zero":
        data[place : place + size] = bytes(len(data[place : place + size]))
    elif damage == "swap":
        half = len(data) // 2
        data = data[half:] + data[:half]
    else:
        data = bytearray()
    return bytes(data)


def search(case: Case, checkpoint: Any = None) -> Any:
    machine = onefit.SVC(**case.params)
    return onefit.GridSearchCV(machine, GRID, cv=3, scoring="roc_auc", checkpoint=checkpoint)


def code(case: Case) -> str:
    return "\n".join(
        [
            f"machine = onefit.SVC({keywords(case.params)})",
            f"grid = {GRID}",
            f"how = dict(cv=3, scoring='roc_auc', checkpoint={FILE!r})",
            "onefit.GridSearchCV(machine, grid, **how).fit(X, y)",
            f"# then damage the file ({case.options}) as campaign/classes/checkpoints.py does",
            "print(onefit.GridSearchCV(machine, grid, **how).fit(X, y).cv_results_)",
        ]
    )
