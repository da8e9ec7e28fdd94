"""Pictures of a search: what is drawn, and what is said where nothing can be."""

import sys

import numpy as np
import pytest
import sklearn.model_selection
import sklearn.svm
from numpy.testing import assert_allclose
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, GridSearchCV, RandomizedSearchCV
from onefit.tuning import GridDisplay, LedgerDisplay

pytestmark = pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
GRID = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.01, 0.1, 1.0], "kernel": ["rbf", "sigmoid"]}
X, y = make_classification(90, 5, random_state=0)


@pytest.fixture(scope="module")
def search():
    return GridSearchCV(SVC(), GRID, cv=3).fit(X, y)


@pytest.fixture
def pyplot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield pyplot
    pyplot.close("all")


def test_scores_of_two_parameters(search):
    display = GridDisplay.from_search(search)
    assert display.names == ("C", "gamma")
    results = search.cv_results_
    for row, gamma in enumerate(GRID["gamma"]):
        for column, C in enumerate(GRID["C"]):
            same = (results["param_C"] == C) & (results["param_gamma"] == gamma)
            expected = results["mean_test_score"][same.astype(bool)].max()
            assert_allclose(display.scores[row, column], expected)
    assert_allclose(display.scores[display.best], search.best_score_)
    place = display.best_1se
    assert GRID["C"][place[1]] == search.best_params_1se_["C"]
    other = GridDisplay.from_search(search, x="kernel", y="C")
    assert other.scores.shape == (4, 2)


def test_heat_map(search, pyplot):
    display = GridDisplay.from_search(search).plot()
    assert display.ax_.get_xlabel() == "C"
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["0.01", "0.1", "1"]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["best", "simplest within one standard error"]
    _, ax = pyplot.subplots()
    assert GridDisplay.from_search(search).plot(ax).ax_ is ax


def test_dropped_candidates_are_hatched(pyplot):
    grid = {"C": np.logspace(-2, 2, 5), "gamma": np.logspace(-3, 2, 5)}
    search = GridSearchCV(SVC(), grid, screen="approximate").fit(X, y)
    display = GridDisplay.from_search(search).plot()
    assert display.dropped.sum() == search.cv_results_["dropped"].sum() > 0
    assert "dropped" in display.ax_.get_legend().get_texts()[-1].get_text()


def test_searches_of_scikit_learn_and_several_scores(pyplot):
    search = sklearn.model_selection.GridSearchCV(
        sklearn.svm.SVC(), GRID, cv=3, scoring=["accuracy", "f1"], refit="f1"
    ).fit(X, y)
    display = GridDisplay.from_search(search).plot()
    assert display.metric == "f1"
    assert display.best_1se is None
    assert GridDisplay.from_search(search, metric="accuracy").metric == "accuracy"
    with pytest.raises(ValueError, match=r"metric must be one of 'accuracy', 'f1'; got 'auc'"):
        GridDisplay.from_search(search, metric="auc")


def test_nothing_is_cut_off(search, pyplot):
    """Legends are as wide as their words, also beside a small grid."""
    small = GridSearchCV(SVC(), {"C": [1.0, 2.0], "gamma": [0.1, 1.0]}).fit(X, y)
    for display in (GridDisplay.from_search(small), GridDisplay.from_search(search)):
        display.plot()
        display.figure_.canvas.draw()
        whole = display.figure_.bbox
        texts = [*display.ax_.get_legend().get_texts(), *display.ax_.get_xticklabels()]
        for text in texts:
            box = text.get_window_extent()
            assert whole.x0 <= box.x0
            assert box.x1 <= whole.x1
            assert box.y1 <= whole.y1


def test_a_random_search_is_points(pyplot):
    ranges = {"C": loguniform(0.01, 100.0), "gamma": loguniform(0.01, 1.0)}
    search = RandomizedSearchCV(SVC(), ranges, n_iter=12, random_state=0, cv=3).fit(X, y)
    display = GridDisplay.from_search(search).plot()
    [points] = display.ax_.collections
    places = {tuple(place) for place in np.asarray(points.get_offsets())}
    assert places == {(p["C"], p["gamma"]) for p in search.cv_results_["params"]}
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    star = display.ax_.lines[0]
    assert star.get_xdata() == [search.best_params_["C"]]


def test_scores_that_are_all_the_same_or_missing(pyplot):
    grid = {"C": [1.0, 2.0], "gamma": [0.1, 1.0]}
    search = GridSearchCV(SVC(), grid, scoring=lambda estimator, X, y: 0.5).fit(X, y)
    display = GridDisplay.from_search(search).plot()
    low, high = display.ax_.images[0].get_clim()
    assert low < 0.5 < high < 0.6
    search.cv_results_["mean_test_score"] = np.full(4, np.nan)
    with pytest.raises(ValueError, match="no candidate has a score"):
        GridDisplay.from_search(search).plot()


def test_long_labels_are_cut(pyplot):
    grid = {"C": [1.0, 2.0], "class_weight": [{0: 1.0, 1: 1.2345, 2: 3.0, 3: 4.0}, None]}
    search = GridSearchCV(SVC(), grid).fit(X, y)
    display = GridDisplay.from_search(search).plot()
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert max(map(len, labels)) <= 24
    assert "None" in labels


def test_bad_names(search):
    with pytest.raises(ValueError, match="got 'nu'"):
        GridDisplay.from_search(search, x="nu")
    small = GridSearchCV(SVC(), {"C": [1.0, 2.0]}).fit(X, y)
    with pytest.raises(ValueError, match="needs two parameters"):
        GridDisplay.from_search(small)


def test_what_reuse_saved(search, pyplot):
    display = LedgerDisplay.from_search(search).plot()
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["kernel entries", "cells started from nothing", "cells solved"]
    pipeline = make_pipeline(StandardScaler(), SVC())
    piped = GridSearchCV(pipeline, {"svc__C": [1.0, 2.0]}, cv=3).fit(X, y)
    assert LedgerDisplay.from_search(piped).paid["transformers fitted"] == (3, 6)
    other = GridSearchCV(LogisticRegression(), {"C": [1.0]}).fit(X, y)
    with pytest.raises(ValueError, match="has a ledger"):
        LedgerDisplay.from_search(other)


def test_without_matplotlib(search, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"onefit\[plot\]"):
        GridDisplay.from_search(search).plot()
