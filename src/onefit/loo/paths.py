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
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.utils.parallel import _get_threadpool_controller

from onefit import _core
from onefit.folds import Solved
from onefit.kernels import Floats
from onefit.problem import Problem
from onefit.solver import Settings

# Entries are float32: what that adds to the diagonal, relative to it.
RIDGE = 1e-6

# A smaller KKT gap needs entries in double precision, which the solver has.
LEAST_TOL = 1e-5

# With more free rows their inverse takes longer than the paths save.
MOST_FREE = 4000

# Columns that are made at a time, and paths that are followed at a time: between them Ctrl-C gets
# through.
COLUMNS_AT_A_TIME = 512
PATHS_AT_A_TIME = 64


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
    ) -> None:
        self._store, self._rows, self._threads = store, problem.rows, settings.threads
        self._problem, self._solution = solved.problem, solved.solution
        solution = solved.solution
        n, beta = len(problem.rows), solution.beta
        inside = (beta > problem.lower) & (beta < problem.upper)
        self._free = inside & (beta != 0) if problem.kink > 0 else inside
        self._in, self._out = np.flatnonzero(self._free), np.flatnonzero(~self._free)
        self._room = min(n, int(budget_bytes // (8 * (n + 1))))  # for so many columns
        self.available = (
            problem.split is None
            and solution.status == _core.Status.converged
            and settings.tol >= LEAST_TOL
            and 1 <= len(self._in) <= min(MOST_FREE, self._room)
        )
        if not self.available:
            return
        self._column_of = np.full(n, -1, dtype=np.int32)
        self._columns = np.empty((self._room, n + 1))
        self._n_columns = 0
        self._ridge = np.zeros(n)
        self.available = self._pivot()

    def without(self, variables: NDArray[np.intp]) -> Iterator[End]:
        """Where the paths of these variables end; some do not, and are missing."""
        waiting = variables
        while self.available and len(waiting):
            self._add(waiting[self._column_of[waiting] < 0])
            waiting = waiting[self._column_of[waiting] >= 0]
            needed: set[int] = set()
            again: list[int] = []
            for first in range(0, len(waiting), PATHS_AT_A_TIME):
                some = waiting[first : first + PATHS_AT_A_TIME]
                for variable, end in zip(some, self._follow(some), strict=True):
                    if end.reached:
                        yield End(int(variable), end.u, end.gap, end.n_swapped)
                    elif end.missing >= 0:
                        needed.add(end.missing)
                        again.append(int(variable))
            if len(needed) > self._room:
                return
            self._add(np.array(sorted(needed), dtype=np.intp))
            waiting = np.array(again, dtype=np.intp)

    def _follow(self, variables: NDArray[np.intp]) -> list[_core.PathEnd]:
        return _core.follow_paths(
            self._problem,
            self._solution,
            self._free,
            self._ridge,
            self._columns,
            self._column_of,
            variables.astype(np.int32),
            threads=self._threads,
        )

    # ---- the matrix -----------------------------------------------------------------------------

    def _pivot(self) -> bool:
        """Inverts the part of the free rows and makes their columns; False where that fails."""
        n_free = len(self._in)
        within = self._entries(self._in, self._in)
        self._ridge[:] = RIDGE * np.abs(within.diagonal()).mean()
        bordered = np.ones((n_free + 1, n_free + 1))
        bordered[0, 0] = 0.0
        bordered[1:, 1:] = within + np.diag(self._ridge[self._in])
        try:
            with _get_threadpool_controller().limit(limits=self._threads, user_api="blas"):
                inverse = linalg.inv(bordered, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return False
        self._inverse: Floats = np.asarray(inverse)
        if not np.isfinite(self._inverse).all():
            return False
        self._across = np.ones((len(self._out), n_free + 1))
        self._across[:, 1:] = self._entries(self._in, self._out).T
        self._add(self._in)
        return True

    def _add(self, variables: NDArray[np.intp]) -> None:
        """Makes the columns of variables, as many as there is room for."""
        variables = variables[: self._room]
        self._room -= len(variables)
        for first in range(0, len(variables), COLUMNS_AT_A_TIME):
            some = variables[first : first + COLUMNS_AT_A_TIME]
            inside = self._free[some]
            # Threads that have to be woken up take longer than small products do.
            with _get_threadpool_controller().limit(limits=self._threads, user_api="blas"):
                within = self._columns_within(some[inside])
                across = self._columns_across(some[~inside])
            self._place(some[inside], within)
            self._place(some[~inside], across)

    def _columns_within(self, variables: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Changes of offset and free β, and of the others' u, with u of some free rows."""
        of_inverse = self._inverse[1 + np.searchsorted(self._in, variables)]  # it is symmetric
        return -of_inverse, of_inverse @ self._across.T

    def _columns_across(self, variables: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """The same with β of some other rows."""
        places = np.searchsorted(self._out, variables)
        weights = self._across[places] @ self._inverse
        inner = self._entries(variables, self._out)
        inner[np.arange(len(places)), places] += self._ridge[variables]
        return -weights, weights @ self._across.T - inner

    def _place(self, variables: NDArray[np.intp], parts: tuple[Floats, Floats]) -> None:
        first, last = self._n_columns, self._n_columns + len(variables)
        columns = self._columns[first:last]
        columns[:, 0] = parts[0][:, 0]
        columns[:, 1 + self._in] = parts[0][:, 1:]
        columns[:, 1 + self._out] = parts[1]
        self._column_of[variables] = np.arange(first, last)
        self._n_columns = last

    def _entries(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
        block = self._store.block(self._rows[rows], self._rows[columns])
        return np.asarray(block, dtype=np.float64)
