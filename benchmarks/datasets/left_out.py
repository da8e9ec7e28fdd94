"""What approximate leave-one-out is tried on: two classes, a few hundred to 10,000 rows.

Two of them are hard for it: banana and liver-disorders have few free rows, which one row that
leaves takes to their bounds. The rows of magic are the first after one shuffle, which mixes its
classes.
"""

from __future__ import annotations

from typing import Any

from ..case import Matrix
from .base import DataSet, Group, Scaling, npz, shipped, shuffled

ROWS = 10_000


def _first(name: str) -> DataSet:
    whole = shuffled(npz(name))

    def load() -> tuple[Matrix, Any]:
        X, y = whole()
        return X[:ROWS], y[:ROWS]

    return DataSet(f"{name}-{ROWS}", load, Scaling.STANDARDISE)


LEFT_OUT = Group(
    name="left-out",
    rank=0,
    datasets=(
        DataSet("heart_scale", npz("heart_scale"), Scaling.NONE),
        DataSet("liver-disorders", npz("liver-disorders"), Scaling.STANDARDISE),
        DataSet("ionosphere", npz("ionosphere"), Scaling.NONE),
        DataSet("breast_cancer", shipped("load_breast_cancer"), Scaling.STANDARDISE),
        DataSet("diabetes", npz("diabetes"), Scaling.STANDARDISE),
        DataSet("german.numer", npz("german.numer"), Scaling.STANDARDISE),
        DataSet("splice", npz("splice"), Scaling.STANDARDISE),
        DataSet("madelon", npz("madelon"), Scaling.STANDARDISE),
        DataSet("ida_waveform", npz("ida_waveform"), Scaling.STANDARDISE),
        DataSet("ida_banana", npz("ida_banana"), Scaling.STANDARDISE),
        DataSet("cbcl_faces", npz("cbcl_faces"), Scaling.UNIT),
        DataSet("ida_ringnorm", npz("ida_ringnorm"), Scaling.STANDARDISE),
        DataSet("ida_twonorm", npz("ida_twonorm"), Scaling.STANDARDISE),
        _first("magic"),
    ),
)
