"""Real targets, standardised, dense."""

from __future__ import annotations

from .base import DataSet, Group, Scaling, npz, shipped

GROUP = Group(
    name="regression",
    rank=4,
    datasets=(
        DataSet("diabetes_progression", shipped("load_diabetes"), Scaling.STANDARDISE),
        DataSet("housing", npz("housing"), Scaling.STANDARDISE),
        DataSet("space_ga", npz("space_ga"), Scaling.STANDARDISE),
        DataSet("abalone", npz("abalone"), Scaling.STANDARDISE),
        # A quarter of it, for the sake of time: all of it takes LIBSVM very long with C = 100.
        DataSet("kin40k", npz("kin40k", rows=10_000), Scaling.STANDARDISE),
        DataSet("cadata", npz("cadata"), Scaling.STANDARDISE),
    ),
    regression=True,
)
