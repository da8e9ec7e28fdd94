"""A subject: what is run on a rival for a case, and what answer is compared."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..case import Case, Settings
from ..rivals.base import Rival

if TYPE_CHECKING:
    from ..record import CaseRecord


class Outcome(Enum):
    """How a rival's answer relates to the reference; the value is what the reports say."""

    AGREES = "agrees"
    DISAGREES = "DISAGREES"
    OTHER = "other problem"  # compared on accuracy only
    BASELINE = "baseline"  # not compared
    YARDSTICK = "yardstick"  # other work of a known size: its time is compared, nothing else


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
    rule: str | None = None  # a sentence for the report: what is done, and when answers agree
    default_rivals: list[str] | None = None  # those that run when none are named; None: all

    @property
    def label(self) -> str:
        """Return what the files of its results are called."""
        return self.name

    def asked(self, options: argparse.Namespace) -> Subject:
        """Return the subject as the command line wants it."""
        return self

    def contenders(self, rivals: list[Rival]) -> list[Rival]:
        """Return who runs, for the ``rivals`` that are asked for and can."""
        return rivals

    def part(self, rival: Rival) -> tuple[Subject, float] | None:
        """Return a part of the work that this rival's time follows from, and its share; or None."""
        return None

    def sentences(self, records: list[CaseRecord]) -> list[str]:
        """Return what the summary says besides its table."""
        return []

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
