"""Back ends of joblib with workers of their own: the same results, and the data sent once."""

import os
import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, GridSearchCV, cross_validate
from onefit.tuning import processes

pytestmark = pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
LONG = bool(os.environ.get("ONEFIT_LONG"))
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.02, 0.05, 0.2]}
X, y = make_classification(120, 30, n_informative=4, random_state=1)


@contextmanager
def dask_workers():
    distributed = pytest.importorskip("distributed", reason="dask is not installed")
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.Client(n_workers=2, **options):
        yield


@contextmanager
def ray_workers():
    if not LONG:
        pytest.skip("ray takes ten seconds to start; part of the long tier (--long)")
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    register_ray()
    try:
        yield
    finally:
        ray.shutdown()


@pytest.mark.parametrize(("backend", "workers"), [("dask", dask_workers), ("ray", ray_workers)])
def test_results_are_those_of_one_process(tmp_path, backend, workers):
    machine = SVC(tol=1e-6)
    pipeline = make_pipeline(StandardScaler(), machine)
    piped = {f"svc__{name}": values for name, values in GRID.items()}
    searches = [
        (GridSearchCV(machine, GRID, cv=3, n_jobs=2), {}),
        (GridSearchCV(machine, GRID, cv=3, n_jobs=2), {"checkpoint": tmp_path / "search.db"}),
        (GridSearchCV(pipeline, piped, cv=3, n_jobs=2), {}),
        (GridSearchCV(machine, {**GRID, "C": [1.0, np.inf]}, cv=3, n_jobs=2), {}),
    ]
    alone = [search.fit(X, y).cv_results_["mean_test_score"] for search, _ in searches]
    folds = cross_validate(machine, X, y, cv=6)["test_score"]
    with workers(), parallel_config(backend=backend, n_jobs=2):
        for (search, options), expected in zip(searches, alone, strict=True):
            search.set_params(**options).fit(X, y)
            assert_allclose(search.cv_results_["mean_test_score"], expected)
        assert_allclose(cross_validate(machine, X, y, cv=6, n_jobs=2)["test_score"], folds)
    assert len(searches[1][0].cv_results_["params"]) == 9
    assert searches[1][0].ledger_.cells == 27


@pytest.mark.parametrize("keep", [False, True])
def test_the_data_are_sent_once_to_a_worker(monkeypatch, tmp_path, keep):
    """Few tasks, or tasks that all have the same arrays as arguments and little besides."""
    tasks = []
    in_turn = processes.in_turn

    def noted(calls, n_jobs):
        tasks.extend(calls)
        return in_turn(iter(tasks), n_jobs)

    monkeypatch.setattr(processes, "in_turn", noted)
    checkpoint = tmp_path / "search.db" if keep else None
    search = GridSearchCV(SVC(), GRID, cv=3, n_jobs=2, checkpoint=checkpoint)
    with parallel_config(backend="loky"):
        search.fit(X, y)
    assert len(tasks) == (9 if keep else 2)
    assert tasks[0][1][0] is X
    for _, arguments, options in tasks:
        assert not options
        for mine, first in zip(arguments[:3], tasks[0][1][:3], strict=True):
            assert mine is first
        assert len(pickle.dumps(arguments[3:])) < 0.2 * X.nbytes
    with parallel_config(backend="loky"):
        tasks.clear()
        search.fit(X, y)
    assert len(tasks) == (0 if keep else 2)  # nothing is left to do
    assert search.ledger_.resumed == (27 if keep else 0)


def test_workers_share_the_memory_that_is_free(monkeypatch, tmp_path):
    given = []
    monkeypatch.setattr(processes, "budget_bytes", lambda size, n: 100 * 2**20)
    monkeypatch.setattr(processes, "in_turn", lambda calls, n_jobs: given.extend(calls) or [])
    search = GridSearchCV(SVC(), GRID, cv=3, n_jobs=2, checkpoint=tmp_path / "search.db")
    with parallel_config(backend="loky"), pytest.raises(KeyError):  # nothing was done
        search.fit(X, y)
    assert len(given) == 9
    assert {arguments[-1] for _, arguments, _ in given} == {50.0}
