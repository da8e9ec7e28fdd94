"""The accuracy of all folds of a C-SVC in a few calls of the core.

Where nothing depends on a fold but who takes part, its problems are those on all rows with bounds
of 0, and its score follows from the votes of their pairs: models are never put together. One call
of the core solves the problems of many folds and another one votes, so that small folds cost what
their iterations do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators.base import Part
from onefit.estimators.classification import ClassTraining
from onefit.estimators.svc import SVC
from onefit.folds import (
    FOLLOWED_AT_A_TIME,
    PROBLEMS_PER_THREAD,
    FoldWork,
    Neighbours,
    SolvedFold,
    follow,
    solve_full,
    solve_together,
)
from onefit.kernels import Floats
from onefit.memory import MEGABYTE
from onefit.model_selection.crossfit import UNDECIDED, Begun, CrossFit
from onefit.model_selection.splitting import Dealt, held_out
from onefit.problem import class_pairs
from onefit.report.progress import Meter
from onefit.seeding import Source
from onefit.solver import warn_if_unfinished

# So many variables, of all problems of some folds, are solved in one call; of more rows than this,
# those that keep the threads busy: a bar that shows the progress waits for them.
MOST_VARIABLES = 200_000
MOST_ROWS = 5_000

# Of more rows than that, all folds of a pair of classes are solved before the next one. So many
# bytes may be kept of all solutions, and so many blocks of columns a store knows.
MOST_KEPT = 256 * MEGABYTE
MOST_CLASSES = 64
FLOAT_BYTES = 4

# A store, the solutions of some folds, and what each fold took.
_Solved: TypeAlias = tuple[_core.KernelStore, _core.FoldSolutions, list[FoldWork]]


@dataclass
class _Voted:
    """A fold that is solved, and what its pairs of classes say of the rows that it holds out."""

    solved: _core.FoldSolutions  # of which this is a fold
    number: int
    converged: bool
    right: int  # rows that get their own class
    small: float  # share of the values that decide it which are smaller than the tolerance
    work: FoldWork


def scores(crossfit: CrossFit) -> dict[str, Any] | None:
    """What ``cross_validate`` says of accuracy; None where folds differ in more than their rows."""
    whole = crossfit.whole
    if not _differ_in_rows_alone(crossfit):
        return None
    assert isinstance(whole, ClassTraining)
    rows, sizes = held_out(crossfit.splits)
    queries = crossfit.position[rows]
    bounds = _bounds_of_folds(crossfit, queries, sizes)
    if bounds is None or not all(sizes):
        return None
    test_scores, seconds = [], []
    for number, fold in enumerate(crossfit.counted(_voted(crossfit, bounds, queries, sizes))):
        began, right = perf_counter(), fold.right
        if fold.small > UNDECIDED:
            solutions, labels = _decided(crossfit, bounds[number], number, fold)
            right = int(np.count_nonzero(labels == whole.codes[crossfit.splits[number][1]]))
        elif not fold.converged:
            solutions = fold.solved.fold(fold.number)
        if not fold.converged:
            warn_if_unfinished(solutions, crossfit.settings)
        test_scores.append(right / sizes[number])
        crossfit.work.append(fold.work)
        seconds.append(perf_counter() - began)
    return {
        "fit_time": np.zeros(len(sizes)),
        "score_time": np.array(seconds),
        "test_score": np.array(test_scores),
    }


def _differ_in_rows_alone(crossfit: CrossFit) -> bool:
    """Whether nothing depends on a fold of a C-SVC but who takes part."""
    machine, kernel = crossfit.machine, crossfit.kernel
    return (
        type(crossfit) is CrossFit
        and isinstance(machine, SVC)
        and not machine.break_ties
        and machine.class_weight != "balanced"
        and crossfit.weights is None
        and not crossfit.certify
        and crossfit.strategy.in_core
        and not kernel.depends_on_fold
        and kernel.matrix is None
    )


def _bounds_of_folds(
    crossfit: CrossFit, queries: NDArray[np.int32], sizes: list[int]
) -> Floats | None:
    """The bound of every row in each fold, which holds so many queries out; None where a fold has
    no row of a class."""
    splits, whole = crossfit.splits, crossfit.whole
    given, dealt = (whole.bounds, whole.starts), isinstance(splits, Dealt)
    rows = queries
    if not dealt:  # a row may be neither held out nor trained on
        rows = crossfit.position[np.concatenate([train for train, _ in splits])]
        sizes = [len(train) for train, _ in splits]
    return _core.bounds_of_folds(*given, rows, sizes, held_out=dealt)


def _voted(
    crossfit: CrossFit, bounds: Floats, queries: NDArray[np.int32], sizes: list[int]
) -> Iterator[_Voted]:
    """The folds in turn; so many queries are held out by each."""
    settings, starts = crossfit.settings, crossfit.whole.starts
    solve = _pairs_in_turn if _are_pairs_better(crossfit, len(bounds)) else _folds_in_turn
    ends = list(accumulate(sizes, initial=0))
    # Nothing interrupts a vote: of many rows there is one for each thread at a time.
    most = len(bounds) if len(crossfit.order) <= MOST_ROWS else settings.threads
    done = 0
    for store, solved, work in solve(crossfit, bounds):
        converged = solved.converged
        for first in range(0, len(solved), most):
            last = min(first + most, len(solved))
            asked = queries[ends[done + first] : ends[done + last]]
            _, right, small = _core.held_out_labels(
                store,
                starts,
                solved,
                first,
                asked,
                sizes[done + first : done + last],
                settings.tol,
                settings.threads,
            )
            for k in range(first, last):
                voted = (right[k - first], small[k - first])
                yield _Voted(solved, k, converged[k], *voted, work[k])
        done += len(solved)


def _folds_in_turn(crossfit: CrossFit, bounds: Floats) -> Iterator[_Solved]:
    """Some folds at a time, on the rows that all of them share."""
    settings, problems = crossfit.settings, crossfit.problems
    store = crossfit.kernel.store(crossfit.kernel.of_all)
    neighbours = crossfit.neighbours()
    followed = follow(store, neighbours, len(bounds), crossfit.strategy, settings)
    at_a_time = -(-PROBLEMS_PER_THREAD * settings.threads // len(problems))
    if len(store) <= MOST_ROWS:
        at_a_time = max(at_a_time, MOST_VARIABLES // sum(map(len, problems)))
    if followed is not None:
        at_a_time = max(at_a_time, FOLLOWED_AT_A_TIME)
    given = (problems, neighbours, crossfit.strategy, settings, followed)
    for first in range(0, len(bounds), at_a_time):
        yield store, *solve_together(store, bounds[first : first + at_a_time], *given)


def _are_pairs_better(crossfit: CrossFit, n_folds: int) -> bool:
    """Whether all folds of a pair of classes are solved before the next pair."""
    n_classes, n = len(crossfit.whole.starts) - 1, len(crossfit.order)
    return (
        2 < n_classes <= MOST_CLASSES
        and n > MOST_ROWS
        and 16 * n_folds * n * (n_classes - 1) <= MOST_KEPT
    )


def _pairs_in_turn(crossfit: CrossFit, bounds: Floats) -> Iterator[_Solved]:
    """All folds, pair of classes by pair of classes.

    A pair needs its own rows and columns only, and nobody needs them after its folds: the whole
    matrix, of which folds in turn would evaluate most, is never there. Held-out rows that other
    pairs have to decide are evaluated again.
    """
    machine, settings, starts = crossfit.machine, crossfit.settings, crossfit.whole.starts
    store = crossfit.kernel.in_blocks(starts[:-1])
    work = [FoldWork() for _ in bounds]
    if crossfit.strategy.source is Source.FULL:
        crossfit.full_work = FoldWork()
    parts = []
    pairs = class_pairs(len(starts) - 1)
    meter = Meter(len(pairs), f"{type(machine).__name__}, pair of classes", crossfit.progress)
    # Fits on all rows are shared out among threads, too. Beside the own blocks of classes, a store
    # has room for those of one pair.
    at_a_time = PROBLEMS_PER_THREAD * settings.threads if settings.threads > 1 else 1
    largest = max(last - first for first, last in pairwise(starts))
    at_a_time = min(at_a_time, 1 + store.spare_bytes // (2 * FLOAT_BYTES * largest**2))
    memory = _core.PathMemory()
    try:
        for first in range(0, len(pairs), at_a_time):
            problems = crossfit.problems[first : first + at_a_time]
            neighbours: Neighbours = {}
            if crossfit.full_work is not None:
                neighbours, full = solve_full(store, problems, settings, crossfit.strategy)
                crossfit.full_work.add(full)
            followed = follow(store, neighbours, len(bounds), crossfit.strategy, settings, memory)
            given = (problems, neighbours, crossfit.strategy, settings, followed)
            solved, took = solve_together(store, bounds, *given)
            parts.append(solved)
            for of_fold, of_part in zip(work, took, strict=True):
                of_fold.add(of_part)
            for i, j in pairs[first : first + at_a_time]:
                store.forget(i, j)
                if j == len(starts) - 2:  # the last pair of this class
                    store.forget(i, i)
            meter.advance(len(problems))
    finally:
        meter.close()
    yield store, _core.FoldSolutions.joined(parts), work


def _decided(
    crossfit: CrossFit, bounds: Floats, number: int, fold: _Voted
) -> tuple[list[_core.Solution], NDArray[np.intp]]:
    """The fold, solved on until its values are larger than its tolerance, as far as they can be:
    its solutions and labels."""
    whole, kernel = crossfit.whole, crossfit.kernel
    assert isinstance(whole, ClassTraining)
    part = Part(whole, bounds, range(len(whole.problems)))
    begun = Begun(*crossfit.splits[number], part, kernel.of_all, kernel.store(kernel.of_all))
    solved = SolvedFold(fold.solved.fold(fold.number), fold.work)
    solutions, _, values = crossfit.decided(begun, solved)
    return solutions, crossfit.machine._labels(values, np.arange(len(whole.classes)))
