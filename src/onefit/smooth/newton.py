r"""Newton's method with Armijo's rule for :math:`F(\theta) = \tfrac12\|\theta\|^2 + \sum_i c_i
\varphi(f_i, y_i)`, :math:`f = A\theta`.

F is strongly convex: :math:`\|\theta - \theta^*\| \le \|\nabla F(\theta)\|`. So the stopping rule
:math:`\|\nabla F\| \le tol \cdot \max(1/R, \|\theta\|)`, where R is the root mean square length of
a row of A, bounds how far the coefficients are from those of the optimum, and R times that how far
the values of a row are. Tiny weights keep θ far below 1/R: a bound of its length then takes the
place of 1/R. On pieces of quadratic functions the method ends after finitely many steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from onefit.kernels import Floats
from onefit.smooth.design import Design, norm_of
from onefit.smooth.loss import Derivatives, Loss
from onefit.smooth.systems import NOT_FINITE, System

# Armijo's rule asks for this share of what the slope promises.
ARMIJO = 1e-4
SHORTEST = 2.0**-30

# Smaller decreases than this share of F are lost in its rounding: steps are then taken as they are.
ROUNDING = 1e-13

# A step that was taken as it is and makes F larger by this share is taken back.
WORSE = 1e-10

# Where rounding ends the method, this counts as converged all the same.
GOOD_ENOUGH = 1e-6


class Status(Enum):
    CONVERGED = "converged"
    MAX_ITER = "max_iter"
    STALLED = "stalled"


@dataclass(frozen=True)
class Task:
    """What is minimised: rows with c = 0 take no part."""

    design: Design
    loss: Loss
    y: Floats
    c: Floats

    def at(self, values: Floats) -> Derivatives:
        """Loss, slope and curvature of every row, times its weight."""
        value, slope, curvature = self.loss.at(values, self.y)
        return Derivatives(self.c * value, self.c * slope, self.c * curvature)

    def size(self, theta: Floats) -> float:
        """What gradients are compared with."""
        length = self.design.length
        return max(min(1.0 / length, self.reach) if length > 0 else 0.0, norm_of(theta))

    def rounded_size(self, theta: Floats) -> float:
        """The same where rounding allows no more."""
        return max(min(1.0, self.reach), norm_of(theta))

    @cached_property
    def reach(self) -> float:
        """How far from 0 the optimum may be: with tiny weights all of it is below 1/R."""
        slopes = self.loss.at(np.zeros_like(self.y), self.y).slope
        return self.design.length * float(self.c @ np.abs(slopes))

    def gradient(self, theta: Floats, slopes: Floats) -> Floats:
        rows = np.flatnonzero(slopes)
        return np.asarray(theta + self.design.sums(slopes[rows], rows))


@dataclass(frozen=True)
class Solution:
    """Where the method ended; values, slopes and curvatures are of the rows, weights included."""

    theta: Floats
    values: Floats
    slopes: Floats
    curvatures: Floats
    gradient_norm: float
    objective: float
    n_iter: int
    status: Status


def minimise(
    task: Task, system: System, tol: float, max_iter: int, start: Floats | None = None
) -> Solution:
    """The minimum of F, from a start or from 0."""
    theta = np.zeros(task.design.p) if start is None else start.astype(np.float64)
    values = np.zeros(task.design.n) if start is None else task.design.values(theta)
    is_fresh = True  # the values are those of θ, and not sums of steps
    last = np.inf
    before: Solution | None = None  # a step that is taken as it is
    n_iter = 0
    while True:
        loss, slopes, curvatures = task.at(values)
        gradient = task.gradient(theta, slopes)
        norm = norm_of(gradient)
        objective = 0.5 * float(theta @ theta) + float(loss.sum())
        size = task.size(theta)
        if not np.isfinite(norm + objective + size + task.design.length):
            raise ValueError(NOT_FINITE)
        if before is not None and objective > before.objective * (1.0 + WORSE):
            return before  # rounding has made the step a wrong one
        if norm <= tol * size and not is_fresh:
            # What steps have added up may hide a gradient: look again.
            values, is_fresh = task.design.values(theta), True
            continue
        status = None
        if norm <= tol * size:
            status = Status.CONVERGED
        elif n_iter >= max_iter:
            status = Status.MAX_ITER
        else:
            system.move(curvatures)
            step = -system.solve(gradient)
            slope = float(gradient @ step)
            if not np.isfinite(slope):
                raise ValueError(NOT_FINITE)
            is_tiny = -slope <= ROUNDING * objective
            if is_tiny and not is_fresh:  # near the optimum, sums of steps are not exact enough
                values, is_fresh = task.design.values(theta), True
                continue
            if is_tiny:
                good = norm <= GOOD_ENOUGH * task.rounded_size(theta)
                ended = Status.CONVERGED if good else Status.STALLED
                if norm > 0.5 * last or slope > ROUNDING * objective:
                    status = ended
        if status is not None:
            return Solution(theta, values, slopes, curvatures, norm, objective, n_iter, status)
        before = None
        if is_tiny:
            before = Solution(theta, values, slopes, curvatures, norm, objective, n_iter, ended)
        along = task.design.values(step)
        share = 1.0 if is_tiny else _armijo(task, theta, values, step, along, objective, slope)
        theta = theta + share * step
        values = values + share * along
        is_fresh = False
        last = norm if is_tiny else np.inf
        n_iter += 1


def _armijo(
    task: Task,
    theta: Floats,
    values: Floats,
    step: Floats,
    along: Floats,
    objective: float,
    slope: float,
) -> float:
    """The first of 1, ½, ¼, … that brings enough."""
    squares = float(theta @ theta), float(theta @ step), float(step @ step)
    rows = np.flatnonzero(task.c)
    y, c, values, along = task.y[rows], task.c[rows], values[rows], along[rows]
    share = 1.0
    while share > SHORTEST:
        losses = float(c @ task.loss.value(values + share * along, y))
        norms = squares[0] + 2 * share * squares[1] + share**2 * squares[2]
        if objective - (0.5 * norms + losses) >= -ARMIJO * share * slope:
            return share
        share /= 2
    return share
