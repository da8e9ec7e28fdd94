"""A subject: what is run on a rival for a case, and what answer is compared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ..case import Case, Settings
from ..rivals.base import Rival


class Outcome(Enum):
    """How a rival's answer relates to the reference; the value is what the reports say."""

    AGREES = "agrees"
    DISAGREES = "DISAGREES"
    OTHER = "other problem"  # compared on accuracy only
    BASELINE = "baseline"  # not compared


@dataclass(frozen=True)
class Verdict:
    """An outcome, the reason in words, and the figures behind it."""

    outcome: Outcome
    text: str
    figures: dict[str, float] = field(default_factory=dict)


class Subject(ABC):
    """A question. ``run`` is timed, ``answer`` is not, and only the answer is kept."""

    name: str
    title: str  # with {machine} for what is fitted
    rank: int = 0
    tol: float = 1e-3  # the default of scikit-learn and LIBSVM
    repeats: int = 3
    max_rows: int | None = None
    headline: str | None = None  # the figure of a verdict that the summary reports the worst of

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        """Return why this rival cannot take part in this case, or None."""
        return rival.refuses(case, settings)

    @abstractmethod
    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        """Do the work."""

    @abstractmethod
    def answer(self, rival: Rival, result: Any, case: Case) -> Any:
        """Return what is compared, free of the rival's own types."""

    @abstractmethod
    def judge(self, rival: Rival, answer: Any, reference: Any, case: Case) -> Verdict:
        """Compare an answer with the reference's, which may be the same object."""
