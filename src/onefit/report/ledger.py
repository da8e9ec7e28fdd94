"""What a cross-validation has reused and what it has paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onefit.folds import FoldWork


@dataclass(frozen=True)
class Ledger:
    """The work of each fold; printed, a table."""

    folds: Sequence[FoldWork]

    @property
    def n_iter(self) -> int:
        return sum(fold.n_iter for fold in self.folds)

    @property
    def kernel_entries(self) -> int:
        return sum(fold.kernel_entries for fold in self.folds)

    @property
    def seconds(self) -> float:
        return sum(fold.seconds for fold in self.folds)

    def __str__(self) -> str:
        names = f"{'iterations':>10} {'kernel':>12} {'seconds':>9}"
        lines = [f"{'fold':>6}  {'started from':14} {names}"]
        for number, fold in enumerate(self.folds):
            lines.append(_line(str(number), fold.seeded_from, fold))
        total = FoldWork(self.n_iter, "", self.kernel_entries, self.seconds)
        return "\n".join([*lines, _line("all", "", total)])


def _line(name: str, source: str, work: FoldWork) -> str:
    return (
        f"{name:>6}  {source:14} {work.n_iter:>10,} {work.kernel_entries:>12,} {work.seconds:>9.4f}"
    )
