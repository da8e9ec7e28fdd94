"""A search shared out to processes, for who has chosen a back end of joblib that works with them.

Threads on one set of kernels are faster, and the default. With ``backend="loky"``, dask or ray
every worker is given some of the kernels, with all their C and folds, and does what one process
does. Each gets the data once, also where every kernel and fold is a task of its own, so that it can
be kept as soon as it is done: rows are arguments of the tasks, of which loky makes memory maps and
dask sends one copy to a worker. Of ray the same has to be asked (:class:`Lent`).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _num_samples

from onefit.estimators.base import KernelMachine
from onefit.kernels import Floats
from onefit.memory import MEGABYTE, budget_bytes
from onefit.tuning.candidates import key_of
from onefit.tuning.engine import Engine, in_turn
from onefit.tuning.families import OF_KERNEL
from onefit.tuning.ledger import SearchLedger
from onefit.tuning.outcomes import Take
from onefit.tuning.request import Cell, Known, Outcome, Request
from onefit.tuning.workload import NOTHING_KNOWN

Some = tuple[list[Cell], list[Outcome], list[Floats] | None]
Results = tuple[list[Some], SearchLedger]


class ProcessEngine(Engine):
    """Runs the cells of a request in several processes."""

    def __init__(self, request: Request, *, processes: int, **how: Any) -> None:
        super().__init__(request, **how)
        self._processes = processes

    def run(self, cells: Iterable[Cell], take: Take, known: Known = NOTHING_KNOWN) -> None:
        cells = list(cells)
        ours = [cell for cell in cells if cell.candidate in self.machines]
        # Of a path that was cut all cells are solved again: workers keep no solutions.
        parts = [part for part in self._parts(ours) if not known.cells.issuperset(part)]
        if parts:
            self._run_parts(parts, take, known)
        others = [c for c in cells if c.candidate not in self.machines and c not in known.cells]
        self._run_by_sklearn(others, take)

    def _run_parts(self, parts: list[list[Cell]], take: Take, known: Known) -> None:
        request = replace(
            self._request, X=None, y=None, splits=[], contexts={}, options=self._plain_options()
        )
        data = [lent(value) for value in (self._request.X, self._request.y, self._all_rows())]
        how = (self._cold, self._memory(len(parts)))
        calls = (delayed(run_part)(*data, self._sizes(), request, part, *how) for part in parts)
        for done, ledger in in_turn(calls, self._processes):
            self.ledger.add(ledger)
            for cells, outcomes, values in done:
                new = [cell not in known.cells for cell in cells]
                some = list(compress(cells, new))
                for cell in some:
                    self._request.tell(cell)
                of_some = None if values is None else list(compress(values, new))
                take(some, list(compress(outcomes, new)), of_some, None)

    def _all_rows(self) -> NDArray[np.intp]:
        """Those of all folds, one after the other: back ends share arrays, not lists of them."""
        return np.concatenate([rows for split in self._request.splits for rows in split])

    def _sizes(self) -> list[int]:
        return [len(rows) for split in self._request.splits for rows in split]

    def _plain_options(self) -> dict[str, Any]:
        """Those that a worker needs: its callers are in this process."""
        left_out = {"caller": None, "callback_ctx": None}
        options = self._request.options
        return options | {k: v for k, v in left_out.items() if k in options}

    def _memory(self, parts: int) -> float | None:
        """Megabytes for each worker, where what is free is for all of them."""
        if not any(machine.cache_size == "auto" for machine in self.machines.values()):
            return None
        budget = budget_bytes("auto", _num_samples(self._request.X)) / MEGABYTE
        return budget / max(1, min(parts, self._processes))

    def _parts(self, cells: list[Cell]) -> list[list[Cell]]:
        """The cells of each worker, kernel by kernel; or of single folds, where each is kept."""
        by_kernel: dict[Any, list[Cell]] = defaultdict(list)
        for cell in cells:
            fold = cell.fold if self._one_by_one else None
            by_kernel[_kernel_key(self.machines[cell.candidate]), fold].append(cell)
        if self._one_by_one:
            return list(by_kernel.values())
        if len(by_kernel) < self._processes:  # too few to go round: by folds, too
            folds: dict[Any, list[Cell]] = defaultdict(list)
            for cell in cells:
                folds[_kernel_key(self.machines[cell.candidate]), cell.fold].append(cell)
            by_kernel = folds
        parts: list[list[Cell]] = [[] for _ in range(min(self._processes, len(by_kernel)))]
        for same in sorted(by_kernel.values(), key=len, reverse=True):
            min(parts, key=len).extend(same)
        return parts


def _kernel_key(machine: KernelMachine) -> tuple[Any, ...]:
    return tuple(key_of(getattr(machine, name)) for name in sorted(OF_KERNEL))


@dataclass(frozen=True)
class Lent:
    """Something in the object store of ray, from where workers read it: ray would copy an argument
    for every task."""

    reference: Any

    def get(self) -> Any:
        import ray

        return ray.get(self.reference)


def lent(value: Any) -> Any:
    """The value as a task is given it."""
    backend, _ = get_active_backend()
    if not type(backend).__module__.startswith("ray."):
        return value
    return Lent(sys.modules["ray"].put(value))


def run_part(
    X: Any,
    y: Any,
    rows: Any,
    sizes: list[int],
    request: Request,
    cells: list[Cell],
    cold: bool,
    megabytes: float | None,
) -> Results:
    """In a worker: these cells, and what they took."""
    X, y, rows = (value.get() if isinstance(value, Lent) else value for value in (X, y, rows))
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    splits = list(zip(parts[::2], parts[1::2], strict=True))
    engine = Engine(replace(request, X=X, y=y, splits=splits), n_jobs=1, cold=cold)
    if megabytes is not None:
        for machine in engine.machines.values():
            machine.cache_size = megabytes
    done: list[Some] = []
    engine.run(cells, lambda some, outcomes, values, _: done.append((some, outcomes, values)))
    return done, engine.ledger
