"""What a campaign found: the table, its JSON, and the sum of several runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

COLUMNS = ("cases", "compared", "ties", "differences", "crashes", "hangs", "seconds")
STATUS = {"difference": "differences", "crash": "crashes", "hang": "hangs"}


@dataclass
class Count:
    """Of one class of cases."""

    cases: int = 0
    compared: int = 0
    ties: int = 0
    differences: int = 0
    crashes: int = 0
    hangs: int = 0
    seconds: float = 0.0

    def add(self, other: Count) -> None:
        for name in COLUMNS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def failures(self) -> int:
        return self.differences + self.crashes + self.hangs


@dataclass
class Report:
    """Counts by class, and the failures: case, kind, message and the lines that reproduce it."""

    seeds: list[int]
    sanitize: str = ""
    counts: dict[str, Count] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str, outcome: Any) -> None:
        count = self.counts.setdefault(kind, Count())
        count.cases += 1
        count.compared += outcome.status != "skipped"
        count.ties += outcome.ties
        count.seconds += outcome.seconds
        if outcome.failed:
            name = STATUS[outcome.status]
            setattr(count, name, getattr(count, name) + 1)

    @property
    def n_failures(self) -> int:
        return sum(count.failures for count in self.counts.values())

    @property
    def n_crashes(self) -> int:
        return sum(count.crashes for count in self.counts.values())

    def table(self) -> str:
        total = Count()
        for count in self.counts.values():
            total.add(count)
        lines = ["".join([f"{'class of cases':18}", *(f"{name:>12}" for name in COLUMNS)])]
        for name, count in [*sorted(self.counts.items()), ("all", total)]:
            numbers = [getattr(count, column) for column in COLUMNS]
            lines.append("".join([f"{name:18}", *(f"{number:12.0f}" for number in numbers)]))
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Report:
        found = json.loads(path.read_text())
        found["counts"] = {name: Count(**count) for name, count in found["counts"].items()}
        return cls(**found)


def total_of(reports: Iterable[Report]) -> Report:
    total = Report(seeds=[])
    for report in reports:
        total.seeds += report.seeds
        total.failures += report.failures
        for name, count in report.counts.items():
            total.counts.setdefault(name, Count()).add(count)
    return total
