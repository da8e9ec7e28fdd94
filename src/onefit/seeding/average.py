"""AVG: what leaves is spread evenly over the free variables (DeCoste & Wagstaff, KDD 2000)."""

from __future__ import annotations

import numpy as np

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Source, Strategy, feasible


class Average(Strategy):
    """From the fit on all rows."""

    name = "avg"
    source = Source.FULL
    in_core = True

    def propose(self, change: Change, entries: Entries) -> Floats:
        return feasible(change.problem, change.kept(), np.flatnonzero(change.free()))


STRATEGY = Average()
