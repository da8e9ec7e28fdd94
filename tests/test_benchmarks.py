"""The leave-one-out benchmarks: their reference is right, and they notice what is wrong."""

import json
import os
import runpy
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from sklearn import svm as sklearn_svm
from sklearn.base import clone

from onefit import SVC

REPOSITORY = Path(__file__).parents[1]
if not (REPOSITORY / "benchmarks").is_dir():
    pytest.skip("not in a checkout of the repository", allow_module_level=True)

from benchmarks import left_out  # noqa: E402 (only there if the folder is)
from benchmarks.case import Case, Settings  # noqa: E402
from benchmarks.datasets import ida  # noqa: E402
from benchmarks.machines import all_machines  # noqa: E402
from benchmarks.rivals import all_rivals  # noqa: E402
from benchmarks.subjects import loo, loo_paper  # noqa: E402
from benchmarks.subjects.base import Outcome  # noqa: E402

MACHINE = all_machines()["c-svc"]
SETTINGS = Settings(threads=1, tol=1e-3, memory_mb=None)


def _problem(n_classes, n=45, seed=0):
    generator = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return generator.normal(size=(n, 3)) + 0.7 * y[:, None], y


def _case(n_classes=2):
    X, y = _problem(n_classes)
    return Case(MACHINE, "drawn", "drawn", "hard", "none", X, y, {"C": 10.0}, 0.5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("all_cold", [0, 1000])
def test_the_reference_is_n_fits_of_scikit_learn(monkeypatch, n_classes, all_cold):
    monkeypatch.setattr(left_out, "ALL_COLD", all_cold)
    monkeypatch.setattr(left_out, "UNSURE", 0.3)  # some rows of these few
    X, y = _problem(n_classes)
    theirs = sklearn_svm.SVC(C=10, gamma=0.5)
    tight = clone(theirs).set_params(tol=left_out.TIGHT)
    expected = [left_out.predict_left_out(tight, X, y, row) for row in range(len(y))]
    found = left_out.refits(SVC(C=10, gamma=0.5), theirs, X, y)
    np.testing.assert_array_equal(found.predictions, expected)
    assert found.refits_differ == 0
    assert len(found.refitted) == left_out.NEAREST
    assert found.cold == len(y) if all_cold else 0 < found.cold < len(y)


def test_rows_that_small_values_decide():
    generator = np.random.default_rng(0)
    values = generator.normal(size=(300, 6))
    small = np.abs(values) < 0.4
    signs = np.array(list(product((-1, 1), repeat=6)))
    expected = []
    for row, of_row in zip(values, small, strict=True):
        turned = np.where(of_row, signs, np.sign(row))
        expected.append(len({_winner(votes) for votes in turned}) > 1)
    found = left_out.may_change(values, 0.4)
    assert not (np.array(expected) & ~found).any()  # none is missed
    assert 0.1 < found.mean() < 0.9
    np.testing.assert_array_equal(left_out.may_change(values[:, 0], 0.4), small[:, 0])


def _winner(signs):
    votes = np.zeros(4, dtype=int)
    for sign, pair in zip(signs, combinations(range(4), 2), strict=True):
        votes[pair[0] if sign > 0 else pair[1]] += 1
    return int(votes.argmax())


def test_one_wrong_prediction_disagrees():
    case, subject, ours = _case(), loo.LeaveOneOut(), all_rivals()["onefit"]
    answer = subject.answer(ours, subject.run(ours, case, SETTINGS), case)
    verdict = subject.judge(ours, answer, answer, case)
    assert verdict.outcome is Outcome.AGREES
    assert sum(v for name, v in verdict.figures.items() if "share" in name) == pytest.approx(1)
    wrong = answer.predictions.copy()
    wrong[7] = 1 - wrong[7]
    verdict = subject.judge(ours, replace(answer, predictions=wrong), answer, case)
    assert verdict.outcome is Outcome.DISAGREES
    assert verdict.figures["predictions_different"] == 1


def test_scikit_learn_on_some_rows_predicts_what_it_does_on_all():
    case, subject, theirs = _case(3), loo.LeaveOneOut(), all_rivals()["scikit-learn"]
    everything = subject.answer(theirs, subject.run(theirs, case, SETTINGS), case)
    part, share = subject.part(theirs, case)
    some = part.answer(theirs, part.run(theirs, case, SETTINGS), case)
    assert len(some.rows) == loo.PART == round(share * case.rows)
    np.testing.assert_array_equal(some.predictions, everything.predictions[some.rows])


def test_ways_to_settle_rows_have_the_same_errors():
    X, y = _problem(2, 60)
    train = np.array([np.arange(40), np.arange(20, 60)])
    grid = (*ida.linear_grid()[:2], *ida.rbf_grid()[16:18])
    case = ida.Realisations(
        MACHINE, "banana", "ida", "rbf", "none", X, y, {}, 0.0, train=train, grid=grid
    )
    subject = loo_paper.LooPaper(2)
    answers = {way.name: subject.run(way, case, SETTINGS) for way in loo_paper.WAYS}
    reference = answers["onefit"]
    for way in loo_paper.WAYS:
        verdict = subject.judge(way, answers[way.name], reference, case)
        assert verdict.outcome is Outcome.AGREES
    checks, proven = answers[loo_paper.CHECKS].work[0], answers[loo_paper.PROVEN].work[0]
    assert checks.rows_certified == 0 < proven.rows_certified
    assert checks.rows_solved == proven.rows_solved
    others = subject.judge(
        loo_paper.OTHERS, subject.run(loo_paper.OTHERS, case, SETTINGS), reference, case
    )
    assert others.figures["training_sets"] == 2
    changed = replace(reference, errors=reference.errors + 0.1)
    assert subject.judge(way, changed, reference, case).outcome is Outcome.DISAGREES


def test_the_grids_of_the_paper():
    assert [parameters["C"] for parameters in ida.linear_grid()] == [0.01, 0.1, 1, 10, 100]
    grid = ida.rbf_grid()
    assert len(grid) == 64
    C, gamma = ({parameters[name] for parameters in grid} for name in ("C", "gamma"))
    assert (min(C), max(C)) == (1, pytest.approx(500))
    assert (min(gamma), max(gamma)) == (2**-11, 1)


def test_a_report_is_written(tmp_path):
    command = ["-m", "benchmarks", "loo", "--cases", "breast_cancer/gentle", "--rivals", "onefit"]
    subprocess.run(
        [sys.executable, *command, "--repeats", "1", "--out", tmp_path],
        cwd=REPOSITORY,
        env={name: value for name, value in os.environ.items() if name != "ONEFIT_DATA"},
        check=True,
        capture_output=True,
    )
    [report] = tmp_path.glob("*.json")
    [case] = json.loads(report.read_text())["cases"]
    [entry] = case["entries"]
    assert entry["outcome"] == "agrees"
    assert entry["figures"]["predictions_different"] == 0
    assert entry["figures"]["error"] == pytest.approx(13 / 569)
    assert "0 of 569" in report.with_suffix(".md").read_text()


def test_the_example_draws_a_picture(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(REPOSITORY / "examples" / "leave_one_out.py"))
    assert "error rate 0.0246" in capsys.readouterr().out
    assert (tmp_path / "leave_one_out.png").stat().st_size > 10_000
