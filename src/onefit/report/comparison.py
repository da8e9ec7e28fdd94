"""The same work by two libraries, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.table import Table


@dataclass(frozen=True)
class Comparison:
    """One piece of work: seconds and result of each side."""

    task: str
    sklearn_seconds: float
    onefit_seconds: float
    sklearn_result: str
    onefit_result: str


def comparison_table(title: str, rows: Sequence[Comparison]) -> Table:
    """A table with the ratio of the times, and both results to compare."""
    table = Table(title=title, title_justify="left", box=SIMPLE)
    table.add_column("task")
    for name in ("scikit-learn", "onefit", "ratio", "its result", "our result"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.task,
            seconds(row.sklearn_seconds),
            seconds(row.onefit_seconds),
            f"{row.sklearn_seconds / row.onefit_seconds:.1f}",
            row.sklearn_result,
            row.onefit_result,
        )
    return table


def seconds(value: float) -> str:
    """A duration in the unit that reads best."""
    return f"{value * 1e3:.2f} ms" if value < 1 else f"{value:.2f} s"
