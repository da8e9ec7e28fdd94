"""Folds that processes have fitted are those that one process fits."""

import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from model_selection import problems
from onefit import SVC, SVR, NuSVC, NuSVR, cross_val_predict, cross_val_score, cross_validate
from onefit.model_selection.processes import worker_processes

MACHINES = {
    "SVC": SVC(C=3.0),
    "SVC, three classes": SVC(C=3.0, gamma=0.1, class_weight="balanced"),
    "NuSVC": NuSVC(nu=0.37, gamma=0.1),
    "SVR": SVR(C=3.0, epsilon=0.2),
    "NuSVR": NuSVR(C=3.0, nu=0.37, gamma=0.1),
    "SVC, precomputed": SVC(kernel="precomputed"),
    "SVC, function": SVC(kernel=lambda A, B: A @ B.T),  # multiprocessing cannot pickle it
}


def data(name, n=60):
    X, y = problems.data(name, n)
    return (rbf_kernel(X), y) if "precomputed" in name else (X, y)


def in_processes(backend, function, *args, **settings):
    with joblib.parallel_config(backend=backend, n_jobs=2):
        return function(*args, **settings)


def iterations(scores):
    return [(fold.n_iter, fold.seeded_from) for fold in scores.ledger.folds]


# multiprocessing forks anew for every call, loky keeps its workers: fewer cases of the first.
CASES = [("loky", name) for name in MACHINES] + [
    ("multiprocessing", name) for name in ("SVC, three classes", "NuSVR", "SVC, function")
]


@pytest.mark.parametrize(("backend", "name"), CASES)
def test_results_are_those_of_one_process(backend, name):
    machine = MACHINES[name]
    X, y = data(name)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    settings = {
        "cv": 5,
        "params": {"sample_weight": weight},
        "return_train_score": True,
        "return_estimator": True,
        "return_indices": True,
        "scoring": ["accuracy", "f1_macro"] if is_classifier(machine) else ["r2"],
    }
    for seeding in ("none", "avg"):
        ours = in_processes(backend, cross_validate, machine, X, y, **settings, seeding=seeding)
        alone = cross_validate(machine, X, y, **settings, seeding=seeding)
        assert list(ours) == list(alone)
        assert iterations(ours) == iterations(alone)
        for key in alone:
            if key.startswith(("test_", "train_")):
                assert_array_equal(ours[key], alone[key])
        for one, other in zip(ours["estimator"], alone["estimator"], strict=True):
            assert vars(one).keys() == vars(other).keys()
            assert one.get_params() == other.get_params()
            assert_array_equal(one.support_, other.support_)
            assert_array_equal(one.dual_coef_, other.dual_coef_)
            assert one.fit_status_ == 0
    assert ours.ledger.full.n_iter == 2 * alone.ledger.full.n_iter  # in both workers


@pytest.mark.parametrize("layout", [sp.csr_array, sp.csr_matrix, np.float32])
def test_values_of_held_out_rows(layout):
    X, y = data("SVC, three classes")
    y = np.array(["b", "c", "a"])[y]
    machine, settings = SVC(gamma=0.1), {"cv": KFold(3), "method": "decision_function"}
    ours = in_processes("loky", cross_val_predict, machine, layout(X), y, **settings)
    assert_array_equal(ours, cross_val_predict(machine, layout(X), y, **settings))


def test_neighbours_are_named_as_in_all_folds():
    X, y = data("SVC")
    scores = in_processes("loky", cross_validate, SVC(), X, y, cv=5, seeding="sir")
    sources = [fold.seeded_from for fold in scores.ledger.folds]
    assert sources == ["nothing", "fold 0", "fold 1", "nothing", "fold 3"]
    assert_array_equal(scores["test_score"], cross_val_score(SVC(), X, y, cv=5))


def test_auto_starts_cold_where_workers_have_few_folds():
    X, y = data("SVC", n=1000)

    def sources(cv):
        folds = in_processes("loky", cross_validate, SVC(), X, y, cv=cv).ledger.folds
        return {fold.seeded_from for fold in folds}

    assert sources(4) == {"nothing"}
    assert sources(8) == {"all rows"}


