"""Seven and ten classes, dense, 20,000 rows and more."""

from __future__ import annotations

from .base import DataSet, Group, Scaling, npz

GROUP = Group(
    name="multiclass-large",
    rank=5,
    datasets=(
        # A third of it, for the sake of time and memory.
        DataSet("mnist", npz("mnist", rows=20_000), Scaling.UNIT),  # grey values
        DataSet("shuttle", npz("shuttle"), Scaling.STANDARDISE),
    ),
)
