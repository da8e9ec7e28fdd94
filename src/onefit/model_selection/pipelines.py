"""Folds of a pipeline that ends in one of our machines, each started from a solved neighbour.

scikit-learn fits the transformers of every fold on its training rows, as always, so that no two
folds see the same data or share a kernel. What they share is their rows: the coefficients of one
fold, brought to the bounds and sums of the next, are where that one starts. Its gradient is
computed anew, from the kernel rows that its solver would have asked for sooner or later.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from onefit import _core
from onefit.estimators.base import KernelMachine, Training
from onefit.estimators.given import Split
from onefit.folds import FoldWork
from onefit.model_selection.starts import (
    AllRows,
    Before,
    Starts,
    keys_of,
)
from onefit.report.progress import shown
from onefit.seeding import STRATEGIES, Source
from onefit.solver import Settings, solve


def last_machine(estimator: Any) -> KernelMachine | None:
    """Our machine at the end of a pipeline, which may end in a pipeline itself; else None."""
    if type(estimator) is not Pipeline:  # others may give the last step other rows
        return None
    try:
        last = estimator.steps[-1][1]
    except (TypeError, IndexError):  # no steps: for scikit-learn to say
        return None
    return last if isinstance(last, KernelMachine) else last_machine(last)


class Chain:
    """The folds of a pipeline, fitted by scikit-learn one after another."""

    def __init__(
        self,
        pipeline: Pipeline,
        X: Any,
        y: Any,
        params: dict[str, Any],
        splits: Sequence[Split],
        seeding: str,
        progress: bool | None = False,
        *,
        labels_only: bool = False,
    ) -> None:
        """``labels_only``: only the classes of held-out rows are asked for."""
        self.splits = splits
        self.work = [FoldWork() for _ in splits]
        self.full_work: FoldWork | None = None  # of the fit on all rows, where there was one
        self._pipeline = clone(pipeline)
        self._data = (X, y, params)
        self._seeding = seeding
        self._labels_only = labels_only
        self._progress = progress
        self.starts: Starts | None = None

    def in_turn(self) -> Pipeline:
        """A pipeline whose clones are the folds: their last steps know where they start."""

        def machines() -> Iterator[KernelMachine]:
            self.starts = self._starts()
            machine = last_machine(self._pipeline)
            for number in range(len(self.splits)):
                fold: KernelMachine = clone(machine)
                fold._fold = ChainedFold(self, number)
                yield fold

        pipeline = clone(self._pipeline)
        machine = last_machine(pipeline)
        assert machine is not None
        name = f"{type(machine).__name__}, fold"
        machine._folds = shown(machines(), len(self.splits), name, self._progress)
        return pipeline

    def _starts(self) -> Starts | None:
        if self._seeding == "auto":
            # The fold before knows the labels of the rows that this one holds out: where within the
            # tolerance a fold ends must not depend on them, if anybody sees it.
            return Before(len(self._data[1])) if self._labels_only else None
        strategy = STRATEGIES[self._seeding]
        if strategy.source is Source.NOTHING:
            return None
        try:
            X, y, weights = self._transformed()
            machine = clone(last_machine(self._pipeline))
            starts = AllRows(machine, X, y, weights, strategy)
        except Exception:  # a fold may be possible where all rows are not
            return None
        self.full_work = starts.full_work
        return starts

    def _transformed(self) -> tuple[Any, Any, Any]:
        """What the last step would be given if the pipeline were fitted on all rows."""
        X, y, params = self._data
        pipeline = clone(self._pipeline)
        given: list[tuple[Any, Any, Any]] = []
        inner: Any = pipeline
        while isinstance(inner, Pipeline):
            inner.set_params(memory=None, verbose=False)
            inner = inner.steps[-1][1]
        # In place of a fit.
        vars(inner)["_fit"] = lambda *data: given.append(data)
        random = np.random.get_state()  # of transformers that have none
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pipeline.fit(X, y, **params)
        finally:
            np.random.set_state(random)
        [data] = given
        return data


class ChainedFold:
    """One fold of a chain: solves its problems from where the chain says, and tells it."""

    def __init__(self, chain: Chain, number: int) -> None:
        self._chain = chain
        self._number = number

    def solve(
        self,
        store: _core.KernelStore,
        training: Training,
        settings: Settings,
        progress: Callable[[float], bool] | None,
    ) -> list[_core.Solution]:
        began, starts = perf_counter(), self._chain.starts
        train = self._chain.splits[self._number][0]
        rows = train[training.order]
        problems = dict(zip(keys_of(training), training.problems, strict=True))
        started, source, entries = problems, "nothing", 0
        if starts is not None:
            entries -= starts.kernel_entries
            started, source = starts.start(self._number, train, rows, problems)
        warm = [
            problem is not cold
            for problem, cold in zip(started.values(), problems.values(), strict=True)
        ]
        solutions = solve(
            store, list(started.values()), settings, forget=not any(warm), progress=progress
        )
        n_iter = sum(solution.n_iter for solution in solutions)
        # Without a free row any offset between two values is right: that of a cold fit is wanted.
        again = [k for k, s in enumerate(solutions) if warm[k] and not s.free_rows]
        if again:
            cold = [training.problems[k] for k in again]
            for k, solution in zip(again, solve(store, cold, settings), strict=True):
                solutions[k] = solution
                n_iter += solution.n_iter
        entries += store.entries_evaluated
        if starts is not None:
            starts.remember(self._number, train, rows, problems, solutions)
            entries += starts.kernel_entries
        self._chain.work[self._number] = FoldWork(n_iter, source, entries, perf_counter() - began)
        return solutions
