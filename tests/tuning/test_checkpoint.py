"""Searches that are killed and resumed: nothing lost, nothing done twice, nothing mixed up."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, RepeatedStratifiedKFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, GridSearchCV, RandomizedSearchCV
from onefit.tuning.checkpoint import Checkpoint

LONG = bool(os.environ.get("ONEFIT_LONG"))
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
X, y = make_classification(120, 5, random_state=0)


def cells_in(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT candidate, fold FROM cells").fetchall()


class Killed(BaseException):
    """In the place of a signal."""


@pytest.fixture
def stop_after(monkeypatch):
    """Makes a search end after so many cells, and counts those that get done."""
    done = []

    def arrange(n):
        add = Checkpoint.add

        def counted(self, cell, outcome, values):
            add(self, cell, outcome, values)
            done.append(cell)
            if len(done) == n:
                raise Killed

        monkeypatch.setattr(Checkpoint, "add", counted)
        return done

    return arrange


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", ["machine", "three classes", "pipeline", "scorer of the user"])
def test_what_is_done_is_not_done_again(tmp_path, stop_after, n_jobs, kind):
    path = tmp_path / "search.db"
    estimator, grid, scoring = SVC(tol=1e-6), GRID, None
    targets = np.digitize(X[:, 0], [-0.5, 0.5]) if kind == "three classes" else y
    if kind == "pipeline":
        estimator = make_pipeline(StandardScaler(), estimator)
        grid = {f"svc__{name}": values for name, values in GRID.items()}
    if kind == "scorer of the user":
        scoring = _score_of_support

    def search(**options):
        return GridSearchCV(estimator, grid, cv=4, n_jobs=n_jobs, scoring=scoring, **options)

    expected = search().fit(X, targets)
    done = stop_after(9)
    with pytest.raises(Killed):
        search(checkpoint=path).fit(X, targets)
    assert sorted(cells_in(path)) == sorted(map(tuple, done))
    resumed = search(checkpoint=str(path)).fit(X, targets)
    assert len(done) == 24 == len(set(done)) == len(cells_in(path))
    assert resumed.ledger_.resumed == 9
    for key in ("split0_test_score", "split3_test_score", "rank_test_score"):
        assert_array_equal(resumed.cv_results_[key], expected.cv_results_[key])
    assert resumed.best_params_ == expected.best_params_
    # A search that is done is not run at all.
    again = search(checkpoint=path).fit(X, targets)
    assert len(done) == 24
    for key, values in resumed.cv_results_.items():
        if key.startswith(("split", "mean", "std")):
            assert_array_equal(again.cv_results_[key], values)


def _score_of_support(estimator, X, y):
    return estimator.score(X, y) + 0.001 * len(estimator.support_)


def test_all_of_an_outcome_is_kept(tmp_path):
    path = tmp_path / "search.db"
    options = {
        "scoring": {"accuracy": "accuracy", "auc": "roc_auc"},
        "refit": "auc",
        "return_train_score": True,
        "cv": 3,
    }
    first = GridSearchCV(SVC(), GRID, checkpoint=path, **options).fit(X, y)
    second = GridSearchCV(SVC(), GRID, checkpoint=path, **options).fit(X, y)
    assert second.ledger_.resumed == 18
    for key, values in first.cv_results_.items():
        if key != "params":
            assert_array_equal(second.cv_results_[key], values)


OTHERS = {
    "data": lambda: (SVC(), GRID, X + 1e-9, y, {}),
    "targets": lambda: (SVC(), GRID, X, 1 - y, {}),
    "candidates": lambda: (SVC(), {**GRID, "C": [0.1, 1.0, 11.0]}, X, y, {}),
    "folds": lambda: (SVC(), GRID, X, y, {"cv": KFold(3)}),
    "estimator": lambda: (SVC(tol=1e-4), GRID, X, y, {}),
    "scoring": lambda: (SVC(), GRID, X, y, {"scoring": "f1"}),
    "return_train_score": lambda: (SVC(), GRID, X, y, {"return_train_score": True}),
}


def test_functions_are_told_apart(tmp_path):
    """In a notebook they have the same name."""
    search = GridSearchCV(SVC(), GRID, cv=3, checkpoint=tmp_path / "search.db")
    search.set_params(scoring=lambda estimator, X, y: estimator.C).fit(X, y)
    search.set_params(scoring=lambda estimator, X, y: estimator.C).fit(X, y)
    assert search.ledger_.resumed == 18
    with pytest.raises(ValueError, match="these differ: scoring"):
        search.set_params(scoring=lambda estimator, X, y: -estimator.C).fit(X, y)


def accuracy(labels, found, *, factor=1.0):
    return factor * np.mean(labels == found)


def scaled(factor):
    return lambda labels, found: factor * np.mean(labels == found)


@pytest.mark.parametrize(
    "score",
    [
        lambda factor: make_scorer(partial(accuracy, factor=factor)),
        lambda factor: make_scorer(accuracy, factor=factor),
        lambda factor: make_scorer(scaled(factor)),
        lambda factor: make_scorer(lambda a, b, factor=factor: factor * np.mean(a == b)),
    ],
)
def test_functions_are_told_apart_by_what_they_are_given(tmp_path, score):
    search = GridSearchCV(SVC(), GRID, cv=3, checkpoint=tmp_path / "search.db")
    search.set_params(scoring=score(1.0)).fit(X, y)
    assert search.set_params(scoring=score(1.0)).fit(X, y).ledger_.resumed == 18
    with pytest.raises(ValueError, match="these differ: scoring"):
        search.set_params(scoring=score(2.0)).fit(X, y)


TEXTS = """
from functools import partial
from sklearn.metrics import make_scorer
from onefit.tuning.checkpoint import _text

