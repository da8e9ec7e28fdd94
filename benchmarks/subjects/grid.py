"""A whole grid search: 8 C × 8 gamma × 5 folds. Compared: the mean score of every candidate.

The grid is fixed before anything is timed: C = 2^-5, 2^-3 ... 2^9, and gamma = 2^-5 ... 2^2 times
the one of all other benchmarks. ``--threads`` are workers: threads of onefit, processes of
scikit-learn. No search refits. ``--shape 10x10`` is another subject (``unseen_grid.py``).

Scores of two right answers may differ a little: a row whose decision value is as small as the
tolerance can fall on either side. Of all rows a few (2 in 1,000, rounded up) may be right here and
wrong there for a candidate. The best candidates have to be the same, unless their scores are as
near as that.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ..case import WARM_UP, Case, Settings
from ..datasets.grids import GRIDS
from ..machines.base import FloatArray
from ..record import OURS
from ..rivals.base import Grid, Rival
from .base import Outcome, Subject, Verdict
from .unseen_grid import UnseenGrid

FOLDS = 5
POWERS_OF_C = range(-5, 10, 2)
POWERS_OF_GAMMA = range(-5, 3)
ALLOWED = 0.002  # of all rows; in regression of R²


@dataclass(frozen=True)
class Answer:
    """The mean score of every candidate, and which is the best."""

    scores: FloatArray
    best: dict[str, Any]


class GridSearch(Subject):
    name = "grid"
    rank = 4
    repeats = 3
    title = "Grid search of {machine} over 8 C × 8 gamma × 5 folds"
    parameters_rule = (
        "C = 2^-5, 2^-3 ... 2^9; gamma = 2^-5 ... 2^2 times 1 / (features * var(X)) to three digits"
    )
    rule = (
        "5 folds, stratified for classes, not shuffled, the same for all; no refit; for each"
        f" candidate the number of right rows may differ by {ALLOWED * 1000:g} in 1,000, rounded up"
        " (in regression the mean R² by as much); the best candidate is the same, or its score is"
        " as near as that"
    )
    default_rivals = [OURS, "scikit-learn"]  # noqa: RUF012 (as in the base class)
    groups = [GRIDS]  # noqa: RUF012

    def asked(self, options: argparse.Namespace) -> Subject:
        return UnseenGrid() if options.shape == "10x10" else self

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        if type(rival).search is Rival.search:
            return "has no grid search of this kind"
        if rival.other_problem and len(np.unique(case.y)) > 2 and case.group != WARM_UP:
            return "tells errors of pairs of classes only"
        return super().suits(rival, case, settings)

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        cv = (KFold if case.machine.regression else StratifiedKFold)(FOLDS)
        return rival.search(case, settings, cv, grid_of(case))

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer:
        scores, best = result
        return Answer(np.asarray(scores), best)

    def judge(self, rival: Rival, answer: Answer, reference: Answer, case: Case) -> Verdict:
        if rival.other_problem:
            text = f"best mean score {answer.scores.max():.5f}, {reference.scores.max():.5f} there"
            return Verdict(Outcome.OTHER, text, {"best_score": float(answer.scores.max())})
        if answer.scores.shape != reference.scores.shape:
            return Verdict(Outcome.DISAGREES, "other candidates")
        apart = np.abs(answer.scores - reference.scores)
        rows = 1 if case.machine.regression else case.rows
        allowed = ALLOWED if case.machine.regression else math.ceil(ALLOWED * rows)
        worst = float(apart.max()) * rows
        same_best = answer.best == reference.best
        as_good = reference.scores.max() - reference.scores[int(answer.scores.argmax())]
        unit = "R²" if case.machine.regression else f"of {rows} rows"
        text = (
            f"best {'the same' if same_best else 'another'}, mean score {answer.scores.max():.5f};"
            f" {int((apart > 0).sum())} of {apart.size} scores differ, by at most {worst:.3g}"
            f" {unit}, allowed {allowed:g}"
        )
        right = worst <= allowed + 1e-6 and (same_best or as_good * rows <= allowed + 1e-6)
        figures = {
            "largest_difference": worst,
            "allowed": float(allowed),
            "scores_different": float((apart > 0).sum()),
            "same_best": float(same_best),
            "best_score": float(answer.scores.max()),
        }
        return Verdict(Outcome.AGREES if right else Outcome.DISAGREES, text, figures)


def grid_of(case: Case) -> Grid:
    """Return the values of C and gamma; two of each to warm up."""
    C = [2.0**k for k in POWERS_OF_C]
    gamma = [case.gamma * 2.0**k for k in POWERS_OF_GAMMA]
    if case.group == WARM_UP:
        return Grid(C[3:5], gamma[4:6])
    return Grid(C, gamma)


SUBJECT = GridSearch()
