"""MIR: all rows that leave are replaced at once (Wen et al., AAAI 2017).

The coefficients of the entering rows T are those that move the optimality indicators f = Kb - p of
the fold before, as nearly as possible in the least squares, to where they belong: those of free
rows stay, those of the others go to the threshold. With R the rows that leave,

    K_XT b_T = K_XR b_R + Δf,   1ᵀb_T = 1ᵀb_R,   Δf = 0 (free) or -offset - f.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lstsq

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Source, Strategy, groups, takes_part


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
        matrix = np.vstack((entries(entering, rows).T, np.ones((1, len(entering)))))
        removed = before.beta[leaving]
        wanted = np.append(entries(leaving, rows).T @ removed + shift, removed.sum())
        beta[entering] = lstsq(matrix, wanted, lapack_driver="gelsy", check_finite=False)[0]
        return beta


STRATEGY = MultipleReplacement()
