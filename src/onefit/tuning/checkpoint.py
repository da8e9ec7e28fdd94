"""Finished cells in a file, so that a search that was killed goes on where it was.

The file is an SQLite database with a write-ahead log: a cell is one transaction, and is there from
the moment that its commit returns, whatever then happens to the process. (After a failure of power
the last commits may be missing; the file is whole all the same.) What the search is about is
written down with it, and a file of another search is refused, as are damaged ones: every cell has a
checksum. Estimates that candidates are ranked by are kept, too.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import CellType, CodeType, TracebackType
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics._scorer import _BaseScorer

from onefit.kernels import Floats
from onefit.tuning.request import Cell, Outcome, Request

FORMAT = 1  # of the file
KIND = 0x6F6E6566  # "onef": SQLite's application_id, by which files of other programs are known

_TABLES = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {KIND};
CREATE TABLE search (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE cells (
    candidate INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    n_values INTEGER,
    decision_values BLOB,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (candidate, fold)
);
CREATE TABLE estimates (candidate INTEGER PRIMARY KEY, error REAL NOT NULL);
COMMIT;
"""


class Checkpoint:
    """The finished cells of one search."""

    def __init__(self, path: str, request: Request, version: str) -> None:
        """Opens the file, or makes it. Raises ValueError where it is of another search."""
        self._path = path
        file = Path(path).absolute()  # some relative names mean something else to SQLite
        try:
            self._connection = sqlite3.connect(file, isolation_level=None, timeout=0.0)
        except sqlite3.Error as error:
            raise ValueError(f"checkpoint={path!r} cannot be opened: {error}.") from None
        try:
            # Exclusive: two searches that fill one file would do everything twice.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            is_new = self._check_kind()
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            if is_new:
                self._connection.executescript(_TABLES)
            self._compare(fingerprint(request, version))
            # Read at once: what cannot be read is to be said before any work is done.
            self._finished = list(self._read(request))
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise self._error(f"is in use or cannot be written: {error}") from None
        except sqlite3.DatabaseError as error:
            self._connection.close()
            if "not a database" in str(error):
                raise self._other_kind() from None
            raise self._damaged() from None
        except BaseException:
            self._connection.close()
            raise

    def _error(self, what: str) -> ValueError:
        return ValueError(f"checkpoint={self._path!r} {what}.")

    def _damaged(self) -> ValueError:
        return self._error("is damaged. Give another path, or delete the file to begin anew")

    def _other_kind(self) -> ValueError:
        return self._error(
            "is a file of another kind. Give the path of a checkpoint, or one that does not exist "
            "yet"
        )

    def _check_kind(self) -> bool:
        """Whether there is nothing in the file yet. Files of other programs are not touched."""
        [(kind,)] = self._connection.execute("PRAGMA application_id")
        is_new = not self._connection.execute("SELECT * FROM sqlite_master").fetchall()
        if not is_new and kind != KIND:
            raise self._other_kind()
        return is_new

    def _compare(self, expected: dict[str, str]) -> None:
        known = dict(self._connection.execute("SELECT name, value FROM search"))
        if not known:
            with self._transaction():
                self._connection.executemany("INSERT INTO search VALUES (?, ?)", expected.items())
            return
        different = [name for name in expected if known.get(name) != expected[name]]
        if VERSION in different:
            here, there = expected[VERSION], known.get(VERSION)
            raise self._error(
                f"is of another {VERSION}: {there}; this is {here}. Give another path, or delete "
                "the file to begin anew"
            )
        if different:
            raise self._error(
                f"is of another search; these differ: {', '.join(different)}. Give another path, "
                "or delete the file to begin anew"
            )

    def _transaction(self) -> _Transaction:
        return _Transaction(self._connection)

    def add(self, cell: Cell, outcome: Outcome, values: Floats | None) -> None:
        """A finished cell; it is in the file when this returns."""
        size = None if values is None else values.shape[1]
        data = None if values is None else np.ascontiguousarray(values, dtype="<f8").tobytes()
        text = json.dumps(outcome, default=_number)
        self._connection.execute(
            "INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?)",
            (*cell, text, size, data, _checksum(*cell, text, size, data)),
        )

    def add_estimate(self, candidate: int, error: float) -> None:
        """What a candidate is ranked by; it is in the file when this returns."""
        error = float("inf") if np.isnan(error) else float(error)  # SQLite knows no NaN
        self._connection.execute("INSERT INTO estimates VALUES (?, ?)", (candidate, error))

    def finished(self) -> list[tuple[Cell, Outcome, Floats | None]]:
        """All cells that were there when the file was opened."""
        return self._finished

    def estimates(self) -> dict[int, float]:
        """The estimates that are there, by candidate."""
        return dict(self._connection.execute("SELECT candidate, error FROM estimates"))

    def _read(self, request: Request) -> Iterator[tuple[Cell, Outcome, Floats | None]]:
        if self._connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise self._damaged()
        known = set(request.cells)
        for *row, checksum in self._connection.execute("SELECT * FROM cells"):
            candidate, fold, outcome, size, data = row
            if _checksum(*row) != checksum or (candidate, fold) not in known:
                raise self._damaged()
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


