"""Finished cells in a file, so that a search that was killed goes on where it was.

The file is an SQLite database with a write-ahead log: a cell is one transaction, and is there from
the moment that its commit returns, whatever then happens to the process. (After a failure of power
the last commits may be missing; the file is whole all the same.) What the search is about is
written down with it, and a file of another search is refused, as are damaged ones: every entry has
a checksum. Estimates that candidates are ranked by are kept, too, and of every path that is not at
its end the last solution: a search that goes on comes to the same results, bit for bit, as one that
was never stopped.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from types import CellType, CodeType, TracebackType
from typing import Any, Self

import joblib
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics._scorer import _BaseScorer

from onefit.kernels import Floats
from onefit.tuning.request import Cell, Outcome, PairState, Request

FORMAT = 2  # of the file
KIND = 0x6F6E6566  # "onef": SQLite's application_id, by which files of other programs are known

# Errors of SQLite that say nothing of what is in the file.
UNWRITABLE = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_AUTH,
)

_TABLES = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {KIND};
CREATE TABLE search (name TEXT PRIMARY KEY, value TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE cells (
    candidate INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    n_values INTEGER,
    decision_values BLOB,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (candidate, fold)
);
CREATE TABLE estimates (
    candidate INTEGER PRIMARY KEY, error REAL NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE paths (
    candidate INTEGER NOT NULL,
    fold INTEGER NOT NULL,
    state BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (candidate, fold)
);
COMMIT;
"""


class Checkpoint:
    """The finished cells of one search."""

    def __init__(self, path: str, request: Request, version: str) -> None:
        """Opens the file, or makes it. Raises ValueError where it is of another search."""
        self._path = path
        expected = fingerprint(request, version)
        file = Path(path).absolute()  # some relative names mean something else to SQLite
        if not _may_be_database(file):  # SQLite takes a file of a few bytes for an empty one
            raise self._damaged()
        try:
            self._connection = sqlite3.connect(file, isolation_level=None, timeout=0.0)
        except sqlite3.Error as error:
            raise ValueError(f"checkpoint={path!r} cannot be opened: {error}.") from None
        try:
            self._open(request, expected)
        except BaseException as error:
            self._connection.close()
            clear = self._clear_error(error)
            if clear is None:
                raise
            raise clear from None

    def _open(self, request: Request, expected: dict[str, str]) -> None:
        # What is damaged may be no text.
        self._connection.text_factory = bytes
        # Exclusive: two searches that fill one file would do everything twice.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        is_new = self._is_new(expected)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if is_new:
            self._connection.executescript(_TABLES)
        elif self._connection.execute("PRAGMA integrity_check").fetchone() != (b"ok",):
            raise self._damaged()
        self._compare(expected)
        # Read at once: what cannot be read is to be said before any work is done.
        self._finished = list(self._read(request))
        self._estimates = dict(self._read_estimates(request))
        self._states = dict(self._read_states())
        with self._transaction():  # a damaged file may be one that only can be read
            self._connection.execute("DELETE FROM cells WHERE candidate < 0")

    def _clear_error(self, error: BaseException) -> ValueError | None:
        """What an error of SQLite means; None for one that is clear already."""
        if isinstance(error, UnicodeDecodeError):  # of what SQLite says of a damaged file
            return self._damaged()
        if not isinstance(error, sqlite3.Error):
            return None
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what it is more exactly
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._error(
                "is in use by another search. Wait for its end, or give another path"
            )
        if code in UNWRITABLE:
            return self._error(f"cannot be read or written: {error}")
        return self._damaged()

    def _error(self, what: str) -> ValueError:
        return ValueError(f"checkpoint={self._path!r} {what}.")

    def _damaged(self) -> ValueError:
        # Which of the two cannot be told.
        return self._error(
            "is damaged, or a file of another kind. Give another path or, if it was a checkpoint, "
            "delete it to begin anew"
        )

    def _other_version(self, there: str, here: str) -> ValueError:
        return self._error(
            f"is of another {VERSION}: {there}; this is {here}. Give another path, or delete the "
            "file to begin anew"
        )

    def _is_new(self, expected: dict[str, str]) -> bool:
        """Whether there is nothing in the file yet. Files of other programs are not touched."""
        [(kind,)] = self._connection.execute("PRAGMA application_id")
        tables = _tables_of(self._connection)
        if not tables:
            return True
        if kind != KIND:
            raise self._damaged()
        if tables != _expected_tables():
            query = "SELECT value FROM search WHERE name = ?"
            [(there,)] = self._connection.execute(query, (VERSION,)).fetchall() or [(b"",)]
            if VERSIONS.fullmatch(there) and there.decode() != expected[VERSION]:
                raise self._other_version(there.decode(), expected[VERSION])
            raise self._damaged()
        return False

    def _compare(self, expected: dict[str, str]) -> None:
        known = {}
        for name, value, checksum in self._connection.execute("SELECT * FROM search"):
            if _checksum(name, value) != checksum:
                raise self._damaged()
            known[name.decode()] = value.decode()
        if not known:
            if self._connection.execute("SELECT count(*) FROM cells").fetchone() != (0,):
                raise self._damaged()
            rows = [(n, v, _checksum(n.encode(), v.encode())) for n, v in expected.items()]
            with self._transaction():
                self._connection.executemany("INSERT INTO search VALUES (?, ?, ?)", rows)
            return
        different = [name for name in expected if known.get(name) != expected[name]]
        if VERSION in different:
            raise self._other_version(known.get(VERSION, "unknown"), expected[VERSION])
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
            (*cell, text, size, data, _checksum(*cell, text.encode(), size, data)),
        )

    def add_states(self, cell: Cell, states: list[PairState]) -> None:
        """Where the path of a cell goes on; it is in the file when this returns."""
        data = _packed(states)
        self._connection.execute(
            "INSERT OR REPLACE INTO paths VALUES (?, ?, ?, ?)",
            (*cell, data, _checksum(*cell, data)),
        )

    def drop_states(self, cells: list[Cell]) -> None:
        """Forget where paths went on after these cells."""
        with self._transaction():
            self._connection.executemany("DELETE FROM paths WHERE candidate=? AND fold=?", cells)

    def add_estimate(self, candidate: int, error: float) -> None:
        """What a candidate is ranked by; it is in the file when this returns."""
        error = float("inf") if np.isnan(error) else float(error)  # SQLite knows no NaN
        self._connection.execute(
            "INSERT INTO estimates VALUES (?, ?, ?)",
            (candidate, error, _checksum(candidate, error)),
        )

    def finished(self) -> list[tuple[Cell, Outcome, Floats | None]]:
        """All cells that were there when the file was opened."""
        return self._finished

    def states(self) -> dict[Cell, list[PairState]]:
        """Where paths went on then, by the last cell of each."""
        return self._states

    def estimates(self) -> dict[int, float]:
        """The estimates that were there then, by candidate."""
        return self._estimates

    def _read(self, request: Request) -> Iterator[tuple[Cell, Outcome, Floats | None]]:
        known = set(request.cells)
        for *row, checksum in self._connection.execute("SELECT * FROM cells"):
            candidate, fold, outcome, size, data = row
            if _checksum(*row) != checksum or (candidate, fold) not in known:
                raise self._damaged()
            values = None if size is None else np.frombuffer(data, dtype="<f8").reshape(-1, size)
            yield Cell(candidate, fold), json.loads(outcome), values

    def _read_estimates(self, request: Request) -> Iterator[tuple[int, float]]:
        for candidate, error, checksum in self._connection.execute("SELECT * FROM estimates"):
            if _checksum(candidate, error) != checksum or candidate >= len(request.candidates):
                raise self._damaged()
            yield candidate, error

    def _read_states(self) -> Iterator[tuple[Cell, list[PairState]]]:
        for candidate, fold, data, checksum in self._connection.execute("SELECT * FROM paths"):
            if _checksum(candidate, fold, data) != checksum:
                raise self._damaged()
            yield Cell(candidate, fold), _unpacked(data)

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


