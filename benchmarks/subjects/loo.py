"""A whole leave-one-out: every row predicted by a fit to all others. Compared: all predictions.

onefit's ``leave_one_out`` with its defaults against scikit-learn's ``cross_val_predict`` with
``LeaveOneOut``. Beside it runs one fit of scikit-learn on all rows, as a yardstick: how many such
fits does the leave-one-out take?

The reference is neither of them, but left-out problems solved to a tolerance of 1e-9 without any
rule or proof (:mod:`benchmarks.left_out`). Of onefit's predictions none may differ. scikit-learn's
are those of its own tolerance: they may where the decision value is almost 0 (``Machine.near``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.loo.checks import DecidedBy
from onefit.loo.result import LooResult

from ..case import Case, Settings
from ..left_out import ALL_COLD, FIRST, NEAREST, TIGHT, UNSURE, Refits, predict_left_out, refits
from ..machines.base import FloatArray, IntArray
from ..record import OURS, CaseRecord, Entry
from ..report.words import NONE, PART_MARK, PART_MARK_MEANS, ratio, time
from ..rivals import all_rivals
from ..rivals.base import Rival, SklearnFaced
from ..rivals.onefit import Onefit
from .base import Outcome, Subject, Table, Verdict
from .cv import YARDSTICK, OneFit

MACHINE = "c-svc"
MOST_ROWS = 10_000
# Where all rows would take more than so many seconds, some drawn at random stand for all.
LONGEST = 20.0
PART = 30
PART_SEED = 0
TRIED = 400  # rows from which on a library is tried on few of them first
RULES = (
    DecidedBy.NOT_SUPPORT,
    DecidedBy.MISCLASSIFIED,
    DecidedBy.BOUND,
    DecidedBy.CERTIFICATE,
    DecidedBy.SOLVER,
)


@dataclass(frozen=True)
class Answer:
    """Predictions of some rows, and of onefit what settled them."""

    rows: IntArray
    predictions: NDArray[Any]
    work: LooResult | None
    settings: Settings


class LeaveOneOut(Subject):
    name = "loo"
    rank = 3
    title = "Leave-one-out of {machine} with a Gaussian kernel"
    max_rows = MOST_ROWS
    longest = LONGEST
    own_reference = True
    rule = (
        "every row predicted by a fit to all others; onefit's predictions have to be those of"
        f" left-out problems solved to {TIGHT:g} without rules and proofs, from nothing (beyond"
        f" {ALL_COLD} rows: to {FIRST:g}, and from nothing to {TIGHT:g} where decision values below"
        f" {UNSURE:g} decide); the {NEAREST} rows nearest to the boundary are also fitted by"
        f" scikit-learn to {TIGHT:g}, as many as 20 s allow; scikit-learn's own predictions"
        " may differ where |f| of these is almost 0;"
        f" {PART_MARK.strip()} marks times that follow from {PART} rows, where all would take more"
        f" than {LONGEST:g} s or --patience"
    )
    _part: int | None = None  # rows that are left out; None: all

    def __init__(self) -> None:
        self.default_rivals = [OURS, YARDSTICK]
        self._reference: tuple[str, Refits] | None = None  # of the case that was judged last

    def contenders(self, rivals: list[Rival]) -> list[Rival]:
        return rivals + [OneFit(rival) for rival in rivals if rival.name == YARDSTICK]

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        if case.machine.name != MACHINE:
            return f"the reference is for {MACHINE} alone"
        if not isinstance(rival, SklearnFaced | OneFit):
            return "has not scikit-learn's interface"
        return super().suits(rival, case, settings)

    def part(self, rival: Rival, case: Case) -> tuple[LeaveOneOut, float] | None:
        # Fits without a row take about the same time, unless one helps the next.
        if rival.shares_folds or isinstance(rival, OneFit) or case.rows <= PART:
            return None
        part = copy(self)
        part._part = PART
        return part, PART / case.rows

    def trial(self, rival: Rival, case: Case) -> tuple[Subject, float]:
        return self.part(rival, case) or (self, 1.0)

    def trial_from_rows(self, case: Case) -> int:
        return TRIED

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        if isinstance(rival, OneFit):
            return rival.fit(case, settings)
        assert isinstance(rival, SklearnFaced)
        estimator = rival.estimator(case, settings)
        if isinstance(rival, Onefit):
            import onefit

            result = onefit.leave_one_out(estimator, case.X, case.y, progress=False)
            return result.predictions, result, settings
        if self._part is None:
            from sklearn.model_selection import LeaveOneOut as Splitter
            from sklearn.model_selection import cross_val_predict

            n_jobs = settings.threads // rival.threads(settings)
            cv = Splitter()
            return (
                cross_val_predict(estimator, case.X, case.y, cv=cv, n_jobs=n_jobs),
                None,
                settings,
            )
        left_out = (predict_left_out(estimator, case.X, case.y, row) for row in self._rows(case))
        return np.array(list(left_out)), None, settings

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer | None:
        if isinstance(rival, OneFit):
            return None
        predictions, work, settings = result
        return Answer(self._rows(case), predictions, work, settings)

    def judge(self, rival: Rival, answer: Answer, reference: Answer, case: Case) -> Verdict:
        expected = self._expected(case, answer.settings)
        differ = expected.differ(answer.predictions, answer.rows)
        farthest = float(expected.nearest[answer.rows][differ].max(initial=0.0))
        error = float((answer.predictions != case.y[answer.rows]).mean())
        text = f"error {error:.4f} of {len(answer.rows)} rows; {differ.sum()} predictions differ"
        text += f", |f| <= {farthest:.1e} there" if differ.any() else ""
        figures = {
            "error": error,
            "rows_compared": len(answer.rows),
            "predictions_different": int(differ.sum()),
            "largest_value_where_different": farthest,
        }
        if answer.work is None:
            right = farthest <= case.machine.near
            return Verdict(Outcome.AGREES if right else Outcome.DISAGREES, text, figures)
        figures |= _work(answer.work) | {
            "rows_solved_cold": expected.cold,
            "refits_of_scikit_learn": len(expected.refitted),
            "refits_of_scikit_learn_different": expected.refits_differ,
        }
        text += f"; {figures['iterations_full'] + figures['iterations_rows']:,} iterations"
        right = not differ.any() and answer.work.exact
        return Verdict(Outcome.AGREES if right else Outcome.DISAGREES, text, figures)

    def sentences(self, records: list[CaseRecord]) -> list[str]:
        found = []
        both = ((YARDSTICK, "one fit"), (YARDSTICK, None))
        for name, what in both:
            rival = f"{name}, {what}" if what else name
            ratios = [
                (value, record.facts["name"])
                for record in records
                for entry in record.entries
                if entry.rival == rival and (value := record.ratio(entry)) is not None
            ]
            if not ratios:
                continue
            mean = _geometric_mean([value for value, _ in ratios])
            (worst, where), (best, there) = min(ratios), max(ratios)
            if what:
                found.append(
                    f"{OURS}'s leave-one-out takes {ratio(1 / mean)} times one fit of {name} on all"
                    f" rows (geometric mean of {len(ratios)} cases; worst: {ratio(1 / worst)},"
                    f" {where}; best: {ratio(1 / best)}, {there})"
                )
            else:
                found.append(
                    f"it is {ratio(mean)} times as fast as {name}'s (geometric mean of"
                    f" {len(ratios)} cases; worst: {ratio(worst)}, {where};"
                    f" best: {ratio(best)}, {there})"
                )
        return found + _differences(records)

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        done = [record for record in records if _ours(record) is not None]
        return [_times(done), _settled(done)]

    def _rows(self, case: Case) -> IntArray:
        """Return the rows that are left out."""
        if self._part is None:
            return np.arange(case.rows)
        drawn = np.random.default_rng(PART_SEED).choice(case.rows, self._part, replace=False)
        return np.sort(drawn)

    def _expected(self, case: Case, settings: Settings) -> Refits:
        if self._reference is None or self._reference[0] != case.name:
            rivals = all_rivals()
            ours, theirs = (rivals[name].estimator(case, settings) for name in (OURS, YARDSTICK))
            self._reference = (case.name, refits(ours, theirs, case.X, case.y))
        return self._reference[1]


def _work(result: LooResult) -> dict[str, float]:
    counts = result.counts()
    shares = {f"share {rule}": counts.get(rule, 0) / len(result.y) for rule in RULES}
    full = result.ledger.full.n_iter
    return shares | {
        "iterations_full": full,
        "iterations_rows": result.ledger.n_iter - full,
        "kernel_entries": result.ledger.kernel_entries,
    }


def _differences(records: list[CaseRecord]) -> list[str]:
    entries = [entry for record in records if (entry := _ours(record)) is not None]
    if not entries:
        return []

    def total(figure: str) -> int:
        return round(math.fsum(_figure(entry, figure) for entry in entries))

    return [
        f"predictions different from refits at a tolerance of {TIGHT:g}:"
        f" {total('predictions_different')} of {total('rows_compared'):,} in {len(entries)} cases"
        f" ({total('rows_solved_cold'):,} of these left-out problems solved from nothing to"
        f" {TIGHT:g}); scikit-learn's refits of the rows nearest to the boundary differ from these"
        f" in {total('refits_of_scikit_learn_different')} of {total('refits_of_scikit_learn')}"
    ]


def _times(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        ours, theirs = _ours(record), _entry(record, YARDSTICK)
        fit = _entry(record, f"{YARDSTICK}, one fit")
        assert ours is not None
        in_fits = record.ratio(fit) if fit else None
        rows.append(
            (
                record.facts["name"],
                f"{record.facts['rows']:,}",
                f"{_figure(ours, 'error'):.4f}",
                time(ours),
                time(fit) if fit and fit.samples else NONE,
                ratio(1 / in_fits) if in_fits else NONE,
                time(theirs) if theirs and theirs.samples else NONE,
                ratio(record.ratio(theirs)) if theirs else NONE,
                f"{_figure(ours, 'predictions_different'):.0f}",
            )
        )
    return Table(
        "Leave-one-out",
        "In fits: onefit's time over that of one fit of scikit-learn on all rows."
        f" {PART_MARK_MEANS}",
        (
            "case",
            "rows",
            "error",
            "onefit",
            "one fit",
            "in fits",
            "scikit-learn",
            "times as fast",
            "predictions different",
        ),
        rows,
    )


def _settled(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        ours = _ours(record)
        assert ours is not None
        solved = _figure(ours, f"share {DecidedBy.CERTIFICATE}")
        solved += _figure(ours, f"share {DecidedBy.SOLVER}")
        of_rows = _figure(ours, "iterations_rows")
        each = of_rows / (solved * record.facts["rows"]) if solved else 0.0
        rows.append(
            (
                record.facts["name"],
                *[f"{_figure(ours, f'share {rule}'):.1%}" for rule in RULES],
                f"{_figure(ours, 'iterations_full'):,.0f}",
                f"{of_rows:,.0f}",
                f"{each:.0f}",
                f"{_figure(ours, 'kernel_entries') / record.facts['rows'] ** 2:.2f}",
            )
        )
    return Table(
        "What settled the rows",
        "Iterations of the fit on all rows, of all left-out problems, and of each row that went to"
        " the solver. Kernel: entries evaluated, over the square of the rows.",
        ("case", *map(str, RULES), "iterations: full fit", "left-out", "a row", "kernel"),
        rows,
    )


def _ours(record: CaseRecord) -> Entry | None:
    entry = _entry(record, OURS)
    return entry if entry is not None and entry.verdict is not None else None


def _entry(record: CaseRecord, rival: str) -> Entry | None:
    return next((entry for entry in record.entries if entry.rival == rival), None)


def _figure(entry: Entry, name: str) -> float:
    return entry.verdict.figures[name] if entry.verdict else math.nan


def _geometric_mean(values: Sequence[float] | FloatArray) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


SUBJECT = LeaveOneOut()
