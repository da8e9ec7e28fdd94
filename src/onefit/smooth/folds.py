"""A machine solved on all rows, and on all but those of each fold by updates of that solution.

Algorithm 2 of Tseng & Lee, "Rank-r updating techniques for fast exact cross-validation", with two
changes. A fold without support vectors keeps the model only if no column leaves with its rows: a
kernel column has a coefficient whether or not its row is a support vector. And every fold is
checked against its own gradient, from the data; one that is not as near to its optimum as a fit
would be is solved on until it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from onefit.kernels import Floats
from onefit.smooth.design import Design, Rows, norm_of
from onefit.smooth.influence import EvaluatedInfluence, Solved, StoredInfluence
from onefit.smooth.newton import Solution, Status, Task, minimise
from onefit.smooth.systems import (
    CheapestSystem,
    DualSystem,
    IterativeSystem,
    System,
    make_system,
)

# The machine on all rows is solved to this share of the tolerance, and so are folds if they can be.
TIGHTER = 1e-2

# So often is rounding taken out of a fold.
REFINEMENTS = 4

# For the choice of a way: Newton steps of a fold, and by how much an operation takes longer in a
# product with a vector than in one of matrices.
STEPS = 4
SLOW = 10


@dataclass(frozen=True)
class Rule:
    """How machines are solved."""

    update: str
    tol: float
    max_iter: int
    budget: int  # bytes


def bytes_of_influence(n: int, p: int, leaving: int, support: int | None = None) -> int:
    """Of M̃ and what it is computed from: the design, or so many support vectors."""
    size = n + leaving
    return 8 * size * (2 * size + (2 * p if support is None else support))


class Whole:
    """A machine on all rows of a task, with the columns of all folds."""

    def __init__(
        self,
        task: Task,
        rule: Rule,
        columns: Rows,
        start: Floats | None = None,
        n_folds: int = 1,
    ) -> None:
        """``columns`` are the coefficients that some fold lacks; ``n_folds`` will be asked for."""
        self.task, self.rule, self.columns = task, rule, columns
        self._n_folds = n_folds
        self._number = np.full(task.design.p, -1, dtype=np.intp)
        self._number[columns] = np.arange(len(columns))
        self.system = make_system(rule.update, task.design, rule.budget)
        # Folds take over how far this is from its optimum.
        tol = TIGHTER * rule.tol
        self.solution = minimise(task, self.system, tol, rule.max_iter, start)
        self._solved: Solved | None = None

    @property
    def n_support(self) -> int:
        return int(np.count_nonzero(self.solution.curvatures))

    def solved(self, stored: bool) -> Solved:
        """With its influence, in memory or evaluated as it is asked for."""
        if self._solved is None:
            self.system.settle(self.solution.curvatures)
            kind = StoredInfluence if stored else EvaluatedInfluence
            influence = kind(self.system, self.task.design, self.columns)
            self._solved = Solved(self.task, self.solution, influence, self.columns)
        return self._solved

    def can_store_influence(self) -> bool:
        """Whether the matrix, and what it is computed from, fit."""
        n, p, leaving = self.task.design.n, self.task.design.p, len(self.columns)
        support = self.n_support if self._is_dual() and not leaving else None
        known = not isinstance(self.system, IterativeSystem)
        return known and bytes_of_influence(n, p, leaving, support) <= self.rule.budget

    def _is_dual(self) -> bool:
        """Whether the influence is computed from the support vectors."""
        if isinstance(self.system, CheapestSystem):
            return 2 * self.n_support < self.task.design.p
        return isinstance(self.system, DualSystem)

    def can_evaluate_influence(self) -> bool:
        """Whether it can be had row by row."""
        return not isinstance(self.system, IterativeSystem) and not len(self.columns)

    def is_solved_exactly(self) -> bool:
        """Whether it is at its optimum, and its systems are solved up to rounding."""
        converged = self.solution.status is Status.CONVERGED
        return converged and not isinstance(self.system, IterativeSystem)

    def number(self, columns: Rows) -> Rows:
        """The numbers of coefficients among those that may leave."""
        return self._number[columns]

    def fold(self, c: Floats, gone: NDArray[np.intp]) -> Solution:
        """The machine with these weights, without these coefficients (which become 0)."""
        if not len(gone) and self.solution.status is Status.CONVERGED:
            idle = self.solution.slopes == 0
            if self.task.loss.piecewise and idle[c != self.task.c].all():
                # Rows that leave have no slope: the optimum stays. (Those that come may have one.)
                came = (c > self.task.c) & idle
                slopes = replace(self.task, c=c).at(self.solution.values).slope
                if not np.any(slopes[came]):
                    return replace(self.solution, n_iter=0)
        if self.rule.update == "none" or self.solution.status is not Status.CONVERGED:
            return self._again(c, gone)
        if not self._pays_to_store(c, gone):
            return self._followed(c, gone)
        solved = self.solved(stored=True)
        change = solved.change(c, self._number[gone])
        if not change.converged:
            return self._again(c, gone)
        theta = solved.theta(self.system, change)
        return self.checked(theta, c, gone, change.n_iter) or self._again(c, gone, theta)

    def _pays_to_store(self, c: Floats, gone: NDArray[np.intp]) -> bool:
        """Whether folds cost less by the influence, which has to be computed once."""
        if not self.can_store_influence():
            return False
        if self._solved is not None:
            return True
        n, p = self.task.design.n, self.task.design.p
        leaving = int(np.count_nonzero((c != self.task.c) & (self.solution.curvatures > 0)))
        rank, size = leaving + len(gone), n + len(self.columns)
        support = self.n_support
        small, large = (support, p) if self._is_dual() else (p, support)
        if self._is_dual():  # strategy II: all products of rows, and one of the support vectors
            once = n * n * p / 2 + size * size * support / 2
        else:
            once = size * p * p / 2 + size * size * p / 2
        each = STEPS * (rank**3 / 3 + SLOW * rank * size)
        formed = min(rank, large) * small * small
        followed = STEPS * (formed + small**3 / 6 + 4 * SLOW * n * p)
        if len(gone):
            followed = STEPS * (support * small * small / 2 + small**3 / 6 + 4 * SLOW * n * p)
        return once + self._n_folds * each < self._n_folds * followed

    def checked(
        self, theta: Floats, c: Floats, gone: NDArray[np.intp], n_iter: int
    ) -> Solution | None:
        """The solution of a fold; None if rounding has made it worse than that of a fit.

        The gradient is computed from the data. What it has left of rounding is taken out by
        Newton steps with the same matrix, as long as they help.
        """
        task = replace(self.task, c=c)
        best: Solution | None = None
        for _ in range(REFINEMENTS):
            values = task.design.values(theta)
            loss, slopes, curvatures = task.at(values)
            gradient = task.gradient(theta, slopes)
            gradient[gone] = 0.0
            norm = norm_of(gradient)
            if best is not None and not norm < 0.5 * best.gradient_norm:
                break
            objective = 0.5 * float(theta @ theta) + float(loss.sum())
            status = Status.CONVERGED
            best = Solution(theta, values, slopes, curvatures, norm, objective, n_iter, status)
            if norm <= TIGHTER * self.rule.tol * task.size(theta):
                return best
            solved = self.solved(stored=True)
            try:
                theta = solved.refined(self.system, theta, gradient, c, self._number[gone])
            except np.linalg.LinAlgError:
                break
        if best is None:
            return None
        # What rounding may leave of a gradient that is not shorter.
        good = best.gradient_norm <= self.rule.tol * task.rounded_size(best.theta)
        return best if good else None

    def _followed(self, c: Floats, gone: NDArray[np.intp]) -> Solution:
        """Newton steps on the data, whose systems begin with that of all rows."""
        if not len(gone):
            system = self.system.branch()
            return self._minimised(replace(self.task, c=c), system, self.solution.theta)
        primal = self.system.primal()
        if primal is None or self._is_dual():
            return self._again(c, gone)
        primal.settle(self.solution.curvatures)
        kept = np.setdiff1d(np.arange(self.task.design.p), gone)
        design = _with_columns(self.task.design, kept)
        system = primal.restricted(design, kept)
        task = Task(design, self.task.loss, self.task.y, c)
        return self._spread(self._minimised(task, system, self.solution.theta[kept]), kept)

    def _again(self, c: Floats, gone: NDArray[np.intp], start: Floats | None = None) -> Solution:
        """A fit to the fold alone, from where all rows are, or from ``start``."""
        start = self.solution.theta if start is None else start
        kept = np.setdiff1d(np.arange(self.task.design.p), gone)
        design = _with_columns(self.task.design, kept) if len(gone) else self.task.design
        task = Task(design, self.task.loss, self.task.y, c)
        system = make_system(self.rule.update, design, self.rule.budget)
        return self._spread(self._minimised(task, system, start[kept]), kept)

    def _minimised(self, task: Task, system: System, start: Floats) -> Solution:
        return minimise(task, system, TIGHTER * self.rule.tol, self.rule.max_iter, start)

    def _spread(self, solution: Solution, kept: NDArray[np.intp]) -> Solution:
        theta = np.zeros(self.task.design.p)
        theta[kept] = solution.theta
        return replace(solution, theta=theta)


def _with_columns(design: Design, kept: NDArray[np.intp]) -> Design:
    """The design with some of its coefficients, the intercept's among them."""
    return design.with_features(kept[1:] - 1)
