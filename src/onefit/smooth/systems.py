r"""Newton systems :math:`Hz = -g`, :math:`H = I + A^\top S A`, followed as few rows of S change.

Strategy I keeps a factor of H (p × p); strategy II one of :math:`B = S_{SV}^{-1} + A_{SV}
A_{SV}^\top` (support vectors × support vectors), with :math:`H^{-1} = I - A_{SV}^\top B^{-1}
A_{SV}`. When r rows change, only a system of r × r is new:

.. math:: (H + U^\top E U)^{-1} = H^{-1} - H^{-1}U^\top (E^{-1} + U H^{-1} U^\top)^{-1} U H^{-1}

for I; for II the rows that come are appended to B, and those that leave are held at 0 by a
multiplier each. Both are taken from the last *factorisation*, never from an earlier update: nothing
accumulates, and a factorisation is made again as soon as it is cheaper. Inverses are never formed.

Tseng & Lee, "Rank-r updating techniques for fast exact cross-validation", whose explicit inverses
these factors replace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from inspect import signature

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from onefit.kernels import Floats
from onefit.smooth import blocks
from onefit.smooth.design import Design, Rows

UPDATES = ("auto", "inverse", "dual", "none")

# An update of r rows takes about 2rp² operations with a factor; a new factorisation takes rp² and
# p³/3 of them. Below this share of p updates pay.
WORTH_UPDATING = 0.25

# Systems smaller than this are factorised in the time that the calls of an update take.
SMALL = 48

# Of its largest diagonal entry, added to a matrix that is not positive definite.
RIDGE = 1e-15

# Conjugate gradients: a Newton step is exact enough with this, and the gradient is checked anyway.
CONJUGATE_TOLERANCE = 1e-4
CONJUGATE_STEPS = 100
# Before SciPy 1.12 the relative tolerance has another name, and atol another default.
TOLERANCE_OF_CG = "rtol" if "rtol" in signature(cg).parameters else "tol"
SPARSE_PRODUCT = 20  # times as long as an operation in a product of dense matrices


NOT_FINITE = (
    "The objective or its derivatives are not finite. The input data may contain large values and "
    "need to be preprocessed, or C is too large."
)


class System(ABC):
    """A way to solve the Newton systems of one machine."""

    factorisations = 0
    updates = 0

    @abstractmethod
    def move(self, curvatures: Floats) -> None:
        """To the system with these curvatures of the rows, weights included."""

    @abstractmethod
    def cost(self, curvatures: Floats) -> float:
        """About how many multiplications :meth:`move` would take."""

    @abstractmethod
    def solve(self, right: Floats) -> Floats:
        """H⁻¹ times a vector, or several columns."""

    def settle(self, curvatures: Floats) -> None:
        """To the system with these curvatures, with a factorisation of its own."""
        self.move(curvatures)

    def influence(self, columns: Rows) -> Floats:
        """ÃH⁻¹Ãᵀ with the rows of A, and those of the unit matrix of these columns."""
        raise MemoryError("The influence of all rows needs a factor of the system.")

    def branch(self) -> System:
        """Another system that begins where this one is."""
        return copy(self)

    def primal(self) -> PrimalSystem | None:
        """The system of coefficients, if there is one."""
        return None


class PrimalSystem(System):
    """Strategy I, or without ``updating`` a factorisation of H every time."""

    def __init__(self, design: Design, updating: bool = True) -> None:
        self._design, self._updating = design, updating
        self._at = np.zeros(design.n)  # curvatures of the factorisation
        self._hessian: Floats | None = None
        self._factor: blocks.Factor = (np.eye(0), True)
        self._changed: Rows = np.empty(0, dtype=np.intp)
        self._rows = self._spread = self._inner = np.empty((0, 0))

    def cost(self, curvatures: Floats) -> float:
        p = float(self._design.p)
        changes = int(np.count_nonzero(curvatures != self._at))
        active = int(np.count_nonzero(curvatures))
        if self._is_near(changes):
            return 2.0 * changes * p * p
        formed = min(changes, active) if self._updating else active
        return formed * p * p + p**3 / 3

    def move(self, curvatures: Floats) -> None:
        changes = np.flatnonzero(curvatures != self._at)
        if self._is_near(len(changes)):
            self._update(changes, curvatures)
        else:
            self._factorise(changes, curvatures)

    def _is_near(self, changes: int) -> bool:
        p = self._design.p
        factorised = self._updating and self._hessian is not None
        return factorised and (changes == 0 or (p > SMALL and changes < WORTH_UPDATING * p))

    def _factorise(self, changes: Rows, curvatures: Floats) -> None:
        if self._updating and self._hessian is not None and 2 * len(changes) < self._design.n:
            self._hessian = self._hessian + self._design.gram(curvatures - self._at)
        else:
            self._hessian = self._design.gram(curvatures)
            self._hessian[np.diag_indices_from(self._hessian)] += 1.0
        self._factor = _cholesky(self._hessian)
        self._at = curvatures.copy()
        self._changed = np.empty(0, dtype=np.intp)
        self.factorisations += 1

    def _update(self, changes: Rows, curvatures: Floats) -> None:
        self._changed = changes
        if len(changes) == 0:
            return
        self._rows = self._design.rows(changes)
        self._spread = blocks.cholesky_solve(self._factor, self._rows.T)
        inner = blocks.product(self._rows, self._spread)
        inner[np.diag_indices_from(inner)] += 1.0 / (curvatures - self._at)[changes]
        self._inner = inner
        self.updates += 1

    def solve(self, right: Floats) -> Floats:
        solved = blocks.cholesky_solve(self._factor, right)
        if len(self._changed):
            # Rows that leave make it indefinite.
            solved = solved - self._spread @ blocks.solve(self._inner, self._rows @ solved)
        return solved

    def settle(self, curvatures: Floats) -> None:
        changes = np.flatnonzero(curvatures != self._at)
        if len(changes) or self._hessian is None:
            self._factorise(changes, curvatures)
        self._changed = changes[:0]

    def influence(self, columns: Rows) -> Floats:
        n, p = self._design.n, self._design.p
        rows = np.zeros((n + len(columns), p))
        rows[:n] = self._design.rows(np.arange(n))
        rows[n + np.arange(len(columns)), columns] = 1.0
        half = blocks.half_solve(self._factor, rows.T)
        return blocks.gram(half)

    def primal(self) -> PrimalSystem | None:
        return self

    def restricted(self, design: Design, columns: Rows) -> PrimalSystem:
        """The system of a design that has only these columns of this one."""
        system = PrimalSystem(design, self._updating)
        assert self._hessian is not None
        system._hessian = self._hessian[np.ix_(columns, columns)]
        system._factor = _cholesky(system._hessian)
        system._at = self._at
        return system


class DualSystem(System):
    """Strategy II, or without ``updating`` a factorisation of B every time."""

    def __init__(self, design: Design, updating: bool = True) -> None:
        self._design, self._updating = design, updating
        self._at: Floats | None = None  # curvatures of the factorisation
        self._base: Rows = np.empty(0, dtype=np.intp)
        self._factor: blocks.Factor = (np.eye(0), True)
        self._now: Rows = self._base
        self._leaving: Rows = self._base  # positions in the base
        self._coming: Rows = self._base  # rows
        self._border = self._spread = np.empty((0, 0))
        self._schur: Floats | None = None

    def cost(self, curvatures: Floats) -> float:
        # Cubes of the rows of a large data set do not fit in 64 bits.
        active, p = float(np.count_nonzero(curvatures)), float(self._design.p)
        if self._is_near(curvatures):
            changes = float(np.count_nonzero(curvatures != self._at))
            return 2.0 * changes * active * active + changes * active * p
        return active * active * p + active**3 / 3

    def move(self, curvatures: Floats) -> None:
        if self._is_near(curvatures):
            self._update(curvatures)
        else:
            self._factorise(curvatures)

    def _is_near(self, curvatures: Floats) -> bool:
        if not self._updating or self._at is None:
            return False
        changed = curvatures != self._at
        if np.any(changed & (curvatures > 0) & (self._at > 0)):
            return False  # another weight on the diagonal
        return bool(np.count_nonzero(changed) < WORTH_UPDATING * len(self._base))

    def _factorise(self, curvatures: Floats) -> None:
        rows = np.flatnonzero(curvatures)
        system = self._design.cross(rows, rows)
        system[np.diag_indices_from(system)] += 1.0 / curvatures[rows]
        if len(rows):
            self._factor = _cholesky(system)
        self._base = self._now = rows
        self._at = curvatures.copy()
        self._schur = None
        self.factorisations += 1

    def _update(self, curvatures: Floats) -> None:
        assert self._at is not None
        self._coming = np.flatnonzero((curvatures > 0) & (self._at == 0))
        self._leaving = np.flatnonzero(curvatures[self._base] == 0)
        self._schur = None
        if len(self._coming) + len(self._leaving) == 0:
            return
        units = np.zeros((len(self._base), len(self._leaving)))
        units[self._leaving, np.arange(len(self._leaving))] = 1.0
        border = np.hstack([self._design.cross(self._base, self._coming), units])
        self._border = border
        self._spread = blocks.cholesky_solve(self._factor, border)
        schur = -blocks.product(border.T, self._spread)
        size = len(self._coming)
        schur[:size, :size] += self._design.cross(self._coming, self._coming)
        schur[np.arange(size), np.arange(size)] += 1.0 / curvatures[self._coming]
        self._schur = schur
        self.updates += 1

    def solve(self, right: Floats) -> Floats:
        if self._schur is None:
            if len(self._base) == 0:
                return right.copy()
            products = self._design.values(right, self._base)
            solved = blocks.cholesky_solve(self._factor, products)
            return np.asarray(right - self._design.sums(solved, self._base))
        products = self._design.values(right, self._base)
        rest = np.zeros((self._spread.shape[1], *right.shape[1:]))
        rest[: len(self._coming)] = self._design.values(right, self._coming)
        solved = blocks.cholesky_solve(self._factor, products)
        border = blocks.solve(self._schur, rest - self._border.T @ solved)
        solved = solved - self._spread @ border
        solved[self._leaving] = 0.0
        sums = self._design.sums(solved, self._base)
        return np.asarray(
            right - sums - self._design.sums(border[: len(self._coming)], self._coming)
        )

    def settle(self, curvatures: Floats) -> None:
        if self._at is None or np.any(curvatures != self._at):
            self._factorise(curvatures)
        self._schur = None

    def influence(self, columns: Rows) -> Floats:
        n, every = self._design.n, np.arange(self._design.n)
        influence = np.zeros((n + len(columns), n + len(columns)))
        influence[:n, :n] = self._design.cross(every, every)
        products = np.empty((len(self._base), n + len(columns)))
        products[:, :n] = influence[self._base, :n]
        if len(columns):
            influence[:n, n:] = self._design.rows(every)[:, columns]
            influence[n:, :n] = influence[:n, n:].T
            influence[n + np.arange(len(columns)), n + np.arange(len(columns))] = 1.0
            products[:, n:] = influence[self._base, n:]
        if len(self._base):
            blocks.add_gram(influence, blocks.half_solve(self._factor, products), -1.0)
        return influence


def _cholesky(matrix: Floats) -> blocks.Factor:
    """The factor of a positive definite matrix; of a little more where rounding made it less.

    A Newton step with a larger matrix is a shorter one: it costs steps and not exactness.
    """
    ridge = RIDGE * float(np.abs(np.diag(matrix)).max(initial=0.0))
    while True:
        try:
            return blocks.cholesky(matrix)
        except np.linalg.LinAlgError:
            if not 0 < ridge < np.inf:
                raise ValueError(NOT_FINITE) from None
            matrix = matrix + ridge * np.eye(len(matrix))
            ridge *= 100


class CheapestSystem(System):
    """Whichever of strategy I and II takes less for the next move; ``size`` is that of I."""

    def __init__(self, size: int, *systems: System) -> None:
        self._size, self._systems = size, systems
        self._chosen = systems[0]

    def cost(self, curvatures: Floats) -> float:
        return min(system.cost(curvatures) for system in self._systems)

    def move(self, curvatures: Floats) -> None:
        self._chosen = min(self._systems, key=lambda system: system.cost(curvatures))
        self._chosen.move(curvatures)
        self.factorisations = sum(system.factorisations for system in self._systems)
        self.updates = sum(system.updates for system in self._systems)

    def solve(self, right: Floats) -> Floats:
        return self._chosen.solve(right)

    def settle(self, curvatures: Floats) -> None:
        self._chosen = self.smallest(curvatures)
        self._chosen.settle(curvatures)

    def smallest(self, curvatures: Floats) -> System:
        """The one whose system is the smaller: of coefficients, or of support vectors."""
        primal, dual = self._systems
        return dual if 2 * np.count_nonzero(curvatures) < self._size else primal

    def influence(self, columns: Rows) -> Floats:
        return self._chosen.influence(columns)

    def primal(self) -> PrimalSystem | None:
        return self._systems[0].primal()

    def branch(self) -> System:
        return CheapestSystem(self._size, *(system.branch() for system in self._systems))


class IterativeSystem(System):
    """Conjugate gradients, where neither system fits in memory."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._curvatures = np.zeros(design.n)
        self._active = design

    def cost(self, curvatures: Floats) -> float:
        return 100.0 * float(np.count_nonzero(curvatures)) * self._design.p

    def move(self, curvatures: Floats) -> None:
        rows = np.flatnonzero(curvatures)
        self._curvatures = curvatures[rows]
        self._active = self._design.with_rows(rows)

    def _product(self, vector: Floats) -> Floats:
        vector = vector.ravel()
        scaled = self._curvatures * self._active.values(vector)
        return np.asarray(vector + self._active.sums(scaled))

    def solve(self, right: Floats) -> Floats:
        if right.ndim > 1:
            return np.column_stack([self.solve(column) for column in right.T])
        size = self._design.p
        operator = LinearOperator((size, size), matvec=self._product, dtype=np.float64)
        tolerance = {TOLERANCE_OF_CG: CONJUGATE_TOLERANCE}
        solved, _ = cg(operator, right, atol=0.0, maxiter=10 * CONJUGATE_STEPS, **tolerance)
        return np.asarray(solved)


def bytes_of_system(update: str, n: int, p: int) -> int:
    """Of a system of this way and its factor."""
    size = {"inverse": p, "dual": n}.get(update, min(n, p))
    return 16 * size**2


def make_system(update: str, design: Design, budget: int | None = None) -> System:
    """The way of this name; "none" and "auto" take the smaller system at every step.

    One that is larger than ``budget`` bytes, with its factor, is never formed.
    """
    smaller = min(design.n, design.p)
    if budget is not None and bytes_of_system(update, design.n, design.p) > budget:
        return IterativeSystem(design)
    products = CONJUGATE_STEPS * SPARSE_PRODUCT * design.n * design.width
    if update in ("auto", "none") and design.is_sparse and products < smaller**3 / 3:
        return IterativeSystem(design)
    if update == "inverse":
        return PrimalSystem(design)
    if update == "dual":
        return DualSystem(design)
    updating = update == "auto"
    if design.p <= 2 * SMALL:  # the dual would hardly ever be smaller
        return PrimalSystem(design, updating)
    systems = PrimalSystem(design, updating), DualSystem(design, updating)
    return CheapestSystem(design.p, *systems)
