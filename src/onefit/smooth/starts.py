"""Where Newton's method starts: the optimum on a part of the rows, which costs a part of a step.

From 0 every row is a support vector, so that the first Hessian is a sum over all of them. From the
optimum on a sample of the rows, with as much more weight, most rows are where they will stay.
"""

from __future__ import annotations

import numpy as np

from onefit.kernels import Floats
from onefit.smooth.design import Rows
from onefit.smooth.newton import Task, minimise
from onefit.smooth.systems import make_system

# So many times fewer rows, as long as there are so many rows for each coefficient.
FEWER = 16
ROWS_PER_COEFFICIENT = 8

# With a kernel column for every row, fewer rows are fewer coefficients too.
FEWER_SQUARE = 4
LEAST_SQUARE = 1_000

# A start need not be exact.
TOL = 1e-2
MAX_ITER = 6


def start_of(task: Task, update: str, budget: int, square: Rows | None = None) -> Floats | None:
    """A start, or None where 0 is as good.

    ``square`` are the rows whose kernel columns the coefficients are of, if those are all rows.
    """
    design = task.design
    if square is not None:
        if design.n < LEAST_SQUARE:
            return None
        columns = np.arange(0, len(square), FEWER_SQUARE)
        rows, kept = square[columns], 1 + columns
        fewer = FEWER_SQUARE
    else:
        fewer = FEWER
        if design.n < fewer * ROWS_PER_COEFFICIENT * design.p:
            return None
        rows, kept = np.arange(0, design.n, fewer), np.arange(1, design.p)
    if len(np.unique(task.y[rows] > 0)) < 2:
        return None
    smaller = design.with_rows(rows)
    if square is not None:
        smaller = smaller.with_features(kept - 1)
    part = Task(smaller, task.loss, task.y[rows], fewer * task.c[rows])
    before = start_of(part, update, budget) if square is None else None
    found = minimise(part, make_system(update, smaller, budget), TOL, MAX_ITER, before)
    start = np.zeros(design.p)
    start[0] = found.theta[0]
    start[kept] = found.theta[1:]
    return start
