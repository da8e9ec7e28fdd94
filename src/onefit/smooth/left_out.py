r"""Values of left-out rows of a smooth machine, many at a time.

Leaving the row i out takes its slope l and curvature s away. If all others stay on their quadratic
pieces, its value becomes, with :math:`\tilde M` of :mod:`onefit.smooth.influence`,

.. math:: f_i + M_{ii} v_i, \qquad v_i = l_i / (1 - s_i M_{ii})

and with a column that leaves too, a system of two. This is exact if it moves no row to another
piece, which is looked at for all rows; else it is where Newton's method goes on. Taken as it is, it
is the approximate leave-one-out of this loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onefit.kernels import Floats
from onefit.memory import MEGABYTE
from onefit.smooth.design import Rows
from onefit.smooth.folds import Whole
from onefit.smooth.influence import Change, Solved
from onefit.smooth.newton import Status

# So many rows are left out at a time that what they move has this size.
BLOCK_BYTES = 32 * MEGABYTE

# The rows nearest to a singular system, where rounding is worst, are checked against their data.
CHECKED = 3

# What is left of a row's system when it is smaller than this is mostly rounding.
SINGULAR = 1e-6

# Of a step over its pivot: what rounding leaves in the difference of a value and a step that may be
# far larger, as where the target or the weight of the row is.
ROUNDING = 100 * np.finfo(np.float64).eps

NOBODY = -1  # no column leaves


@dataclass
class LeftOut:
    """Of each row that was left out."""

    values: Floats
    n_iter: NDArray[np.int64]
    first_step: NDArray[np.bool_]  # whether the first step was exact
    converged: NDArray[np.bool_]


def left_out(whole: Whole, gone: Rows, exact: bool = True) -> LeftOut:
    """The value of every row without it, and without a column (a coefficient; or NOBODY)."""
    if exact and not _can_batch(whole):
        return _one_by_one(whole, gone)
    solved = whole.solved(stored=whole.can_store_influence())
    n = whole.task.design.n
    found = LeftOut(
        whole.solution.values.copy(),
        np.zeros(n, dtype=np.int64),
        np.ones(n, dtype=bool),
        np.ones(n, dtype=bool),
    )
    # Of a machine that is at its optimum, with systems that are solved to rounding.
    can_be_exact = whole.task.loss.piecewise and whole.is_solved_exactly()
    risk = np.zeros(n)  # how much of the rounding of M̃ is in an estimate
    worst: list[tuple[float, int, Change]] = []
    for rows in _blocks(n, n + len(whole.columns)):
        factors, leaves, moved, pivots = _first_steps(solved, rows, gone[rows], whole)
        steps = moved[np.arange(len(rows)), rows]
        found.values[rows] += steps
        with np.errstate(divide="ignore", invalid="ignore"):  # of pivots that are singular anyway
            risk[rows] = np.abs(steps) / pivots
        lost = ROUNDING * risk[rows] > whole.rule.tol * np.maximum(1.0, np.abs(found.values[rows]))
        singular = (pivots < SINGULAR) | lost
        found.n_iter[rows] = 1
        values = solved.solution.values + moved[:, :n]
        other = solved.task.loss.piece(values, solved.task.y) != solved.pieces
        other &= solved.task.c > 0
        other[np.arange(len(rows)), rows] = False
        found.first_step[rows] = ~other.any(axis=1) & can_be_exact & ~singular
        if not exact:
            continue
        changes: dict[int, Change | None] = {}
        for k in np.flatnonzero(singular).tolist():
            _solve_alone(whole, found, int(rows[k]), gone)
            changes[k] = None
        for k in np.flatnonzero(~found.first_step[rows] & ~singular).tolist():
            start = Change(np.empty(0), rows[:0], moved[k], 1, True)
            changes[k] = _solve(whole, solved, found, int(rows[k]), gone, start)
        for k in np.argsort(pivots)[:CHECKED].tolist():
            places = np.concatenate([rows[[k]], n + leaves[[k]][gone[rows[[k]]] != NOBODY]])
            first = Change(factors[k, : len(places)], places, moved[k], 1, True)
            change = changes.get(k, first)
            if change is not None:
                worst.append((float(pivots[k]), int(rows[k]), change))
    if not exact:
        _withdraw_inexact(whole, solved, found, gone, risk)
    worst = sorted(worst, key=lambda item: item[0])[:CHECKED]
    if not all(_is_right(whole, solved, found, *item[1:], gone) for item in worst):
        return _one_by_one(whole, gone)
    return found


def _withdraw_inexact(
    whole: Whole, solved: Solved, found: LeftOut, gone: Rows, risk: Floats
) -> None:
    """Check first steps that count as exact against their data, those with most rounding first."""
    named = np.flatnonzero(found.first_step)
    right = 0
    for row in named[np.argsort(-risk[named], kind="stable")]:
        own = np.array([row])
        factors, leaves, moved, _ = _first_steps(solved, own, gone[own], whole)
        places = np.concatenate([own, solved.task.design.n + leaves[gone[own] != NOBODY]])
        change = Change(factors[0, : len(places)], places, moved[0], 1, True)
        found.first_step[row] = _is_right(whole, solved, found, int(row), change, gone)
        right = right + 1 if found.first_step[row] else 0
        if right == CHECKED:
            return


def _can_batch(whole: Whole) -> bool:
    if whole.rule.update == "none" or whole.solution.status is not Status.CONVERGED:
        return False
    return whole.can_store_influence() or (
        whole.task.loss.piecewise and whole.can_evaluate_influence()
    )


def _blocks(n: int, width: int) -> Iterator[Rows]:
    size = max(1, BLOCK_BYTES // (8 * width))
    for first in range(0, n, size):
        yield np.arange(first, min(first + size, n))


def _first_steps(
    solved: Solved, rows: Rows, gone: Rows, whole: Whole
) -> tuple[Floats, Rows, Floats, Floats]:
    """v of each row and its column, the number of that column, what they move, and the pivots."""
    n = solved.task.design.n
    own = np.arange(len(rows))
    slopes, curvatures = solved.solution.slopes[rows], solved.solution.curvatures[rows]
    block = solved.influence.of(rows)
    pivots = 1.0 - curvatures * block[own, rows]
    pivots[np.isnan(pivots)] = 0.0
    factors = np.zeros((len(rows), 2))
    leaves = whole.number(np.maximum(gone, 0))
    has_column = gone != NOBODY
    with np.errstate(divide="ignore", invalid="ignore"):  # of singular systems, solved otherwise
        factors[:, 0] = slopes / pivots
    moved: Floats
    if has_column.any():
        some = np.flatnonzero(has_column)
        columns = solved.influence.of(n + leaves[some])
        theta = solved.solution.theta[gone[some]]
        across, corner = (
            block[some, n + leaves[some]],
            columns[np.arange(len(some)), n + leaves[some]],
        )
        top, side = pivots[some], -curvatures[some] * across
        determinant = top * corner - side * across
        with np.errstate(divide="ignore", invalid="ignore"):
            factors[some, 0] = (slopes[some] * corner + side * theta) / determinant
            factors[some, 1] = (-top * theta - across * slopes[some]) / determinant
            pivots[some] = np.minimum(top, determinant / corner)
        pivots[some[~(corner > 0)]] = 0.0
        factors[pivots < SINGULAR] = 0.0
        moved = factors[:, :1] * block
        moved[some] += factors[some, 1:] * columns
    else:
        factors[pivots < SINGULAR] = 0.0
        moved = factors[:, :1] * block
    return factors, leaves, moved, pivots


def _solve(
    whole: Whole, solved: Solved, found: LeftOut, row: int, gone: Rows, start: Change | None
) -> Change | None:
    """Settles a row; None if not by a change of the whole."""
    c = whole.task.c.copy()
    c[row] = 0.0
    leaves = gone[[row]][gone[[row]] != NOBODY]
    change = solved.change(c, whole.number(leaves), start)
    if change.converged:
        found.values[row] = solved.solution.values[row] + change.moved[row]
        found.n_iter[row] = change.n_iter + 1
        return change
    _solve_alone(whole, found, row, gone)
    return None


def _solve_alone(whole: Whole, found: LeftOut, row: int, gone: Rows) -> None:
    """Settles a row by a fold of its own."""
    c = whole.task.c.copy()
    c[row] = 0.0
    solution = whole.fold(c, gone[[row]][gone[[row]] != NOBODY])
    found.values[row] = whole.task.design.values(solution.theta, np.array([row]))[0]
    found.n_iter[row] = solution.n_iter
    found.converged[row] = solution.status is Status.CONVERGED


def _is_right(
    whole: Whole, solved: Solved, found: LeftOut, row: int, change: Change, gone: Rows
) -> bool:
    """Whether the value of a row is that of the machine without it, solved on its own data."""
    c = whole.task.c.copy()
    c[row] = 0.0
    theta = solved.theta(whole.system, change)
    solution = whole.checked(theta, c, gone[[row]][gone[[row]] != NOBODY], 1)
    if solution is None:
        return False
    apart = abs(solution.values[row] - found.values[row])
    return bool(apart <= whole.rule.tol * max(1.0, abs(found.values[row])))


def _one_by_one(whole: Whole, gone: Rows) -> LeftOut:
    """Every row by a fold of its own."""
    n = whole.task.design.n
    found = LeftOut(
        np.empty(n), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=bool), np.ones(n, dtype=bool)
    )
    for row in range(n):
        _solve_alone(whole, found, row, gone)
    return found
