"""Kernel rows of all kernels of a search on one data set, within a budget of memory.

RBF kernels share squared distances: their rows are exponentials of one store's. As many kernels are
kept as fit into the budget, the last used ones; others are evaluated again when they come back.
That changes what a search costs, not what it finds. The memory of a kernel that nobody will ask for
again serves the next: fresh memory is cleared by the system first, which takes some machines as
long as the kernel.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats, Kernel, make_store


class Stores:
    """Stores of the rows of X, in one order."""

    def __init__(
        self, X: Any, order: NDArray[np.intp], budget_bytes: int, *, many_gammas: bool
    ) -> None:
        self._X, self._order = X, order
        n = len(order)
        self._distances: _core.KernelStore | None = None
        self._share_distances = many_gammas
        # Distances and one kernel have to be there together.
        self._each = budget_bytes // 2 if many_gammas else budget_bytes
        left = budget_bytes - (min(self._each, 4 * n * n) if many_gammas else 0)
        self.at_a_time = max(1, left // max(1, min(self._each, 4 * n * n)))
        self._kept: OrderedDict[Any, _core.KernelStore] = OrderedDict()
        self._evaluated = 0  # entries of stores that are gone

    def of(self, kernel: Kernel) -> _core.KernelStore:
        """The store of a kernel."""
        return self._get(kernel, lambda: self._make(kernel))

    def of_matrix(self, matrix: Floats) -> _core.KernelStore:
        """The store of a kernel that is given by its values."""

        def make() -> _core.KernelStore:
            return make_store(matrix, None, self._each, rows=self._order)

        return self._get(id(matrix), make)

    @property
    def entries_evaluated(self) -> int:
        """Kernel entries, and distances, so far."""
        return self._evaluated + sum(store.entries_evaluated for store in self._all())

    def forget_kernels(self) -> None:
        """Let go of all kernels; squared distances stay."""
        self._evaluated += sum(store.entries_evaluated for store in self._kept.values())
        self._kept.clear()

    def _all(self) -> list[_core.KernelStore]:
        shared = [] if self._distances is None else [self._distances]
        return [*self._kept.values(), *shared]

    def _get(self, key: Any, make: Any) -> _core.KernelStore:
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        while len(self._kept) >= self.at_a_time:
            _, gone = self._kept.popitem(last=False)
            self._evaluated += gone.entries_evaluated
        self._kept[key] = make()
        return self._kept[key]

    def _make(self, kernel: Kernel) -> _core.KernelStore:
        if kernel.name != "rbf" or not self._share_distances:
            return make_store(self._X, kernel, self._each, rows=self._order)
        if self._distances is None:
            self._distances = make_store(self._X, Kernel("distance"), self._each, rows=self._order)
        return _core.KernelStore.from_distances(self._distances, kernel.gamma, self._each)
