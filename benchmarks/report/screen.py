"""The screen: a small table as soon as a case is done, then the summary."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..record import CaseRecord
from ..subjects.base import Outcome
from ..subjects.base import Table as SubjectTable
from ..summary import Findings, Line, remarks, why_no_ratios
from . import words

STYLES = {
    Outcome.AGREES: "",
    Outcome.DISAGREES: "bold red",
    Outcome.OTHER: "cyan",
    Outcome.BASELINE: "dim",
    Outcome.YARDSTICK: "dim",
}
WIDTH_IN_FILES = 140  # when the output is not a terminal, which would tell its own


class Screen:
    """Prints a run while it happens."""

    def __init__(self) -> None:
        self.console = Console()
        if not self.console.is_terminal:
            self.console = Console(width=WIDTH_IN_FILES)

    def opening(self, title: str, computer: dict[str, Any]) -> None:
        self.console.rule(f"[bold]{escape(title)}")
        self.console.print(
            f"{escape(computer['cpu'])}, {computer['cores']} cores, Python {computer['python']},"
            f" {computer['date']}"
        )
        for name, fact in computer["rivals"].items():
            state = fact["version"] if fact["runnable"] else f"not runnable: {fact['reason']}"
            style = "green" if fact["runnable"] else "yellow"
            self.console.print(f"  [{style}]{name:<13}[/] {escape(state)}", highlight=False)

    def case(self, record: CaseRecord) -> None:
        heading = escape(words.heading(record))
        if record.skipped:
            self.console.print(f"[yellow]{heading}[/]\n", highlight=False)
            return
        table = Table(title=heading, title_justify="left", title_style="bold", expand=False)
        for name in words.HEADINGS:
            table.add_column(
                name,
                justify="left" if name in ("rival", "check") else "right",
                no_wrap=name != "check",
            )
        for entry in record.entries:
            style = STYLES[entry.verdict.outcome] if entry.verdict else "yellow"
            table.add_row(*map(escape, words.row(record, entry)), style=style)
        self.console.print(table)

    def closing(self, findings: Findings, records: list[CaseRecord]) -> None:
        self.console.rule("[bold]Summary")
        for sentence in findings.sentences:
            self.console.print(f"  {escape(sentence)}", highlight=False)
        for found in findings.tables:
            self.console.print(_table(found))
        if findings.timed and findings.lines:
            self.console.print(_summary_table(findings.lines))
            self.console.print(words.OTHER_MARK_MEANS)
        elif findings.timed:
            self.console.print(why_no_ratios(records))
        for remark in remarks(records):
            self.console.print(f"  {escape(remark)}", highlight=False)


def _table(found: SubjectTable) -> Table:
    table = Table(title=escape(found.title), title_justify="left", title_style="bold")
    for name in found.headings:
        table.add_column(escape(name))
    for row in found.rows:
        table.add_row(*map(escape, row))
    return table


def _summary_table(lines: list[Line]) -> Table:
    table = Table(title="Rival's time / onefit's time", title_justify="left", title_style="bold")
    for name in ("rival", "rows", "cases", "geometric mean", "worst", "", "best", ""):
        table.add_column(name, justify="left" if name in ("rival", "") else "right")
    last = ""
    for line in lines:
        if last and line.rival != last:
            table.add_section()
        last = line.rival
        table.add_row(
            line.rival,
            f">= {line.min_rows}" if line.min_rows else "all",
            str(line.cases),
            words.ratio(line.geometric_mean, line.other_problem),
            words.ratio(line.worst),
            escape(line.worst_case),
            words.ratio(line.best),
            escape(line.best_case),
        )
    return table
