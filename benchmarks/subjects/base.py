"""A subject: what is run on a rival for a case, and what answer is compared."""

from __future__ import annotations

import argparse
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from ..case import Case, Settings
from ..rivals.base import Rival

if TYPE_CHECKING:
    from ..datasets.base import Group
    from ..record import CaseRecord

TRIAL_FROM_ROWS = 5_000


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


@dataclass(frozen=True)
class Table:
    """A table for the report, besides those that all subjects have."""

    title: str
    note: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Subject(ABC):
    """A question. ``run`` is timed, ``answer`` is not, and only the answer is kept."""

    name: str
    title: str  # with {machine} for what is fitted
    rank: int = 0
    tol: float = 1e-3  # the default of scikit-learn and LIBSVM
    repeats: int = 3
    max_rows: int | None = None
    headline: str | None = None  # the figure of a verdict that the summary reports the worst of
    parameters_rule: str | None = None  # how hyper-parameters are set, if by a rule of its own
    rule: str | None = None  # a sentence for the report: what is done, and when answers agree
    default_rivals: list[str] | None = None  # those that run when none are named; None: all
    groups: list[Group] | None = None  # its own data sets; None: those of the folder ``datasets``
    own_reference: bool = False  # whether it judges by an answer that no rival has given
    # A rival that is expected to take longer does a part of the work, where its time follows from
    # one; and only a part if ``--patience`` is shorter.
    longest: float = math.inf  # seconds

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

    def takes_part(self, rival: Rival, case: Case) -> bool:
        """Return whether this rival is asked about this case at all."""
        return True

    def part(self, rival: Rival, case: Case) -> tuple[Subject, float] | None:
        """Return a part of the work that this rival's time follows from, and its share; or None."""
        return None

    def share(self, rival: Rival, case: Case) -> float:
        """Return the share of the work that ``run`` does; times are divided by it."""
        return 1.0

    def finished(self, rival: Rival, answer: Any, case: Case) -> dict[str, float]:
        """Return figures of a yardstick, which is not judged."""
        return {}

    def trial(self, rival: Rival, case: Case) -> tuple[Subject, float]:
        """Return what is done on few rows to see how long it takes, and its share of the work."""
        return self, 1.0

    def trial_from_rows(self, case: Case) -> int:
        """Return from how many rows on a rival is tried on few of them first."""
        return TRIAL_FROM_ROWS

    def sentences(self, records: list[CaseRecord]) -> list[str]:
        """Return what the summary says besides its table."""
        return []

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        """Return the tables that only this subject has."""
        return []

    def suits(self, rival: Rival, case: Case, settings: Settings) -> str | None:
        """Return why this rival cannot take part in this case, or None."""
        return rival.refuses(case, settings)

    def before(self, rival: Rival, case: Case, settings: Settings) -> None:  # noqa: B027
        """Do what the work begins with and what is not timed."""

    @abstractmethod
    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        """Do the work."""

    @abstractmethod
    def answer(self, rival: Rival, result: Any, case: Case) -> Any:
        """Return what is compared, free of the rival's own types."""

    @abstractmethod
    def judge(self, rival: Rival, answer: Any, reference: Any, case: Case) -> Verdict:
        """Compare an answer with the reference's, which may be the same object."""
