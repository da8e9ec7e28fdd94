"""Where the folds of a pipeline start: from the fold before, or from a fit on all rows.

A variable of a fold is a row of the whole data, and that is how it is known from fold to fold. A
fold has neither the kernel entries of rows that it holds out nor those of a neighbour's data, so
that a strategy which needs them is given those of data that all folds share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from onefit import _core
from onefit.estimators.base import KernelMachine, Training
from onefit.estimators.classification import ClassTraining
from onefit.folds import FoldWork, solve_full
from onefit.kernels import Floats
from onefit.problem import Problem
from onefit.seeding import Change, Neighbour, Source, Strategy
from onefit.seeding.base import feasible

Rows: TypeAlias = NDArray[np.intp]
Problems: TypeAlias = dict[Hashable, Problem]
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


def variables_of(problem: Problem, rows: Rows) -> Rows:
    """Numbers of a problem's variables in the whole data, where these are its rows.

    A row may be a variable of each of two groups, as in ν-SVR.
    """
    variables = 2 * rows[problem.rows]
    if problem.split is not None:
        variables[problem.split :] += 1
    return variables


def solved_by_rows(rows: Rows, problems: Problems, solutions: Solutions) -> dict[Hashable, Solved]:
    return {
        key: Solved(variables_of(problem, rows), solution.beta, solution.offsets)
        for (key, problem), solution in zip(problems.items(), solutions, strict=True)
    }


def problems_of(training: Training) -> Problems:
    """The problems by what they are about: a pair of classes, or nothing in regression."""
    keys: list[Hashable] = [None]
    if isinstance(training, ClassTraining):
        keys = list(combinations(training.classes.tolist(), 2))
    return dict(zip(keys, training.problems, strict=True))


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


def _spread(problem: Problem, solved: Solved, rows: Rows, known: NDArray[np.bool_]) -> Problem:
    beta = np.clip(solved.of(variables_of(problem, rows)), problem.lower, problem.upper)
    if problem.split is None:
        heirs = (beta > problem.lower) & (beta < problem.upper) & (beta != 0)
    else:  # with ν most are at a bound, and the sums need what enters
        heirs = ~known[rows[problem.rows]]
    start = feasible(problem, beta, np.flatnonzero(heirs))
    return replace(problem, start=start, start_gradient=None)


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
        n = len(self._y)
        # In the order of classes, as a fit has it: then a pair of them is two runs of a row.
        order = np.argsort(self._y, kind="stable") if is_classifier(machine) else np.arange(n)
        self._position = np.empty(n, dtype=np.int32)
        self._position[order] = np.arange(n, dtype=np.int32)
        self._store = machine._store(X, machine._resolve_kernel(X), order)
        self._neighbours: dict[Hashable, Neighbour] = {}
        self._source = "all rows"
        self.full_work: FoldWork | None = None
        if strategy.source is Source.FULL:
            problems = {key: problem for key, (problem, _) in self._problems(np.arange(n)).items()}
            solved, self.full_work = solve_full((self._store, problems), machine._settings())
            self._neighbours = {key: neighbour for key, (_, neighbour) in solved.items()}

    @property
    def kernel_entries(self) -> int:
        return int(self._store.entries_evaluated)

    def _problems(self, train: Rows) -> dict[Hashable, tuple[Problem, Rows]]:
        """The problems of a fold on the shared data, and their variables."""
        held_out = np.ones(len(self._y), dtype=bool)
        held_out[train] = False
        training = self._machine._training(self._y, self._weights, held_out)
        rows = training.order
        return {
            key: (
                replace(problem, rows=self._position[rows[problem.rows]]),
                variables_of(problem, rows),
            )
            for key, problem in problems_of(training).items()
        }

    def start(
        self, number: int, train: Rows, rows: Rows, problems: Problems
    ) -> tuple[Problems, str]:
        self._now = self._problems(train)
        if not problems.keys() & self._neighbours.keys():
            return problems, "nothing"
        started = {
            key: self._started(key, problem, rows) if key in self._neighbours else problem
            for key, problem in problems.items()
        }
        return started, self._source

    def _started(self, key: Hashable, problem: Problem, rows: Rows) -> Problem:
        shared, variables = self._now[key]

        def entries(some: Rows, others: Rows) -> Floats:
            return self._store.block(shared.rows[some], shared.rows[others]).astype(np.float64)

        beta = self._strategy.start(Change(shared, self._neighbours[key]), entries)
        proposed = Solved(variables, beta).of(variables_of(problem, rows))
        start = feasible(problem, proposed, np.flatnonzero(proposed))
        return replace(problem, start=start, start_gradient=None)

    def remember(
        self, number: int, train: Rows, rows: Rows, problems: Problems, solutions: Solutions
    ) -> None:
        if self._strategy.source is Source.FULL:
            return
        self._source = f"fold {number}"
        for key, solved in solved_by_rows(rows, problems, solutions).items():
            problem, variables = self._now[key]
            beta = solved.of(variables)
            gradient = _core.shifted_gradient(self._store, problem.rows, problem.linear, beta)
            self._neighbours[key] = Neighbour(problem, beta, gradient, solved.offsets)
