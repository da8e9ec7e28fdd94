"""Processes, progress bars, callbacks, routing: other ways to run the same search."""

import io
from contextlib import redirect_stderr

import numpy as np
import pytest
import sklearn.model_selection
import sklearn.svm
from joblib import parallel_config
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import SVC, GridSearchCV, RandomizedSearchCV
from tuning.comparison import TOL, both, check_all_shared, check_same_search

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
X, y = make_classification(80, 5, n_informative=4, n_redundant=0, random_state=1)


@pytest.mark.parametrize("kind", ["machine", "pipeline", "one kernel"])
def test_processes_give_the_same(tmp_path, kind):
    estimator, grid = SVC(tol=TOL), GRID
    if kind == "pipeline":
        estimator = make_pipeline(StandardScaler(), estimator)
        grid = {f"svc__{name}": values for name, values in GRID.items()}
    if kind == "one kernel":
        grid = {"C": GRID["C"]}
    alone = GridSearchCV(estimator, grid, cv=3).fit(X, y)
    with parallel_config(backend="loky"):
        several = GridSearchCV(estimator, grid, cv=3, n_jobs=2).fit(X, y)
        kept = GridSearchCV(estimator, grid, cv=3, n_jobs=2, checkpoint=tmp_path / "s.db")
        kept.fit(X, y)
    for search in (several, kept):
        check_all_shared(search)
        for key in ("split0_test_score", "mean_test_score"):
            assert_allclose(search.cv_results_[key], alone.cv_results_[key])
        assert_allclose(search.out_of_fold(), alone.out_of_fold(), atol=1e-5)


def test_a_progress_bar():
    shown = io.StringIO()
    with redirect_stderr(shown):
        GridSearchCV(SVC(), GRID, cv=3, progress=True).fit(X, y)
    assert "candidates × folds" in shown.getvalue()
    assert "18/18" in shown.getvalue()
    quiet = io.StringIO()
    with redirect_stderr(quiet):
        GridSearchCV(SVC(), GRID, cv=3).fit(X, y)  # nobody watches
        GridSearchCV(SVC(), GRID, cv=3, progress=False).fit(X, y)
    assert quiet.getvalue() == ""


def test_callbacks_hear_of_every_cell():
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    assert callback

    class Recorder:
        def __init__(self):
            self.ended = []

        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **about):
            pass

        def on_fit_task_end(self, estimator, context, **about):
            self.ended.append((context.task_name, context.task_id))

        def teardown(self, estimator, context):
            pass

    def heard(search):
        recorder = Recorder()
        search.set_callbacks(recorder).fit(X, y)
        return sorted(recorder.ended), search

    ours, search = heard(GridSearchCV(SVC(), GRID, cv=3))
    check_all_shared(search)
    theirs, _ = heard(sklearn.model_selection.GridSearchCV(sklearn.svm.SVC(), GRID, cv=3))
    assert ours == theirs
    assert sum("candidate" in name for name, _ in ours) == 18


def test_metadata_is_routed():
    groups = np.arange(len(y)) % 4
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    with config_context(enable_metadata_routing=True):

        def machine(cls):
            return cls(tol=TOL).set_fit_request(sample_weight=True)

        options = {"cv": GroupKFold(4)}
        ours = GridSearchCV(machine(SVC), GRID, **options)
        other = sklearn.model_selection.GridSearchCV(machine(sklearn.svm.SVC), GRID, **options)
        for search in (ours, other):
            search.estimator.set_score_request(sample_weight=True)
            search.fit(X, y, sample_weight=weights, groups=groups)
    check_same_search(ours, other)
    check_all_shared(ours)


def test_groups_without_routing():
    groups = np.arange(len(y)) % 4
    ours, other = both(SVC(tol=TOL), GRID, X, y, {"groups": groups}, cv=GroupKFold(4))
    check_same_search(ours, other)


def test_a_random_search():
    options = {"n_iter": 7, "random_state": 3, "cv": 3}
    ours = RandomizedSearchCV(SVC(tol=TOL), GRID | {"C": [0.1, 1.0, 5.0]}, **options).fit(X, y)
    other = sklearn.model_selection.RandomizedSearchCV(
        sklearn.svm.SVC(tol=TOL), GRID | {"C": [0.1, 1.0, 5.0]}, **options
    ).fit(X, y)
    check_same_search(ours, other)
    check_all_shared(ours)


def test_other_estimators_are_handed_to_scikit_learn():
    grid = {"C": [0.1, 1.0]}
    ours = GridSearchCV(LogisticRegression(), grid).fit(X, y)
    other = sklearn.model_selection.GridSearchCV(LogisticRegression(), grid).fit(X, y)
    check_same_search(ours, other)
    assert not hasattr(ours, "ledger_")


def test_classes_of_the_user_that_fit_in_their_own_way_are_handed_over():
    class Contrary(SVC):
        def predict(self, X):
            return 1 - super().predict(X)

    ours = GridSearchCV(Contrary(), GRID, cv=3).fit(X, y)
    plain = GridSearchCV(SVC(), GRID, cv=3).fit(X, y)
    assert_allclose(ours.cv_results_["mean_test_score"], 1 - plain.cv_results_["mean_test_score"])


def test_verbose_is_scikit_learns(capsys):
    GridSearchCV(SVC(), GRID, cv=3, verbose=3).fit(X, y)
    printed = capsys.readouterr().out
    assert "Fitting 3 folds for each of 6 candidates, totalling 18 fits" in printed
    assert printed.count("END") == 18


def test_bad_options():
    with pytest.raises(ValueError, match="'seeding' parameter of GridSearchCV"):
        GridSearchCV(SVC(), GRID, seeding="sometimes").fit(X, y)
    for seeding in ("sir", "mir", "ato", "avg", "top"):
        for search in (
            GridSearchCV(SVC(), GRID, seeding=seeding),
            RandomizedSearchCV(SVC(), GRID, seeding=seeding),
        ):
            with pytest.raises(ValueError, match=r"of cross_validate, .* must be 'auto'"):
                search.fit(X, y)
    with pytest.raises(ValueError, match="'progress' parameter"):
        GridSearchCV(SVC(), GRID, progress="yes").fit(X, y)


def test_a_second_fit_forgets_the_first():
    search = GridSearchCV(SVC(), GRID, cv=3).fit(X, y)
    search.set_params(estimator=LogisticRegression(), param_grid={"C": [1.0]}).fit(X, y)
    assert not hasattr(search, "ledger_")
    assert not hasattr(search, "best_index_1se_")
    assert_array_equal(search.cv_results_["param_C"], [1.0])


def test_folds_may_be_masks():
    X, y = make_classification(80, random_state=0)
    numbers = np.arange(80)
    masks = [(numbers % 4 != k, numbers % 4 == k) for k in range(4)]
    rows = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in masks]
    found = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=masks).fit(X, y)
    expected = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=rows).fit(X, y)
    assert (found.ledger_.cells, found.ledger_.by_sklearn) == (8, 0)
    assert_array_equal(found.out_of_fold(), expected.out_of_fold())
