"""Folds of a data set, each solved from a neighbour on one store of kernel rows.

Held-out rows stay variables whose bounds are both 0, so that all folds have the same variables: a
solution of one is a start for another as soon as it is feasible, its gradient needs the kernel rows
of the changed coefficients only, and the gradient of a held-out row is its decision value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onefit import _core, solver
from onefit.followed import FollowedFolds, tighter
from onefit.kernels import Floats
from onefit.seeding import STRATEGIES, Change, Neighbour, Source, Strategy
from onefit.solver import Settings, solve, solve_parts

# The problems on all rows: of every pair of classes, or one in regression.
Problems: TypeAlias = Sequence[_core.Problem]


@dataclass(frozen=True)
class Fold:
    """Some of the problems on all rows, with other bounds."""

    store: _core.KernelStore
    bounds: Floats  # of each row of the store; 0 where it is held out
    numbers: Sequence[int]  # of the problems
    # For each of these a variable of which only the sign is asked, if the strategy is in the core.
    sign_of: Sequence[int] | None = None


class Solved(NamedTuple):
    """A solved problem: a neighbour to start from."""

    store: _core.KernelStore
    problem: _core.Problem
    solution: _core.Solution


Neighbours: TypeAlias = dict[int, Solved]  # by the number of the problem

# The fit on all rows is a good neighbour of a fold that has at least this share of them. It pays
# for itself where a problem has so many variables, or with so many folds; below, a cold fold takes
# as long as a seeded one.
LEAST_SHARE = 0.75
LEAST_VARIABLES = 2500
MANY_FOLDS = 8

# So many folds are followed from the fit on all rows, whose matrix takes as long as the fit.
FOLLOWED_FOLDS = 30

# Folds are solved so many problems for each thread at a time, and so many folds are followed.
PROBLEMS_PER_THREAD = 4
FOLLOWED_AT_A_TIME = 16


@dataclass
class FoldWork:
    """What one fold took."""

    n_iter: int = 0
    seeded_from: str = "nothing"
    kernel_entries: int = 0
    seconds: float = 0.0
    n_certified: int = 0  # held-out rows whose side is proven

    def add(self, other: FoldWork) -> None:
        """Counts what another part of the same fold took."""
        self.n_iter += other.n_iter
        self.kernel_entries += other.kernel_entries
        self.seconds += other.seconds
        if other.seeded_from != "nothing":
            self.seeded_from = other.seeded_from


@dataclass
class SolvedFold:
    """The solutions of a fold, and what they took."""

    solutions: list[_core.Solution]
    work: FoldWork = field(default_factory=FoldWork)


def choose(
    seeding: str, n_folds: int, n_variables: int, share: float, *, labels_only: bool = True
) -> Strategy:
    """The strategy of this name; for "auto" what is fastest for so many folds.

    ``n_variables`` are those of the largest problem, and a fold has this share of all rows. A warm
    start knows the labels of the rows that the fold holds out, and decides where within the
    tolerance the fold ends: it is for ``labels_only``, which do not show that.
    """
    if seeding != "auto":
        return STRATEGIES[seeding]
    if share < LEAST_SHARE:
        return STRATEGIES["none"]
    if n_folds >= FOLLOWED_FOLDS:  # ends at the optimum, not somewhere within the tolerance
        return STRATEGIES["follow"]
    if not labels_only:
        return STRATEGIES["none"]
    pays = n_variables >= LEAST_VARIABLES or n_folds >= MANY_FOLDS
    return STRATEGIES["avg" if pays else "none"]


def solve_full(
    store: _core.KernelStore,
    problems: Problems,
    settings: Settings,
    strategy: Strategy | None = None,
) -> tuple[Neighbours, FoldWork]:
    """Solve the problems on all rows, as neighbours of the folds."""
    began, entries = perf_counter(), store.entries_evaluated
    follows = strategy is not None and strategy.follows
    solutions = solve(store, problems, tighter(settings) if follows else settings)
    work = FoldWork(
        n_iter=sum(s.n_iter for s in solutions),
        kernel_entries=store.entries_evaluated - entries,
        seconds=perf_counter() - began,
    )
    solved = zip(problems, solutions, strict=True)
    return {k: Solved(store, problem, s) for k, (problem, s) in enumerate(solved)}, work


def solve_folds(
    folds: Iterable[Fold],
    problems: Problems,
    neighbours: Neighbours,
    strategy: Strategy,
    settings: Settings,
    at_a_time: int = 1,
    n_folds: int = 1,
    alone: bool = False,
) -> Iterator[SolvedFold]:
    """Solve every fold in turn, from these neighbours or from the fold before.

    Folds on the same store that do not wait for one another are solved together, on all threads:
    as many problems as keep these busy, or ``at_a_time``. No more of them are taken, so that a fold
    takes memory only while it is worked on. That there are ``n_folds`` says what paths may cost.
    ``alone``: no bit of a fold that starts cold depends on the labels of rows that it holds out.
    """
    # Folds of a problem without free rows are most often without, and then solved cold.
    neighbours = {k: solved for k, solved in neighbours.items() if solved.solution.free_rows}
    number = 0
    most = max(at_a_time, PROBLEMS_PER_THREAD * settings.threads)
    if strategy.follows:
        most = max(most, FOLLOWED_AT_A_TIME * len(problems))
    followed: FollowedFolds | None = None
    for batch in _batches(folds, strategy, most):
        store = batch[0].store
        began, entries = perf_counter(), store.entries_evaluated
        if not strategy.in_core:
            solutions = _solve_from_proposals(batch, problems, neighbours, strategy, settings)
        else:
            if followed is None or followed.store is not store:
                followed = follow(store, neighbours, n_folds, strategy, settings)
            solutions = _solve_in_core(batch, problems, neighbours, followed, settings, alone)
        spent = [solution.n_iter for solution in solutions]
        if strategy.source is not Source.NOTHING:
            seeded = [k in neighbours for fold in batch for k in fold.numbers]
            # The next fold may start from here, and needs the gradients of all rows.
            ends_here = strategy.source is not Source.PREVIOUS
            _solve_cold_where_no_row_is_free(
                solutions, spent, seeded, batch, problems, settings, alone and ends_here
            )
        seconds = (perf_counter() - began) / len(batch)
        evaluated = (store.entries_evaluated - entries) // len(batch)
        for fold in batch:
            mine, solutions = solutions[: len(fold.numbers)], solutions[len(fold.numbers) :]
            n_iter, spent = sum(spent[: len(fold.numbers)]), spent[len(fold.numbers) :]
            from_neighbour = any(k in neighbours for k in fold.numbers)
            if strategy.source is Source.PREVIOUS:
                for k, solution in zip(fold.numbers, mine, strict=True):
                    if solution.free_rows:
                        problem = problems[k].with_bounds(fold.bounds)
                        neighbours[k] = Solved(store, problem, solution)
            source = _source(strategy, number) if from_neighbour else "nothing"
            work = FoldWork(n_iter, source, evaluated, seconds)
            yield SolvedFold(mine, work)
            number += 1


def follow(
    store: _core.KernelStore,
    neighbours: Neighbours,
    n_folds: int,
    strategy: Strategy,
    settings: Settings,
    memory: _core.PathMemory | None = None,
) -> FollowedFolds | None:
    """The paths of so many folds from these neighbours, if the strategy follows them.

    They take memory of their own, or the one that others have left.
    """
    if not strategy.follows:
        return None
    fitted = {
        k: (solved.problem, solved.solution)
        for k, solved in neighbours.items()
        if solved.store is store and solved.solution.free_rows
    }
    if memory is None:
        memory = _core.PathMemory()
    else:
        memory.clear()
    return FollowedFolds(store, fitted, n_folds, settings, memory)


def solve_together(
    store: _core.KernelStore,
    bounds: Floats,
    problems: Problems,
    neighbours: Neighbours,
    strategy: Strategy,
    settings: Settings,
    followed: FollowedFolds | None = None,
) -> tuple[_core.FoldSolutions, list[FoldWork]]:
    """Solve all problems with the bounds of each fold, in one call, if the strategy is in the core.

    The solutions, and what each fold took.
    """
    began, entries = perf_counter(), store.entries_evaluated
    starts = [neighbours[k].solution if k in neighbours else None for k in range(len(problems))]
    starts = [start if start is None or start.free_rows else None for start in starts]
    paths = None if followed is None else [followed.paths(k) for k in range(len(problems))]
    solved = solver.solve_together(store, problems, bounds, starts, settings, paths)
    seconds = (perf_counter() - began) / len(bounds)
    evaluated = (store.entries_evaluated - entries) // len(bounds)
    seeded = any(start is not None for start in starts)
    source = _source(strategy, 0) if seeded else "nothing"
    return solved, [FoldWork(n, source, evaluated, seconds) for n in solved.n_iter]


def _solve_in_core(
    batch: Sequence[Fold],
    problems: Problems,
    neighbours: Neighbours,
    followed: FollowedFolds | None,
    settings: Settings,
    alone: bool,
) -> list[_core.Solution]:
    """From nothing, or from solutions whose leaving coefficients the core spreads."""
    store = batch[0].store
    tasks = [(k, fold.bounds, neighbours.get(k)) for fold in batch for k in fold.numbers]
    asked: list[int | None] = []
    for fold in batch:
        asked += fold.sign_of or [None] * len(fold.numbers)
    return _solve_tasks(
        store,
        problems,
        [k for k, _, _ in tasks],
        [bounds for _, bounds, _ in tasks],
        [start and start.solution for _, _, start in tasks],
        followed,
        settings,
        same_kernel=all(start is None or start.store is store for _, _, start in tasks),
        sign_of=asked,
        alone=alone,
    )


def _solve_tasks(
    store: _core.KernelStore,
    problems: Problems,
    numbers: Sequence[int],
    bounds: Sequence[Floats],
    starts: list[_core.Solution | None],
    followed: FollowedFolds | None,
    settings: Settings,
    *,
    same_kernel: bool = True,
    sign_of: Sequence[int | None] = (),
    alone: bool = False,
) -> list[_core.Solution]:
    """Solve the problems of these numbers, each with its bounds: by its path, or from its start."""
    if followed is None:
        return solve_parts(
            store,
            [problems[k] for k in numbers],
            bounds,
            starts,
            settings,
            same_kernel=same_kernel,
            sign_of=sign_of,
            alone=alone,
        )
    tasks_of: dict[int, list[int]] = {}
    for t, k in enumerate(numbers):
        tasks_of.setdefault(k, []).append(t)
    ended: list[_core.Solution | None] = [None] * len(numbers)
    for k, tasks in tasks_of.items():
        for t, end in zip(tasks, followed.ends(k, [bounds[t] for t in tasks]), strict=True):
            ended[t] = end
    open_ones = [t for t, s in enumerate(ended) if s is None or s.status != _core.Status.converged]
    solved = solve_parts(
        store,
        [problems[numbers[t]] for t in open_ones],
        [bounds[t] for t in open_ones],
        [ended[t] or starts[t] for t in open_ones],
        settings,
        same_kernel=same_kernel,
        alone=alone,
    )
    for t, solution in zip(open_ones, solved, strict=True):
        ended[t] = solution
    return [solution for solution in ended if solution is not None]


def _solve_from_proposals(
    batch: Sequence[Fold],
    problems: Problems,
    neighbours: Neighbours,
    strategy: Strategy,
    settings: Settings,
) -> list[_core.Solution]:
    """From what the strategy proposes."""
    started = [
        _started(
            fold.store,
            problems[k].with_bounds(fold.bounds),
            neighbours.get(k),
            strategy,
            settings.tol,
        )
        for fold in batch
        for k in fold.numbers
    ]
    return solve(batch[0].store, started, settings)


def _solve_cold_where_no_row_is_free(
    solutions: list[_core.Solution],
    spent: list[int],
    seeded: Sequence[bool],
    batch: Sequence[Fold],
    problems: Problems,
    settings: Settings,
    alone: bool,
) -> None:
    """Without a free row any offset between two values is right: that of a cold fit is wanted."""
    proven = _core.Status.sign_proven  # of every offset that is right
    open_ones = [
        t for t, s in enumerate(solutions) if seeded[t] and not s.free_rows and s.status != proven
    ]
    if not open_ones:
        return
    tasks = [(problems[k], fold.bounds) for fold in batch for k in fold.numbers]
    cold = solve_parts(
        batch[0].store,
        [tasks[t][0] for t in open_ones],
        [tasks[t][1] for t in open_ones],
        [None] * len(open_ones),
        settings,
        same_kernel=True,
        alone=alone,
    )
    for t, solution in zip(open_ones, cold, strict=True):
        solutions[t] = solution
        spent[t] += solution.n_iter


def _batches(folds: Iterable[Fold], strategy: Strategy, most: int) -> Iterator[list[Fold]]:
    """The folds that are solved at a time: so many problems, and the rest of the last fold."""
    alone = strategy.source is Source.PREVIOUS
    batch: list[Fold] = []
    for fold in folds:
        if batch and (
            batch[0].store is not fold.store or sum(len(f.numbers) for f in batch) >= most
        ):
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


def _started(
    store: _core.KernelStore,
    problem: _core.Problem,
    solved: Solved | None,
    strategy: Strategy,
    tol: float,
) -> _core.Problem:
    """The problem with a start from a neighbour, if there is one."""
    if solved is None:
        return problem
    before = solved.solution
    neighbour = Neighbour(solved.problem, before.beta, before.gradient, before.offsets)

    def entries(rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
        return store.block(problem.rows[rows], problem.rows[columns]).astype(np.float64)

    start = strategy.start(Change(problem, neighbour), entries)
    # Of another kernel, or beyond what float32 entries carry, the gradient is computed anew.
    if store is not solved.store or _core.rounding_hides(store, solved.problem, before, tol):
        return problem.started(start)
    gradient = _core.shifted_gradient(store, problem.rows, before.gradient, start - before.beta)
    return problem.started(start, gradient)
