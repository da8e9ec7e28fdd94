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
        for r, similarity in zip(leaving, entries(leaving, staying), strict=True):
            rest = change.neighbour.beta[r]
            ends = problem.upper if rest > 0 else problem.lower
            # A row of the other class has no room that way. One that is filled up has none for
            # those that leave later either: the largest is looked for once a row and once more for
            # each that is filled.
            open_to = np.where(beta[staying] != ends[staying], similarity, -np.inf)
            while rest != 0:
                best = int(np.argmax(open_to))
                if open_to[best] == -np.inf:
                    break
                t = staying[best]
                if abs(rest) < abs(ends[t] - beta[t]):
                    beta[t] += rest
                    break
                rest -= ends[t] - beta[t]
                beta[t] = ends[t]
                open_to[best] = -np.inf
        return beta


STRATEGY = Top()
