"""SIR: a row that leaves is replaced by the most similar that enters (Wen et al., AAAI 2017).

The paper's pseudo-code starts its search for the most similar row at a similarity of 0; kernels may
be negative, so that it starts at minus infinity here.
"""

from __future__ import annotations

import numpy as np

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Source, Strategy


class SingleReplacement(Strategy):
    """From the fold before."""

    name = "sir"
    source = Source.PREVIOUS

    def propose(self, change: Change, entries: Entries) -> Floats:
        beta, problem = change.kept(), change.problem
        leaving, entering = change.leaving, change.entering
        if not len(leaving) or not len(entering):
            return beta
        similarity = entries(leaving, entering)
        taken = np.zeros(len(entering), dtype=bool)
        for r, row in zip(leaving, similarity, strict=True):
            value = change.neighbour.beta[r]
            ends = problem.upper if value > 0 else problem.lower
            # Of the same kind: one that may take the sign of this coefficient.
            possible = ~taken & (ends[entering] != 0)
            if not possible.any():
                continue
            t = int(np.argmax(np.where(possible, row, -np.inf)))
            taken[t] = True
            beta[entering[t]] = value
        return beta


STRATEGY = SingleReplacement()
