"""FOLLOW: where the optimum of all rows moves to while those of a fold leave (onefit.followed).

That end is the solution of the fold, or very near to it. Where there is no path (ν, other bounds
than those of the fit on all rows, no room for its matrix) the start is that of AVG.
"""

from __future__ import annotations

from onefit.seeding.average import Average


class Follow(Average):
    """From the fit on all rows, all the way."""

    name = "follow"
    follows = True


STRATEGY = Follow()
