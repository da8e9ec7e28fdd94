"""ATO: coefficients are moved towards the optimum step by step (Wen et al., AAAI 2017).

Entering rows T grow towards their bounds and leaving rows R shrink to 0 by the same share η, while
the free rows M follow so that their optimality holds. In the consistent form (Karasuyama &
Takeuchi 2009) the offset o moves along:

    [0  1ᵀ; 1  K_MM] [Δo; Δb_M] = -η [1ᵀ; K_M,TR] [end_T - b_T; -b_R].

A step ends where a free row meets a bound, where a row at its bound meets the threshold, or at
η = 1. The rows that have met something change sets, and the next step begins.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Indices, Source, Strategy, groups

# The paper goes on until nothing is left of R; steps get ever smaller.
MOST_STEPS = 30
# Larger systems cost more than they save.
MOST_FREE = 1500


class Gradual(Strategy):
    """From the fold before."""

    name = "ato"
    source = Source.PREVIOUS

    def propose(self, change: Change, entries: Entries) -> Floats:
        problem = change.problem
        beta = np.where(problem.lower < problem.upper, change.neighbour.beta, 0.0)
        leaving, entering = change.leaving, change.entering
        beta[leaving] = change.neighbour.beta[leaving]
        gradient = change.neighbour.gradient.copy()
        offset = np.empty(len(beta))
        for group, value in zip(groups(problem), change.neighbour.offsets, strict=False):
            offset[group] = value
        everyone = np.arange(len(beta))
        free = change.free()
        for _ in range(MOST_STEPS):
            moving = np.concatenate((leaving[beta[leaving] != 0], entering))
            members = np.flatnonzero(free)
            if not len(moving) or len(members) > MOST_FREE:
                break
            ends = np.where(gradient > offset, problem.upper, problem.lower)
            target = np.where(np.isin(moving, entering), ends[moving], 0.0)
            towards = np.where(np.isfinite(target), target - beta[moving], 0.0)
            step = self._response(members, moving, towards, entries, groups(problem))
            full = np.zeros(len(beta))
            full[moving] = towards
            full[members] += step
            slope = -entries(np.flatnonzero(full), everyone).T @ full[full != 0]
            share = _largest_share(beta, full, problem.lower, problem.upper, members)
            beta += share * full
            gradient += share * slope
            free[members] = (beta[members] > problem.lower[members]) & (
                beta[members] < problem.upper[members]
            )
            # An entering row that has reached the threshold is free from now on.
            reached = entering[(gradient[entering] - offset[entering]) * full[entering] <= 0]
            free[reached] = True
            entering = np.setdiff1d(entering, reached)
            if share == 1.0:
                break
        beta[leaving] = 0.0
        return beta

    @staticmethod
    def _response(
        members: Indices, moving: Indices, towards: Floats, entries: Entries, parts: list[slice]
    ) -> Floats:
        """How the free rows follow, so that each group keeps its sum."""
        n = len(members)
        if not n:
            return np.zeros(0)
        border = np.array([(members >= p.start) & (members < p.stop) for p in parts], dtype=float)
        moved = np.array([towards[(moving >= p.start) & (moving < p.stop)].sum() for p in parts])
        k = len(parts)
        matrix = np.zeros((n + k, n + k))
        matrix[:k, k:] = border
        matrix[k:, :k] = border.T
        matrix[k:, k:] = entries(members, members)
        right = -np.concatenate((moved, entries(moving, members).T @ towards))
        solution: Floats = lstsq(matrix, right, lapack_driver="gelsy", check_finite=False)[0]
        return solution[k:]


def _largest_share(
    beta: Floats, step: Floats, lower: Floats, upper: Floats, members: Indices
) -> float:
    """How much of a step the bounds of the free rows allow."""
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(step > 0, (upper - beta) / step, (lower - beta) / step)[members]
    room = room[step[members] != 0]
    return float(np.clip(room.min(initial=1.0), 0.0, 1.0))


STRATEGY = Gradual()
