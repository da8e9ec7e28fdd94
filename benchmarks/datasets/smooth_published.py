"""The data sets of two papers on smooth machines, and larger ones for what grows with the rows.

Tseng & Lee, "Rank-r updating techniques for fast exact cross-validation": C = 1, γ = 0.1. It does
not say how features are scaled; brought to [-1, 1], Ionosphere, Colon and Leukemia have its
accuracies. Grey values of Face are in [0, 1], as its authors distribute them.
Lee, Lo & Huang, "Incremental reduced support vector machines", who tune C and γ without saying what
they found: here C = 1 and γ = 1 / (features · var(X)) of standardised features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..case import Case, Matrix
from ..machines.base import Machine
from .base import DataSet, Group, MissingDataError, Scaling, Source, npz, scale_gamma, scaled

MACHINE = "c-svc"
LOO, TEN = "loo", "10fold"
REDUCED = "reduced"
FIT = "linear-fit"
SAMPLE = "rsvm-fit"
RANGE = "each feature to [-1, 1]"
SAMPLE_ROWS = 20_000
TEST_ROWS = 5_000


@dataclass(frozen=True)
class Smooth(DataSet):
    """A data set with the settings that it is run with."""

    settings: tuple[str, ...]
    C: float = 1.0
    gamma: float | None = 0.1  # None: by the rule of all benchmarks

    def names(self, machine: Machine) -> list[str]:
        return [f"{self.name}/{setting}" for setting in self.settings]

    def cases(self, group: str, machine: Machine) -> Iterator[Case]:
        if machine.name != MACHINE:
            return
        X, y = self.source()
        y = np.where(y == 1, 1, -1)
        X = scaled(X, self.scaling)
        in_range = group == "rank-r" and self.scaling is Scaling.NONE
        scaling = RANGE if in_range else self.scaling.value
        gamma = scale_gamma(X) if self.gamma is None else self.gamma
        for setting in self.settings:
            parameters = {"C": self.C}
            yield Case(machine, self.name, group, setting, scaling, X, y, parameters, gamma)


def _to_range(source: Source) -> Source:
    def load() -> tuple[Matrix, Any]:
        X, y = source()
        low, high = X.min(axis=0), X.max(axis=0)
        width = np.where(high > low, high - low, 1.0)
        return 2.0 * (X - low) / width - 1.0, y

    return load


def _two_classes(source: Source, positive: int) -> Source:
    def load() -> tuple[Matrix, Any]:
        X, y = source()
        return X, np.where(y == positive, 1, -1)

    return load


def _or_made(source: Source, make: Callable[[], tuple[Matrix, Any]]) -> Source:
    def load() -> tuple[Matrix, Any]:
        try:
            return source()
        except MissingDataError:
            return make()

    return load


def _like_covtype() -> tuple[Matrix, Any]:
    """As many rows and features, with a boundary that is not linear."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500_000, 54))
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + 0.5 * X[:, 3] + 0.5 * rng.normal(size=len(X))
    return X, np.where(score > 0, 1, -1)


KERNELS = ("linear", "rbf")
BOTH = tuple(f"{kernel}-{folds}" for kernel in KERNELS for folds in (LOO, TEN))
LINEAR = tuple(f"linear-{folds}" for folds in (LOO, TEN))

RANK_R = Group(
    "rank-r",
    0,
    (
        Smooth("ionosphere", _to_range(npz("ionosphere")), Scaling.NONE, BOTH),
        Smooth("pima", _to_range(npz("diabetes")), Scaling.NONE, BOTH),
        Smooth("colon", _to_range(npz("colon-cancer")), Scaling.NONE, LINEAR),
        Smooth("leukemia", _to_range(npz("leukemia")), Scaling.NONE, LINEAR),
        Smooth("face", npz("cbcl_faces"), Scaling.UNIT, BOTH),
    ),
)
INCREMENTAL = Group(
    "irsvm",
    1,
    tuple(
        Smooth(name, npz(file), Scaling.STANDARDISE, (REDUCED,), gamma=None)
        for name, file in (
            ("cleveland", "cleveland"),
            ("bupa", "liver-disorders"),
            ("ionosphere", "ionosphere"),
            ("pima", "diabetes"),
        )
    ),
)
_COVTYPE = _two_classes(_or_made(npz("covtype"), _like_covtype), 2)
ROWS = Group(
    "rows",
    2,
    (
        Smooth("magic", npz("magic"), Scaling.STANDARDISE, (FIT,)),
        Smooth("a9a", npz("a9a"), Scaling.NONE, (FIT, SAMPLE), gamma=0.05),
        Smooth("ijcnn1", npz("ijcnn1"), Scaling.NONE, (FIT,)),
        Smooth("w8a", npz("w8a"), Scaling.NONE, (FIT,)),
        Smooth("covtype", _COVTYPE, Scaling.STANDARDISE, (FIT, SAMPLE), gamma=0.005),
    ),
)
