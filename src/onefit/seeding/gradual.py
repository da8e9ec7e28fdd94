"""ATO: coefficients are moved towards the optimum step by step (Wen et al., AAAI 2017).

Entering rows T grow towards their bounds and leaving rows R shrink to 0 by the same share η, while
the free rows M follow so that their optimality holds. In the consistent form (Karasuyama &
Takeuchi 2009) the offset o moves along:

    [0  1ᵀ; 1  K_MM] [Δo; Δb_M] = -η [1ᵀ; K_M,TR] [end_T - b_T; -b_R].

A step ends where a free row meets a bound, where the gradient of a row at its bound or of an
entering row meets the offset, or at η = 1. The row that has met something changes sets, and the
next step begins (``path.py``). At the end the start is the optimum, up to rounding.
"""

from __future__ import annotations

import numpy as np

from onefit.kernels import Floats
from onefit.seeding.base import Change, Entries, Source, Strategy, takes_part
from onefit.seeding.path import Path

# Steps for each row that takes part. Paths between 10 folds of real data had 0.001 to 0.6, between
# 2 folds up to 1, and those of small drawn problems up to 3.4; of a NuSVC without a margin, where
# all gradients are 0 at the optimum, up to 9. A longer one is lost in rounding.
MOST_STEPS = 10
# Kernel entries of the free rows, which every step reads: 256 MiB.
MOST_ENTRIES = 1 << 25
# Entries that all steps of a path read together: some 13 seconds. The longest path seen to end, of
# 10,000 rows with 600 free, took half of it.
MOST_READ = 1 << 34


class Gradual(Strategy):
    """From the fold before."""

    name = "ato"
    source = Source.PREVIOUS

    def propose(self, change: Change, entries: Entries) -> Floats:
        beta = change.kept()
        n = int(np.count_nonzero(takes_part(change.problem)))
        known = np.isfinite(change.neighbour.gradient).all()
        if not n or not known or np.count_nonzero(change.free()) * n > MOST_ENTRIES:
            return beta
        path, read = Path(change, entries), 0
        for _ in range(MOST_STEPS * n):
            held = len(path.members) * n
            read += held
            if held > MOST_ENTRIES or read > MOST_READ or not path.step():
                break
        beta[path.rows] = path.beta
        return beta


STRATEGY = Gradual()
