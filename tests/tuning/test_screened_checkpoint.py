"""A screened search that is killed goes on where it was, estimates included."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, GridSearchCV
from onefit.tuning.checkpoint import Checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
GRID = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-3, 0, 4)}
X, y = make_classification(90, 6, n_informative=4, flip_y=0.05, random_state=0)


class Killed(BaseException):
    """In the place of a signal."""


@pytest.fixture
def stop_after(monkeypatch):
    """Makes a search end after so many cells or estimates, and notes all that get done."""
    done = {"add": [], "add_estimate": []}

    def arrange(which, n):
        for name, noted in done.items():
            monkeypatch.setattr(Checkpoint, name, counted(name, noted, n if name == which else 0))
        return done

    def counted(name, noted, n):
        original = getattr(Checkpoint, name)

        def add(self, what, *rest):
            original(self, what, *rest)
            noted.append(what)
            if len(noted) == n:
                raise Killed

        return add

    return arrange


@pytest.mark.parametrize("kind", ["machine", "pipeline", "several scores"])
@pytest.mark.parametrize(
    ("which", "n"), [("add_estimate", 1), ("add_estimate", 13), ("add", 1), ("add", 23)]
)
def test_what_is_done_is_not_done_again(tmp_path, stop_after, kind, which, n):
    estimator, grid, options = SVC(tol=1e-6), GRID, {}
    if kind == "pipeline":
        estimator = make_pipeline(StandardScaler(), estimator)
        grid = {f"svc__{name}": values for name, values in GRID.items()}
    if kind == "several scores":
        options = {"scoring": ["accuracy", "f1"], "refit": "f1"}
    full = GridSearchCV(estimator, grid, **options).fit(X, y)
    screened = GridSearchCV(estimator, grid, screen="approximate", **options)
    expected = screened.fit(X, y).cv_results_
    assert 0 < expected["dropped"].sum() < 20
    done = stop_after(which, n)
    screened.set_params(checkpoint=tmp_path / "search.db")
    with pytest.raises(Killed):
        screened.fit(X, y)
    screened.fit(X, y)
    assert sorted(done["add_estimate"]) == list(range(20))
    assert len(done["add"]) == len(set(done["add"])) == 100 - screened.ledger_.dropped
    assert screened.ledger_.resumed == (n if which == "add" else 0)
    assert screened.best_params_ == full.best_params_
    for key, values in expected.items():
        if key == "dropped" or key.startswith(("split", "mean_test", "rank")):
            assert_array_equal(screened.cv_results_[key], values)
    # A search that is done is not run at all.
    screened.fit(X, y)
    assert screened.ledger_.cells == screened.ledger_.transformed == 0
    assert screened.best_params_ == full.best_params_
    assert len(done["add_estimate"]) == 20


def test_one_file_serves_both_kinds_of_search(tmp_path):
    path = tmp_path / "search.db"
    screened = GridSearchCV(SVC(tol=1e-6), GRID, screen="approximate", checkpoint=path).fit(X, y)
    missing = screened.ledger_.dropped
    full = GridSearchCV(SVC(tol=1e-6), GRID, checkpoint=path).fit(X, y)
    assert full.ledger_.cells == missing > 0
    assert full.best_params_ == screened.best_params_
    # Now every score is there, and none is dropped.
    again = GridSearchCV(SVC(tol=1e-6), GRID, screen="approximate", checkpoint=path).fit(X, y)
    assert not again.cv_results_["dropped"].any()
    assert_array_equal(again.cv_results_["mean_test_score"], full.cv_results_["mean_test_score"])