def score(labels, found, least=frozenset({"a", "b", "c"})):
    return sum(label in {"x", "y", "z"} for label in labels)

print(_text(make_scorer(partial(score, least=1))))
print(_text(make_scorer(lambda a, b: [c in {"one", "two", "three"} for c in a])))
"""


def test_functions_are_known_again_in_another_process():
    """Whose hashes of strings, and so the order of sets, are others."""
    found = {
        subprocess.run(
            [sys.executable, "-c", TEXTS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


@pytest.mark.parametrize("what", OTHERS)
def test_a_checkpoint_of_another_search_is_refused(tmp_path, what):
    path = tmp_path / "search.db"
    GridSearchCV(SVC(), GRID, cv=3, checkpoint=path).fit(X, y)
    estimator, grid, data, targets, options = OTHERS[what]()
    search = GridSearchCV(estimator, grid, **{"cv": 3, **options}, checkpoint=path)
    with pytest.raises(ValueError, match=f"is of another search; these differ: .*{what}"):
        search.fit(data, targets)
    assert len(cells_in(path)) == 18


def test_a_checkpoint_of_another_version_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "search.db"
    GridSearchCV(SVC(), GRID, cv=3, checkpoint=path).fit(X, y)
    monkeypatch.setattr("onefit.tuning.search.version", lambda: "9.9")
    with pytest.raises(ValueError, match=r"another version of onefit: \d.*; this is 9\.9"):
        GridSearchCV(SVC(), GRID, cv=3, checkpoint=path).fit(X, y)


@pytest.fixture
def no_work(monkeypatch):
    """Fails where anything is fitted."""

    def fit(*args, **kwargs):
        raise AssertionError("work was done")

    def forbid():
        monkeypatch.setattr("onefit.tuning.workload.solve_chains", fit)
        monkeypatch.setattr(SVC, "fit", fit)

    return forbid


def test_paths_that_cannot_be(tmp_path, no_work, monkeypatch):
    no_work()

    def check(path, message):
        with pytest.raises(ValueError, match=message):
            GridSearchCV(SVC(), GRID, checkpoint=path).fit(X, y)

    check(tmp_path / "nowhere" / "search.db", "there is no folder")
    check(tmp_path, "is a folder")
    check(3, "'checkpoint' parameter")
    (tmp_path / "text").write_text("no database " * 100)
    check(tmp_path / "text", "a file of another kind")
    # Nobody is forbidden anything as root, so the answer of the system is made up.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    check(tmp_path / "search.db", "cannot be read or cannot be written to")


def test_databases_of_other_programs_are_left_alone(tmp_path, no_work):
    path = tmp_path / "mine.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE cells (name TEXT)")
        connection.commit()
    before = path.read_bytes()
    no_work()
    with pytest.raises(ValueError, match="a file of another kind"):
        GridSearchCV(SVC(), GRID, checkpoint=path).fit(X, y)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_names_that_mean_something_else_to_sqlite(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    search = GridSearchCV(SVC(), GRID, cv=3, checkpoint=name)
    if not name:
        with pytest.raises(ValueError, match="is a folder"):
            search.fit(X, y)
        return
    search.fit(X, y)
    assert search.fit(X, y).ledger_.resumed == 18


@pytest.mark.parametrize("damage", ["half", "noise", "outcome", "values", "another cell"])
def test_damaged_files_are_refused(tmp_path, no_work, damage):
    path = tmp_path / "search.db"
    GridSearchCV(SVC(), GRID, cv=3, checkpoint=path).fit(X, y)
    changes = {
        "outcome": "UPDATE cells SET outcome = '{' WHERE fold = 1",
        "values": "UPDATE cells SET decision_values = zeroblob(8) WHERE fold = 1",
        "another cell": "UPDATE cells SET candidate = 99 WHERE candidate = 5",
    }
    if damage in changes:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(changes[damage])
            connection.commit()
    else:
        content = path.read_bytes()
        noise = np.random.default_rng(0).bytes(len(content) // 2)
        kept = content[: len(content) - len(noise)]
        path.write_bytes(kept if damage == "half" else kept + noise)
    no_work()
    with pytest.raises(ValueError, match="is damaged"):
        GridSearchCV(SVC(), GRID, cv=3, checkpoint=path).fit(X, y)


def test_searches_that_cannot_go_on_are_refused(tmp_path, no_work):
    path = tmp_path / "search.db"
    no_work()
    drawn = RandomizedSearchCV(SVC(), GRID, n_iter=3, checkpoint=path)
    with pytest.raises(ValueError, match="checkpoint needs a random_state"):
        drawn.fit(X, y)
    for cv in (KFold(3, shuffle=True), ShuffleSplit(3), RepeatedStratifiedKFold(n_splits=3)):
        with pytest.raises(ValueError, match=rf"cv={type(cv).__name__}\(.*random_state"):
            GridSearchCV(SVC(), GRID, cv=cv, checkpoint=path).fit(X, y)
    assert not path.exists()


def test_a_random_search_goes_on(tmp_path, stop_after):
    path = tmp_path / "search.db"
    ranges = {"C": loguniform(0.01, 100.0), "gamma": [0.05, 0.5]}
    cv = KFold(3, shuffle=True, random_state=1)

    def search(**options):
        return RandomizedSearchCV(SVC(), ranges, n_iter=6, cv=cv, random_state=3, **options)

    expected = search().fit(X, y)
    done = stop_after(5)
    with pytest.raises(Killed):
        search(checkpoint=path).fit(X, y)
    resumed = search(checkpoint=path).fit(X, y)
    assert len(done) == 18 == len(set(done))
    assert resumed.ledger_.resumed == 5
    assert resumed.best_params_ == expected.best_params_


def test_other_estimators_go_on_too(tmp_path, stop_after):
    path = tmp_path / "search.db"

    def search(**options):
        return GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, **options)

    expected = search().fit(X, y)
    done = stop_after(4)
    with pytest.raises(Killed):
        search(checkpoint=path).fit(X, y)
    resumed = search(checkpoint=path).fit(X, y)
    assert len(done) == 15 == len(set(done))
    assert resumed.ledger_.resumed == 4
    assert resumed.ledger_.by_sklearn == 11
    assert_array_equal(
        resumed.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    assert not hasattr(resumed, "best_index_1se_")
    with pytest.raises(ValueError, match="cross_val_predict"):
        resumed.out_of_fold()


def test_cells_that_scikit_learn_fits_go_on_too(tmp_path, stop_after):
    """Of a machine whose folds have rows twice, or that predicts in its own way."""
    rows = np.arange(len(y))
    twice = [(np.repeat(rows[:80], 2), rows[80:]), (rows[40:], rows[:40])]
    for name, machine, options in (
        ("rows twice", SVC(), {"cv": twice}),
        ("own way", Contrary(), {"cv": 3}),
    ):
        path = tmp_path / name
        search = GridSearchCV(machine, GRID, checkpoint=path, **options).fit(X, y)
        other = GridSearchCV(machine, GRID, **options).fit(X, y)
        assert_array_equal(
            search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
        )
        assert len(cells_in(path)) == search.n_splits_ * 6
        assert search.fit(X, y).ledger_.resumed == search.n_splits_ * 6


class Contrary(SVC):
    def predict(self, X):
        return 1 - super().predict(X)


def test_two_searches_cannot_fill_one_file(tmp_path):
    path = tmp_path / "search.db"

    def nested(estimator, X_test, y_test):
        GridSearchCV(SVC(), GRID, cv=3, checkpoint=path).fit(X, y)
        return 0.0

    with pytest.raises(ValueError, match="is in use"):
        GridSearchCV(SVC(), GRID, cv=3, scoring=nested, checkpoint=path, error_score="raise").fit(
            X, y
        )


def test_scores_that_are_no_numbers_are_refused_clearly(tmp_path):
    scorer = make_scorer(lambda a, b: 1j)
    search = GridSearchCV(SVC(), GRID, scoring=scorer, checkpoint=tmp_path / "s.db", cv=3)
    with pytest.raises(TypeError, match="scores that are numbers; got complex"):
        search.fit(X, y)


# One interpreter, which forks searches and kills them: starting an interpreter takes longer than
# the search.
KILLS = """
import os, random, signal, sqlite3, sys, time
import numpy as np
from sklearn.datasets import make_classification
from onefit import SVC, GridSearchCV
from onefit.tuning.checkpoint import Checkpoint

