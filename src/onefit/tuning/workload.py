"""Candidates on one data set and its folds, solved as chains along C on shared kernel rows.

Squared distances are evaluated once; each γ is one exponential of them, which all folds and all C
share; in a fold the C follow one another from small to large, each started from the one before
(``core/chains.hpp``). All chains of the kernels that fit into memory together are given to the core
in one call.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from onefit import _core
from onefit.estimators.base import KernelMachine, Part
from onefit.estimators.classification import ClassTraining
from onefit.estimators.given import KernelFunctionError, Split, given_matrix, is_given
from onefit.estimators.svc import SVC
from onefit.kernels import Floats, Kernel, resolve_gamma
from onefit.memory import ALWAYS, SHARE, available_bytes, budget_bytes
from onefit.model_selection.crossfit import TIGHTEST, UNDECIDED
from onefit.solver import Settings, solve_cells, solve_chains
from onefit.tuning.families import Family, factor_of, family_key
from onefit.tuning.request import Cell, Known, PairState
from onefit.tuning.stores import Stores

# Chains are of unequal length: so many for each thread leave none idle for long.
CHAINS_PER_THREAD = 8

NOTHING_KNOWN = Known()

KERNELS_WITH_GAMMA = ("rbf", "poly", "sigmoid")


@dataclass
class Chain:
    """Candidates of one family and kernel in a fold, by rising C."""

    family: Family
    part: Part
    kernel: Kernel | None  # None: given by its values
    fold: int
    candidates: list[int]
    is_seeded: bool  # whether steps start from the one before
    first: int = 0  # the step to begin with
    before: list[PairState] | None = None  # what the step before it ended with
    known: frozenset[int] = frozenset()  # steps that nobody has to be told of
    store: _core.KernelStore = field(init=False)

    @property
    def n_cells(self) -> int:
        return len(self.candidates)


@dataclass
class SolvedSteps:
    """Some steps of a chain, solved."""

    chain: Chain
    steps: list[int]
    solutions: list[list[_core.Solution]]  # of each step, those of its pairs of classes
    seconds: float  # of all of them


@dataclass
class ValuedSteps:
    """All steps of a chain of a C-SVC, of whose solutions the values of test rows are kept."""

    chain: Chain
    values: Floats  # of each step, row and pair
    n_right: list[int]  # rows that get their class by the votes, in each step
    n_iter: int  # of all steps
    finite: list[bool]  # whether all values of a step are
    unfinished: list[list[_core.Solution]]  # of each step; empty if all converged
    seconds: float  # of all steps


TakeSteps: TypeAlias = Callable[[SolvedSteps], None]
TakeValues: TypeAlias = Callable[[ValuedSteps], None]


class _How(NamedTuple):
    """How chains are solved."""

    settings: Settings
    cold: bool


class UnsuitableError(Exception):
    """Data that do not suit the machines; the cause says why."""


class Workload:
    """The machines of some candidates on the rows of one data set.

    Raises UnsuitableError where the data do not suit the machines.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        splits: list[Split],
        machines: dict[int, KernelMachine],
        *,
        threads: int,
        cold: bool = False,
        comes_back: bool = False,
    ) -> None:
        """``comes_back``: more chains of the same kernels may be asked for later."""
        first = next(iter(machines.values()))
        checker = copy(first)
        self.given = X
        try:
            self.X, self.y = checker._check_training_data(X, y)
            self.weights = checker._check_weights(sample_weight, self.X)
        except (TypeError, ValueError) as error:  # all that scikit-learn's checks raise
            raise UnsuitableError from error
        self.splits = splits
        self.machines = machines
        self._threads, self._cold, self._comes_back = threads, cold, comes_back
        self._families: dict[Any, Family] = {}
        self._family_of: dict[int, Family] = {}
        for number, machine in machines.items():
            key = family_key(machine)
            if key not in self._families:
                try:
                    family = Family(machine, self.y, self.weights, splits, threads)
                except ValueError as error:
                    raise UnsuitableError from error
                self._families[key] = family
            self._family_of[number] = self._families[key]
        self._order = self._family_of[next(iter(machines))].whole.order
        self.position = np.empty(len(self.y), dtype=np.int32)
        self.position[self._order] = np.arange(len(self.y), dtype=np.int32)
        try:
            self.matrix: Floats | None = given_matrix(first, self.X)
        except KernelFunctionError as error:
            raise UnsuitableError from error
        self._gammas: dict[Any, float] = {}  # of each fold with "scale"
        gammas = {m.gamma for m in machines.values() if m.kernel == "rbf"}
        self.stores = Stores(
            self.X,
            self._order,
            _budget(first.cache_size, len(self.y), len(gammas)),
            many_gammas=len(gammas) > 1 or ("scale" in gammas and len(splits) > 1),
        )

    # ---- what is solved -------------------------------------------------------------------------

    def chains(
        self, cells: Iterable[Cell], known: Known = NOTHING_KNOWN
    ) -> tuple[list[Chain], list[Cell]]:
        """The cells as chains, kernel by kernel; and those that cannot be solved here.

        Chains of nothing but ``known`` cells are left out, others go on after the last of them.
        """
        folds_of: dict[int, list[int]] = defaultdict(list)
        for number, fold in cells:
            folds_of[number].append(fold)
        factors = {number: factor_of(self.machines[number]) for number in folds_of}
        possible = sorted((k for k in factors if isfinite(factors[k])), key=factors.__getitem__)
        impossible = [Cell(k, f) for k in factors if not isfinite(factors[k]) for f in folds_of[k]]
        found: dict[Any, list[int]] = defaultdict(list)
        kernels: dict[Kernel | None, int] = {}  # numbered: to hash one takes longer than to count
        for number in possible:
            machine, family = self.machines[number], self._family_of[number]
            kernel: int | None = None
            for fold in folds_of[number]:
                if family.part(fold) is None:
                    impossible.append(Cell(number, fold))
                    continue
                if kernel is None or machine.gamma == "scale":
                    kernel = kernels.setdefault(self._kernel(machine, fold), len(kernels))
                found[kernel, id(family), fold].append(number)
        in_order: list[list[Chain]] = [[] for _ in kernels]
        numbered = list(kernels)
        for (of_kernel, _, fold), candidates in found.items():
            family = self._family_of[candidates[0]]
            part = family.part(fold)
            assert part is not None
            kernel_of = numbered[of_kernel]
            seeded = not self._cold_in(family, kernel_of)
            chain = Chain(family, part, kernel_of, fold, candidates, seeded)
            if _go_on(chain, known):
                in_order[of_kernel].append(chain)
        return [chain for chains in in_order for chain in chains], impossible

    def _cold_in(self, family: Family, kernel: Kernel | None) -> bool:
        # A limit on iterations counts from nothing, and so does what may have several optima.
        return self._cold or family.settings.max_iter >= 0 or not _is_convex(kernel)

    def _kernel(self, machine: KernelMachine, fold: int) -> Kernel | None:
        if is_given(machine):
            return None
        gamma: str | float = machine.gamma
        if gamma == "scale" and machine.kernel in KERNELS_WITH_GAMMA:
            if fold not in self._gammas:
                train = self.splits[fold][0]
                self._gammas[fold] = resolve_gamma("scale", self.X[train])
            gamma = self._gammas[fold]
        elif gamma == "auto" or machine.kernel not in KERNELS_WITH_GAMMA:
            gamma = resolve_gamma("auto", self.X)
        name = str(machine.kernel)
        return Kernel(name, float(gamma), float(machine.coef0), int(machine.degree))

    # ---- solving --------------------------------------------------------------------------------

    def solve(
        self,
        chains: list[Chain],
        take: TakeSteps,
        *,
        one_by_one: bool,
        take_values: TakeValues | None = None,
    ) -> None:
        """Solve all chains; ``take`` is given the steps of each, or every step at once.

        Where values of test rows are enough, ``take_values`` is given those instead, if the core
        can tell them.
        """
        for batch in self._batches(chains):
            for how, some in self._by_settings(batch):
                if take_values is not None and all(map(self._has_values, some)):
                    self._solve_cells(some, how, take_values)
                else:
                    self._solve(some, how, take, one_by_one=one_by_one)

    def _batches(self, chains: list[Chain]) -> Iterator[list[Chain]]:
        """Chains of as many kernels as fit into memory together."""
        by_kernel: dict[Any, list[Chain]] = defaultdict(list)
        for chain in chains:
            by_kernel[chain.kernel].append(chain)
        groups = iter(by_kernel.items())
        while some := list(islice(groups, self._at_a_time(chains))):
            for kernel, same in some:
                store = (
                    self.stores.of(kernel)
                    if kernel is not None
                    else self.stores.of_matrix(self._matrix())
                )
                for chain in same:
                    chain.store = store
            batch = [chain for _, same in some for chain in same]
            yield batch
            if not self._comes_back:
                for chain in batch:
                    del chain.store
                del store
                self.stores.forget_kernels()

    def _at_a_time(self, chains: list[Chain]) -> int:
        """How many kernels: enough to keep the threads busy, and no more of them than fit."""
        if 4 * len(self.y) ** 2 * len({chain.kernel for chain in chains}) <= ALWAYS:
            return self.stores.at_a_time
        enough = -(-CHAINS_PER_THREAD * self._threads // len(self.splits))
        return min(self.stores.at_a_time, max(2, enough))

    def _by_settings(self, chains: list[Chain]) -> Iterator[tuple[_How, list[Chain]]]:
        """Chains that are solved in the same way."""
        found: dict[_How, list[Chain]] = defaultdict(list)
        for chain in chains:
            found[_How(chain.family.settings, not chain.is_seeded)].append(chain)
        yield from found.items()

    def _matrix(self) -> Floats:
        assert self.matrix is not None
        return self.matrix

    def _solve(self, chains: list[Chain], how: _How, take: TakeSteps, *, one_by_one: bool) -> None:
        """``take`` is given steps as soon as they are solved, while others are."""
        numbers = [c for c, chain in enumerate(chains) for _ in chain.part.problems]
        first = [numbers.index(c) for c in range(len(chains))]
        factors = [self._factors(chain) for chain in chains]
        found: dict[tuple[int, int], dict[int, _core.Solution]] = defaultdict(dict)
        n_solved = [0] * len(chains)  # steps
        last = perf_counter()

        def finished(number: int, step: int, solution: _core.Solution) -> bool:
            nonlocal last
            c = numbers[number]
            chain = chains[c]
            step += chain.first
            pairs = found[c, step]
            pairs[number - first[c]] = solution
            if len(pairs) < len(chain.part.problems):
                return False
            n_solved[c] += 1
            if one_by_one or n_solved[c] == chain.n_cells - chain.first:
                steps = [step] if one_by_one else list(range(chain.first, chain.n_cells))
                in_order = [[found[c, k][p] for p in range(len(pairs))] for k in steps]
                for k in steps:
                    del found[c, k]
                take(SolvedSteps(chain, steps, in_order, perf_counter() - last))
                last = perf_counter()
            return False

        solve_chains(
            [chains[c].store for c in numbers],
            [chain.family.problems[k] for chain in chains for k in chain.part.problems],
            [chains[c].part.bounds for c in numbers],
            [factors[c][chains[c].first :] for c in numbers],
            how.settings,
            before=[
                _before(chain, factors[c], pair)
                for c, chain in enumerate(chains)
                for pair in range(len(chain.part.problems))
            ],
            cold=how.cold,
            finished=finished,
        )

    def _factors(self, chain: Chain) -> list[float]:
        return [factor_of(self.machines[k]) for k in chain.candidates]

    def _has_values(self, chain: Chain) -> bool:
        """Whether the core can tell what the chain says of test rows: of a C-SVC, whose fold has
        rows of all classes."""
        everyone = len(chain.part.training.order) == len(self.y)
        return type(chain.family.machine) is SVC and everyone and self.matrix is None

    def _solve_cells(self, chains: list[Chain], how: _How, take: TakeValues) -> None:
        """``take`` is given the values of a chain as soon as it is solved, while others are."""
        last = perf_counter()

        def finished(
            number: int,
            values: Floats,
            n_right: list[int],
            n_iter: list[int],
            finite: list[bool],
            unfinished: list[list[_core.Solution]],
        ) -> bool:
            nonlocal last
            of_rows, seconds = values.swapaxes(1, 2), perf_counter() - last
            chain = chains[number]
            take(ValuedSteps(chain, of_rows, n_right, sum(n_iter), finite, unfinished, seconds))
            last = perf_counter()
            return False

        whole = chains[0].family.whole
        assert isinstance(whole, ClassTraining)
        codes = whole.codes.astype(np.int32)
        tests = [self.splits[chain.fold][1] for chain in chains]
        solve_cells(
            [chain.store for chain in chains],
            [chain.family.problems for chain in chains],
            whole.starts,
            [chain.part.bounds for chain in chains],
            [self._factors(chain) for chain in chains],
            [self.position[test] for test in tests],
            [codes[test] for test in tests],
            how.settings,
            share=UNDECIDED,
            tightest=TIGHTEST,
            cold=how.cold,
            finished=finished,
        )


def _go_on(chain: Chain, known: Known) -> bool:
    """Lets a chain begin after what is known of it; whether anything is left to do.

    Where the path goes on is known of the last step, mostly. Where it is not, all steps are solved
    once more: from elsewhere, the others would end a little elsewhere.
    """
    cells = [Cell(candidate, chain.fold) for candidate in chain.candidates]
    chain.known = frozenset(step for step, cell in enumerate(cells) if cell in known.cells)
    if len(chain.known) == len(cells):
        return False
    if not chain.is_seeded:
        chain.candidates = [cell.candidate for cell in cells if cell not in known.cells]
        chain.known = frozenset()
        return True
    last = max((step for step in chain.known if cells[step] in known.states), default=None)
    if last is not None:
        # What is missing before it could not be solved here.
        chain.first, chain.before = last + 1, known.states[cells[last]]
    return chain.first < len(cells)


def _before(chain: Chain, factors: list[float], pair: int) -> tuple[float, Floats, Floats] | None:
    """Where a problem of a chain goes on; None: from nothing."""
    if chain.before is None or not chain.before[pair].converged:
        return None
    state = chain.before[pair]
    return factors[chain.first - 1], state.beta, state.gradient


def _budget(cache_size: str | float, n: int, n_kernels: int) -> int:
    """Bytes for all kernels of a search on n rows."""
    if isinstance(cache_size, str) and 4 * n * n * (n_kernels + 1) > ALWAYS:
        return int(SHARE * available_bytes())
    return budget_bytes(cache_size, n)


def _is_convex(kernel: Kernel | None) -> bool:
    """Whether the kernel is known to be positive semi-definite: the answer is then one, wherever a
    solver starts. LIBSVM starts from nothing, and so has to who wants its answers elsewhere."""
    if kernel is None or kernel.name == "sigmoid":
        return False
    return kernel.name != "poly" or kernel.coef0 >= 0
