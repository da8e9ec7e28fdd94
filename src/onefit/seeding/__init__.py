"""Where a fold starts: one file for each strategy, each with a ``STRATEGY``."""

from onefit.seeding import average, follow, gradual, multiple, nothing, single, top
from onefit.seeding.base import Change, Entries, Neighbour, Source, Strategy

STRATEGIES: dict[str, Strategy] = {
    module.STRATEGY.name: module.STRATEGY
    for module in (nothing, single, multiple, gradual, average, top, follow)
}

__all__ = ["STRATEGIES", "Change", "Entries", "Neighbour", "Source", "Strategy"]
