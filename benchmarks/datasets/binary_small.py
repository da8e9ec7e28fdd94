"""Two classes, dense, some hundred to some thousand rows: what most people fit most often."""

from __future__ import annotations

from .base import DataSet, Group, Scaling, npz, shipped

GROUP = Group(
    name="binary-small",
    rank=0,
    datasets=(
        DataSet("heart_scale", npz("heart_scale"), Scaling.NONE),  # is in [-1, 1]
        DataSet("ionosphere", npz("ionosphere"), Scaling.NONE),  # is in [-1, 1]
        DataSet("breast_cancer", shipped("load_breast_cancer"), Scaling.STANDARDISE),
        DataSet("diabetes", npz("diabetes"), Scaling.STANDARDISE),
        DataSet("german.numer", npz("german.numer"), Scaling.STANDARDISE),
        DataSet("splice", npz("splice"), Scaling.STANDARDISE),
        DataSet("madelon", npz("madelon"), Scaling.STANDARDISE),
    ),
)
