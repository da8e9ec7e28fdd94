"""What a run leaves behind: plain data, from which every report and summary is computed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from .measure import Sample
from .subjects.base import Outcome, Verdict

OURS = "onefit"
SHORTEST_CPU_SECONDS = 0.01


@dataclass
class Entry:
    """One rival on one case: its measurements and verdict, or why there are none."""

    rival: str
    threads: int
    samples: list[Sample] = field(default_factory=list)
    verdict: Verdict | None = None
    not_run: str | None = None
    share: float = 1.0  # of the work that was done: times are divided by it

    @property
    def seconds(self) -> float | None:
        """Return the median, for all of the work."""
        return median(s.seconds for s in self.samples) / self.share if self.samples else None

    @property
    def percent_done(self) -> str:
        return f"{self.share:.0%}" if self.share >= 0.01 else f"{self.share:.1%}"

    @property
    def peak_mb(self) -> float | None:
        """Return the largest peak: later runs may live in buffers the first one left."""
        return max((s.peak_mb for s in self.samples if s.peak_mb is not None), default=None)

    @property
    def cores_used(self) -> float | None:
        """Return CPU time over wall time: shows who used more threads than it was told.

        None for runs too short for the CPU clock.
        """
        wall = sum(s.seconds for s in self.samples)
        if wall < SHORTEST_CPU_SECONDS:
            return None
        return sum(s.cpu_seconds for s in self.samples) / wall

    @property
    def counts(self) -> bool:
        """Return whether there is a time that may be compared."""
        right = (Outcome.AGREES, Outcome.OTHER, Outcome.YARDSTICK)
        return bool(self.samples) and self.verdict is not None and self.verdict.outcome in right

    def as_dict(self) -> dict[str, Any]:
        return {
            "rival": self.rival,
            "threads": self.threads,
            "median_seconds": self.seconds,
            "share_of_work_done": self.share,
            "peak_mb": self.peak_mb,
            "cores_used": self.cores_used,
            "samples": [asdict(sample) for sample in self.samples],
            "outcome": self.verdict.outcome.value if self.verdict else None,
            "check": self.verdict.text if self.verdict else None,
            "figures": self.verdict.figures if self.verdict else {},
            "not_run": self.not_run,
        }


@dataclass
class CaseRecord:
    """All rivals on one case; ``skipped`` says why there are none."""

    facts: dict[str, Any]
    reference: str | None = None
    entries: list[Entry] = field(default_factory=list)
    skipped: str | None = None

    def ratio(self, entry: Entry) -> float | None:
        """Return the rival's median time over onefit's, if both answers are right."""
        ours = next((e for e in self.entries if e.rival == OURS), None)
        if ours is None or entry is ours or not (ours.counts and entry.counts):
            return None
        if ours.seconds is None or entry.seconds is None:
            return None
        return entry.seconds / ours.seconds

    def as_dict(self) -> dict[str, Any]:
        entries = [e.as_dict() | {"ratio_to_onefit": self.ratio(e)} for e in self.entries]
        return {
            "case": self.facts,
            "reference": self.reference,
            "skipped": self.skipped,
            "entries": entries,
        }
