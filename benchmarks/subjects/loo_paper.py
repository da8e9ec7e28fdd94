"""The experiments of the leave-one-out paper: models selected by leave-one-out errors.

Franc, Laskov & Müller, "Stopping conditions for exact computation of leave-one-out error in support
vector machines", ICML 2008. Its Table 2 has the smallest mean error of a grid over 5 training sets,
its Table 3 what a certified stop saves: the time of all leave-one-outs of a data set, with the
checks of its Table 1 and with these and the stop. The stop is onefit's own (core/certificate.hpp),
which needs no second problem. Compared: the errors of all models, which no way may change.

The paper counts kernel evaluations, as columns of the kernel matrix. Its solver evaluates two of
them in an iteration; onefit evaluates an entry once and keeps it for all rows. So iterations stand
beside them here.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onefit.loo.checks import DecidedBy
from onefit.loo.result import LooResult

from ..case import Case, Settings
from ..datasets.ida import IDA, LINEAR, RBF, REALISATIONS, Ida, Realisations
from ..left_out import with_checks_alone
from ..machines.base import FloatArray
from ..record import OURS, CaseRecord, Entry
from ..report.words import NONE, ratio, seconds
from ..rivals.base import Rival
from ..rivals.onefit import Onefit
from .base import Outcome, Subject, Table, Verdict

# The ways: the paper's standard one, onefit's default, proofs for all rows, and values of all rows.
REST = f"{OURS}, other training sets"
CHECKS, PROVEN, VALUES = f"{OURS}, checks alone", f"{OURS}, certify=True", f"{OURS}, certify=False"

# The paper's Table 2: leave-one-out errors of the best models, in percent.
PAPER_ERRORS = {
    "banana": {LINEAR: 41.40, RBF: 8.55},
    "breast": {LINEAR: 27.20, RBF: 23.00},
    "diabetis": {LINEAR: 22.05, RBF: 21.50},
    "flare": {LINEAR: 32.85, RBF: 32.31},
    "german": {LINEAR: 24.91, RBF: 23.71},
    "heart": {LINEAR: 14.24, RBF: 13.53},
    "ring": {LINEAR: 23.45, RBF: 1.10},
    "splice": {LINEAR: 15.36, RBF: 10.60},
    "twono": {LINEAR: 2.50, RBF: 2.25},
    "wave": {LINEAR: 10.90, RBF: 8.85},
}
# Its Table 3: what the stop saves in time and in kernel evaluations, and the share of rows that it
# ended, in percent.
PAPER_SPEED = {
    "banana": {LINEAR: (9.9, 12.3, 56.9), RBF: (5.1, 6.1, 81.9)},
    "breast": {LINEAR: (2.0, 2.1, 64.2), RBF: (1.5, 1.6, 55.6)},
    "diabetis": {LINEAR: (6.3, 7.2, 93.1), RBF: (1.4, 1.5, 54.8)},
    "flare": {LINEAR: (1.0, 1.1, 59.3), RBF: (2.2, 2.4, 50.3)},
    "german": {LINEAR: (4.2, 4.4, 82.0), RBF: (1.1, 1.1, 31.3)},
    "heart": {LINEAR: (1.9, 2.1, 83.1), RBF: (1.1, 1.2, 50.3)},
    "ring": {LINEAR: (2.8, 3.0, 91.8), RBF: (1.4, 1.4, 39.1)},
    "splice": {LINEAR: (1.5, 1.5, 74.5), RBF: (1.0, 1.0, 14.6)},
    "twono": {LINEAR: (1.9, 2.2, 89.1), RBF: (1.0, 1.0, 22.2)},
    "wave": {LINEAR: (2.4, 2.6, 90.7), RBF: (1.1, 1.1, 30.9)},
}
# Its times of the standard way, in seconds.
PAPER_SECONDS = {
    "banana": {LINEAR: 728.0, RBF: 1565.1},
    "breast": {LINEAR: 128.7, RBF: 265.9},
    "diabetis": {LINEAR: 3705.3, RBF: 3163.6},
    "flare": {LINEAR: 61.5, RBF: 2263.0},
    "german": {LINEAR: 47603.8, RBF: 6513.7},
    "heart": {LINEAR: 280.7, RBF: 59.5},
    "ring": {LINEAR: 11632.8, RBF: 277.2},
    "splice": {LINEAR: 41072.8, RBF: 6360.3},
    "twono": {LINEAR: 52.8, RBF: 175.3},
    "wave": {LINEAR: 3422.8, RBF: 345.6},
}


# Training sets on which the ways are compared; errors are those of all.
COMPARED = 1


class Way(Onefit):
    """onefit with rows settled in one way; ``certify`` is None for the checks alone."""

    def __init__(self, name: str, certify: bool | str | None) -> None:
        self.name, self.certify = name, certify

    def leave_one_out(self, estimator: Any, X: Any, y: Any) -> LooResult:
        if self.certify is None:
            return with_checks_alone(estimator, X, y)
        import onefit

        return onefit.leave_one_out(estimator, X, y, certify=self.certify, progress=False)


WAYS = (Way(CHECKS, None), Way(OURS, "auto"), Way(PROVEN, True), Way(VALUES, False))
# For the errors alone: the training sets on which the ways are not compared.
OTHERS = Way(REST, "auto")


@dataclass
class Work:
    """What the leave-one-outs of all models on one training set took."""

    n_iter: int = 0
    kernel_columns: float = 0.0
    rows_solved: int = 0  # those that no check settled
    rows_certified: int = 0

    def add(self, result: LooResult) -> None:
        self.n_iter += result.ledger.n_iter
        self.kernel_columns += result.ledger.kernel_entries / len(result.y)
        counts = result.counts()
        certified = counts.get(DecidedBy.CERTIFICATE, 0)
        self.rows_certified += certified
        self.rows_solved += certified + counts.get(DecidedBy.SOLVER, 0)


@dataclass(frozen=True)
class Selection:
    """The leave-one-out errors by training set and model, and the work for each training set."""

    errors: FloatArray
    work: list[Work]


class LooPaper(Subject):
    name = "loo-paper"
    rank = 5
    title = (
        "Models selected by leave-one-out, on the data sets of Franc, Laskov and Müller (2008):"
        " {machine}"
    )
    repeats = 1
    parameters_rule = (
        "C = 0.01, 0.1, ..., 100 with a linear kernel; C = 500^(i/7) and gamma = 2^(-11 i/7),"
        " i = 0, ..., 7, with a Gaussian one"
    )

    def __init__(self, realisations: int = REALISATIONS) -> None:
        self._realisations = realisations
        self.default_rivals = [OURS]
        self.groups = [IDA]
        self.rule = (
            f"errors: means of {realisations} training sets; time, iterations, kernel and"
            f" certified rows: all models on the first {COMPARED} of them; no way to settle rows"
            " may change an error"
        )

    @property
    def label(self) -> str:
        part = f"-{self._realisations}realisations"
        return self.name + ("" if self._realisations == REALISATIONS else part)

    def asked(self, options: argparse.Namespace) -> Subject:
        asked = options.realisations or REALISATIONS
        if asked > REALISATIONS:
            raise SystemExit(f"the paper has {REALISATIONS} realisations, not {asked}")
        return LooPaper(asked)

    def contenders(self, rivals: list[Rival]) -> list[Rival]:
        return [*WAYS, OTHERS] if any(rival.name == OURS for rival in rivals) else []

    def takes_part(self, rival: Rival, case: Case) -> bool:
        return rival is not OTHERS or self._realisations > COMPARED

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        return None if isinstance(case, Realisations) else "has no realisations"

    def run(self, rival: Rival, case: Case, settings: Settings) -> Selection:
        import onefit

        assert isinstance(rival, Way)
        assert isinstance(case, Realisations)
        sets = (
            case.train[COMPARED : self._realisations] if rival is OTHERS else case.train[:COMPARED]
        )
        found = Selection(np.empty((len(sets), len(case.grid))), [Work() for _ in sets])
        for rows, errors, work in zip(sets, found.errors, found.work, strict=True):
            X, y = case.X[rows], case.y[rows]
            for model, parameters in enumerate(case.grid):
                options = rival.options(settings)
                estimator = onefit.SVC(**parameters, tol=settings.tol, **options)
                result = rival.leave_one_out(estimator, X, y)
                errors[model] = result.error
                work.add(result)
        return found

    def answer(self, rival: Rival, result: Selection, case: Case) -> Selection:
        return result

    def judge(self, rival: Rival, answer: Selection, reference: Selection, case: Case) -> Verdict:
        assert isinstance(case, Realisations)
        differ = 0 if rival is OTHERS else int((answer.errors != reference.errors).sum())
        of_sets = [reference.errors, answer.errors] if rival is OTHERS else [answer.errors]
        errors = np.concatenate(of_sets)
        means = errors.mean(axis=0)
        best = int(np.argmin(means))
        chosen = {name: value for name, value in case.grid[best].items() if name != "kernel"}
        words = ", ".join(f"{name} = {value:.3g}" for name, value in chosen.items())
        text = f"error {means[best]:.2%} of {len(errors)} training sets with {words}"
        text += "" if rival is OTHERS else f"; {differ} of {errors.size} errors differ"
        text += f"; {sum(work.n_iter for work in answer.work):,} iterations"
        figures = {
            "error": float(means[best]),
            "errors_different": differ,
            "training_sets": len(errors),
            **_total(answer.work),
            **{f"best_{name}": float(value) for name, value in chosen.items()},
        }
        return Verdict(Outcome.DISAGREES if differ else Outcome.AGREES, text, figures)

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        done = [record for record in records if record.entries]
        sets = {found.name: found for found in IDA.datasets if isinstance(found, Ida)}
        return [_errors(done, sets), *[_speed(done, kernel) for kernel in (LINEAR, RBF)]]


def _total(works: list[Work]) -> dict[str, float]:
    """Return the sums over training sets."""
    parts = [asdict(work) for work in works]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def _errors(records: list[CaseRecord], sets: dict[str, Ida]) -> Table:
    rows = []
    for record in records:
        facts = record.facts
        figures = _figures(_entry(record, REST)) or _figures(_entry(record, OURS))
        gamma = figures.get("best_gamma")
        rows.append(
            (
                sets[facts["dataset"]].title,
                facts["setting"],
                f"{facts['rows']:,}",
                "original" if facts["original_splits"] else "drawn",
                f"{100 * figures['error']:.2f}" if figures else NONE,
                f"{PAPER_ERRORS[facts['dataset']][facts['setting']]:.2f}",
                f"{figures['best_C']:.3g}" if figures else NONE,
                NONE if gamma is None else f"{gamma:.3g}",
            )
        )
    return Table(
        "Errors of the best models",
        "Leave-one-out errors in percent, means over the training sets; paper: its Table 2.",
        ("data", "kernel", "rows", "splits", "error", "paper", "C", "gamma"),
        rows,
    )


def _speed(records: list[CaseRecord], kernel: str) -> Table:
    rows = []
    for record in (record for record in records if record.facts["setting"] == kernel):
        name = record.facts["dataset"]
        checks, auto, proven, values = (_figures(_entry(record, way.name)) for way in WAYS)
        time, evaluations, certified = PAPER_SPEED[name][kernel]
        rows.append(
            (
                name,
                seconds(checks.get("seconds")),
                seconds(PAPER_SECONDS[name][kernel] / REALISATIONS),
                f"{checks['n_iter']:,}" if checks else NONE,
                f"{checks['kernel_columns']:,.0f}" if checks else NONE,
                *[_over(checks, way, "seconds") for way in (auto, proven)],
                ratio(time),
                *[_over(checks, way, "n_iter") for way in (auto, proven)],
                _over(checks, auto, "kernel_columns"),
                ratio(evaluations),
                *[_certified(way) for way in (auto, proven)],
                f"{certified:.1f}%",
                _over(values, auto, "seconds"),
            )
        )
    return Table(
        f"What the certified stop saves, {kernel} kernel",
        "Checks: rows settled by the checks of the fit on all rows, all others by the solver (the"
        " paper's standard way), with seeds. Saved: checks over auto, and over certify=True, which"
        " solves on where there is no proof yet. Certified: of the rows that no"
        " check settled. Kernel: columns evaluated. Last column: the time with certify=False, which"
        " computes values of all rows, over that of auto. Paper: its Table 3;"
        f" times are a {REALISATIONS}th of those there, which are of {REALISATIONS} training sets.",
        (
            "data",
            "checks: time",
            "paper",
            "iterations",
            "kernel",
            "time saved: auto",
            "True",
            "paper",
            "iterations saved: auto",
            "True",
            "kernel saved: auto",
            "paper",
            "certified: auto",
            "True",
            "paper",
            "values / auto",
        ),
        rows,
    )


def _entry(record: CaseRecord, rival: str) -> Entry | None:
    return next((entry for entry in record.entries if entry.rival == rival), None)


def _figures(entry: Entry | None) -> dict[str, float]:
    """Return the figures of a way and its median time; none if it has not run."""
    if entry is None or entry.verdict is None or entry.seconds is None:
        return {}
    return entry.verdict.figures | {"seconds": entry.seconds}


def _over(figures: dict[str, float], others: dict[str, float], name: str) -> str:
    return ratio(figures[name] / others[name]) if figures and others.get(name) else NONE


def _certified(figures: dict[str, float]) -> str:
    solved = figures.get("rows_solved")
    return f"{figures['rows_certified'] / solved:.1%}" if solved else NONE


SUBJECT = LooPaper()
