"""Folds of a data set, each solved from a neighbour on one store of kernel rows.

Held-out rows stay variables whose bounds are both 0, so that all folds have the same variables: a
solution of one is a start for another as soon as it is feasible, its gradient needs the kernel rows
of the changed coefficients only, and the gradient of a held-out row is its decision value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats
from onefit.problem import Problem
from onefit.seeding import STRATEGIES, Change, Neighbour, Source, Strategy
from onefit.solver import Settings, solve

# The problems of a fold by what they are about: a pair of classes, or nothing in regression.
Problems: TypeAlias = Mapping[Hashable, Problem]
Fold: TypeAlias = tuple[_core.KernelStore, Problems]  # the problems, and the store they are on
Neighbours: TypeAlias = dict[Hashable, tuple[_core.KernelStore, Neighbour]]

# The fit on all rows is a good neighbour of a fold that has at least this share of them, and pays
# for itself from so many rows on, or with so many folds: below, a cold fold takes less than a seed.
LEAST_SHARE = 0.6
LEAST_ROWS = 1000
MANY_FOLDS = 20

# Folds are solved so many problems for each thread at a time.
PROBLEMS_PER_THREAD = 4


@dataclass
class FoldWork:
    """What one fold took."""

    n_iter: int = 0
    seeded_from: str = "nothing"
    kernel_entries: int = 0
    seconds: float = 0.0


@dataclass
class SolvedFold:
    """The solutions of a fold, and what they took."""

    solutions: dict[Hashable, _core.Solution]
    work: FoldWork = field(default_factory=FoldWork)


def choose(seeding: str, n_folds: int, n_rows: int, share: float) -> Strategy:
    """The strategy of this name; for "auto" what is fastest for so many folds of this size."""
    if seeding != "auto":
        return STRATEGIES[seeding]
    pays = share >= LEAST_SHARE and (n_rows >= LEAST_ROWS or n_folds >= MANY_FOLDS)
    return STRATEGIES["avg" if pays else "none"]


def solve_full(full: Fold, settings: Settings) -> tuple[Neighbours, FoldWork]:
    """Solve the problems on all rows, as neighbours of the folds."""
    store, problems = full
    began, entries = perf_counter(), store.entries_evaluated
    solutions = solve(store, list(problems.values()), settings)
    work = FoldWork(
        n_iter=sum(s.n_iter for s in solutions),
        kernel_entries=store.entries_evaluated - entries,
        seconds=perf_counter() - began,
    )
    return _neighbours(store, problems, solutions), work


def solve_folds(
    folds: Iterable[Fold],
    neighbours: Neighbours,
    strategy: Strategy,
    settings: Settings,
) -> Iterator[SolvedFold]:
    """Solve every fold in turn, from these neighbours or from the fold before.

    Folds on the same store that do not wait for one another are solved together, on all threads. No
    more of them are taken at a time, so that a fold takes memory only while it is worked on.
    """
    number = 0
    for batch in _batches(folds, strategy, settings):
        store = batch[0][0]
        began, entries = perf_counter(), store.entries_evaluated
        seeded = [
            {
                key: _seeded(store, problem, neighbours.get(key), strategy)
                for key, problem in problems.items()
            }
            for _, problems in batch
        ]
        solutions = solve(store, [p for fold in seeded for p in fold.values()], settings)
        seconds = (perf_counter() - began) / len(batch)
        evaluated = (store.entries_evaluated - entries) // len(batch)
        for fold, (_, problems) in zip(seeded, batch, strict=True):
            mine, solutions = solutions[: len(fold)], solutions[len(fold) :]
            if strategy.source is Source.PREVIOUS:
                neighbours |= _neighbours(store, problems, mine)
            cold = all(fold[key] is problem for key, problem in problems.items())
            source = "nothing" if cold else _source(strategy, number)
            work = FoldWork(sum(s.n_iter for s in mine), source, evaluated, seconds)
            yield SolvedFold(dict(zip(fold, mine, strict=True)), work)
            number += 1


def _batches(folds: Iterable[Fold], strategy: Strategy, settings: Settings) -> Iterator[list[Fold]]:
    """The folds that are solved at a time."""
    alone = settings.threads == 1 or strategy.source is Source.PREVIOUS
    most = 1 if alone else PROBLEMS_PER_THREAD * settings.threads
    batch: list[Fold] = []
    for fold in folds:
        if batch and (batch[0][0] is not fold[0] or sum(len(p) for _, p in batch) >= most):
            yield batch
            batch = []
        batch.append(fold)
        if alone:
            yield batch
            batch = []
    if batch:
        yield batch


def _source(strategy: Strategy, number: int) -> str:
    return "all rows" if strategy.source is Source.FULL else f"fold {number - 1}"


def _neighbours(
    store: _core.KernelStore, problems: Problems, solutions: Sequence[_core.Solution]
) -> Neighbours:
    return {
        key: (store, Neighbour(problem, s.beta, s.gradient, s.offsets))
        for (key, problem), s in zip(problems.items(), solutions, strict=True)
    }


def _seeded(
    store: _core.KernelStore,
    problem: Problem,
    solved: tuple[_core.KernelStore, Neighbour] | None,
    strategy: Strategy,
) -> Problem:
    """The problem with a start from a neighbour, if there is one."""
    if solved is None or strategy.source is Source.NOTHING:
        return problem
    kernel_of_neighbour, neighbour = solved

    def entries(rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
        return store.block(problem.rows[rows], problem.rows[columns]).astype(np.float64)

    start = strategy.start(Change(problem, neighbour), entries)
    if store is not kernel_of_neighbour:  # another kernel: the gradient has to be computed anew
        return replace(problem, start=start, start_gradient=None)
    gradient = _core.shifted_gradient(
        store, problem.rows, neighbour.gradient, start - neighbour.beta
    )
    return replace(problem, start=start, start_gradient=gradient)
