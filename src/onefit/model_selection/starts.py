"""Where the folds of a pipeline start: from the fold before, or from a fit on all rows.

A variable of a fold is a row of the whole data, and that is how it is known from fold to fold. A
fold has neither the kernel entries of rows that it holds out nor those of a neighbour's data, so
that a strategy which needs them is given those of data that all folds share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators.base import KernelMachine, Training
from onefit.estimators.classification import ClassTraining
from onefit.folds import FoldWork, solve_full
from onefit.kernels import Floats
from onefit.seeding import Change, Neighbour, Source, Strategy
from onefit.seeding.base import feasible

Rows: TypeAlias = NDArray[np.intp]
# The problems of a fold by what they are about: a pair of classes, or nothing in regression.
Problems: TypeAlias = dict[Hashable, _core.Problem]
Solutions: TypeAlias = Sequence[_core.Solution]

# From so many rows on "auto" starts from the fold before, if that has this share of a fold's rows.
# Of ten folds two in turn share 0.89; of five, 0.75. Below, a start costs the time that it saves,
# or more; so it does with more than two classes.
LEAST_ROWS = 2000
LEAST_SHARED = 0.85


@dataclass(frozen=True)
class Solved:
    """A solution, by the variables of the whole data."""

    variables: Rows
    beta: Floats
    offsets: tuple[float, float] = (0.0, 0.0)

    def of(self, variables: Rows) -> Floats:
        """The coefficients of these variables; 0 of those that it does not know."""
        most = max(self.variables.max(initial=0), variables.max(initial=0))
        everyone = np.zeros(most + 1)
        everyone[self.variables] = self.beta
        return everyone[variables]


def variables_of(problem: _core.Problem, rows: Rows) -> Rows:
    """Numbers of a problem's variables in the whole data, where these are its rows.

    A row may be a variable of each of two groups, as in ν-SVR.
    """
    variables: Rows = 2 * rows[problem.rows]
    variables[problem.split :] += 1
    return variables


def solved_by_rows(rows: Rows, problems: Problems, solutions: Solutions) -> dict[Hashable, Solved]:
    return {
        key: Solved(variables_of(problem, rows), solution.beta, solution.offsets)
        for (key, problem), solution in zip(problems.items(), solutions, strict=True)
    }


def keys_of(training: Training) -> list[Hashable]:
    """What the problems of a training are about."""
    if isinstance(training, ClassTraining):
        return list(combinations(training.classes.tolist(), 2))
    return [None]


class Starts(ABC):
    """Gives starts to the problems of the folds in turn, and is told their solutions."""

    @property
    def kernel_entries(self) -> int:
        """Evaluated for starts so far."""
        return 0

    @abstractmethod
    def start(
        self, number: int, train: Rows, rows: Rows, problems: Problems
    ) -> tuple[Problems, str]:
        """The problems of a fold with a start each, and the name of what they start from.

        ``rows`` are those of its training rows that take part, as the problems number them.
        """

    @abstractmethod
    def remember(
        self, number: int, train: Rows, rows: Rows, problems: Problems, solutions: Solutions
    ) -> None:
        """The solutions of a fold."""


class Before(Starts):
    """From the fold before, where that takes less time than a cold start.

    What the rows that leave had is spread over others, for which no kernel is needed: over the free
    ones (as AVG does), or over those that enter.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._last: tuple[int, NDArray[np.bool_], dict[Hashable, Solved]] | None = None

    def start(
        self, number: int, train: Rows, rows: Rows, problems: Problems
    ) -> tuple[Problems, str]:
        if self._last is None or len(problems) > 1:
            return problems, "nothing"
        before, known, solved = self._last
        [(key, problem)] = problems.items()
        if key not in solved or float(np.mean(known[train])) < LEAST_SHARED:
            return problems, "nothing"
        return {key: _spread(problem, solved[key], rows, known)}, f"fold {before}"

    def remember(
        self, number: int, train: Rows, rows: Rows, problems: Problems, solutions: Solutions
    ) -> None:
        self._last = None
        if len(problems) == 1 and self._n >= LEAST_ROWS:
            known = np.zeros(self._n, dtype=bool)
            known[train] = True
            self._last = number, known, solved_by_rows(rows, problems, solutions)


