"""From the optimum of one problem to that of another over the same variables.

At an optimum a gradient is equal to the offset o of its group (with a kink ε, to o + ε where b > 0
and to o - ε where b < 0), above it only at an upper bound, below it only at a lower one. All along
the path this holds, but for the rows that move: entering rows towards the bound that their gradient
asks for, and rows outside of new bounds towards these. The free rows follow (``members.py``).

With a kink a coefficient has two pieces, below 0 and above it, and 0 is a bound of both.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Indices, feasible, takes_part
from onefit.seeding.members import Members

# Kernel rows that are only summed up are taken so many entries at a time.
ENTRIES_AT_A_TIME = 1 << 22
# What counts as 0, as a share of the numbers that it is computed from; and as a share of what is
# summed up of kernel entries, which are in single precision.
ROUNDING = 1e-9
NOISE = 1e-6


class Path:
    """A way from the neighbour of a change to its problem, in steps.

    The neighbour is optimal up to its tolerance. It is taken for the exact optimum of a problem
    whose linear term differs a little, and this difference fades as the leaving rows do. So the
    path ends at the optimum up to rounding, however rough its beginning was.
    """

    def __init__(self, change: Change, entries: Entries) -> None:
        problem, before = change.problem, change.neighbour
        self.rows = np.flatnonzero(takes_part(problem))
        self.beta = before.beta[self.rows]
        self._entries = entries
        self._kink = problem.kink
        self._lower, self._upper = problem.lower[self.rows], problem.upper[self.rows]
        self._group = (self.rows >= problem.split).astype(np.intp)
        # The sums of the problem are those of any feasible point.
        self._totals = self._sums(feasible(problem, change.kept(), change.entering)[self.rows])

        # How far a gradient is above its offset, and what that would be at an exact optimum.
        # Entering rows that are no worse off than the others are taken for right too.
        found = before.gradient[self.rows] - np.asarray(before.offsets)[self._group]
        stays = takes_part(before.problem)[self.rows]
        low, high = self._limits(
            np.where(stays, before.problem.lower[self.rows], self._lower),
            np.where(stays, before.problem.upper[self.rows], self._upper),
        )
        exact = np.clip(found, low, high)
        wrong = np.abs(found - exact)
        right = stays | (wrong <= wrong[stays].max(initial=0.0))
        self._above = np.where(right, exact, found)
        self._rounding = ROUNDING * float(np.abs(self._above).max() + self._kink)

        # Bounds of the piece that a free coefficient is in, and what its gradient is there.
        self._floor, self._ceiling = self._lower.copy(), self._upper.copy()
        self._level = np.zeros(len(self.rows))
        inside = (self.beta > self._lower) & (self.beta < self._upper)
        free = np.flatnonzero(stays & inside & (low == high))
        self._enter_piece(free, np.zeros(len(free)))
        self.members = Members(self._group, free, self._entries(self.rows[free], self.rows))
        self._idle = np.zeros(len(self.rows), dtype=bool)  # free, but dependent on the members
        # Members no longer since the last step of any length: they would only come back.
        self._left = self._idle.copy()

        # What gradients are still to change by, apart from what the members do to them.
        self._pull = found - self._above
        self._pull_by(change.leaving, -before.beta[change.leaving])
        self._set_out()

    def step(self) -> bool:
        """Go on until a row changes sets. False at the end of the path, or where it is lost."""
        towards = np.where(self._moving, self._target - self.beta, 0.0)
        ends = self.beta + towards
        lack = self._totals - self._sums(ends)
        lack[np.abs(lack) <= ROUNDING * self._sums(np.abs(ends))] = 0.0
        alone = np.flatnonzero((lack != 0) & (self._sums(self._is_member()) == 0))
        if len(alone):
            return self._free_one(int(alone[0]), lack[alone[0]] > 0)
        members = self.members.rows
        towards[members], slope, offsets = self.members.follow(self._pull, lack)
        slope += self._pull - offsets[self._group]
        slope[members] = 0.0
        if not (np.isfinite(towards).all() and np.isfinite(slope).all()):
            return False
        noise = NOISE * float(np.abs(self._pull).max())
        until = self._until(slope, towards, self._rounding + noise)
        row = int(np.argmin(until))
        share = min(until[row], 1.0)
        self._left &= share == 0
        self.beta += share * towards
        self._above += share * slope
        self._pull *= 1.0 - share
        if share < 1.0:
            self._change_sets(row, slope[row], towards[row])
            return True
        self.beta[self._moving] = self._target[self._moving]
        return self._set_out()

    def _free_one(self, group: int, rising: bool) -> bool:
        """Shift the offset of a group without members until one that may rise (or fall) is free.

        False if there is none.
        """
        far = 2.0 * float(np.abs(self._above).max() + self._kink)
        slope = np.where(self._group == group, far if rising else -far, 0.0)
        until = self._until(slope, np.zeros(len(slope)), 0.0)
        row = int(np.argmin(until))
        if not until[row] < 1.0:
            return False
        self._above += until[row] * slope
        self._change_sets(row, slope[row], 0.0)
        return True

    def _set_out(self) -> bool:
        """Let all rows move that are not where they belong. False if there are none."""
        low, high = self._limits(self._lower, self._upper)
        # A row that depends on the members is right where they are: the rest is rounding.
        slack = np.where(self._idle, NOISE / ROUNDING, 1.0) * self._rounding
        up, down = self._above > high + slack, self._above < low - slack
        within = np.clip(self.beta, self._lower, self._upper)
        # Which way a row moves that is free as soon as its gradient is right; 0 for the others.
        self._way = np.where(within == self.beta, up * 1.0 - down * 1.0, 0.0)
        seeking = np.flatnonzero(self._way)
        self._enter_piece(seeking, self._way[seeking])
        self._target = within
        ends = np.where(self._way > 0, self._ceiling, self._floor)[seeking]
        far = 2.0 * float(np.abs(self.beta).max()) or 1.0  # where there is no end
        self._target[seeking] = np.where(np.isfinite(ends), ends, self._way[seeking] * far)
        self._moving = self._target != self.beta
        moving = np.flatnonzero(self._moving)
        self._pull_by(self.rows[moving], (self._target - self.beta)[moving])
        return len(moving) > 0

    def _enter_piece(self, rows: Indices, way: Floats) -> None:
        """Note the pieces that rows move this way in, and what free gradients are there."""
        if self._kink == 0:
            return
        positive = (self.beta[rows] > 0) | ((self.beta[rows] == 0) & (way > 0))
        self._floor[rows] = np.where(positive, 0.0, self._lower[rows])
        self._ceiling[rows] = np.where(positive, self._upper[rows], 0.0)
        self._level[rows] = np.where(positive, self._kink, -self._kink)

    def _until(self, slope: Floats, change: Floats, slack: float) -> Floats:
        """At which share of a step each row changes sets."""
        until = np.full(len(slope), np.inf)
        low, high = self._limits(self._lower, self._upper)
        after = self._above + slope
        members = self._is_member()
        others = ~(self._moving | self._idle | self._left | members)
        entering = self._moving & (self._way * (after - self._level) < 0)
        for meets, at, now, speed in (
            # Free rows meet a bound.
            (members & (change > 0), self._ceiling, self.beta, change),
            (members & (change < 0), self._floor, self.beta, change),
            # Rows at a bound meet the offset, unless they would hardly pass it.
            (others & (after > high + slack), high, self._above, slope),
            (others & (after < low - slack), low, self._above, slope),
            # And so do entering rows.
            (entering, self._level, self._above, slope),
        ):
            distance = at[meets] - now[meets]
            ahead = distance * speed[meets] > 0  # or there already
            until[meets] = np.divide(
                distance, speed[meets], out=np.zeros_like(distance), where=ahead
            )
        return until

    def _change_sets(self, row: int, slope: float, change: float) -> None:
        """A free row is at a bound now; or a row becomes free."""
        place = np.flatnonzero(self.members.rows == row)
        if len(place):
            self._left[row], self._idle[:] = True, False
            self.beta[row] = self._ceiling[row] if change > 0 else self._floor[row]
            self.members.leave(int(place[0]))
            return
        if self._moving[row]:
            self._moving[row] = False
            self._pull_by(self.rows[[row]], self.beta[[row]] - self._target[[row]])
        else:
            self._enter_piece(np.array([row]), np.array([slope]))
        # What it has passed its level by fades too.
        self._pull[row] += self._above[row] - self._level[row]
        self._above[row] = self._level[row]
        self._idle[row] = not self.members.join(row, self._entries(self.rows[[row]], self.rows)[0])

    def _pull_by(self, rows: Indices, changes: Floats) -> None:
        """Let these changes of the coefficients of rows of the problem be still to come."""
        at_a_time = max(1, ENTRIES_AT_A_TIME // len(self.rows))
        for first in range(0, len(rows), at_a_time):
            some = slice(first, first + at_a_time)
            self._pull -= changes[some] @ self._entries(rows[some], self.rows)

    def _limits(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Between which values gradients may be above their offsets."""
        beta, kink = self.beta, self._kink
        low = np.where(beta > lower, np.where(beta > 0, kink, -kink), -np.inf)
        high = np.where(beta < upper, np.where(beta < 0, -kink, kink), np.inf)
        return low, high

    def _is_member(self) -> NDArray[np.bool_]:
        is_member = np.zeros(len(self.rows), dtype=bool)
        is_member[self.members.rows] = True
        return is_member

    def _sums(self, values: Floats | NDArray[np.bool_]) -> Floats:
        """Of each group."""
        return np.bincount(self._group, values, 2).astype(np.float64)
