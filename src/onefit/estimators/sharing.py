"""The kernel rows that all folds of a data set share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators.base import KernelMachine
from onefit.estimators.given import given_matrix
from onefit.kernels import Floats, Kernel, kernel_matrix, make_store, resolve_gamma
from onefit.memory import ALWAYS, budget_bytes


class SharedKernel:
    """The kernel of a machine on all rows, in the order of its problems.

    Folds read one store. Where γ depends on the rows of a fold ("scale") they share squared
    distances, and each has its own exponential of them; of other kernels they share nothing then.

    Entries are float32. With ``precise`` the core has them in double precision, too, and exactly:
    those of a small matrix are all evaluated so, once.
    """

    def __init__(
        self, machine: KernelMachine, X: Any, order: NDArray[np.intp], *, precise: bool = False
    ) -> None:
        self._machine, self._X, self._order = machine, X, order
        self._precise = precise
        self.precise_matrix: Floats | None = None  # of the fit on all rows
        self.matrix = given_matrix(machine, X)  # of a kernel that is given by its values
        self.of_all: Kernel | None = machine._resolve_kernel(X)  # of the fit on all rows
        self._shared: _core.KernelStore | None = None

    @property
    def depends_on_fold(self) -> bool:
        machine = self._machine
        return machine.gamma == "scale" and machine.kernel in ("rbf", "poly", "sigmoid")

    @property
    def is_symmetric(self) -> bool:
        """Whether the kernel of two rows is known to be that of the two the other way round."""
        if self.matrix is None:
            return not callable(self._machine.kernel)
        return bool((self.matrix == self.matrix.T).all())

    def of(self, train: NDArray[np.intp]) -> Kernel | None:
        """The kernel of a fit on these rows."""
        kernel = self.of_all
        if kernel is None or not self.depends_on_fold:
            return kernel
        return replace(kernel, gamma=resolve_gamma("scale", self._X[train]))

    def in_blocks(self, starts: Sequence[int]) -> _core.KernelStore:
        """The rows of a kernel that does not depend on the fold, by blocks of columns."""
        budget = budget_bytes(self._machine.cache_size, len(self._order))
        return self.store(self.of_all).in_blocks(budget, starts)

    def store(self, kernel: Kernel | None) -> _core.KernelStore:
        """The rows of one of these kernels."""
        machine, n = self._machine, len(self._order)
        if not self.depends_on_fold:
            if self._shared is None and self.matrix is not None:
                budget = budget_bytes(machine.cache_size, n)
                self._shared = make_store(self.matrix, None, budget, rows=self._order)
            elif self._shared is None and kernel is not None and self._has_room():
                self.precise_matrix = kernel_matrix(self._X, kernel)
                self._shared = self._of_matrix(self.precise_matrix)
            elif self._shared is None:
                self._shared = machine._store(self._X, kernel, self._order)
            return self._shared
        assert kernel is not None
        budget = budget_bytes(machine.cache_size, n) // 2
        if kernel.name != "rbf":
            return make_store(self._X, kernel, budget, rows=self._order)
        if self._shared is None:
            distances = Kernel("distance")
            if self._has_room():
                self._shared = self._of_matrix(kernel_matrix(self._X, distances))
            else:
                self._shared = make_store(self._X, distances, budget, rows=self._order)
        return _core.KernelStore.from_distances(self._shared, kernel.gamma, budget)

    def _has_room(self) -> bool:
        """Whether entries in double precision are wanted, and there is memory for all of them."""
        n = len(self._order)
        room = min(ALWAYS, budget_bytes(self._machine.cache_size, n))
        return self._precise and 8 * n**2 <= room

    def _of_matrix(self, matrix: Floats) -> _core.KernelStore:
        budget = budget_bytes(self._machine.cache_size, len(self._order))
        return make_store(matrix, None, budget, rows=self._order)