path, n_kills, n_jobs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X, y = make_classification(300, 6, flip_y=0.3, random_state=0)
grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.02, 0.1, 0.5]}
log = os.open(path + ".log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
add = Checkpoint.add

def logged(self, cell, outcome, values):
    add(self, cell, outcome, values)
    os.write(log, b"%d %d\\n" % cell)
    time.sleep(0.002)  # so that kills meet all parts of a search

Checkpoint.add = logged
search = GridSearchCV(SVC(), grid, cv=5, n_jobs=n_jobs, checkpoint=path, refit=False)
generator = random.Random(int(sys.argv[4]))
kills = 0
while kills < n_kills:
    child = os.fork()
    if child == 0:
        search.fit(X, y)
        os._exit(0)
    time.sleep(generator.uniform(0.0, 0.06))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    kills += os.WIFSIGNALED(status)
    lines = open(path + ".log").read().split("\\n")[:-1]
    assert len(set(lines)) == len(lines), "a cell was done twice"
    connection = sqlite3.connect(path)
    try:
        there = connection.execute("SELECT candidate, fold FROM cells").fetchall()
    except sqlite3.OperationalError:  # killed before the tables were there
        there = []
    connection.close()
    assert {"%d %d" % cell for cell in there} >= set(lines), "a cell was lost"
    if len(lines) == 60:  # done: begin anew
        for name in (path, path + "-wal", path + "-shm", path + ".log"):
            if os.path.exists(name):
                os.remove(name)
        os.close(log)
        log = os.open(path + ".log", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
Checkpoint.add = add
last = search.fit(X, y)
expected = GridSearchCV(SVC(), grid, cv=5, refit=False).fit(X, y)
assert last.best_params_ == expected.best_params_
np.testing.assert_allclose(
    last.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"], atol=0.004
)
print(kills, "kills")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork and SIGKILL")
@pytest.mark.parametrize("n_jobs", [1, 2] if LONG else [2])
def test_kills_at_random_moments(tmp_path, n_jobs):
    n_kills = 50 if LONG else 8
    script = Path(tmp_path) / "kills.py"
    script.write_text(KILLS)
    command = [sys.executable, str(script), str(tmp_path / "search.db")]
    done = subprocess.run(
        [*command, str(n_kills), str(n_jobs), "3"], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{n_kills} kills\n"
