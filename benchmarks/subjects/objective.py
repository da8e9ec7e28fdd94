"""The dual objective at a tight tolerance, computed in float64 from each rival's coefficients.

A solution that keeps to the KKT conditions up to tol is below the best objective by at most
tol * sum |b|. Nothing is allowed for rounding: who computes in float32 should be seen here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..case import Case, Settings
from ..dual import Dual, objective
from ..rivals.base import Rival
from .base import Outcome, Subject, Verdict


@dataclass(frozen=True)
class Answer:
    """The objective, and by how much a right answer may miss the best one."""

    objective: float
    allowed: float


class Objective(Subject):
    name = "objective"
    title = "Dual objective of {machine} at a tight tolerance"
    rank = 1
    tol = 1e-6
    repeats = 1
    max_rows = 5_000
    headline = "relative_difference"

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        if type(rival).pairs is Rival.pairs:
            return "does not show its dual coefficients"
        return super().suits(rival, case, settings)

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        return rival.fit(case, settings)

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer:
        pairs = rival.pairs(result, case)
        if pairs is None:
            raise ValueError(f"{rival.name} shows no dual coefficients for {case.name}")
        dual = Dual.from_pairs(pairs)
        sums = case.machine.unit(case, dual) * abs(dual.coef).sum(axis=0)
        return Answer(objective(dual, case), self.tol * float(sums.sum()))

    def judge(self, rival: Rival, answer: Answer, reference: Answer, case: Case) -> Verdict:
        if answer is reference:
            figures = {"objective": answer.objective}
            return Verdict(Outcome.AGREES, f"objective {answer.objective:.10g}", figures)
        scale = abs(reference.objective)
        difference = (answer.objective - reference.objective) / scale
        allowed = (answer.allowed + reference.allowed) / scale
        figures = {
            "objective": answer.objective,
            "relative_difference": difference,
            "relative_difference_allowed": allowed,
        }
        right = abs(difference) <= allowed
        sign = "<=" if right else ">"
        text = (
            f"objective {answer.objective:.10g}; relative difference {difference:+.1e},"
            f" |.| {sign} {allowed:.1e}"
        )
        return Verdict(Outcome.AGREES if right else Outcome.DISAGREES, text, figures)


SUBJECT = Objective()
