"""Ever more rows of the same data, to see how time grows with them.

The first rows after one shuffle, which mixes the classes. Scaling and gamma are those of all rows
of the file, so that more rows are the only thing that changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..case import Case
from ..machines.base import Machine
from .base import DataSet, Group, Scaling, npz, shuffled

SIZES = (1_000, 2_000, 4_000, 8_000, 16_000)


@dataclass(frozen=True)
class Growing(DataSet):
    """A data set with cases for each size. Their group is called after the data set."""

    def names(self, machine: Machine) -> list[str]:
        return [f"{self.name}-{n}/{setting}" for setting in machine.settings for n in SIZES]

    def cases(self, group: str, machine: Machine) -> Iterator[Case]:
        for whole in super().cases(self.name, machine):
            for n in SIZES:
                X, y = whole.X[:n], whole.y[:n]
                parameters = machine.parameters(whole.setting, y)
                yield replace(whole, dataset=f"{self.name}-{n}", X=X, y=y, parameters=parameters)


GROWING = Group(
    name="growing",
    rank=0,
    datasets=(
        Growing("magic", shuffled(npz("magic")), Scaling.STANDARDISE),
        Growing("a9a", shuffled(npz("a9a")), Scaling.NONE),  # zeros and ones
    ),
)
