"""The data sets of Wen et al., "Improving Efficiency of SVM k-fold Cross-validation by Alpha
Seeding", AAAI 2017, with the hyper-parameters of its Table 2.

The paper scales nothing. On Heart, Madelon and MNIST its kernel is then almost the identity: every
row is a support vector, and all rows are predicted to be of the larger class. That tells which
classes MNIST was given, which the paper does not: 50.85 % of its rows are odd digits. So each data
set comes twice, as the paper has it and, with the same C, scaled and with the gamma of all other
benchmarks.

Larger data sets are a part of their rows after one shuffle, which keeps the order of none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..case import Case, Matrix
from ..machines.base import Machine
from .base import DataSet, Group, Scaling, Source, npz, scale_gamma, scaled, shuffled

PAPER, SCALED = "paper", "scaled"
ALL_METHODS = 10  # the number of folds with which the paper compares all its methods
FOLDS = (3, ALL_METHODS, 100)
MACHINE = "c-svc"


@dataclass(frozen=True)
class Published(DataSet):
    """A data set of the paper; ``scaling`` is for the cases that are not as the paper has them."""

    title: str  # as the paper calls it
    file: str
    paper_rows: int
    C: float
    gamma: float
    rows: int  # no more than so many are used

    def names(self, machine: Machine) -> list[str]:
        if machine.name != MACHINE:
            return []
        return [f"{self.name}/{_setting(kind, k)}" for kind in (PAPER, SCALED) for k in FOLDS]

    def cases(self, group: str, machine: Machine) -> Iterator[Case]:
        X, y = self._some_rows()
        for kind in (PAPER, SCALED):
            scaling = Scaling.NONE if kind == PAPER else self.scaling
            data = scaled(X, scaling)
            gamma = self.gamma if kind == PAPER else scale_gamma(data)
            for folds in FOLDS:
                yield Case(
                    machine,
                    self.name,
                    group,
                    _setting(kind, folds),
                    scaling.value,
                    data,
                    y,
                    {"C": self.C},
                    gamma,
                    folds,
                )

    def _some_rows(self) -> tuple[Matrix, Any]:
        """All rows in their order, or some of them in another."""
        X, y = self.source()
        if len(y) > self.rows:
            X, y = shuffled(lambda: (X, y))()
            X, y = X[: self.rows].copy(), y[: self.rows]
        return X, y.astype(np.int64)


def _setting(kind: str, folds: int) -> str:
    return f"{kind}-{folds}fold"


def _odd(source: Source) -> Source:
    """Return a loader with the classes odd (1) and even (-1)."""

    def load() -> tuple[Matrix, Any]:
        X, y = source()
        return X, np.where(y % 2 == 1, 1, -1)

    return load


def published(rows: int) -> Group:
    """Return the five data sets, with no more than so many rows each."""
    zeros_and_ones = Scaling.NONE
    sets = (
        ("Heart", "heart", Scaling.STANDARDISE, 270, 2182.0, 0.2),
        ("Madelon", "madelon", Scaling.STANDARDISE, 2_000, 1.0, 0.7071),
        ("Adult", "a9a", zeros_and_ones, 32_561, 100.0, 0.5),
        ("MNIST", "mnist", Scaling.UNIT, 60_000, 10.0, 0.125),
        ("Webdata", "w8a", zeros_and_ones, 49_749, 64.0, 7.8125),
    )
    return Group(
        name="published",
        rank=0,
        datasets=tuple(
            Published(
                title.lower(),
                _odd(npz(file)) if file == "mnist" else npz(file),
                scaling,
                title,
                file,
                paper_rows,
                C,
                gamma,
                rows,
            )
            for title, file, scaling, paper_rows, C, gamma in sets
        ),
    )
