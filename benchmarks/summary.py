"""Condenses a run: how many times a rival's time is onefit's, over groups of cases."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from .record import OURS, CaseRecord
from .subjects.base import Outcome, Table

ROW_LIMITS = (0, 500, 5_000)


@dataclass(frozen=True)
class Line:
    """The ratios of one rival over the cases with at least ``min_rows`` rows."""

    rival: str
    min_rows: int
    cases: int
    geometric_mean: float
    worst: float
    worst_case: str
    best: float
    best_case: str
    other_problem: bool  # compared on accuracy only

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Findings:
    """What a report says of a run besides its cases."""

    lines: list[Line]
    sentences: list[str]
    tables: list[Table]  # of the subject
    timed: bool


def summarise(records: Iterable[CaseRecord]) -> list[Line]:
    """Return a line for each rival and each limit on the rows that leaves any case."""
    records = list(records)
    other = _other_problem(records)
    ratios: dict[str, list[tuple[float, str, int]]] = {}
    for record in records:
        for entry in record.entries:
            ratio = record.ratio(entry)
            if ratio is not None:
                facts = record.facts
                ratios.setdefault(entry.rival, []).append((ratio, facts["name"], facts["rows"]))
    lines = []
    for rival, found in ratios.items():
        for min_rows in ROW_LIMITS:
            chosen = [(ratio, name) for ratio, name, rows in found if rows >= min_rows]
            if chosen:
                lines.append(_line(rival, min_rows, chosen, rival in other))
    return lines


def _line(rival: str, min_rows: int, chosen: list[tuple[float, str]], other: bool) -> Line:
    worst, best = min(chosen), max(chosen)
    mean = math.exp(math.fsum(math.log(ratio) for ratio, _ in chosen) / len(chosen))
    return Line(rival, min_rows, len(chosen), mean, *worst, *best, other)


def _other_problem(records: Iterable[CaseRecord]) -> set[str]:
    entries = (entry for record in records for entry in record.entries)
    return {e.rival for e in entries if e.verdict and e.verdict.outcome is Outcome.OTHER}


def worst_figures(records: Iterable[CaseRecord], figure: str) -> list[str]:
    """Return a sentence for each rival: the largest absolute value of a figure, and where."""
    worst: dict[str, tuple[float, str]] = {}
    counts: dict[str, int] = {}
    for record in records:
        for entry in record.entries:
            value = entry.verdict.figures.get(figure) if entry.verdict else None
            if value is None:
                continue
            counts[entry.rival] = counts.get(entry.rival, 0) + 1
            found = (abs(value), record.facts["name"])
            worst[entry.rival] = max(worst.get(entry.rival, found), found)
    words = figure.replace("_", " ")
    return [
        f"{rival}: {words} at most {value:.1e} in {counts[rival]} cases (worst: {name})"
        for rival, (value, name) in worst.items()
    ]


def remarks(records: Iterable[CaseRecord]) -> list[str]:
    """Return what a reader must know before believing the means."""
    found = []
    for record in records:
        for entry in record.entries:
            where = f"{entry.rival} on {record.facts['name']}"
            if entry.verdict is not None and entry.verdict.outcome is Outcome.DISAGREES:
                found.append(f"{where} {Outcome.DISAGREES.value}: {entry.verdict.text}")
            if entry.samples and entry.share < 1:
                found.append(f"{where}: times follow from {entry.percent_done} of the work")
            if entry.not_run and entry.not_run.startswith("failed"):
                found.append(f"{where} {entry.not_run}")
        if record.skipped:
            found.append(f"{record.facts['name']} skipped: {record.skipped}")
    return found


def why_no_ratios(records: Iterable[CaseRecord]) -> str:
    """Return the sentence shown in place of an empty summary."""
    ran = any(e.rival == OURS and e.samples for r in records for e in r.entries)
    if ran:
        return f"No ratios: no other rival has a right answer where {OURS} has one."
    return f"No ratios: {OURS} did not run."
