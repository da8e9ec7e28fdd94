"""Smooth machines: the tables of two papers beside ours, and what grows with the rows.

Tseng & Lee, "Rank-r updating techniques for fast exact cross-validation", Tables 2 and 3; Lee, Lo &
Huang, "Incremental reduced support vector machines", Table I. Predictions of all ways to
cross-validate have to be the same, objectives of linear fits equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import Case, Settings
from ..datasets.smooth_published import FIT, INCREMENTAL, RANK_R, REDUCED, ROWS, SAMPLE
from ..record import OURS, CaseRecord, Entry
from ..report.words import NONE, PART_MARK_MEANS, ratio, time
from ..rivals.base import Rival
from ..smooth import DUAL, FOLDS, INVERSE, LIBSVM, NAIVE, REFITTED, Done, Way, ways
from .base import Outcome, Subject, Table, Verdict

# Seconds of SSVM, SSVM_I, SSVM_II and LIBSVM, and the accuracies of SSVM and LIBSVM.
PAPER: dict[str, tuple[float, float, float, float, float, float]] = {
    "face/linear-loo": (22.41, 14.32, 25.48, 1041.11, 97.73, 98.08),
    "ionosphere/linear-loo": (0.16, 0.09, 0.23, 0.53, 88.89, 87.18),
    "pima/linear-loo": (0.37, 0.23, 8.86, 5.53, 76.56, 76.56),
    "colon/linear-loo": (38.81, 2.97, 0.59, 0.64, 83.87, 80.65),
    "leukemia/linear-loo": (89.37, 62.72, 2.61, 2.42, 98.61, 97.22),
    "face/rbf-loo": (4508.58, 1652.27, 1002.83, 35786.39, 99.76, 99.83),
    "ionosphere/rbf-loo": (1.57, 0.87, 0.41, 0.94, 95.73, 93.73),
    "pima/rbf-loo": (95.22, 69.77, 63.72, 19.89, 77.21, 75.52),
    "face/linear-10fold": (4.57, 3.94, 5.00, 43.41, 97.76, 98.01),
    "ionosphere/linear-10fold": (0.07, 0.04, 0.09, 0.11, 87.68, 87.46),
    "pima/linear-10fold": (0.04, 0.03, 0.66, 0.19, 76.41, 76.56),
    "colon/linear-10fold": (21.73, 4.77, 0.37, 0.33, 83.75, 82.26),
    "leukemia/linear-10fold": (196.98, 40.30, 1.03, 0.97, 97.80, 97.22),
    "face/rbf-10fold": (314.51, 75.11, 36.37, 186.53, 99.72, 99.81),
    "ionosphere/rbf-10fold": (0.38, 0.23, 0.15, 0.12, 95.54, 93.73),
    "pima/rbf-10fold": (3.48, 3.15, 3.83, 0.42, 77.11, 75.39),
}
# Accuracy, seconds and size of the reduced set: of IRSVM, RSVM and SSVM (without a size).
PAPER_REDUCED: dict[str, tuple[float, ...]] = {
    "cleveland": (85.53, 4.70, 17.6, 85.60, 2.04, 30, 85.59, 23.20),
    "bupa": (73.97, 7.59, 18.3, 74.24, 2.75, 35, 73.65, 30.59),
    "ionosphere": (95.20, 7.90, 15.1, 95.17, 3.48, 35, 96.02, 36.14),
    "pima": (76.84, 13.40, 14.8, 76.82, 9.07, 35, 76.69, 168.90),
}
# Objectives are equal that differ by less than this share.
EQUAL = 1e-5
# The kernel of Face takes minutes in each way: the fastest of ours and the paper's baseline remain.
LEFT_OUT = dict.fromkeys(("face/rbf-loo", "face/rbf-10fold"), (INVERSE, DUAL, REFITTED, LIBSVM))


class Smooth(Subject):
    name = "smooth"
    title = "Smooth machines: cross-validation by updates, reduced kernels, linear fits"
    rank = 5
    parameters_rule = (
        "C = 1; rank-r: γ = 0.1, features to [-1, 1], 10 folds stratified after one shuffle"
    )
    rule = (
        "'refactorised' is a fit for each fold that starts from the coefficients of all rows and"
        " factorises the smaller of its two systems at every step; 'refactorised Hessian' always"
        " the system of coefficients, as SSVM in the paper. Predictions of ways to cross-validate"
        " have to be the same; C of LinearSVC is half, which makes it the same objective"
    )

    def __init__(self) -> None:
        self.groups = [RANK_R, INCREMENTAL, ROWS]

    def contenders(self, rivals: list[Rival]) -> list[Rival]:
        return [*ways()]

    def takes_part(self, rival: Rival, case: Case) -> bool:
        assert isinstance(rival, Way)
        return case.setting in rival.settings and rival.name not in LEFT_OUT.get(case.name, ())

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        if case.group == "warm-up":
            return "nothing to warm up"
        return None

    def trial_from_rows(self, case: Case) -> int:
        return case.rows + 1  # ways know by themselves what takes too long

    def share(self, rival: Rival, case: Case) -> float:
        assert isinstance(rival, Way)
        return rival.share(case)

    def run(self, rival: Rival, case: Case, settings: Settings) -> Done:
        assert isinstance(rival, Way)
        return rival.does(case, rival.share(case))

    def answer(self, rival: Rival, result: Done, case: Case) -> Done:
        return result

    def judge(self, rival: Rival, answer: Done, reference: Done, case: Case) -> Verdict:
        accuracy = _accuracy(answer, case)
        if case.setting == FIT:
            assert answer.objective is not None
            assert reference.objective is not None
            difference = answer.objective / reference.objective - 1
            figures = {"relative_difference": difference, "accuracy": accuracy}
            outcome = Outcome.AGREES if abs(difference) <= EQUAL else Outcome.DISAGREES
            return Verdict(outcome, f"objective {difference:+.1e} of onefit's", figures)
        differ = 0
        if answer is not reference and case.setting in FOLDS:
            known = np.empty(case.rows)
            known[reference.rows] = reference.predictions
            differ = int((known[answer.rows] != answer.predictions).sum())
        outcome = Outcome.AGREES if differ == 0 else Outcome.DISAGREES
        text = f"accuracy {accuracy:.2%}, {differ} of {len(answer.rows)} predictions differ"
        return Verdict(outcome, text, _figures(answer, accuracy))

    def finished(self, rival: Rival, answer: Any, case: Case) -> dict[str, float]:
        """Return the figures of a way that is not compared."""
        return _figures(answer, _accuracy(answer, case))

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        done = [record for record in records if not record.skipped]
        return [table for table in (_folds(done), _reduced(done), _sample(done)) if table.rows]


def _accuracy(answer: Done, case: Case) -> float:
    return float(np.mean(answer.predictions == case.y[answer.rows]))


def _figures(answer: Done, accuracy: float) -> dict[str, float]:
    figures = {"accuracy": accuracy}
    if answer.sizes:
        figures["components"] = float(np.mean(answer.sizes))
    return figures


def _folds(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        name = record.facts["name"]
        if record.facts["group"] != "rank-r":
            continue
        ssvm, first, second, _, accuracy, _ = PAPER[name]
        ours, naive, again = (_entry(record, rival) for rival in (OURS, NAIVE, REFITTED))
        best = min(
            (e.seconds for e in (ours, _entry(record, INVERSE), _entry(record, DUAL)) if _ok(e)),
            default=None,
        )
        rows.append(
            (
                name,
                *[_time(record, rival) for rival in (OURS, INVERSE, DUAL, REFITTED, NAIVE, LIBSVM)],
                _over(_seconds(naive), best),
                ratio(ssvm / min(first, second)),
                _over(_seconds(again), best),
                _percent(ours),
                f"{accuracy:.2f} %",
            )
        )
    return Table(
        "Leave-one-out and 10 folds",
        "Hessian / updates: the refactorised Hessian over the best of the updates, and the same of"
        " the paper (SSVM over the better of its strategies). Refactorised / updates: a baseline"
        f" that the paper does not have. {PART_MARK_MEANS}",
        (
            "case",
            "onefit (auto)",
            "inverse",
            "dual",
            "refactorised",
            "refactorised Hessian",
            "LIBSVM",
            "Hessian / updates",
            "paper",
            "refactorised / updates",
            "accuracy",
            "paper",
        ),
        rows,
    )


def _reduced(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        if record.facts["setting"] != REDUCED:
            continue
        paper = PAPER_REDUCED[record.facts["dataset"]]
        cited = {"IRSVM": paper[:3], "RSVM": paper[3:6], OURS: (*paper[6:], np.nan)}
        for entry in record.entries:
            theirs = cited[entry.rival.split(",")[0]]
            size = entry.verdict.figures.get("components") if entry.verdict else None
            rows.append(
                (
                    record.facts["dataset"],
                    "SSVM" if entry.rival == OURS else entry.rival,
                    _percent(entry),
                    f"{theirs[0]:.2f} %",
                    NONE if size is None else f"{size:.1f}",
                    NONE if np.isnan(theirs[2]) else f"{theirs[2]:g}",
                    time(entry) if entry.counts else NONE,
                    f"{theirs[1]:.2f} s",
                )
            )
    return Table(
        "Reduced kernels, 10 folds",
        "The paper tunes C and γ and does not give them, nor its threshold.",
        ("data", "machine", "accuracy", "paper", "columns", "paper", "time", "paper"),
        rows,
    )


def _sample(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        if record.facts["setting"] != SAMPLE:
            continue
        libsvm = _entry(record, "LIBSVM fit")
        for entry in record.entries:
            rows.append(
                (
                    record.facts["dataset"],
                    "RSVM" if entry.rival == OURS else entry.rival,
                    time(entry) if entry.counts else NONE,
                    _over(_seconds(libsvm), _seconds(entry)),
                    _percent(entry),
                    NONE if entry.peak_mb is None else f"{entry.peak_mb:.0f} MB",
                )
            )
    return Table(
        "RSVM with 200 columns, and LIBSVM on the same 20,000 rows",
        "Accuracy on 5,000 other rows.",
        ("data", "machine", "time", "times faster than LIBSVM", "accuracy", "memory"),
        rows,
    )


def _entry(record: CaseRecord, rival: str) -> Entry | None:
    return next((entry for entry in record.entries if entry.rival == rival), None)


def _ok(entry: Entry | None) -> bool:
    return entry is not None and entry.counts and entry.seconds is not None


def _seconds(entry: Entry | None) -> float | None:
    return entry.seconds if entry is not None and entry.counts else None


def _time(record: CaseRecord, rival: str) -> str:
    entry = _entry(record, rival)
    return time(entry) if entry is not None and entry.counts else NONE


def _percent(entry: Entry | None) -> str:
    found = entry.verdict.figures.get("accuracy") if entry and entry.verdict else None
    return NONE if found is None else f"{found:.2%}"


def _over(value: float | None, other: float | None) -> str:
    return ratio(value / other) if value is not None and other else NONE


SUBJECT = Smooth()
