"""Damaged checkpoints: a clear error that leaves the file alone, or the right results."""

import os
import re
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification

from onefit import SVC, GridSearchCV
from onefit.tuning.checkpoint import Checkpoint

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
PAGE = 4096
X, y = make_classification(60, 4, random_state=0)
DAMAGED = "is damaged, or a file of another kind. Give another path or"


def search(path=None):
    return GridSearchCV(SVC(), GRID, cv=3, refit=False, checkpoint=path)


class Killed(BaseException):
    """In the place of a signal."""


@pytest.fixture(scope="module")
def expected():
    return search().fit(X, y)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The files of a search that was stopped after ten cells: ended, and killed (with a log)."""
    folder = tmp_path_factory.mktemp("checkpoint")
    path, copied = folder / "search", folder / "killed"
    add, done = Checkpoint.add, []

    def counted(self, cell, outcome, values):
        add(self, cell, outcome, values)
        done.append(cell)
        if len(done) == 10:
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{copied}{end}")
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "add", counted)
        with pytest.raises(Killed):
            search(path).fit(X, y)
    return {
        "ended": {"": path.read_bytes()},
        "killed": {end: (folder / f"killed{end}").read_bytes() for end in ("", "-wal")},
    }


def flip_bits(content, random):
    for _ in range(random.integers(1, 20)):
        content[random.integers(len(content))] ^= 1 << random.integers(8)


def flip_header(content, random):
    content[random.integers(100)] ^= 1 << random.integers(8)


def cut(content, random):
    del content[random.integers(1, len(content)) :]


def grow(content, random):
    content += random.bytes(random.integers(1, 3 * PAGE))


def clear_page(content, random):
    page = PAGE * random.integers(-(-len(content) // PAGE))
    content[page : page + PAGE] = bytes(len(content[page : page + PAGE]))


def copy_page(content, random):
    here, there = PAGE * random.integers(-(-len(content) // PAGE), size=2)
    content[here : here + PAGE] = content[there : there + PAGE]


def write_noise(content, random):
    first = random.integers(len(content))
    size = len(content[first : first + random.integers(1, 300)])
    content[first : first + size] = random.bytes(size)


def write_ones(content, random):
    first = 16 * random.integers(len(content) // 16)
    content[first : first + 16] = b"\xff" * 16


def write_anything(content, random):
    content[:] = random.bytes(random.integers(1, 5 * PAGE))


WAYS = (
    flip_bits,
    flip_header,
    cut,
    grow,
    clear_page,
    copy_page,
    write_noise,
    write_ones,
    write_anything,
)


def check(path, contents, expected):
    """Whether the search went on, which it does right if at all; else the error is the clear one
    and nothing has changed."""
    for end, content in contents.items():
        path.with_name(path.name + end).write_bytes(content)
    message = None
    try:
        found = search(path).fit(X, y)
    except ValueError as error:
        message = str(error)
    if message is not None:
        assert re.match(f"checkpoint={str(path)!r} {DAMAGED}", message), message
        if len(contents) == 1:  # a log is merged when the file is closed
            assert path.read_bytes() == contents[""]
        return False
    for key, values in expected.cv_results_.items():
        if key.startswith(("split", "mean_test", "std_test", "rank")):
            assert_array_equal(found.cv_results_[key], values)
    for cell, values in expected._out_of_fold.values.items():
        assert_array_equal(found._out_of_fold.values[cell], values)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM cells").fetchone() == (18,)
    return True


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_damaged_files(tmp_path, files, expected, way):
    random = np.random.default_rng(7)
    went_on = []
    for number in range(40):
        content = bytearray(files["ended"][""])
        way(content, random)
        went_on.append(check(tmp_path / str(number), {"": bytes(content)}, expected))
    assert not all(went_on) or way is grow


@pytest.mark.parametrize("end", ["", "-wal"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_damaged_files_of_killed_searches(tmp_path, files, expected, way, end):
    random = np.random.default_rng(8)
    for number in range(8):
        contents = {name: bytearray(content) for name, content in files["killed"].items()}
        way(contents[end], random)
        contents = {name: bytes(content) for name, content in contents.items()}
        check(tmp_path / str(number), contents, expected)


def test_files_that_are_not_damaged_go_on(tmp_path, files, expected):
    for name, contents in files.items():
        assert check(tmp_path / name, contents, expected)
    assert check(tmp_path / "empty", {"": b""}, expected)  # killed before anything was written


def test_files_of_others(tmp_path, expected):
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE search (name TEXT, value TEXT)")
        connection.commit()
    assert not check(tmp_path / "1", {"": other.read_bytes()}, expected)
    assert not check(tmp_path / "2", {"": b"some text\n" * 1000}, expected)
    assert not check(tmp_path / "3", {"": b"x"}, expected)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_files_that_cannot_be_read(tmp_path):
    path = tmp_path / "search"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(ValueError, match="cannot be read"):
        search(path).fit(X, y)


def test_files_of_an_older_layout_are_named_so(tmp_path, files):
    path = tmp_path / "search"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA application_id = {0x6F6E6566}")
        connection.execute("CREATE TABLE search (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        connection.execute("CREATE TABLE cells (candidate INTEGER)")
        row = ("version of onefit", "0.9.1, format 1")
        connection.execute("INSERT INTO search VALUES (?, ?)", row)
        connection.commit()
    before = path.read_bytes()
    message = r"is of another version of onefit: 0\.9\.1, format 1; this is .*, format 2\."
    with pytest.raises(ValueError, match=message):
        search(path).fit(X, y)
    assert path.read_bytes() == before


def test_in_use_is_what_another_search_holds(tmp_path, files):
    """And no file that is damaged."""
    path = tmp_path / "search"
    path.write_bytes(files["ended"][""])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ValueError, match="is in use by another search"):
            search(path).fit(X, y)
    assert search(path).fit(X, y).ledger_.resumed == 10
