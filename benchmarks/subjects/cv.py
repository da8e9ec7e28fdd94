"""A whole k-fold cross-validation by ``cross_val_score``. Compared: the score of every fold.

All get the same folds: stratified for classes, in the order of the rows, not shuffled. Beside it
runs one fit of scikit-learn on all rows, as a yardstick: how many such fits does onefit's
cross-validation take?

Scores of two right answers may differ a little: a row whose decision value is as small as the
tolerance can fall on either side. A share of each fold's rows, rounded down, may be right here and
wrong there: none in folds of less than 500. If there are more, the predictions of that fold are
looked at. Only rows with a decision value of almost 0 (``Machine.near``) may differ, and no more
than one in fifty. For regressors the root of the mean squared error of each fold may differ, in
units of the targets' standard deviation: predictions that are apart by so much change it by no
more. R² itself would say little where the targets of a fold hardly vary.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from ..case import WARM_UP, Case, Matrix, Settings
from ..machines.base import FloatArray, IntArray
from ..record import OURS, CaseRecord
from ..report.words import PART_MARK, ratio
from ..rivals.base import Rival
from ..summary import summarise
from .base import TRIAL_FROM_ROWS, Outcome, Subject, Verdict

FOLDS = 10
ALLOWED = 0.002  # of the rows of a fold; of the root of the mean squared error
EXPLAINED = 0.02  # of the rows of a fold, rounded up, if they are near the boundary
YARDSTICK = "scikit-learn"
# Where all folds would take more than a minute, the first 2 stand for all, or the first 5 if there
# are more than 20 of them.
LONGEST = 60.0  # seconds
PART, PART_OF_MANY, MANY = 2, 5, 20
# Iterations with and without seeds are counted up to so many rows times folds: it takes two more
# cross-validations.
COUNTED = 200_000
# A library is tried on few rows first from so many rows times folds on ...
TRIED = 50_000
# ... if these are enough for all folds.
LEAST_ROWS_OF_A_FOLD = 10


class OneFit(Rival):
    """One fit of a library on all rows."""

    yardstick = "one fit on all rows"

    def __init__(self, rival: Rival) -> None:
        self._rival = rival
        self.name = f"{rival.name}, one fit"
        self.module, self.packages = rival.module, rival.packages
        self.machines, self.max_threads = rival.machines, rival.max_threads

    def fit(self, case: Case, settings: Settings) -> Any:
        return self._rival.fit(case, settings)

    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        return self._rival.predictions(model, case, X)


@dataclass(frozen=True)
class Answer:
    """The score of each fold, the targets it is about, and onefit's iterations.

    ``held_out`` takes folds and computes their predictions again.
    """

    scores: FloatArray
    targets: list[NDArray[Any]]
    held_out: Callable[[list[int]], list[tuple[NDArray[Any], FloatArray]]]
    iterations: dict[str, int] = field(default_factory=dict)


class CrossValidation(Subject):
    name = "cv"
    rank = 2
    longest = LONGEST
    _done: int | None = None  # folds that are fitted; None: all
    _is_trial = False

    def __init__(self, folds: int = FOLDS) -> None:
        self._folds = folds
        self.title = f"{folds}-fold cross-validation of {{machine}} with a Gaussian kernel"
        self.default_rivals = [OURS, YARDSTICK]
        self.rule = (
            f"{folds} folds, stratified for classes, not shuffled, the same for all;"
            f" in each fold the number of right rows may differ by {ALLOWED * 1000:g} in 1,000"
            f" (by none in folds of less than {1 / ALLOWED:g}), or one in {1 / EXPLAINED:g}"
            " predictions if all of these have an |f| of almost 0, as the check then shows;"
            " for regressors the root of the mean squared error of each fold may differ by"
            f" {ALLOWED:g} standard deviations of the targets; {PART_MARK.strip()} marks times that"
            f" follow from the first {PART} folds ({PART_OF_MANY} of more than {MANY}), where all"
            f" would take more than {LONGEST:g} s or --patience"
        )

    @property
    def label(self) -> str:
        return f"{self.name}-{self._folds}fold"

    def asked(self, options: argparse.Namespace) -> Subject:
        return CrossValidation(asked_folds(options))

    def contenders(self, rivals: list[Rival]) -> list[Rival]:
        return rivals + [OneFit(rival) for rival in rivals if rival.name == YARDSTICK]

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        if type(rival).scores is Rival.scores and not isinstance(rival, OneFit):
            return "cannot be given folds"
        if not case.machine.regression:
            most, folds = int(np.unique(case.y, return_counts=True)[1].max()), self._number(case)
            if most < folds and case.group != WARM_UP:
                return f"no class has rows for {folds} stratified folds"
        return super().suits(rival, case, settings)

    def part(self, rival: Rival, case: Case) -> tuple[CrossValidation, float] | None:
        # Folds of one size take about the same time, unless one helps the next.
        folds = self._number(case)
        done = _done_of(folds)
        if rival.shares_folds or isinstance(rival, OneFit) or folds <= done:
            return None
        part = copy(self)
        part._done = done
        return part, done / folds

    def trial(self, rival: Rival, case: Case) -> tuple[CrossValidation, float]:
        part, share = self.part(rival, case) or (self, 1.0)
        trial = copy(part)
        trial._is_trial = True
        return trial, share

    def trial_from_rows(self, case: Case) -> int:
        folds = self._number(case)
        return min(TRIAL_FROM_ROWS, max(TRIED // folds, LEAST_ROWS_OF_A_FOLD * folds))

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        if isinstance(rival, OneFit):
            return rival.fit(case, settings)
        # All folds: the splitter, as people pass it.
        cv = self._splitter(case) if self._done is None else self._splits(case)
        return rival.scores(case, settings, cv), settings

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer | None:
        if isinstance(rival, OneFit):
            return None
        scores, settings = result
        cv = self._splitter(case)
        return Answer(
            scores,
            [case.y[test] for _, test in self._splits(case)],
            partial(rival.held_out, case, settings, cv),
            rival.iterations(case, settings, cv) if self._counts(case) else {},
        )

    def judge(self, rival: Rival, answer: Answer, reference: Answer, case: Case) -> Verdict:
        folds = min(len(answer.scores), len(reference.scores))
        compare = _compare_errors if case.machine.regression else _compare_rows
        text, figures, right = compare(answer, reference, folds, case.machine.near)
        mean = float(answer.scores[:folds].mean())
        text = f"mean score {mean:.5f} of {folds} folds; {text}"
        figures |= {"folds_compared": folds, "mean_score": mean}
        if answer.iterations:
            figures |= {f"iterations_{name}": n for name, n in answer.iterations.items()}
            text += f"; {self._counted(answer.iterations)}"
        return Verdict(Outcome.AGREES if right else Outcome.DISAGREES, text, figures)

    def sentences(self, records: list[CaseRecord]) -> list[str]:
        """Return how many fits onefit's cross-validation takes, and what seeds are worth."""
        found = []
        for line in summarise(records):
            if line.rival == f"{YARDSTICK}, one fit":
                size = f" from {line.min_rows:,} rows on" if line.min_rows else ""
                found.append(
                    f"{OURS}'s {self._folds}-fold cross-validation takes"
                    f" {ratio(1 / line.geometric_mean)} times one fit of {YARDSTICK} on all rows"
                    f" (geometric mean of {line.cases} cases{size};"
                    f" worst: {ratio(1 / line.worst)}, {line.worst_case};"
                    f" best: {ratio(1 / line.best)}, {line.best_case})"
                )
        timed = [e for r in records for e in r.entries if e.rival == YARDSTICK and e.counts]
        if parts := sum(entry.share < 1 for entry in timed):
            found.append(
                f"{YARDSTICK}'s time follows from the first {_done_of(self._folds)} folds in"
                f" {parts} of {len(timed)} cases, marked {PART_MARK.strip()} below"
            )
        saved = [
            entry.verdict.figures["iterations_none"] / entry.verdict.figures["iterations_auto"]
            for record in records
            for entry in record.entries
            if entry.verdict and entry.verdict.figures.get("iterations_auto")
        ]
        if saved:
            mean = math.exp(math.fsum(map(math.log, saved)) / len(saved))
            found.append(
                f"{OURS}'s iterations without seeds over those with seeding='auto', the fit on all"
                f" rows included: {ratio(mean)} (geometric mean of {len(saved)} cases of up to"
                f" {COUNTED // self._folds:,} rows; {ratio(min(saved))} to {ratio(max(saved))})"
            )
        return found

    def _counted(self, iterations: dict[str, int]) -> str:
        return f"{iterations['auto']:,} iterations, {iterations['none']:,} without seeds"

    def _number(self, case: Case) -> int:
        return case.folds or self._folds

    def _counts(self, case: Case) -> bool:
        return not self._is_trial and case.rows * self._number(case) <= COUNTED

    def _splitter(self, case: Case) -> Any:
        # A few rows of a class may be less than there are folds. Those of a trial are in no order.
        plain = case.machine.regression or self._is_trial
        return (KFold if plain else StratifiedKFold)(self._number(case))

    def _splits(self, case: Case) -> list[tuple[IntArray, IntArray]]:
        return list(islice(self._splitter(case).split(case.X, case.y), self._done))


