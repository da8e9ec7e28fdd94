"""What a strategy is given, what it returns, and how a proposal becomes feasible."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats

Indices: TypeAlias = NDArray[np.intp]
# Kernel entries of some variables of a problem (rows) with others (columns).
Entries: TypeAlias = Callable[[Indices, Indices], Floats]


class Source(Enum):
    """Which solved problem a start is made from."""

    NOTHING = auto()
    PREVIOUS = auto()  # the fold before
    FULL = auto()  # the fit on all rows


@dataclass(frozen=True)
class Neighbour:
    """A solved problem over the same variables, with other bounds."""

    problem: _core.Problem
    beta: Floats
    gradient: Floats  # p - K b
    offsets: tuple[float, float]


@dataclass(frozen=True)
class Change:
    """From a neighbour to a problem: which variables leave, enter and stay."""

    problem: _core.Problem
    neighbour: Neighbour

    @property
    def leaving(self) -> Indices:
        """Variables that take no part any more and are not 0."""
        return np.flatnonzero(~takes_part(self.problem) & (self.neighbour.beta != 0))

    @property
    def entering(self) -> Indices:
        return np.flatnonzero(takes_part(self.problem) & ~takes_part(self.neighbour.problem))

    @property
    def staying(self) -> Indices:
        return np.flatnonzero(takes_part(self.problem) & takes_part(self.neighbour.problem))

    def kept(self) -> Floats:
        """The coefficients of those that stay, as far as their new bounds allow; 0 elsewhere."""
        return np.clip(self.neighbour.beta, self.problem.lower, self.problem.upper)

    def free(self) -> NDArray[np.bool_]:
        """Variables that stay and are between their bounds."""
        beta, problem = self.kept(), self.problem
        inside: NDArray[np.bool_] = (beta > problem.lower) & (beta < problem.upper)
        return inside & (beta != 0) if problem.kink > 0 else inside


class Strategy(ABC):
    """Makes a start for a problem from a solved neighbour. It never changes the answer."""

    name: str
    source: Source
    # Whether the core makes this start itself, without the detour through arrays of Python.
    in_core = False
    # Whether it goes on to where the optimum moves (onefit.followed), where it can.
    follows = False

    @abstractmethod
    def propose(self, change: Change, entries: Entries) -> Floats:
        """Coefficients to start from; they need not be feasible yet."""

    def start(self, change: Change, entries: Entries) -> Floats:
        """A feasible start."""
        return feasible(change.problem, self.propose(change, entries), change.entering)


def takes_part(problem: _core.Problem) -> NDArray[np.bool_]:
    return problem.lower < problem.upper


def groups(problem: _core.Problem) -> list[slice]:
    n, split = len(problem), problem.split
    return [part for part in (slice(0, split), slice(split, n)) if part.start < part.stop]


def feasible(problem: _core.Problem, beta: Floats, first: Indices) -> Floats:
    """Within the bounds, and with the sums of the problem.

    What a sum lacks is spread evenly: over the variables ``first`` as far as they have room, then
    over those that are not 0, then over all.
    """
    preferred = np.zeros(len(beta), dtype=bool)
    preferred[first] = True
    return _core.feasible(problem, beta, preferred)
