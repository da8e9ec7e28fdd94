"""scikit-learn's callbacks, which exist from version 1.9 on."""

import pickle

import numpy as np
import pytest
import rich
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from estimators.examples import (
    CLASSIFIERS,
    as_dense,
    classes,
    every_classifier,
    every_estimator,
    problem,
    values,
)
from onefit import SVC, SVR, NuSVC, NuSVR
from onefit.estimators.callbacks import STEPS
from onefit.solver import solve

try:
    from sklearn.callback import ProgressBar, ScoringMonitor
except ImportError:
    ProgressBar = None

needs_callbacks = pytest.mark.skipif(
    ProgressBar is None, reason="scikit-learn has callbacks from version 1.9 on"
)

BEGIN, END = ("begin", "fit", 0), ("end", "fit", 0)


class Recorder:
    """Keeps what it is told, and may ask to stop or raise when a task ends."""

    def __init__(self, stop=lambda told: False, wrong=lambda told: False):
        self.told, self.contexts = [], []
        self.stop, self.wrong = stop, wrong

    def setup(self, estimator, context):
        self.told.append(("setup", context.task_name, context.task_id))

    def teardown(self, estimator, context):
        self.told.append(("teardown", context.task_name, context.task_id))

    def on_fit_task_begin(self, estimator, context):
        self._tell("begin", context)

    def on_fit_task_end(self, estimator, context):
        self._tell("end", context)
        return self.stop(self.told[-1])

    def _tell(self, what, context):
        self.contexts.append(context)
        self.told.append((what, context.task_name, context.task_id))
        if self.wrong(self.told[-1]):
            raise ZeroDivisionError(f"at the {what} of {context.task_name}")


def steps(first, last):
    """The ends of these steps, and the begins between them."""
    told = []
    for k in range(first, last + 1):
        told += [("begin", "step towards tol", k), ("end", "step towards tol", k)]
    return told


@pytest.fixture
def reached(monkeypatch):
    """Makes a fit report these shares of its work before it begins."""

    def report(*shares):
        def first_report(*args, progress=None, **kwargs):
            asked = [progress(share) for share in shares] if progress else []
            report.asked_to_stop = asked
            return solve(*args, progress=progress, **kwargs)

        monkeypatch.setattr("onefit.estimators.base.solve", first_report)

    return report


# Noise as targets, and a tolerance that takes most of a second: enough for several looks.
LONG_FITS = {
    SVC: {"C": 100.0, "tol": 1e-9},
    SVR: {"C": 100.0, "tol": 1e-9},
    NuSVC: {"nu": 0.3, "tol": 1e-9},
    NuSVR: {"C": 100.0, "tol": 1e-9},
}
MOST_ITERATIONS = 3_000_000


def noise(cls, n=4000, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 5))
    y = rng.integers(0, n_classes, n) if cls in CLASSIFIERS else rng.standard_normal(n)
    return X, y


def long_fit(cls, **params):
    return cls(max_iter=MOST_ITERATIONS, **LONG_FITS[cls], **params)


# ------------------------------------------------------------------------------ what is told


@needs_callbacks
@every_estimator
def test_a_short_fit_is_one_step(cls):
    recorder = Recorder()
    model = cls().set_callbacks(recorder)
    assert model.fit(*problem(cls)) is model
    setup, teardown = ("setup", "fit", 0), ("teardown", "fit", 0)
    assert recorder.told == [setup, BEGIN, *steps(0, 0), END, teardown]
    assert recorder.contexts[0].max_subtasks == STEPS
    assert {context.estimator_name for context in recorder.contexts} == {cls.__name__}
    assert not hasattr(model, "_callback_fit_ctx")


@needs_callbacks
@every_estimator
def test_steps_follow_the_share_of_the_work(cls, reached):
    reached(0.0, -0.5, 0.031, 0.02, 0.031, 0.052)
    recorder = Recorder()
    cls().set_callbacks(recorder).fit(*problem(cls))
    # Three are done, then two more, and the last is when the fit is done; none is taken back.
    assert recorder.told[1:-1] == [BEGIN, *steps(0, 5), END]