@pytest.mark.parametrize(
    ("machine", "spread", "message"),
    # The parent says how a solver ended, a worker that classes have no margin.
    [(SVC(max_iter=2), 1.0, "max_iter=2"), (NuSVC(), 0.0, "no margin")],
)
def test_warnings_come_through(machine, spread, message):
    X, y = data("SVC")
    found = []
    for backend in ("threading", "loky"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            in_processes(backend, cross_validate, machine, spread * X, y)
        found.append([str(w.message) for w in caught if w.category is ConvergenceWarning])
    assert found[0] == found[1]
    assert len(found[0]) == 5
    assert message in found[0][0]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        with pytest.raises(ConvergenceWarning, match=message):
            in_processes("loky", cross_validate, machine, spread * X, y, error_score="raise")


def test_errors_come_through():
    X, y = data("NuSVC")
    train = np.concatenate((np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:3]))
    cv = [(train, np.flatnonzero(y == 1)[3:]), (np.arange(50), np.arange(50, 60))]
    with pytest.warns(FitFailedWarning, match="infeasible"):
        scores = in_processes("loky", cross_validate, NuSVC(), X, y, cv=cv, error_score=-7.0)
    assert scores["test_score"][0] == -7.0
    assert_array_equal(scores["test_score"][1:], cross_val_score(NuSVC(), X, y, cv=cv[1:]))
    with pytest.raises(ValueError, match="infeasible"):
        in_processes("loky", cross_val_score, NuSVC(), X, y, cv=cv, error_score="raise")


def test_large_data_are_mapped_and_not_copied():
    class Spy(SVC):
        """Tells its parent what it was given."""

        def _check_training_data(self, X, y):
            parts = (X.data, X.indices) if sp.issparse(X) else (X,)
            self.seen = [str(getattr(part, "filename", "no file")) for part in parts]
            return super()._check_training_data(X, y)

        def _model(self, *args):
            warnings.warn(" ".join(self.seen), UserWarning, stacklevel=1)
            return super()._model(*args)

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 1500)), np.arange(200) % 2
    for given, n_parts in ((X, 1), (sp.csr_array(X), 2)):
        with pytest.warns(UserWarning, match="joblib_memmapping_folder") as caught:
            in_processes("loky", cross_val_score, Spy(kernel="linear"), given, y, cv=4)
        [seen] = {str(w.message) for w in caught if w.category is UserWarning}
        names = seen.split()
        assert len(names) == n_parts  # a file for each array, the same for both workers
        assert all("joblib_memmapping_folder" in name for name in names)
    with pytest.warns(UserWarning, match="no file"):
        in_processes("loky", cross_val_score, Spy(kernel="linear"), X[:, :5], y, cv=4)


def test_threads_unless_processes_were_chosen():
    assert worker_processes(2, 5) == 1
    assert worker_processes(None, 5) == 1
    with joblib.parallel_config(n_jobs=2):
        assert worker_processes(None, 5) == 1
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert worker_processes(None, 5) == 1
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert worker_processes(None, 5) == 2
        assert worker_processes(3, 5) == 3
        assert worker_processes(3, 2) == 2
        assert worker_processes(1, 5) == 1


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_pipelines_and_others_in_a_context(backend):
    X, y = data("SVC")
    pipeline = make_pipeline(StandardScaler(), SVC())
    ours = in_processes(backend, cross_val_score, pipeline, X, y)
    assert_allclose(ours, cross_val_score(pipeline, X, y))
    with joblib.parallel_config(backend=backend):
        assert_allclose(cross_val_score(SVC(), X, y), cross_val_score(SVC(), X, y))


LONG = """
import joblib
import numpy as np
from onefit import SVC, cross_val_score
rng = np.random.default_rng(0)
X, y = rng.normal(size=(6000, 20)), rng.integers(0, 2, 6000)
with joblib.parallel_config(backend="{}", n_jobs=2):
    cross_val_score(SVC(), X[:50], y[:50])
    print("begin", flush=True)
    cross_val_score(SVC(C=1000), X, y, cv=100)
"""


# To one process, as another program does it, or to all of them, as a terminal does.
INTERRUPTS = [("loky", "kill")]
if "ONEFIT_LONG" in os.environ:
    INTERRUPTS += [("loky", "killpg"), ("multiprocessing", "kill"), ("multiprocessing", "killpg")]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("backend", "send"), INTERRUPTS)
def test_an_interrupt_leaves_nothing_running(backend, send):
    process = subprocess.Popen(
        [sys.executable, "-c", LONG.format(backend)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout.readline() == "begin\n"
    time.sleep(0.5)
    assert len(session(process.pid)) >= 3
    getattr(os, send)(process.pid, signal.SIGINT)
    began = time.monotonic()
    _, errors = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors
    while session(process.pid) and time.monotonic() - began < 5.0:
        time.sleep(0.05)
    assert session(process.pid) == []


def session(leader):
    """Processes of a session that are alive."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                if os.getsid(int(folder.name)) == leader and state != "Z":
                    found.append(int(folder.name))
            except OSError:  # it has ended meanwhile
                pass
    return found
