r"""Where the fit without a row starts: where it would be if the same rows stayed free.

As long as no variable meets a bound, the gradients of the free rows F stay equal to the offset, and
the sum of all coefficients stays what it is. If the coefficient of a row r goes to 0, then

.. math::

    \begin{pmatrix} 0 & 1^\top \\ 1 & K_{FF} \end{pmatrix}
    \begin{pmatrix} \Delta b \\ \Delta \beta_F \end{pmatrix}
    = \beta_r \begin{pmatrix} 1 \\ K_{Fr} \end{pmatrix}

for a row that is not free, and for one that is the changes are those of its column of the inverse,
scaled to :math:`-\beta_r` at r. One inverse serves every row. (It is the step of approximate
leave-one-out.)
"""

from __future__ import annotations

import numpy as np
from sklearn.utils.parallel import _get_threadpool_controller

from onefit import _core
from onefit.kernels import Floats
from onefit.problem import Problem

# The inverse of more free rows takes longer than it saves.
MOST_FREE = 1000

# Entries are float32: what that adds to the diagonal, relative to it.
RIDGE = 1e-6


class NewtonSteps:
    """Steps from the solution of a problem with one group."""

    def __init__(
        self, store: _core.KernelStore, problem: Problem, solution: _core.Solution
    ) -> None:
        self._store, self._rows, self._beta = store, problem.rows, solution.beta
        beta = solution.beta
        self._is_free = free = (beta > problem.lower) & (beta < problem.upper) & (beta != 0)
        self._free = np.flatnonzero(free)
        self._place = np.cumsum(free)  # of a free variable in the bordered matrix
        self._inverse: Floats | None = None
        n_free = len(self._free)
        if problem.split is not None or not 2 <= n_free <= MOST_FREE:
            return
        rows = problem.rows[self._free]
        bordered = np.ones((n_free + 1, n_free + 1))
        bordered[0, 0] = 0.0
        bordered[1:, 1:] = store.block(rows, rows)
        diagonal = bordered.diagonal()[1:]
        bordered[np.arange(1, n_free + 1), np.arange(1, n_free + 1)] += RIDGE * np.abs(diagonal)
        # Threads that have to be woken up take longer than this does.
        with _get_threadpool_controller().limit(limits=1, user_api="blas"):
            self._inverse = _inverse(bordered)

    def without(self, variable: int) -> Floats | None:
        """The coefficients when a variable leaves, feasible or not; None where there are none."""
        if self._inverse is None:
            return None
        place, leaving = self._place[variable], self._beta[variable]
        if self._is_free[variable]:
            column = self._inverse[place]  # the matrix is symmetric
            change = -leaving / column[place] * column[1:]
        else:
            entries = self._store.block(self._rows[[variable]], self._rows[self._free])[0]
            right = np.concatenate(([1.0], entries))
            # Not by BLAS: its threads take longer to wake up than this takes.
            change = leaving * np.einsum("ij,j->i", self._inverse[1:], right)
        if not np.isfinite(change).all():
            return None
        beta = self._beta.copy()
        beta[self._free] += change
        beta[variable] = 0.0
        return beta


def _inverse(matrix: Floats) -> Floats | None:
    try:
        return np.asarray(np.linalg.inv(matrix))
    except np.linalg.LinAlgError:
        return None
