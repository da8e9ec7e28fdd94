"""A search that was killed and goes on comes to the results of one that never was, bit for bit."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification, make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, SVR, GridSearchCV, NuSVC, NuSVR, SmoothSVC
from onefit.tuning.checkpoint import Checkpoint

# Values are determined to a coarse tolerance only: from elsewhere, they would end elsewhere.
TOL = 0.05
C_PATH = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.1]}
PREFIXED = {f"svc__{name}": values for name, values in C_PATH.items()}
CASES = {
    "two classes": (SVC(tol=TOL), C_PATH, 2),
    "three classes": (SVC(tol=TOL), C_PATH, 3),
    "SVR": (SVR(tol=TOL), C_PATH, 0),
    "NuSVR": (NuSVR(tol=TOL), C_PATH, 0),
    "NuSVC": (NuSVC(tol=TOL), {"nu": [0.1, 0.2, 0.3], "gamma": [0.1]}, 2),
    "pipeline": (make_pipeline(StandardScaler(), SVC(tol=TOL)), PREFIXED, 3),
    "limit": (SVC(tol=TOL, max_iter=30), C_PATH, 2),
    "SmoothSVC": (SmoothSVC(), {"C": [0.1, 1.0, 10.0]}, 2),
}


class Killed(BaseException):
    """In the place of a signal."""


def data(n_classes, n=90):
    if n_classes == 0:
        X, y = make_regression(n, 5, noise=30.0, random_state=1)
        return X, y / y.std()
    options = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.2, "random_state": 1}
    return make_classification(n, 5, n_classes=n_classes, **options)


def fitted(search, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return search.fit(X, y)


def killed_after(monkeypatch, n_cells, search, X, y):
    add, done = Checkpoint.add, []

    def counted(self, cell, outcome, values):
        add(self, cell, outcome, values)
        done.append(cell)
        if len(done) == n_cells:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add", counted)
        with pytest.raises(Killed):
            fitted(search, X, y)


def assert_same(found, expected):
    for key, values in expected.cv_results_.items():
        if "_time" not in key and key != "params":
            assert_array_equal(found.cv_results_[key], values, err_msg=key)
    for name in ("best_index_", "best_score_", "best_params_"):
        assert getattr(found, name) == getattr(expected, name)
    kept = vars(expected).get("_out_of_fold")
    if kept is not None:
        assert found._out_of_fold.values.keys() == kept.values.keys()
        for cell, values in kept.values.items():
            assert_array_equal(found._out_of_fold.values[cell], values, err_msg=str(cell))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_wherever_it_was_killed(tmp_path, monkeypatch, case, n_jobs):
    estimator, grid, n_classes = CASES[case]
    X, y = data(n_classes)

    def search(path=None):
        return GridSearchCV(
            estimator, grid, cv=3, n_jobs=n_jobs, scoring=SCORING[n_classes], checkpoint=path
        )

    expected = fitted(search(), X, y)
    n_cells = 3 * len(expected.cv_results_["params"])
    for n_done in range(1, n_cells):
        path = tmp_path / str(n_done)
        killed_after(monkeypatch, n_done, search(path), X, y)
        resumed = fitted(search(path), X, y)
        assert resumed.ledger_.resumed == n_done
        assert_same(resumed, expected)


SCORING = {0: "neg_mean_squared_error", 2: "average_precision", 3: "f1_macro"}


def test_wherever_it_was_killed_again(tmp_path, monkeypatch):
    """And again, after every cell."""
    X, y = data(3)
    search = GridSearchCV(SVC(tol=TOL), C_PATH, cv=3, checkpoint=tmp_path / "search.db")
    for _ in range(11):
        killed_after(monkeypatch, 1, search, X, y)
    fitted(search, X, y)
    assert search.ledger_.resumed == 11
    assert_same(search, fitted(GridSearchCV(SVC(tol=TOL), C_PATH, cv=3), X, y))


@pytest.mark.parametrize("n_done", [1, 2, 5, 6])
def test_whoever_goes_on(tmp_path, monkeypatch, n_done):
    """Threads that go on for processes, and the other way."""
    X, y = data(2)
    expected = fitted(GridSearchCV(SVC(tol=TOL), C_PATH, cv=3), X, y)
    search = GridSearchCV(SVC(tol=TOL), C_PATH, cv=3, n_jobs=2)
    for name, first, second in (("a", "loky", "threading"), ("b", "threading", "loky")):
        search.set_params(checkpoint=tmp_path / name)
        with parallel_config(backend=first):
            killed_after(monkeypatch, n_done, search, X, y)
        with parallel_config(backend=second):
            assert_same(fitted(search, X, y), expected)


def test_many_rows(tmp_path, monkeypatch):
    """Whose problems shrink, and whose steps are of all free variables."""
    X, y = data(2, 700)
    grid = {"C": [0.1, 3.0, 100.0], "gamma": [0.05, 0.5]}
    search = GridSearchCV(SVC(), grid, cv=3, n_jobs=2, refit=False)
    expected = fitted(GridSearchCV(SVC(), grid, cv=3, refit=False), X, y)
    for n_done in (2, 7, 11, 16):
        search.set_params(checkpoint=tmp_path / str(n_done))
        killed_after(monkeypatch, n_done, search, X, y)
        assert_same(fitted(search, X, y), expected)


def test_only_the_ends_of_open_paths_are_kept(tmp_path, monkeypatch):
    X, y = data(3)
    path = tmp_path / "search.db"
    search = GridSearchCV(SVC(), {**C_PATH, "gamma": [0.1, 0.2]}, cv=3, checkpoint=path)
    ends = []
    add = Checkpoint.add

    def counted(self, cell, outcome, values):
        add(self, cell, outcome, values)
        ends.append(self._connection.execute("SELECT count(*) FROM paths").fetchone()[0])

    monkeypatch.setattr(Checkpoint, "add", counted)
    fitted(search, X, y)
    assert 0 < max(ends) <= 4  # two chains side by side, each with the step before
    again = fitted(search, X, y)
    assert again.ledger_.resumed == 24


def test_a_path_whose_end_is_not_kept_is_solved_again(tmp_path, monkeypatch):
    X, y = data(2)
    search = GridSearchCV(SVC(tol=TOL), C_PATH, cv=3, checkpoint=tmp_path / "search.db")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "add_states", lambda *_: None)
        killed_after(monkeypatch, 5, search, X, y)
    assert_same(fitted(search, X, y), fitted(GridSearchCV(SVC(tol=TOL), C_PATH, cv=3), X, y))
    assert np.isfinite(search.out_of_fold()).all()