@needs_callbacks
@every_estimator
@pytest.mark.parametrize("share", [1.0, 1.7, 1e300])
def test_there_are_never_more_steps_than_announced(cls, reached, share):
    reached(share, share)
    recorder = Recorder()
    cls().set_callbacks(recorder).fit(*problem(cls))
    assert recorder.told[1:-1] == [BEGIN, *steps(0, STEPS - 1), END]


@needs_callbacks
@every_estimator
def test_a_long_fit_has_several_steps(cls):
    recorder = Recorder(stop=lambda told: told[2] >= 4)
    long_fit(cls).set_callbacks(recorder).fit(*noise(cls))
    n_steps = (len(recorder.told) - 4) // 2
    assert 5 <= n_steps <= STEPS
    assert recorder.told[1:-1] == [BEGIN, *steps(0, n_steps - 1), END]


@needs_callbacks
@every_estimator
def test_callbacks_are_given_the_data_and_at_the_end_the_model(cls):
    class Curious(Recorder):
        def on_fit_task_begin(self, estimator, context, *, X, y, metadata):
            assert X is self.data[0]
            assert y is self.data[1]
            assert metadata == {"sample_weight": self.data[2]}

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            self.models.append((context.task_name, fitted_estimator))

    X, y = problem(cls)
    curious = Curious()
    curious.data, curious.models = (X, y, [1.0] * len(y)), []
    model = cls().set_callbacks(curious).fit(*curious.data)
    assert [name for name, _ in curious.models] == ["step towards tol", "fit"]
    assert curious.models[0][1] is None  # the model is there when the fit is done
    assert_array_equal(values(curious.models[1][1], X), values(model, X))


@needs_callbacks
@every_estimator
@pytest.mark.parametrize("name", ["y", "sample_weight"])
def test_callbacks_are_taken_down_when_a_fit_fails(cls, name):
    X, y = problem(cls)
    recorder = Recorder()
    model = cls().set_callbacks(recorder)
    given = {"y": y, "sample_weight": None, name: np.full(len(y), np.nan)}
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X, **given)
    assert recorder.told[0][0] == "setup"
    assert recorder.told[-1][0] == "teardown"
    assert END not in recorder.told
    model.fit(X, y)  # and set up again in the next fit
    assert recorder.told[-2:] == [END, ("teardown", "fit", 0)]


@needs_callbacks
@every_estimator
def test_several_callbacks_are_all_told(cls):
    recorders = Recorder(), Recorder()
    cls().set_callbacks(*recorders).fit(*problem(cls))
    assert recorders[0].told == recorders[1].told != []


@needs_callbacks
@every_estimator
def test_callbacks_can_be_taken_away(cls):
    recorder = Recorder()
    cls().set_callbacks(recorder).set_callbacks().fit(*problem(cls))
    assert recorder.told == []


# --------------------------------------------------------------------------- what is answered


@needs_callbacks
@every_estimator
def test_callbacks_do_not_change_the_answer(cls):
    X, y = problem(cls, n=300)
    plain, watched = cls().fit(X, y), cls().set_callbacks(Recorder()).fit(X, y)
    assert_array_equal(watched.n_iter_, plain.n_iter_)
    assert_array_equal(as_dense(watched.dual_coef_), as_dense(plain.dual_coef_))
    assert_array_equal(values(watched, X), values(plain, X))
    assert watched.fit_status_ == 0


@needs_callbacks
@every_estimator
def test_a_callback_can_stop_a_fit(cls):
    X, y = noise(cls)
    recorder = Recorder(stop=lambda told: True)
    # ConvergenceWarning is an error in these tests: none is given.
    model = long_fit(cls).set_callbacks(recorder).fit(X, y)
    assert model.fit_status_ == 1
    assert 0 < np.max(model.n_iter_) < MOST_ITERATIONS
    assert np.isfinite(values(model, X)).all()
    assert np.isfinite(model.score(X, y))
    assert recorder.told[-2:] == [END, ("teardown", "fit", 0)]


