"""What is asked of left-out rows, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators.base import Training
from onefit.folds import FoldWork
from onefit.kernels import Floats

# For each problem, the rule that settles each of its variables; which of them nothing has settled.
Rules = Sequence[NDArray[np.int8]]
Undecided = Sequence[NDArray[np.bool_]]


class Proofs(Enum):
    """When to look for a proof of the sign before a solve has converged (core/certificate.hpp)."""

    NONE = auto()  # values are wanted
    WHERE_THEY_PAY = auto()
    ALL = auto()  # and afterwards, until there is one


@dataclass
class LeftOut:
    """A row without which some problems are to be solved."""

    row: int  # of the store
    store: _core.KernelStore
    bounds: Floats
    to_solve: list[int]  # numbers of the problems that change and that no rule settles


@dataclass
class LeftOutRows:
    """What is known of every row, in the order of the problems."""

    values: Floats  # of each pair, positive for its first class; NaN where only the sign is known
    signs: Floats  # the same with a number of that sign there
    reached: Floats  # the same with what a solver had got to, for people to look at
    decided: NDArray[np.int8]  # numbers of rules
    work: list[FoldWork]
    # Of rows without which a class is missing.
    trainings: dict[int, Training] = field(default_factory=dict)
    errors: list[ValueError] = field(default_factory=list)  # of rows that cannot be left out
    exact: bool = True
    is_estimate: bool = False  # no row has taken work of its own

    def settle(self, row: int, rule: int, value: float, pairs: Any = slice(None)) -> None:
        self.decided[row] = rule
        for values in (self.values, self.signs, self.reached):
            values[row, pairs] = value