HEADER = b"SQLite format 3\0"  # of every database
VERSION = "version of onefit"
VERSIONS = re.compile(rb"[\w.+!-]+, format \d+")


def _may_be_database(file: Path) -> bool:
    if not file.exists():
        return True
    with file.open("rb") as opened:
        return opened.read(len(HEADER)) in (b"", HEADER)


def _tables_of(connection: sqlite3.Connection) -> list[Any]:
    return connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()


@cache
def _expected_tables() -> list[Any]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.text_factory = bytes
        connection.executescript(_TABLES)
        return _tables_of(connection)


def _checksum(*entries: Any) -> int:
    """Of an entry of a table, whatever types its values have become."""
    checksum = 0
    for entry in entries:
        data = entry if isinstance(entry, bytes) else repr(entry).encode()
        checksum = zlib.crc32(
            data, zlib.crc32(f"{type(entry).__name__} {len(data)}".encode(), checksum)
        )
    return checksum


def _packed(states: list[PairState]) -> bytes:
    """Of each, the sizes, then support vectors, their coefficients, rows and their gradients."""
    parts: list[bytes] = []
    for converged, beta, gradient in states:
        support, rows = np.flatnonzero(beta), np.flatnonzero(~np.isnan(gradient))
        parts += [
            np.array([converged, len(beta), len(support), len(rows)], dtype="<i8").tobytes(),
            support.astype("<i4").tobytes(),
            beta[support].astype("<f8").tobytes(),
            rows.astype("<i4").tobytes(),
            gradient[rows].astype("<f8").tobytes(),
        ]
    return b"".join(parts)


def _unpacked(data: bytes) -> list[PairState]:
    states: list[PairState] = []
    at = 0

    def read(dtype: str, count: int) -> Any:
        nonlocal at
        values = np.frombuffer(data, dtype, count, at)
        at += values.nbytes
        return values

    while at < len(data):
        converged, size, n_support, n_rows = read("<i8", 4).tolist()
        beta, gradient = np.zeros(size), np.full(size, np.nan)
        support = read("<i4", n_support)
        beta[support] = read("<f8", n_support)
        rows = read("<i4", n_rows)
        gradient[rows] = read("<f8", n_rows)
        states.append(PairState(bool(converged), beta, gradient))
    return states


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
        if place.exists() and not os.access(place, os.R_OK | os.W_OK):
            raise ValueError(f"{what}: {str(place)!r} cannot be read or cannot be written to.")


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
