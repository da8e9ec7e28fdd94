"""MIR: all rows that leave are replaced at once (Wen et al., AAAI 2017).

The coefficients of the entering rows T are those that move the optimality indicators f = Kb - p of
the fold before, as nearly as possible in the least squares, to where they belong: those of free
rows stay, those of the others go to the threshold. With R the rows that leave,

    K_XT b_T = K_XR b_R + Δf,   1ᵀb_T = 1ᵀb_R,   Δf = 0 (free) or -offset - f.

The normal equations are solved, with a ridge: a quarter of the time of an orthogonal factorisation
at 4,500 × 500, and as good a start.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lstsq

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Source, Strategy, groups, takes_part

# As a share of the mean diagonal entry.
RIDGE = 1e-9


class MultipleReplacement(Strategy):
    """From the fold before."""

    name = "mir"
    source = Source.PREVIOUS

    def propose(self, change: Change, entries: Entries) -> Floats:
        beta = change.kept()
        before = change.neighbour
        leaving, entering = change.leaving, change.entering
        if not len(leaving) or not len(entering):
            return beta
        rows = np.flatnonzero(takes_part(before.problem))
        offset = np.empty(len(beta))
        for group, value in zip(groups(before.problem), before.offsets, strict=False):
            offset[group] = value
        inside = (before.beta > before.problem.lower) & (before.beta < before.problem.upper)
        shift = np.where(inside, 0.0, before.gradient - offset)[rows]
        removed = before.beta[leaving]
        wanted = removed @ entries(leaving, rows) + shift
        beta[entering] = _fit(entries(entering, rows), wanted, removed.sum())
        return beta


def _fit(kernel: Floats, wanted: Floats, total: float) -> Floats:
    """The b with b K = wanted and sum(b) = total in the least squares."""
    square = kernel @ kernel.T
    ridge = RIDGE * square.diagonal().mean()
    square += 1.0
    np.fill_diagonal(square, square.diagonal() + ridge)
    right = kernel @ wanted + total
    try:
        fitted: Floats = cho_solve(cho_factor(square, check_finite=False), right)
    except LinAlgError:  # rounding was more than the ridge
        fitted = lstsq(square, right, lapack_driver="gelsy", check_finite=False)[0]
    return fitted


STRATEGY = MultipleReplacement()