@needs_callbacks
def test_a_callback_can_stop_a_fit_whose_gap_does_not_shrink():
    # The gap of such a fit grows for a second and more; a limit on time, say, has to be heard.
    X, y = noise(SVC)
    model = SVC(C=1e4, max_iter=400_000).set_callbacks(Recorder(stop=lambda told: True))
    model.fit(X, y)
    assert model.fit_status_ == 1
    assert model.n_iter_[0] < 400_000


@needs_callbacks
@every_classifier
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_callback_can_stop_the_fit_of_several_pairs(cls, n_jobs):
    X, y = noise(cls, n_classes=4)
    model = long_fit(cls, n_jobs=n_jobs).set_callbacks(Recorder(stop=lambda told: True))
    model.fit(X, y)
    assert model.fit_status_ == 1
    assert model.n_iter_.shape == (6,)
    assert np.isfinite(values(model, X)).all()
    assert set(model.predict(X)) <= {0, 1, 2, 3}


@needs_callbacks
@every_estimator
def test_a_callback_that_asks_once_is_heard(cls, reached):
    reached(0.05)
    recorder = Recorder(stop=lambda told: told[2] == 1)  # the second of five steps that are done
    cls().set_callbacks(recorder).fit(*problem(cls))
    assert reached.asked_to_stop == [True]


@needs_callbacks
@every_estimator
def test_asking_to_stop_at_the_very_end_changes_nothing(cls):
    X, y = problem(cls)
    model = cls().set_callbacks(Recorder(stop=lambda told: True)).fit(X, y)
    assert model.fit_status_ == 0
    assert_array_equal(values(model, X), values(cls().fit(X, y), X))


