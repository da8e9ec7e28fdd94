r"""Fits without a row, by following the optimum while its coefficient goes to 0.

The conditions of the optimum are linear as long as the same rows are free:

.. math::

    \begin{pmatrix} 0 & 1^\top \\ 1 & K \end{pmatrix}
    \begin{pmatrix} b \\ \beta \end{pmatrix}
    = \begin{pmatrix} \sum \beta \\ p - u \end{pmatrix}

with :math:`u = 0` at free rows and :math:`\beta` at its bound elsewhere. Pivoted on the free rows F
of the fit on all rows (and the offset),

.. math::

    \begin{pmatrix} b, \beta_F \\ u_N \end{pmatrix}' =
    \begin{pmatrix} -B & -W \\ W^\top & -S \end{pmatrix}
    \begin{pmatrix} u_F \\ \beta_N \end{pmatrix}',
    \quad B = \begin{pmatrix} 0 & 1^\top \\ 1 & K_{FF} \end{pmatrix}^{-1},
    \quad W = B \begin{pmatrix} 1^\top \\ K_{FN} \end{pmatrix},
    \quad S = K_{NN} - (1 \; K_{NF}) W,

this matrix serves the fits without every row: few rows become free or stop being so on the way, and
with the columns of these the core follows it (core/path.hpp). What the solver does in hundreds or
thousands of iterations takes about ten steps, whatever C is, and ends in the optimum.

Where values are asked, entries are in double precision, and the equations are solved once more at
the end of every path: its value is that of the optimum up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils.parallel import _get_threadpool_controller

from onefit import _core
from onefit.folds import Solved
from onefit.kernels import Floats
from onefit.problem import Problem
from onefit.solver import Settings

# Entries are float32: what that adds to the diagonal, relative to it. In double precision equal
# rows need a ridge, too, of which nothing is left after the last equations.
RIDGE = 1e-6
PRECISE_RIDGE = 1e-9

# A smaller KKT gap needs entries in double precision.
LEAST_TOL = 1e-5

# In double precision, what the conditions of rows at bounds may be off at the end of a path, where
# only those of free rows are solved again.
PRECISE_GAP = 1e-6

# With more free rows their inverse takes longer than the paths save.
MOST_FREE = 4000

# What paths move is looked at all along in rows that are so near to being free; columns are made
# beforehand of those that are nearer.
NEAR = 0.3
LIKELY = 0.03

# Columns that are made at a time, and paths that are followed at a time: between them Ctrl-C gets
# through.
COLUMNS_AT_A_TIME = 512
PATHS_AT_A_TIME = 64


Places: TypeAlias = NDArray[np.int32]  # in the order of a problem's variables that paths have


@dataclass(frozen=True)
class End:
    """Where the path of a variable ends."""

    variable: int
    excess: float  # what the left-out variable's target is above its value
    gap: float
    n_swapped: int


class Paths:
    """Paths from the solution of a problem with one group."""

    def __init__(
        self,
        store: _core.KernelStore,
        problem: Problem,
        solved: Solved,
        settings: Settings,
        budget_bytes: int,
        *,
        precise_to: float | None = None,
    ) -> None:
        """With ``precise_to``, equations hold at the end of a path to so much."""
        self._store, self._rows, self._threads = store, problem.rows, settings.threads
        self._precise = precise_to is not None
        self._largest_gap = PRECISE_GAP if self._precise else settings.tol
        self._largest_residual = np.inf if precise_to is None else precise_to
        self._problem, self._solution = solved.problem, solved.solution
        solution = solved.solution
        n, beta = len(problem.rows), solution.beta
        inside = (beta > problem.lower) & (beta < problem.upper)
        is_free = inside & (beta != 0) if problem.kink > 0 else inside
        self._n_free = int(is_free.sum())
        arrays = 2 if self._precise else 1
        self._room = min(n, int(budget_bytes // (8 * arrays * (n + 1))))  # for so many columns
        self.available = (
            not problem.two_groups
            and solution.status == _core.Status.converged
            and (self._precise or settings.tol >= LEAST_TOL)
            and 1 <= self._n_free <= min(MOST_FREE, self._room)
        )
        if not self.available:
            return
        distance = _distances_to_limits(problem, solution)
        distance[is_free] = -1.0
        self._order = np.argsort(distance, kind="stable").astype(np.int32)  # variables by place
        self._n_near = int(np.count_nonzero(distance < NEAR))
        self._n_likely = int(np.count_nonzero(distance < LIKELY))
        self._column_of = np.full(n, -1, dtype=np.int32)
        self._columns = np.empty((self._room, n + 1))
        self._kernel = np.empty((self._room, n)) if self._precise else None  # rows of the columns
        self._n_columns = 0
        self.available = self._pivot()

    @property
    def uncertainty(self) -> float:
        """What the ridge may do to a value at the end of a path, whatever the gap there."""
        return self._ridge * float(np.abs(self._solution.beta).max()) if self.available else 0.0

    def without(self, variables: NDArray[np.intp]) -> Iterator[End]:
        """Where the paths of these variables end.

        Those that do not, or end with a KKT gap that is no solver's, are missing.
        """
        if not self.available or len(variables) == 0:
            return
        place = np.empty_like(self._order)
        place[self._order] = np.arange(len(place), dtype=np.int32)
        leaving = place[variables]
        self._add(np.union1d(leaving, np.arange(self._n_free, self._n_likely, dtype=np.int32)))
        while len(leaving):
            leaving = leaving[self._column_of[leaving] >= 0]
            needed: set[int] = set()
            again: list[int] = []
            for first in range(0, len(leaving), PATHS_AT_A_TIME):
                some = leaving[first : first + PATHS_AT_A_TIME]
                for at, end in zip(some, self._follow(some), strict=True):
                    if end.reached:
                        if end.gap < self._largest_gap and end.residual < self._largest_residual:
                            yield End(int(self._order[at]), end.u, end.gap, end.n_swapped)
                    elif end.missing >= 0:
                        needed.add(end.missing)
                        again.append(at)
            if len(needed) > self._room:
                return
            self._add(np.array(sorted(needed), dtype=np.int32))
            leaving = np.array(again, dtype=np.int32)

    def _follow(self, leaving: Places) -> list[_core.PathEnd]:
        return _core.follow_paths(
            self._problem,
            self._solution,
            self._order,
            self._n_free,
            self._n_near,
            self._ridge,
            self._columns,
            self._column_of,
            leaving,
            kernel=self._kernel,
            threads=self._threads,
        )

    # ---- the matrix -----------------------------------------------------------------------------

    def _pivot(self) -> bool:
        """Inverts the part of the free rows and makes their columns; False where that fails."""
        n_free = self._n_free
        free = np.arange(n_free, dtype=np.int32)
        bordered = np.ones((n_free + 1, n_free + 1))
        bordered[0, 0] = 0.0
        bordered[1:, 1:] = self._entries(free, slice(n_free))
        diagonal = bordered.diagonal()[1:]
        ridge = PRECISE_RIDGE if self._precise else RIDGE
        self._ridge = ridge * float(np.abs(diagonal).mean())
        bordered[1 + free, 1 + free] += self._ridge
        try:
            with _get_threadpool_controller().limit(limits=self._threads, user_api="blas"):
                inverse = linalg.inv(bordered, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return False
        if not np.isfinite(inverse).all():
            return False
        self._inverse: Floats = np.asarray(inverse)
        self._across = np.ones((n_free + 1, len(self._order) - n_free))
        self._across[1:] = self._entries(free, slice(n_free, None))
        self._add(free)
        return True

    def _add(self, places: Places) -> None:
        """Makes the columns of places that have none, as many as there is room for."""
        places = places[self._column_of[places] < 0][: self._room]
        self._room -= len(places)
        for first in range(0, len(places), COLUMNS_AT_A_TIME):
            some = places[first : first + COLUMNS_AT_A_TIME]
            within, across = some[some < self._n_free], some[some >= self._n_free]
            # Threads that have to be woken up take longer than small products do.
            with _get_threadpool_controller().limit(limits=self._threads, user_api="blas"):
                self._place(within, *self._columns_within(within))
                self._place(across, *self._columns_across(across))

    def _columns_within(self, places: Places) -> tuple[Floats, Floats]:
        """Changes of offset and free β, and of the others' u, with u of some free rows."""
        of_inverse = self._inverse[1 + places]  # it is symmetric
        return -of_inverse, of_inverse @ self._across

    def _columns_across(self, places: Places) -> tuple[Floats, Floats]:
        """The same with β of some other rows."""
        others = places - self._n_free
        weights = self._across[:, others].T @ self._inverse
        changes = weights @ self._across
        changes -= self._entries(places, slice(self._n_free, None))
        changes[np.arange(len(others)), others] -= self._ridge
        return -weights, changes

    def _place(self, places: Places, offset_and_free: Floats, others: Floats) -> None:
        first, last = self._n_columns, self._n_columns + len(places)
        self._columns[first:last, : self._n_free + 1] = offset_and_free
        self._columns[first:last, self._n_free + 1 :] = others
        if self._kernel is not None:
            self._kernel[first:last] = self._entries(places, slice(None))
        self._column_of[places] = np.arange(first, last)
        self._n_columns = last

    def _entries(self, places: Places, others: slice) -> NDArray[np.floating[Any]]:
        rows = self._rows[self._order]
        if self._precise:
            return self._store.exact_block(rows[places], rows[others], self._threads)
        return self._store.block(rows[places], rows[others])


def _distances_to_limits(problem: Problem, solution: _core.Solution) -> Floats:
    """How far u of a row at a bound (or at the kink) is from where it would be free."""
    u = solution.gradient - solution.offset
    beta, kink = solution.beta, problem.kink
    above = np.where(beta < 0, -kink, kink) - u  # until it rises
    below = u - np.where(beta > 0, kink, -kink)
    distance = np.where(beta < problem.upper, above, np.inf)
    return np.minimum(distance, np.where(beta > problem.lower, below, np.inf))