VERSION = "version of onefit"


def _checksum(candidate: int, fold: int, outcome: str, size: int | None, data: bytes | None) -> int:
    return zlib.crc32(data or b"", zlib.crc32(f"{candidate} {fold} {size} {outcome}".encode()))


def fingerprint(request: Request, version: str) -> dict[str, str]:
    """What has to be the same for cells to be those of this search, by name."""
    options = request.options
    return {
        VERSION: f"{version}, format {FORMAT}",
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
    """A text that is the same in every process; functions are known by their names and code."""
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False)
        return f"{type(value).__module__}.{type(value).__qualname__}({_text(parameters)})"
    if isinstance(value, dict):
        inner = ", ".join(f"{key!r}: {_text(value[key])}" for key in sorted(value, key=repr))
        return f"{{{inner}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, set | frozenset):  # it has another order in every process
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    if isinstance(value, np.ndarray):
        return str(joblib.hash(value))
    if hasattr(value, "_scorers"):
        return _text(value._scorers)
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, _BaseScorer):
        how = [value._sign, value._response_method, value._kwargs]
        return f"scorer {_text([value._score_func, *how])}"
    if isinstance(value, partial):
        return f"partial {_text([value.func, value.args, value.keywords])}"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}{_code_of(value)}"
    text = repr(value)
    return type(value).__qualname__ if " at 0x" in text else text


def _code_of(function: Any) -> str:
    """A hash of what a function of the user does; those of scikit-learn come with its version."""
    code = getattr(function, "__code__", None)
    if code is None or f"{os.sep}sklearn{os.sep}" in code.co_filename:
        return ""
    cells = function.__closure__ or ()
    given = [_text(value) for value in (function.__defaults__, *map(_contents, cells))]
    return f" {joblib.hash([_code(code), given])}"


def _code(code: CodeType) -> list[Any]:
    return [code.co_code, code.co_names, [_constant(value) for value in code.co_consts]]


def _constant(value: Any) -> Any:
    return _code(value) if isinstance(value, CodeType) else _text(value)


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return None


def _number(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"A checkpoint keeps scores that are numbers; got {type(value).__name__}.")


def check_path(path: Any) -> None:
    """Raises ValueError where no checkpoint can be written, before any work is done."""
    file = Path(path).absolute()
    what = f"checkpoint={str(path)!r}"
    if not file.parent.is_dir():
        raise ValueError(f"{what}: there is no folder {str(file.parent)!r}.")
    if file.is_dir():
        raise ValueError(f"{what} is a folder. Give the path of a file in it.")
    # SQLite writes a log beside the file.
    for place in (file.parent, file):
        if place.exists() and not os.access(place, os.W_OK):
            raise ValueError(f"{what}: {str(place)!r} cannot be written to.")


def check_repeatable(search: Any, cv: Any) -> None:
    """Raises ValueError where a search that goes on would be another one."""
    if hasattr(search, "param_distributions") and search.random_state is None:
        raise ValueError(
            "checkpoint needs a random_state: without one a search that goes on draws other "
            "candidates. Give random_state=0, say."
        )
    if getattr(cv, "random_state", 0) is None and getattr(cv, "shuffle", True):
        raise ValueError(
            f"checkpoint needs folds that are the same when a search goes on; got cv={cv} without "
            "a random_state. Give it one, random_state=0, say."
        )
