"""Data sets for searches over a grid: from 270 rows to 5,000, one case each.

Two of them come with rows that no search is given, and two grids: one for all, and the one that
liquidSVM takes if it is not told any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler

from ..case import Case, Matrix
from ..machines.base import Machine
from .base import DataSet, Group, Scaling, Source, npz, scale_gamma, shipped, shuffled

SETTING = "grid"
COMMON, OWN = "common", "liquidsvm"
UNSEEN = 10_000


@dataclass(frozen=True)
class GridSet(DataSet):
    """A data set whose parameters are the grid's."""

    def names(self, machine: Machine) -> list[str]:
        return [f"{self.name}/{SETTING}"]

    def cases(self, group: str, machine: Machine) -> Iterator[Case]:
        case = next(super().cases(group, machine))
        parameters = {name: value for name, value in case.parameters.items() if name != "C"}
        yield replace(case, setting=SETTING, parameters=parameters)


@dataclass(frozen=True)
class UnseenSet(DataSet):
    """A data set whose last rows are kept for the models that were chosen on the others."""

    def names(self, machine: Machine) -> list[str]:
        return [f"{self.name}/{setting}" for setting in (COMMON, OWN)]

    def cases(self, group: str, machine: Machine) -> Iterator[Case]:
        X, y = self.source()
        scaler = StandardScaler().fit(X[:-UNSEEN])  # of the rows that are seen
        X = scaler.transform(X)
        seen, unseen = (X[:-UNSEEN], y[:-UNSEEN]), (X[-UNSEEN:], y[-UNSEEN:])
        for setting in (COMMON, OWN):
            yield Case(
                machine,
                self.name,
                group,
                setting,
                self.scaling.value,
                *seen,
                {},
                scale_gamma(seen[0]),
                unseen=unseen,
            )


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

WITH_UNSEEN = Group(
    name="unseen",
    rank=0,
    datasets=tuple(
        UnseenSet(f"covtype-{n}", covtype(n + UNSEEN), Scaling.STANDARDISE) for n in (1_000, 5_000)
    ),
)
