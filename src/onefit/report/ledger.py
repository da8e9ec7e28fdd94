"""What a cross-validation has reused and what it has paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onefit.folds import FoldWork


@dataclass(frozen=True)
class Ledger:
    """The work of each fold, and of the fit on all rows if they start there; printed, a table."""

    folds: Sequence[FoldWork]
    full: FoldWork | None = None

    @property
    def n_iter(self) -> int:
        return sum(work.n_iter for work in self._all())

    @property
    def kernel_entries(self) -> int:
        return sum(work.kernel_entries for work in self._all())

    @property
    def n_certified(self) -> int:
        return sum(work.n_certified for work in self._all())

    @property
    def seconds(self) -> float:
        return sum(work.seconds for work in self._all())

    def _all(self) -> list[FoldWork]:
        return [*self.folds] if self.full is None else [self.full, *self.folds]

    def __str__(self) -> str:
        names = f"{'iterations':>10} {'kernel':>12} {'seconds':>9}"
        lines = [f"{'fold':>8}  {'started from':12} {names}"]
        if self.full is not None:
            lines.append(_line("all rows", "nothing", self.full))
        for number, fold in enumerate(self.folds):
            lines.append(_line(str(number), fold.seeded_from, fold))
        total = FoldWork(self.n_iter, "", self.kernel_entries, self.seconds)
        lines.append(_line("total", "", total))
        if self.n_certified:
            lines.append(f"{self.n_certified:,} held-out rows are certified")
        return "\n".join(lines)


def _line(name: str, source: str, work: FoldWork) -> str:
    return (
        f"{name:>8}  {source:12} {work.n_iter:>10,} {work.kernel_entries:>12,} {work.seconds:>9.4f}"
    )
