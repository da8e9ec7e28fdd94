"""Machines that differ only in C and in their kernel: the same problems with other bounds.

With w the bounds for C = 1, a fold of such a machine has the bounds C·w, and everything else of
its problems is the same: they are made once, and a chain of growing C needs only its factors.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache
from typing import Any

from numpy.typing import NDArray

from onefit.estimators.base import KernelMachine, Part, Training
from onefit.estimators.given import Split
from onefit.kernels import Floats
from onefit.tuning.candidates import key_of

# Parameters that say nothing about the problems: of the kernel, or of what is done around a fit.
# Two are about what is made of decision values.
OF_KERNEL = frozenset({"kernel", "degree", "gamma", "coef0"})
OF_ANSWERS = frozenset({"decision_function_shape", "break_ties"})
OF_WORK = frozenset({"cache_size", "verbose", "random_state", "n_jobs"})


def family_key(machine: KernelMachine) -> tuple[Any, ...]:
    """Equal for machines whose problems differ by a factor of their bounds."""
    kind: Any = type(machine)
    return (kind, *[key_of(getattr(machine, name)) for name in _names_of_family(kind)])


@cache
def _names_of_family(kind: type[KernelMachine]) -> list[str]:
    """Of the parameters that are equal in a family."""
    left_out = OF_KERNEL | OF_ANSWERS | OF_WORK | {"C"}
    return sorted(kind._parameter_constraints.keys() - left_out)


class Family:
    """The problems of such machines on all rows, and in each fold."""

    def __init__(
        self,
        machine: KernelMachine,
        y: NDArray[Any],
        weights: Floats | None,
        splits: list[Split],
        threads: int,
    ) -> None:
        self.machine: KernelMachine = copy(machine)
        if hasattr(machine, "C"):
            self.machine.C = 1.0
        self.whole: Training = self.machine._training(y, weights, every_row=True)
        self.problems = self.whole.problems
        self.settings = replace(machine._settings(), threads=threads)
        self._y, self._weights, self._splits = y, weights, splits
        self._parts: dict[int, Part | None] = {}

    def part(self, fold: int) -> Part | None:
        """The problems of a fold; None if it has none, which scikit-learn then reports."""
        if fold not in self._parts:
            train = self._splits[fold][0]
            try:
                part = self.machine._part(self.whole, self._y, self._weights, train)
            except ValueError:
                part = None
            self._parts[fold] = part
        return self._parts[fold]


def factor_of(machine: KernelMachine) -> float:
    """What the bounds of its family are multiplied by."""
    return float(getattr(machine, "C", 1.0))
