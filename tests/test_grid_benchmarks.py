"""The grid benchmarks: what is chosen is tried on rows that the search has not seen."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from onefit import SVC, GridSearchCV

REPOSITORY = Path(__file__).parents[1]
if not (REPOSITORY / "benchmarks").is_dir():
    pytest.skip("not in a checkout of the repository", allow_module_level=True)

from benchmarks.__main__ import parse  # noqa: E402 (only there if the folder is)
from benchmarks.case import Case, Settings  # noqa: E402
from benchmarks.datasets.grids import COMMON, OWN  # noqa: E402
from benchmarks.machines import all_machines  # noqa: E402
from benchmarks.record import CaseRecord, Entry  # noqa: E402
from benchmarks.rivals import all_rivals  # noqa: E402
from benchmarks.rivals.base import Grid  # noqa: E402
from benchmarks.rivals.liquidsvm import own_cores  # noqa: E402
from benchmarks.subjects import all_subjects  # noqa: E402
from benchmarks.subjects.base import Outcome  # noqa: E402
from benchmarks.subjects.unseen_grid import UnseenGrid  # noqa: E402

SETTINGS = Settings(threads=1, tol=1e-3, memory_mb=None)
LIQUIDSVM = all_rivals()["liquidsvm"]


def case_of(setting=COMMON, n=60):
    generator = np.random.default_rng(0)
    y = np.where(np.arange(2 * n) % 2, 1, -1)
    X = generator.normal(size=(2 * n, 3)) + 0.4 * y[:, None]
    machine = all_machines()["c-svc"]
    unseen = X[n:], y[n:]
    return Case(machine, "drawn", "d", setting, "none", X[:n], y[:n], {}, 0.3, unseen=unseen)


def test_the_shape_chooses_the_subject():
    grid = all_subjects()["grid"]
    assert grid.asked(parse(["grid"])) is grid
    other = grid.asked(parse(["grid", "--shape", "10x10"]))
    assert isinstance(other, UnseenGrid)
    assert other.label == "grid-10x10"


@pytest.mark.filterwarnings("ignore::onefit.tuning.EdgeOfGridWarning")
def test_the_accuracy_is_that_of_the_refitted_choice_on_unseen_rows():
    case, subject, ours = case_of(), UnseenGrid(), all_rivals()["onefit"]
    accuracy = subject.answer(ours, subject.run(ours, case, SETTINGS), case)
    grid = {"C": 2.0 ** np.linspace(-5, 9, 10), "gamma": 0.3 * 2.0 ** np.arange(-3, 7)}
    expected = GridSearchCV(SVC(), grid, cv=StratifiedKFold(5)).fit(case.X, case.y)
    assert accuracy == expected.score(*case.unseen)
    entry = Entry("onefit", 1, verdict=subject.judge(ours, accuracy, accuracy, case))
    assert entry.verdict.outcome is Outcome.AGREES
    [table] = subject.tables([CaseRecord(case.facts(), "onefit", [entry])])
    assert table.rows[0][-1] == f"{accuracy:.4f}"


@pytest.mark.skipif(not LIQUIDSVM.available()[0], reason="liquidSVM is not installed")
def test_both_are_given_the_grid_of_liquidsvm():
    case, subject = case_of(OWN), UnseenGrid()
    assert subject.suits(LIQUIDSVM, case, SETTINGS) is None
    grid = subject._grid(case)
    assert len(grid.C) == len(grid.gamma) == 10
    model = LIQUIDSVM._model(case, SETTINGS, StratifiedKFold(5), grid)
    default = LIQUIDSVM._model(case, SETTINGS, StratifiedKFold(5), None)
    with own_cores():
        given, own = np.asarray(model.train()), np.asarray(default.train())
    first = given[:, 2] == 0
    np.testing.assert_allclose(np.unique(given[first, 5]), np.unique(own[first, 5]), rtol=0.05)
    np.testing.assert_allclose(np.unique(given[:, 3]), np.unique(own[:, 3]), rtol=1e-5)
    answer = subject.answer(LIQUIDSVM, subject.run(LIQUIDSVM, case, SETTINGS), case)
    assert answer > 0.6
    assert subject.judge(LIQUIDSVM, answer, 0.7, case).outcome is Outcome.OTHER


@pytest.mark.skipif(not LIQUIDSVM.available()[0], reason="liquidSVM is not installed")
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads have no cores here")
def test_who_comes_after_liquidsvm_has_all_cores():
    case, settings = case_of(), Settings(2, 1e-3, None)
    cores = os.sched_getaffinity(0)
    model = LIQUIDSVM.chosen(case, settings, StratifiedKFold(3), Grid([1.0, 10.0], [0.1, 1.0]))
    LIQUIDSVM.predictions(model, case, case.X)
    assert os.sched_getaffinity(0) == cores