def asked_folds(options: argparse.Namespace) -> int:
    """Return how many folds the command line wants."""
    folds: int = FOLDS if options.folds is None else options.folds
    if folds < 2:
        raise SystemExit("a cross-validation has at least 2 folds")
    return folds


def _done_of(folds: int) -> int:
    """Return how many folds stand for all, where all would take too long."""
    return PART if folds <= MANY else PART_OF_MANY


def _compare_errors(
    answer: Answer, reference: Answer, folds: int, near: float
) -> tuple[str, dict[str, float], bool]:
    """Return text, figures and whether the first ``folds`` agree."""
    spread = np.array([targets.std() for targets in reference.targets[:folds]])
    own, theirs = (np.sqrt(1 - a.scores[:folds]) * spread for a in (answer, reference))
    apart = float(np.abs(own - theirs).max())
    text = f"root of the mean squared error of a fold differs by at most {apart:.1e}"
    figures = {"largest_error_difference": apart, "error_difference_allowed": ALLOWED}
    return f"{text}, allowed {ALLOWED:g}", figures, apart <= ALLOWED


def _compare_rows(
    answer: Answer, reference: Answer, folds: int, near: float
) -> tuple[str, dict[str, float], bool]:
    """Return text, figures and whether the first ``folds`` agree."""
    sizes = np.array([len(targets) for targets in reference.targets[:folds]])
    apart = np.abs(answer.scores[:folds] - reference.scores[:folds])
    rows, allowed = np.rint(apart * sizes).astype(int), (ALLOWED * sizes).astype(int)
    worst = int(np.argmax(rows - allowed))
    text = f"right rows of a fold differ by at most {rows[worst]} of {sizes[worst]}"
    text += f", allowed {allowed[worst]}"
    figures: dict[str, float] = {
        "rows_different": int(rows[worst]),
        "rows_allowed": int(allowed[worst]),
    }
    right, farthest = True, 0.0
    if suspect := np.flatnonzero(rows > allowed).tolist():
        both = zip(suspect, answer.held_out(suspect), reference.held_out(suspect), strict=True)
        for fold, (own, _), (classes, nearest) in both:
            differ = own != classes
            farthest = max(farthest, float(nearest[differ].max(initial=0.0)))
            right &= bool(differ.sum() <= math.ceil(EXPLAINED * sizes[fold]))
        right &= farthest <= near
        text += f", but |f| <= {farthest:.1e} where predictions differ, allowed {near:g}"
        figures["largest_value_where_different"] = farthest
    return text, figures, right


SUBJECT = CrossValidation()
