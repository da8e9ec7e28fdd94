"""What a leave-one-out has paid, by what settled its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.folds import FoldWork
from onefit.loo.checks import RULES, DecidedBy


@dataclass(frozen=True)
class LooLedger:
    """The work of the fit on all rows, and that without each of them; printed, a table."""

    full: FoldWork
    rows: Sequence[FoldWork]
    decided_by: NDArray[Any]
    estimates: FoldWork | None = None  # the work of all of them together

    @property
    def rules(self) -> dict[DecidedBy, FoldWork]:
        """The work of the rows that each rule settled."""
        of_rules = {rule: np.flatnonzero(self.decided_by == rule) for rule in RULES}
        return {
            rule: _sum(self.rows[row] for row in rows.tolist())
            for rule, rows in of_rules.items()
            if len(rows)
        }

    @property
    def total(self) -> FoldWork:
        return _sum([self.full, *([self.estimates] if self.estimates else []), *self.rows])

    @property
    def n_iter(self) -> int:
        return self.total.n_iter

    @property
    def kernel_entries(self) -> int:
        return self.total.kernel_entries

    @property
    def seconds(self) -> float:
        return self.total.seconds

    def __str__(self) -> str:
        names = f"{'rows':>7} {'iterations':>10} {'kernel':>13} {'seconds':>9}"
        lines = [f"{'':29} {names}", _line("the fit on all rows", "", self.full)]
        if self.estimates is not None:
            lines.append(_line("estimates", "", self.estimates))
        for rule, work in self.rules.items():
            lines.append(_line(rule, f"{int((self.decided_by == rule).sum()):,}", work))
        return "\n".join([*lines, _line("total", f"{len(self.rows):,}", self.total)])


def _sum(works: Iterable[FoldWork]) -> FoldWork:
    total = FoldWork()
    for work in works:
        total.n_iter += work.n_iter
        total.kernel_entries += work.kernel_entries
        total.seconds += work.seconds
    return total


def _line(name: str, rows: str, work: FoldWork) -> str:
    return f"{name:29} {rows:>7} {work.n_iter:>10,} {work.kernel_entries:>13,} {work.seconds:>9.4f}"
