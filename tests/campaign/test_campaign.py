"""The campaign finds planted defects, reduces them, and takes no tie for an error."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onefit
from campaign.__main__ import CLASSES, main
from campaign.case import Case
from campaign.classes import fits
from campaign.reduce import reduced
from campaign.reference import Reference
from campaign.report import Report
from campaign.runner import Runner
from campaign.snippet import snippet
from campaign.worker import checked, drawn

HERE = str(Path(__file__).parent)


@pytest.mark.parametrize("kind", CLASSES)
def test_a_name_gives_the_same_case_again(kind):
    one, other = drawn(f"{kind}:5:3"), drawn(f"{kind}:5:3")
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.y, other.y)
    assert (one.params, one.options, one.model) == (other.params, other.options, other.model)
    assert not np.array_equal(drawn(f"{kind}:5:4").X, one.X)
    compile(snippet(one), kind, "exec")


def test_a_planted_defect_is_found_and_reduced(monkeypatch, tmp_path):
    right = onefit.SVC.decision_function

    def wrong(self, X):
        values = right(self, X)
        return values + 1 if len(values) > 5 else values

    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.standard_normal((40, 4)) + y[:, None]
    case = Case("fits:0:0", X, y, None, "SVC", {"C": 3.0, "tol": 1e-6}, {"layout": "csr"})
    assert checked(case).status == "fine"
    monkeypatch.setattr(onefit.SVC, "decision_function", wrong)
    found = checked(case)
    assert (found.status, found.kind) == ("difference", "decision values")
    smaller, _ = reduced(case, found.kind, checked, seconds=60)
    assert len(smaller.y) == 6
    assert smaller.X.shape[1] == 1
    assert smaller.options == {}
    path = tmp_path / "case.py"
    path.write_text(snippet(smaller))
    subprocess.run([sys.executable, path], check=True, capture_output=True)


def test_ties_are_no_errors():
    # Both classes have the same rows: every decision value is zero.
    X = np.repeat(np.arange(5.0), 2)[:, None]
    case = Case("fits:0:0", X, np.arange(10) % 2, None, "SVC", {"kernel": "linear"})
    outcome = checked(case)
    assert (outcome.status, outcome.ties) == ("fine", 10)


def test_an_offset_that_is_not_unique_is_no_error():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    case = Case("fits:0:0", X, y, None, "SVC", {"C": 1e-6, "gamma": 1.0})
    found = Reference(case, X, y, None, fits.params_of_rows(case)).intervals(X)
    assert (found.high - found.low > 1.9).all()
    assert checked(case).status == "fine"


def test_crashes_and_hangs_are_reported(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(HERE)
    said = []
    runner = Runner(
        seed=0,
        kinds=["planted"],
        folder=tmp_path,
        limit=10.0,
        reduce=5.0,
        environment={"PYTHONPATH": HERE},
        say=said.append,
        cases=5,
    )
    report = runner.run(600.0)
    count = report.counts["planted"]
    assert (count.cases, count.ties) == (5, 3)
    assert (count.differences, count.crashes, count.hangs) == (1, 1, 1)
    by_status = {failure["status"]: failure for failure in report.failures}
    assert "planted.py" in by_status["crash"]["message"]
    assert "planted.py" in by_status["hang"]["message"]
    reduced_to = by_status["difference"]["snippet"]
    assert reduced_to.count("[") <= 4  # one row, one column
    assert (tmp_path / "planted-0-2.py").read_text().endswith(reduced_to)
    assert any("planted:0:4: hang" in text for text in said)


def test_reports_are_added_up(tmp_path, capsys):
    for k in range(2):
        arguments = ["--cases", "2", "--class", "fits", "--jobs", "1", "--seed", str(k)]
        assert main([*arguments, "--folder", str(tmp_path), "--json", str(tmp_path / f"{k}")]) == 0
    assert Report.read(tmp_path / "0").counts["fits"].cases == 2
    assert main(["--sum", str(tmp_path / "0"), str(tmp_path / "1")]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[1] == "4"