@needs_callbacks
@every_estimator
@pytest.mark.parametrize("what", ["begin", "end"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_what_a_callback_raises_comes_out_of_the_fit(cls, what, n_jobs):
    X, y = problem(cls)
    model = cls(n_jobs=n_jobs).fit(X, y)
    expected = values(model, X)
    recorder = Recorder(wrong=lambda told: told[:2] == (what, "step towards tol"))
    model.set_params(**LONG_FITS[cls], max_iter=MOST_ITERATIONS).set_callbacks(recorder)
    with pytest.raises(ZeroDivisionError, match=f"at the {what} of step"):
        model.fit(*noise(cls))
    assert recorder.told[-1] == ("teardown", "fit", 0)
    assert_array_equal(values(model, X), expected)


@needs_callbacks
@every_estimator
def test_what_setup_raises_comes_out_of_the_fit(cls):
    class Broken(Recorder):
        def setup(self, estimator, context):
            raise ZeroDivisionError("in setup")

    X, y = problem(cls)
    model = cls().fit(X, y)
    expected = values(model, X)
    with pytest.raises(ZeroDivisionError, match="in setup"):
        model.set_callbacks(Broken()).fit(X[::-1], y)
    assert_array_equal(values(model, X), expected)


@needs_callbacks
@every_classifier
def test_callbacks_with_threads_for_the_pairs(cls):
    X, y = classes(4, n=400)
    recorder = Recorder()
    model = cls(n_jobs=2).set_callbacks(recorder).fit(X, y)
    assert_array_equal(model.dual_coef_, cls().fit(X, y).dual_coef_)
    n_steps = (len(recorder.told) - 4) // 2
    assert recorder.told[1:-1] == [BEGIN, *steps(0, n_steps - 1), END]


@needs_callbacks
@every_estimator
def test_callbacks_stay_with_clones_and_copies(cls):
    X, y = problem(cls)
    recorder = Recorder()
    model = cls(gamma=0.3).set_callbacks(recorder)
    other = clone(model).fit(X, y)
    assert recorder.told[-2:] == [END, ("teardown", "fit", 0)]
    again = pickle.loads(pickle.dumps(other.set_callbacks(ScoringMonitor(scoring=None))))
    assert_array_equal(values(again, X), values(other, X))


# ---------------------------------------------------------------- scikit-learn's own callbacks


@pytest.fixture
def wide(monkeypatch):
    """A console with room for the names of the bars."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(rich, "_console", None)


def bars(text):
    """The last state of every bar: its name, and the share that it shows."""
    lines = [line.split("━")[0].strip() for line in text.splitlines() if "%" in line]
    shares = [line.split("%")[0].split()[-1] for line in text.splitlines() if "%" in line]
    return dict(zip(lines, shares, strict=True))


@needs_callbacks
@every_estimator
def test_progress_bar(cls, capsys, wide):
    cls().set_callbacks(ProgressBar()).fit(*problem(cls))
    assert bars(capsys.readouterr().out) == {f"{cls.__name__} - fit": "100"}


@needs_callbacks
@every_estimator
def test_progress_bar_of_a_fit_that_was_stopped(cls, capsys, wide):
    stopping = Recorder(stop=lambda told: True)
    long_fit(cls).set_callbacks(ProgressBar(), stopping).fit(*noise(cls))
    assert bars(capsys.readouterr().out) == {f"{cls.__name__} - fit": "100"}


@needs_callbacks
@every_estimator
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_progress_bar_of_a_grid_search(cls, n_jobs, capsys, wide):
    X, y = problem(cls)
    search = GridSearchCV(cls(), {"gamma": [0.1, 1.0]}, cv=2, n_jobs=n_jobs)
    search.set_callbacks(ProgressBar()).fit(X, y)
    shown = bars(capsys.readouterr().out)
    ours = [name for name in shown if f"{cls.__name__} - fit" in name]
    assert len(ours) == 5  # two values on two splits, and the best one again
    assert set(shown.values()) == {"100"}
    best = clone(search.best_estimator_).fit(X, y)
    assert_array_equal(values(search.best_estimator_, X), values(best, X))


@needs_callbacks
@every_estimator
def test_progress_bar_of_a_pipeline(cls, capsys, wide):
    pipeline = make_pipeline(StandardScaler(), cls()).set_callbacks(ProgressBar())
    pipeline.fit(*problem(cls))
    shown = bars(capsys.readouterr().out)
    assert any(f"{cls.__name__} - fit" in name for name in shown)
    assert set(shown.values()) == {"100"}


@needs_callbacks
@every_estimator
@pytest.mark.parametrize("weighted", [False, True])
def test_scoring_monitor(cls, weighted):
    X, y = problem(cls)
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    metric = "accuracy" if is_classifier(cls()) else "r2"
    monitor = ScoringMonitor(scoring=metric)
    model = cls().set_callbacks(monitor).fit(X, y, weight)
    [log] = monitor.get_logs().data
    assert log["estimator_name"] == cls.__name__
    assert log[metric] == pytest.approx(model.score(X, y, weight))


@needs_callbacks
@every_estimator
def test_scoring_monitor_in_a_grid_search(cls):
    X, y = problem(cls)
    monitor = ScoringMonitor(scoring="accuracy" if is_classifier(cls()) else "r2")
    search = GridSearchCV(cls().set_callbacks(monitor), {"gamma": [0.1, 1.0]}, cv=2).fit(X, y)
    scores = [list(log.values())[-1] for log in monitor.get_logs().data]
    assert len(scores) == 5
    assert any(score == pytest.approx(search.score(X, y)) for score in scores)


@pytest.mark.skipif(ProgressBar is not None, reason="this scikit-learn has callbacks")
@every_estimator
def test_without_callbacks_in_scikit_learn(cls):
    X, y = problem(cls)
    assert not hasattr(cls(), "set_callbacks")
    assert cls().fit(X, y).predict(X).shape == (60,)
