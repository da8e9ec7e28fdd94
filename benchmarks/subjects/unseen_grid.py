"""A search that ends with a model, and how good that is on rows which no search has seen.

10 C × 10 gamma × 5 folds beside liquidSVM, which was made for searches. It solves another problem
(no offset), draws its folds itself and lets the best model of each fold vote where onefit fits the
best candidate to all rows. So times are those until there is a model, and the accuracies of the
models on 10,000 other rows are what is compared. There are two grids: a common one, fixed before
anything was timed, and the one that liquidSVM takes by default, whose values both are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from ..case import WARM_UP, Case, Settings
from ..datasets.grids import OWN, UNSEEN, WITH_UNSEEN
from ..record import OURS, CaseRecord
from ..report.words import NONE, ratio, seconds
from ..rivals.base import Grid, Rival
from ..rivals.liquidsvm import LiquidSvm
from .base import Outcome, Subject, Table, Verdict

FOLDS = 5
POWERS_OF_C = np.linspace(-5, 9, 10)
POWERS_OF_GAMMA = range(-3, 7)
ACCURACY = "unseen_accuracy"


class UnseenGrid(Subject):
    name = "grid"
    title = "Search of {machine} over 10 C × 10 gamma × 5 folds, with the model it ends with"
    parameters_rule = (
        "common grid: C = 2^-5 ... 2^9 in nine equal factors, gamma = 2^-3 ... 2^6 times 1 /"
        " (features * var(X)) to three digits; liquidsvm: the grid that liquidSVM takes by default"
    )
    rule = (
        "5 folds, those of liquidSVM drawn by itself; onefit refits the best candidate on all rows,"
        f" liquidSVM lets the best model of each fold vote; accuracy on {UNSEEN:,} rows that"
        " neither has seen"
    )
    default_rivals = [OURS, LiquidSvm.name]  # noqa: RUF012 (as in the base class)
    groups = [WITH_UNSEEN]  # noqa: RUF012

    def __init__(self) -> None:
        self._own: dict[str, Grid] = {}  # by name of the case

    @property
    def label(self) -> str:
        return "grid-10x10"

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        if type(rival).chosen is Rival.chosen:
            return "has no grid search of this kind"
        if case.setting == OWN and case.name not in self._own:
            liquidsvm = LiquidSvm()
            there, reason = liquidsvm.available()
            if not there:
                return f"the grid is liquidSVM's, which is not there: {reason}"
            self._own[case.name] = liquidsvm.own_grid(case, settings, StratifiedKFold(FOLDS))
        return super().suits(rival, case, settings)

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        return rival.chosen(case, settings, StratifiedKFold(FOLDS), self._grid(case))

    def answer(self, rival: Rival, result: Any, case: Case) -> float:
        X, y = (case.X, case.y) if case.unseen is None else case.unseen
        return float(np.mean(rival.predictions(result, case, X) == y))

    def judge(self, rival: Rival, answer: float, reference: float, case: Case) -> Verdict:
        text = f"accuracy on unseen rows {answer:.4f}, {reference:.4f} there"
        outcome = Outcome.OTHER if rival.other_problem else Outcome.AGREES
        return Verdict(outcome, text, {ACCURACY: answer})

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        rows = []
        for record in records:
            for entry in record.entries:
                accuracy = entry.verdict.figures.get(ACCURACY) if entry.verdict else None
                times = record.ratio(entry)
                rows.append(
                    (
                        record.facts["name"],
                        entry.rival,
                        NONE if entry.seconds is None else seconds(entry.seconds),
                        NONE if times is None else ratio(times),
                        NONE if accuracy is None else f"{accuracy:.4f}",
                    )
                )
        note = (
            f"Time until there is a model, over that of {OURS}, and its accuracy on {UNSEEN:,}"
            f" other rows (standard error about {(0.2 * 0.8 / UNSEEN) ** 0.5:.3f})."
        )
        headings = ("case", "library", "time", f"x {OURS}", "accuracy on unseen rows")
        return [Table("What is chosen", note, headings, rows)]

    def _grid(self, case: Case) -> Grid:
        if case.setting == OWN:
            return self._own[case.name]
        C = [2.0**power for power in POWERS_OF_C]
        gamma = [case.gamma * 2.0**power for power in POWERS_OF_GAMMA]
        if case.group == WARM_UP:
            return Grid(C[3:5], gamma[3:5])
        return Grid(C, gamma)
