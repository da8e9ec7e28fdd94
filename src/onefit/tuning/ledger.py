"""What a search has reused and what it has paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from onefit.tuning.workload import Chain, SolvedSteps, ValuedSteps


@dataclass
class SearchLedger:
    """Work of all cells; printed, a table."""

    cells: int = 0  # solved here
    by_sklearn: int = 0  # cells that scikit-learn was left
    resumed: int = 0  # cells that a checkpoint had
    dropped: int = 0  # cells that could not change the best any more
    seeded: int = 0  # cells that started from the next smaller C
    n_iter: int = 0
    kernel_entries: int = 0  # evaluated, distances included
    kernel_entries_alone: int = 0  # of one kernel matrix for each cell, as if nothing were shared
    transformed: int = 0  # times that transformers were fitted
    transformed_alone: int = 0  # cells that had transformers
    seconds: float = 0.0

    def add(self, other: SearchLedger) -> None:
        """The work of a part of the cells."""
        for entry in fields(self):
            setattr(self, entry.name, getattr(self, entry.name) + getattr(other, entry.name))

    def note(self, solved: SolvedSteps) -> None:
        """Steps that were solved."""
        n_iter = sum(s.n_iter for pairs in solved.solutions for s in pairs)
        self._note(solved.chain, solved.steps, n_iter)

    def note_values(self, solved: ValuedSteps) -> None:
        """The same."""
        self._note(solved.chain, range(solved.chain.n_cells), solved.n_iter)

    def _note(self, chain: Chain, steps: Sequence[int], n_iter: int) -> None:
        steps = [step for step in steps if step not in chain.known]
        self.cells += len(steps)
        self.seeded += sum(step > 0 for step in steps) if chain.is_seeded else 0
        self.n_iter += n_iter
        size = int(np.count_nonzero(chain.part.bounds))
        self.kernel_entries_alone += len(steps) * size**2

    def saved(self) -> dict[str, tuple[int, int]]:
        """For each kind of reuse what was paid, and what it would have been without it."""
        asked = self.cells + self.by_sklearn + self.resumed + self.dropped
        return {
            "kernel entries": (self.kernel_entries, self.kernel_entries_alone),
            "cells started from nothing": (self.cells - self.seeded, self.cells),
            "cells solved": (self.cells + self.by_sklearn, asked),
            "transformers fitted": (self.transformed, self.transformed_alone),
        }

    def __str__(self) -> str:
        shared = f"{self.kernel_entries:,} instead of up to {self.kernel_entries_alone:,}"
        lines = [
            ("cells solved together", f"{self.cells:,}"),
            ("of them started from a smaller C", f"{self.seeded:,}"),
            ("cells left to scikit-learn", f"{self.by_sklearn:,}"),
            ("cells of the checkpoint", f"{self.resumed:,}"),
            ("cells that could not win", f"{self.dropped:,}"),
            ("iterations", f"{self.n_iter:,}"),
            ("kernel entries", shared),
            ("transformers fitted", f"{self.transformed:,}"),
            ("seconds", f"{self.seconds:.3f}"),
        ]
        return "\n".join(f"{name:>33}  {value}" for name, value in lines)
