"""TOP: what leaves goes to the most similar row of the same kind (Lee et al., 2004)."""

from __future__ import annotations

import numpy as np

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Source, Strategy


class Top(Strategy):
    """From the fit on all rows."""

    name = "top"
    source = Source.FULL

    def propose(self, change: Change, entries: Entries) -> Floats:
        beta, problem = change.kept(), change.problem
        leaving, staying = change.leaving, change.staying
        if not len(leaving) or not len(staying):
            return beta
        similar = np.argsort(-entries(leaving, staying), axis=1)
        for r, order in zip(leaving, similar, strict=True):
            rest = change.neighbour.beta[r]
            for t in staying[order]:
                # As much as its bounds allow; a row of the other class has no room that way.
                taken = np.clip(beta[t] + rest, problem.lower[t], problem.upper[t]) - beta[t]
                beta[t] += taken
                rest -= taken
                if rest == 0:
                    break
        return beta


STRATEGY = Top()
