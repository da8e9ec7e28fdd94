"""The files: JSON with every sample, and Markdown to read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..record import CaseRecord, Entry
from ..subjects.base import Outcome
from ..summary import Findings, Line, remarks, why_no_ratios
from . import words


def save(
    folder: Path,
    name: str,
    run: dict[str, Any],
    records: list[CaseRecord],
    findings: Findings,
) -> list[Path]:
    """Write ``name.json`` and ``name.md``; ``run`` holds title, rule, options and computer."""
    folder.mkdir(parents=True, exist_ok=True)
    data = run | {
        "summary": [line.as_dict() for line in findings.lines],
        "tables": [asdict(table) for table in findings.tables],
        "cases": [record.as_dict() for record in records],
    }
    as_json, as_markdown = folder / f"{name}.json", folder / f"{name}.md"
    as_json.write_text(json.dumps(_clean(data), indent=1, allow_nan=False) + "\n")
    as_markdown.write_text("\n".join(_markdown(run, records, findings)) + "\n")
    return [as_json, as_markdown]


def _clean(value: Any) -> Any:
    """Return ``value`` with NaN and infinity as None, which JSON can hold."""
    if isinstance(value, dict):
        return {key: _clean(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _markdown(run: dict[str, Any], records: list[CaseRecord], findings: Findings) -> list[str]:
    computer = run["computer"]
    text = [f"# {run['title']}", ""]
    text += [
        f"{computer['cpu']}, {computer['cores']} cores, {computer['memory_gb']} GB,"
        f" {computer['system']}, Python {computer['python']}, {computer['date']}.",
        "",
        f"`python -m benchmarks {run['command']}`",
        "",
        f"{run['rule']}.",
        "",
    ]
    for name, fact in computer["rivals"].items():
        state = fact["version"] if fact["runnable"] else f"not runnable: {fact['reason']}"
        text.append(f"- **{name}**: {_cell(state)}")
    text += ["", "## Summary", "", *[f"- {_cell(sentence)}" for sentence in findings.sentences]]
    if findings.timed:
        text += [""] if findings.sentences else []
        text += _summary(findings.lines) if findings.lines else [why_no_ratios(records)]
    for table in findings.tables:
        text += ["", f"## {table.title}", "", *([table.note, ""] if table.note else [])]
        text += _table(table.headings, table.rows)
    if findings.timed:
        text += ["", "## Times", "", *_overview(records)]
    notes = remarks(records)
    if notes:
        text += ["", "## Remarks", "", *[f"- {_cell(note)}" for note in notes]]
    text += ["", "## Details"]
    for record in records:
        if not record.skipped:
            text += ["", f"### {words.heading(record)}", "", *_details(record)]
    return text


def _summary(lines: list[Line]) -> list[str]:
    rows = [
        (
            line.rival,
            f">= {line.min_rows}" if line.min_rows else "all",
            str(line.cases),
            words.ratio(line.geometric_mean, line.other_problem),
            f"{words.ratio(line.worst)} ({line.worst_case})",
            f"{words.ratio(line.best)} ({line.best_case})",
        )
        for line in lines
    ]
    explained = "Rival's median time over onefit's; more than 1 means that onefit is faster."
    headings = ("rival", "rows", "cases", "geometric mean", "worst", "best")
    return [explained, "", *_table(headings, rows)]


def _overview(records: list[CaseRecord]) -> list[str]:
    """A line for each case, a column for each rival: median time and ratio."""
    done = [record for record in records if not record.skipped]
    rivals = list(dict.fromkeys(entry.rival for record in done for entry in record.entries))
    rows = []
    for record in done:
        cells = {entry.rival: _time(record, entry) for entry in record.entries}
        rows.append(
            (
                record.facts["name"],
                str(record.facts["rows"]),
                str(record.facts["features"]),
                *[cells.get(rival, words.NONE) for rival in rivals],
            )
        )
    meaning = (
        f"In brackets: rival's time over onefit's. {words.PART_MARK_MEANS} {words.OTHER_MARK_MEANS}"
    )
    return [meaning, "", *_table(("case", "rows", "features", *rivals), rows)]


def _time(record: CaseRecord, entry: Entry) -> str:
    if not entry.samples:
        return "not run"
    if entry.verdict is not None and entry.verdict.outcome is Outcome.DISAGREES:
        return "disagrees"
    ratio = record.ratio(entry)
    time = words.time(entry)
    return time if ratio is None else f"{time} ({words.ratio(ratio, words.is_other(entry))})"


def _details(record: CaseRecord) -> list[str]:
    return _table(words.HEADINGS, [words.row(record, entry) for entry in record.entries])


def _table(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return lines + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]


def _cell(text: str) -> str:
    """Return text that cannot break a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")
