"""Data sets for searches over a grid: from 270 rows to 5,000, one case each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..case import Case, Matrix
from ..machines.base import Machine
from .base import DataSet, Group, Scaling, Source, npz, shipped, shuffled

SETTING = "grid"


@dataclass(frozen=True)
class GridSet(DataSet):
    """A data set whose parameters are the grid's."""

    def names(self, machine: Machine) -> list[str]:
        return [f"{self.name}/{SETTING}"]

    def cases(self, group: str, machine: Machine) -> Iterator[Case]:
        case = next(super().cases(group, machine))
        parameters = {name: value for name, value in case.parameters.items() if name != "C"}
        yield replace(case, setting=SETTING, parameters=parameters)


def covtype(n: int) -> Source:
    """Return a loader of so many rows, in no order; the classes are the second and all others."""

    def load() -> tuple[Matrix, Any]:
        X, y = shuffled(npz("covtype"))()
        return np.ascontiguousarray(X[:n]), np.where(y[:n] == 2, 1, -1)

    return load


GRIDS = Group(
    name="grids",
    rank=0,
    datasets=(
        GridSet("heart_scale", npz("heart_scale"), Scaling.NONE),  # is in [-1, 1]
        GridSet("ionosphere", npz("ionosphere"), Scaling.NONE),  # is in [-1, 1]
        GridSet("breast_cancer", shipped("load_breast_cancer"), Scaling.STANDARDISE),
        GridSet("diabetes", npz("diabetes"), Scaling.STANDARDISE),
        GridSet("german.numer", npz("german.numer"), Scaling.STANDARDISE),
        GridSet("splice", npz("splice"), Scaling.STANDARDISE),
        GridSet("segment", npz("segment"), Scaling.NONE),  # is in [-1, 1]
        GridSet("ida_splice", npz("ida_splice"), Scaling.STANDARDISE),
        GridSet("ida_waveform", npz("ida_waveform"), Scaling.STANDARDISE),
        GridSet("covtype-1000", covtype(1_000), Scaling.STANDARDISE),
        GridSet("covtype-5000", covtype(5_000), Scaling.STANDARDISE),
    ),
)
