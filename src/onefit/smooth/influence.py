r"""Which values move, and how far, when rows and columns leave a solved machine.

With the Hessian H of a solved machine and :math:`\tilde A = [A; I]`, whose rows are those of A and
one for each coefficient, everything that a fold asks is in

.. math:: \tilde M = \tilde A H^{-1} \tilde A^\top.

Let :math:`\theta = \theta^* + H^{-1} \tilde A^\top v`; then values and coefficients move by
:math:`\delta = \tilde M v`. The gradient of a fold, whose rows have slopes l' where those of the
solved machine were l* (and curvatures s*), vanishes if

.. math:: v_i = l^*_i - l'_i + s^*_i \delta_i \text{ for rows}, \qquad
          \delta_j = -\theta^*_j \text{ for columns that leave}, \quad v_j = 0 \text{ for others.}

For a row that stays on its quadratic piece the first is :math:`v_i = 0`. What is left is a system
for the rows that changed (the fold's own, and those that became or ceased to be support vectors)
and the columns that leave: a column that leaves is a row of infinite weight. This is the rank-r
update of Tseng & Lee for rows and columns at once, always from the one factorisation of the solved
machine, so that nothing accumulates from fold to fold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from onefit.kernels import Floats
from onefit.smooth import blocks
from onefit.smooth.design import Design, Rows
from onefit.smooth.newton import Solution, Task
from onefit.smooth.systems import System

# Newton steps without a line search end soon, or go in circles.
MOST_STEPS = 30

# Of a smooth loss all curvatures change a little. Those below this share wait for the next step.
SMALL_CHANGE = 0.02

# Steps of a smooth loss end when values move by less.
STILL = 1e-13


class Influence(Protocol):
    """The matrix M̃; rows come first, then the columns that may leave."""

    n: int

    def of(self, places: Rows) -> Floats:
        """Rows of M̃ (which is symmetric)."""

    def moved(self, factors: Floats, places: Rows) -> Floats:
        """M̃ times a vector that is 0 elsewhere."""


class StoredInfluence:
    """M̃ in memory."""

    def __init__(self, system: System, design: Design, columns: Rows) -> None:
        self.n = design.n
        self.matrix = system.influence(columns)

    def of(self, places: Rows) -> Floats:
        return np.asarray(self.matrix[places])

    def moved(self, factors: Floats, places: Rows) -> Floats:
        if 4 * len(places) < len(self.matrix):
            return np.asarray(factors @ self.matrix[places])
        spread = np.zeros(len(self.matrix))
        spread[places] = factors
        return np.asarray(self.matrix @ spread)


class EvaluatedInfluence:
    """Rows of M̃ when they are asked for."""

    def __init__(self, system: System, design: Design, columns: Rows) -> None:
        self.n = design.n
        self._system, self._design, self._columns = system, design, columns

    def of(self, places: Rows) -> Floats:
        rows = places < self.n
        right = np.zeros((self._design.p, len(places)))
        right[:, rows] = self._design.rows(places[rows]).T
        right[self._columns[places[~rows] - self.n], np.flatnonzero(~rows)] = 1.0
        spread = self._system.solve(right)
        moved = np.empty((len(places), self.n + len(self._columns)))
        moved[:, : self.n] = self._design.values(spread).T
        moved[:, self.n :] = spread[self._columns].T
        return moved

    def moved(self, factors: Floats, places: Rows) -> Floats:
        return np.asarray(factors @ self.of(places))


@dataclass(frozen=True)
class Change:
    """What a fold is, as a change of the solved machine."""

    factors: Floats  # v at these places
    places: Rows  # rows, and n + number of a column that may leave
    moved: Floats  # of all rows, then of the columns that may leave
    n_iter: int
    converged: bool


class Solved:
    """A solved machine with its influence."""

    def __init__(self, task: Task, solution: Solution, influence: Influence, columns: Rows) -> None:
        self.task, self.solution, self.influence, self.columns = task, solution, influence, columns
        self.pieces = task.loss.piece(solution.values, task.y)

    def change(self, c: Floats, gone: Rows, at_first: Change | None = None) -> Change:
        """The fold with these weights, without these (of the) columns that may leave."""
        if not self.task.loss.piecewise:
            return self._gradual(c, gone)
        n, whole = self.task.design.n, self.solution
        other = c != self.task.c
        matters = (self.task.c > 0) | (c > 0)
        moved = np.zeros(n + len(self.columns)) if at_first is None else at_first.moved
        seen: NDArray[np.bool_] | None = None
        pieces = self.pieces
        factors, places = np.empty(0), np.empty(0, dtype=np.intp)
        for n_iter in range(MOST_STEPS):
            values = whole.values + moved[:n]
            found = self.task.loss.piece(values, self.task.y)
            changed = (other | (found != self.pieces)) & matters
            if (
                seen is not None
                and np.array_equal(changed, seen)
                and np.array_equal(found[changed], pieces[changed])
            ):
                return Change(factors, places, moved, n_iter, True)
            seen, pieces = changed, found
            rows = np.flatnonzero(changed)
            try:
                factors, places, moved = self._step(rows, c[rows], moved, gone)
            except np.linalg.LinAlgError:  # rounding has eaten what is left of H
                break
        return Change(factors, places, moved, MOST_STEPS, False)

    def _step(
        self, rows: Rows, c: Floats, moved: Floats, gone: Rows
    ) -> tuple[Floats, Rows, Floats]:
        """v of these rows and columns, and what it moves, if no row leaves its piece."""
        task, whole, n = self.task, self.solution, self.task.design.n
        _, slopes, curvatures = task.loss.at(whole.values[rows] + moved[rows], task.y[rows])
        slopes, curvatures = c * slopes, c * curvatures
        right = whole.slopes[rows] - slopes + curvatures * moved[rows]
        change = curvatures - whole.curvatures[rows]
        # Rows that were and are no support vectors do nothing.
        busy = (change != 0) | (right != 0)
        rows, right, change = rows[busy], right[busy], change[busy]
        places = np.concatenate([rows, n + gone])
        right = np.concatenate([right, -whole.theta[self.columns[gone]]])
        if not len(places):
            return right, places, np.zeros_like(moved)
        block = self.influence.of(places)
        system = block[:, places]
        system[: len(rows)] *= change[:, None]
        system[np.arange(len(rows)), np.arange(len(rows))] += 1.0
        factors = blocks.solve(system, right)
        return factors, places, factors @ block

    def _gradual(self, c: Floats, gone: Rows) -> Change:
        """The same for a smooth loss, all of whose curvatures change."""
        task, whole, n = self.task, self.solution, self.task.design.n
        places = np.concatenate([np.arange(n), n + gone])
        factors = np.zeros(len(places))
        moved = np.zeros(n + len(self.columns))
        scale = np.maximum(1.0, np.abs(whole.values).max())
        for n_iter in range(1, 2 * MOST_STEPS):
            _, slopes, curvatures = task.loss.at(whole.values + moved[:n], task.y)
            slopes, curvatures = c * slopes, c * curvatures
            change = curvatures - whole.curvatures
            kept = np.abs(change) > SMALL_CHANGE * np.maximum(task.c, c)
            change = np.where(kept, change, 0.0)
            right = whole.slopes - slopes + (whole.curvatures + change) * moved[:n]
            # x = right - change (M x + N v) on the kept rows; others are explicit.
            rows = np.flatnonzero(kept)
            some = np.concatenate([rows, n + gone])
            block = self.influence.of(some)
            known = right.copy()
            known[rows] = 0.0
            system = block[:, some].copy()
            explicit = block[:, :n] @ known
            system[: len(rows)] *= change[rows][:, None]
            system[np.arange(len(rows)), np.arange(len(rows))] += 1.0
            targets = np.concatenate(
                [
                    right[rows] - change[rows] * explicit[: len(rows)],
                    -whole.theta[self.columns[gone]] - explicit[len(rows) :],
                ]
            )
            try:
                solved = blocks.solve(system, targets)
            except np.linalg.LinAlgError:
                break
            factors = np.concatenate([known, np.zeros(len(gone))])
            factors[rows] = solved[: len(rows)]
            factors[n:] = solved[len(rows) :]
            now = self.influence.moved(factors, places)
            still = np.abs(now - moved).max() <= STILL * scale
            moved = now
            if still:
                return Change(factors, places, moved, n_iter, True)
        return Change(factors, places, moved, 2 * MOST_STEPS, False)

    def refined(
        self, system: System, theta: Floats, gradient: Floats, c: Floats, gone: Rows
    ) -> Floats:
        """Coefficients of a fold after a Newton step with this gradient: what rounding has left.

        ``gone`` are numbers of columns that may leave.
        """
        task, n = self.task, self.task.design.n
        step = -system.solve(gradient)
        curvatures = c * task.loss.at(task.design.values(theta), task.y).curvature
        change = curvatures - self.solution.curvatures
        rows = np.flatnonzero(change)
        places = np.concatenate([rows, n + gone])
        right = np.zeros(len(theta))
        if len(places):
            matrix = self.influence.of(places)[:, places].copy()
            matrix[: len(rows)] *= change[rows][:, None]
            matrix[np.arange(len(rows)), np.arange(len(rows))] += 1.0
            leaving = self.columns[gone]
            targets = np.concatenate(
                [-change[rows] * task.design.values(step, rows), -(theta + step)[leaving]]
            )
            factors = blocks.solve(matrix, targets)
            right = task.design.sums(factors[: len(rows)], rows)
            right[leaving] += factors[len(rows) :]
        refined = theta + step + system.solve(right)
        refined[self.columns[gone]] = 0.0
        return np.asarray(refined)

    def theta(self, system: System, change: Change) -> Floats:
        """The coefficients of a fold."""
        n = self.task.design.n
        rows = change.places < n
        right = self.task.design.sums(change.factors[rows], change.places[rows])
        gone = self.columns[change.places[~rows] - n]
        right[gone] += change.factors[~rows]
        theta = self.solution.theta + system.solve(right)
        theta[gone] = 0.0
        return np.asarray(theta)
