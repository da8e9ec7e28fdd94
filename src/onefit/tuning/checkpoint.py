"""Finished cells in a file, so that a search that was killed goes on where it was.

The file is an SQLite database with a write-ahead log: a cell is one transaction, and is there from
the moment that its commit returns, whatever then happens to the process. (After a failure of power
the last commits may be missing; the file is whole all the same.) What the search is about is
written down with it, and a file of another search is refused.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from onefit.kernels import Floats
from onefit.tuning.request import Cell, Outcome, Request

FORMAT = 1  # of the file

_TABLES = """
CREATE TABLE IF NOT EXISTS search (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS cells (
    candidate INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    n_values INTEGER,
    decision_values BLOB,
    PRIMARY KEY (candidate, fold)
);
"""


class Checkpoint:
    """The finished cells of one search."""

    def __init__(self, path: str, request: Request, version: str) -> None:
        """Opens the file, or makes it. Raises ValueError where it is of another search."""
        self._path = path
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, timeout=0.0)
        except sqlite3.Error as error:
            raise ValueError(f"checkpoint={path!r} cannot be opened: {error}.") from None
        try:
            # Exclusive: two searches that fill one file would do everything twice.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.executescript(_TABLES)
            self._compare(fingerprint(request, version))
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise ValueError(
                f"checkpoint={path!r} is in use or cannot be written: {error}."
            ) from None
        except sqlite3.DatabaseError:
            self._connection.close()
            raise ValueError(
                f"checkpoint={path!r} is a file of another kind. Give the path of a checkpoint, or "
                "one that does not exist yet."
            ) from None
        except BaseException:
            self._connection.close()
            raise

    def _compare(self, expected: dict[str, str]) -> None:
        known = dict(self._connection.execute("SELECT name, value FROM search"))
        if not known:
            with self._transaction():
                self._connection.executemany("INSERT INTO search VALUES (?, ?)", expected.items())
            return
        different = [name for name in expected if known.get(name) != expected[name]]
        if different:
            raise ValueError(
                f"checkpoint={self._path!r} is of another search: its {', '.join(different)} "
                f"{'is' if len(different) == 1 else 'are'} not the same. Give another path, or "
                "delete the file to begin anew."
            )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._connection)

    def add(self, cell: Cell, outcome: Outcome, values: Floats | None) -> None:
        """A finished cell; it is in the file when this returns."""
        size = None if values is None else values.shape[1]
        data = None if values is None else np.ascontiguousarray(values, dtype="<f8").tobytes()
        self._connection.execute(
            "INSERT INTO cells VALUES (?, ?, ?, ?, ?)",
            (cell.candidate, cell.fold, json.dumps(outcome, default=_number), size, data),
        )

    def finished(self) -> Iterator[tuple[Cell, Outcome, Floats | None]]:
        """All cells that are there."""
        rows = self._connection.execute("SELECT * FROM cells").fetchall()
        for candidate, fold, outcome, size, data in rows:
            values = None if size is None else np.frombuffer(data, dtype="<f8").reshape(-1, size)
            yield Cell(candidate, fold), json.loads(outcome), values

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()


class _Transaction:
    """All or nothing."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


def fingerprint(request: Request, version: str) -> dict[str, str]:
    """What has to be the same for cells to be those of this search, by name."""
    options = request.options
    return {
        "version of onefit": f"{version}, format {FORMAT}",
        "data (X)": joblib.hash(request.X),
        "targets (y)": joblib.hash(request.y),
        "folds (cv)": joblib.hash(request.splits),
        "estimator": _text(request.estimator),
        "candidates": _text(request.candidates),
        "scoring": _text(options.get("scorer")),
        "parameters of fit": joblib.hash(options.get("fit_params") or {}),
        "parameters of score": joblib.hash(options.get("score_params") or {}),
        "error_score": repr(options.get("error_score")),
        "return_train_score": repr(bool(options.get("return_train_score"))),
    }


def _text(value: Any) -> str:
    """A text that is the same in every process; functions are known by their names."""
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False)
        return f"{type(value).__module__}.{type(value).__qualname__}({_text(parameters)})"
    if isinstance(value, dict):
        inner = ", ".join(f"{key!r}: {_text(value[key])}" for key in sorted(value, key=repr))
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, np.ndarray):
        return str(joblib.hash(value))
    if hasattr(value, "_scorers"):
        return _text(value._scorers)
    if isinstance(value, np.generic):
        return repr(value.item())
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def _number(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"A checkpoint keeps scores that are numbers; got {type(value).__name__}.")


def check_path(path: Any) -> None:
    """Raises ValueError where no checkpoint can be written, before any work is done."""
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"checkpoint={str(path)!r}: there is no folder {str(folder)!r}.")