def _spread(
    problem: _core.Problem, solved: Solved, rows: Rows, known: NDArray[np.bool_]
) -> _core.Problem:
    beta = np.clip(solved.of(variables_of(problem, rows)), problem.lower, problem.upper)
    if not problem.two_groups:
        heirs = (beta > problem.lower) & (beta < problem.upper) & (beta != 0)
    else:  # with ν most are at a bound, and the sums need what enters
        heirs = ~known[rows[problem.rows]]
    return problem.started(feasible(problem, beta, np.flatnonzero(heirs)))


class AllRows(Starts):
    """With any strategy, on data that all folds share: all rows, transformed together.

    They are not the data of any fold, but near them, and a start need not be more. Strategies that
    start from a fit on all rows have it solved there.
    """

    def __init__(
        self, machine: KernelMachine, X: Any, y: Any, weights: Any, strategy: Strategy
    ) -> None:
        X, self._y = machine._check_training_data(X, y)
        self._weights = machine._check_weights(weights, X)
        self._machine = machine
        self._strategy = strategy
        self._whole: Training = machine._training(self._y, self._weights, every_row=True)
        self._problems = self._whole.problems
        self._number = {key: number for number, key in enumerate(keys_of(self._whole))}
        self._store = machine._store(X, machine._resolve_kernel(X), self._whole.order)
        self._neighbours: dict[int, Neighbour] = {}
        self._source = "all rows"
        self.full_work: FoldWork | None = None
        if strategy.source is Source.FULL:
            settings = machine._settings()
            solved, self.full_work = solve_full(self._store, self._problems, settings, strategy)
            for number, (_, problem, solution) in solved.items():
                self._neighbours[number] = Neighbour(
                    problem, solution.beta, solution.gradient, solution.offsets
                )

    @property
    def kernel_entries(self) -> int:
        return int(self._store.entries_evaluated)

    def start(
        self, number: int, train: Rows, rows: Rows, problems: Problems
    ) -> tuple[Problems, str]:
        part = self._machine._part(self._whole, self._y, self._weights, train)
        self._bounds = part.bounds
        known = {key for key in problems if self._number[key] in self._neighbours}
        started = {
            key: self._started(self._number[key], problem, rows) if key in known else problem
            for key, problem in problems.items()
        }
        return started, self._source if known else "nothing"

    def _started(self, number: int, problem: _core.Problem, rows: Rows) -> _core.Problem:
        shared = self._problems[number].with_bounds(self._bounds)

        def entries(some: Rows, others: Rows) -> Floats:
            return self._store.block(shared.rows[some], shared.rows[others]).astype(np.float64)

        beta = self._strategy.start(Change(shared, self._neighbours[number]), entries)
        proposed = Solved(variables_of(shared, self._whole.order), beta)
        kept = proposed.of(variables_of(problem, rows))
        return problem.started(feasible(problem, kept, np.flatnonzero(kept)))

    def remember(
        self, number: int, train: Rows, rows: Rows, problems: Problems, solutions: Solutions
    ) -> None:
        if self._strategy.source is Source.FULL:
            return
        self._source = f"fold {number}"
        for key, solved in solved_by_rows(rows, problems, solutions).items():
            k = self._number[key]
            shared = self._problems[k].with_bounds(self._bounds)
            beta = solved.of(variables_of(shared, self._whole.order))
            gradient = _core.shifted_gradient(self._store, shared.rows, shared.linear, beta)
            self._neighbours[k] = Neighbour(shared, beta, gradient, solved.offsets)
