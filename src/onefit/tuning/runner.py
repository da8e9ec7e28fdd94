"""All cells of a search: those that are known already, and the others as they get done."""

from __future__ import annotations

from collections.abc import Iterable
from time import perf_counter
from typing import Any

import numpy as np

from onefit.kernels import Floats
from onefit.report.progress import Meter
from onefit.tuning.checkpoint import Checkpoint
from onefit.tuning.engine import Engine
from onefit.tuning.ledger import SearchLedger
from onefit.tuning.out_of_fold import OutOfFold
from onefit.tuning.outcomes import Path
from onefit.tuning.request import Cell, Known, Outcome, Request
from onefit.tuning.workload import NOTHING_KNOWN


class Runner:
    """Runs cells, keeps what they came to, and tells whoever wants to know."""

    def __init__(
        self,
        request: Request,
        engine: Engine,
        *,
        checkpoint: Checkpoint | None = None,
        progress: bool | None = False,
    ) -> None:
        self.request, self.engine = request, engine
        self.outcomes: dict[Cell, Outcome] = {}
        self.out_of_fold = OutOfFold(request.splits, np.asarray(request.y), engine.machines)
        self._dropped: set[Cell] = set()
        self.checkpoint = checkpoint
        self._meter = Meter(request.n_cells, "candidates × folds", progress)
        self._known = NOTHING_KNOWN
        if checkpoint is not None:
            for cell, outcome, values in checkpoint.finished():
                self._keep([cell], [outcome], None if values is None else [values])
                self.ledger.resumed += 1
            self._known = Known(frozenset(self.outcomes), checkpoint.states())

    @property
    def ledger(self) -> SearchLedger:
        return self.engine.ledger

    def run(self, cells: Iterable[Cell]) -> None:
        """Have these cells done, unless they are."""
        began = perf_counter()
        try:
            self.engine.run(cells, self._take, self._known)
        finally:
            self.ledger.seconds += perf_counter() - began

    def drop(self, cells: Iterable[Cell]) -> None:
        """Leave these cells undone: they cannot change the best any more."""
        for cell in cells:
            if cell not in self.outcomes:
                self._dropped.add(cell)
                self.ledger.dropped += 1
                self._meter.advance()

    def close(self) -> None:
        self._meter.close()

    def _take(
        self,
        cells: list[Cell],
        outcomes: list[Outcome],
        values: list[Floats] | None,
        path: Path | None,
    ) -> None:
        if self.checkpoint is not None and cells:
            # In this order: a cell is never there without what its path goes on from.
            if path is not None and path.states:
                self.checkpoint.add_states(cells[-1], path.states)
            for k, (cell, outcome) in enumerate(zip(cells, outcomes, strict=True)):
                self.checkpoint.add(cell, outcome, None if values is None else values[k])
            if path is not None:
                self.checkpoint.drop_states(path.before)
        self._keep(cells, outcomes, values)

    def _keep(
        self, cells: list[Cell], outcomes: list[Outcome], values: list[Floats] | None
    ) -> None:
        self.outcomes.update(zip(cells, outcomes, strict=True))
        if values is not None:
            self.out_of_fold.add(cells, values)
        self._meter.advance(len(cells))

    def in_order(self) -> list[Outcome]:
        """What all cells came to, in scikit-learn's order; those left undone have no score."""
        return [
            self._undone() if cell in self._dropped else self.outcomes[cell]
            for cell in self.request.cells
        ]

    def _undone(self) -> Outcome:
        like = next(iter(self.outcomes.values()))
        scores: Any = np.nan
        if isinstance(like["test_scores"], dict):
            scores = dict.fromkeys(like["test_scores"], np.nan)
        undone = {"fit_error": None, "test_scores": scores, "n_test_samples": 0}
        if "train_scores" in like:
            undone["train_scores"] = scores
        return undone | {"fit_time": 0.0, "score_time": 0.0}
