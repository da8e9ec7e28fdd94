"""Solutions in their dual form, looked at in float64, independently of who computed them.

``machines.base`` has the problem. A solver with tolerance tol ends where every row keeps to the
optimality (KKT) conditions up to tol: with r = p - f, at every row

    r <= tol + epsilon  where b could grow from 0 or more, r <= tol - epsilon  where it is below 0,
    and the same for -r and -b.

For a C-SVC (epsilon = 0, p = y) this says: y f >= 1 - tol where alpha = |b| is 0, |y f - 1| <= tol
between the bounds, y f <= 1 + tol where alpha = C.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from .case import Case, Matrix
from .machines.base import FloatArray, IntArray

BoolArray = NDArray[np.bool_]

# Kernel blocks of 64 MB: large enough for BLAS, small enough never to matter.
BLOCK_ENTRIES = 8_000_000
# A coefficient this close to 0 or C (as a share of C) counts as being there: float32 rounding.
AT_BOUND = 1e-6
NO_CLASS = 0


@dataclass(frozen=True)
class Pair:
    """One problem: coefficients of ``rows``; f > 0 votes for class ``first``.

    That of a regressor has no classes: both are ``NO_CLASS``.
    """

    first: int
    second: int
    rows: IntArray
    coef: FloatArray
    offset: float

    def ordered(self) -> Pair:
        """Return the same pair with the smaller label first, so that rivals can be compared."""
        if self.first < self.second:
            return self
        return Pair(self.second, self.first, self.rows, -self.coef, -self.offset)


def pairs_of(
    classes: IntArray,
    support: IntArray,
    n_support: IntArray,
    dual_coef: FloatArray,
    offsets: FloatArray,
) -> list[Pair]:
    """Unpack LIBSVM's layout: support rows grouped by class, ``dual_coef`` of k-1 lines.

    The coefficients of class i in its problem against j are in line j-1 if j > i, else in line j.
    """
    starts = np.concatenate([[0], np.cumsum(n_support)]).astype(int)
    pairs: list[Pair] = []
    k = len(classes)
    for i in range(k):
        for j in range(i + 1, k):
            of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            rows = np.concatenate([support[of_i], support[of_j]]).astype(np.int64)
            coef = np.concatenate([dual_coef[j - 1, of_i], dual_coef[i, of_j]]).astype(float)
            first, second = int(classes[i]), int(classes[j])
            pairs.append(Pair(first, second, rows, coef, float(offsets[len(pairs)])).ordered())
    return sorted(pairs, key=lambda pair: (pair.first, pair.second))


def one_function(support: IntArray, coef: FloatArray, offset: float) -> list[Pair]:
    """Return the only problem of a regressor, in the form that classifiers have."""
    rows = np.asarray(support, dtype=np.int64)
    return [Pair(NO_CLASS, NO_CLASS, rows, np.ravel(coef).astype(float), float(offset))]


@dataclass(frozen=True)
class Dual:
    """All problems of one solution as one matrix: a line per support row, a column per problem."""

    first: IntArray
    second: IntArray
    support: IntArray
    coef: FloatArray
    offsets: FloatArray

    @classmethod
    def from_pairs(cls, pairs: list[Pair]) -> Dual:
        support = np.unique(np.concatenate([pair.rows for pair in pairs]))
        coef = np.zeros((len(support), len(pairs)))
        for column, pair in enumerate(pairs):
            coef[np.searchsorted(support, pair.rows), column] = pair.coef
        return cls(
            first=np.array([pair.first for pair in pairs]),
            second=np.array([pair.second for pair in pairs]),
            support=support,
            coef=coef,
            offsets=np.array([pair.offset for pair in pairs]),
        )

    @property
    def problems(self) -> int:
        return int(self.coef.shape[1])

    def coef_at(self, rows: IntArray) -> FloatArray:
        """Return the coefficients of any training rows; those outside the support have 0."""
        coef = np.zeros((len(rows), self.problems))
        if len(self.support):
            at = np.minimum(np.searchsorted(self.support, rows), len(self.support) - 1)
            inside = self.support[at] == rows
            coef[inside] = self.coef[at[inside]]
        return coef

    def decisions(self, case: Case, rows: IntArray) -> FloatArray:
        """Return f at training rows ``rows``, a column per problem."""
        values = np.empty((len(rows), self.problems))
        for part, block in kernel_blocks(case, rows, self.support):
            values[part] = block @ self.coef
        return values + self.offsets

    def off_zero(self, case: Case, rows: IntArray) -> BoolArray:
        """Return which coefficients are not 0."""
        box = case.machine.box(case, self)
        return np.asarray(np.abs(self.coef_at(rows)) > box * AT_BOUND)

    def off_bound(self, case: Case, rows: IntArray) -> BoolArray:
        """Return which coefficients are smaller in size than C."""
        box = case.machine.box(case, self)
        return np.asarray(np.abs(self.coef_at(rows)) < box * (1 - AT_BOUND))

    def kkt_violation(
        self, case: Case, rows: IntArray, values: FloatArray, epsilon: float
    ) -> float:
        """Return how far the worst of ``rows``, with decision ``values``, is from optimal."""
        lo, hi = case.machine.bounds(case, self, rows)
        slack = AT_BOUND * case.machine.box(case, self)
        coef = self.coef_at(rows)
        residual = case.machine.linear(case, self, rows) - values  # NaN: takes no part
        up = residual - np.where(coef >= -slack, epsilon, -epsilon)
        down = residual - np.where(coef > slack, epsilon, -epsilon)
        violation = np.maximum(
            np.where(coef < hi - slack, up, 0.0),  # could still grow
            np.where(coef > lo + slack, -down, 0.0),  # could still shrink
        )
        violation = violation * case.machine.unit(case, self)
        return float(max(0.0, np.nanmax(violation, initial=0.0)))

    def infeasibility(self, case: Case) -> float:
        """Return how far the constraints are missed, as a share: box, signs and balance."""
        lo, hi = case.machine.bounds(case, self, self.support)
        outside = np.maximum(self.coef - hi, lo - self.coef) / case.machine.box(case, self)
        unbalanced = np.abs(self.coef.sum(axis=0)) / np.abs(self.coef).sum(axis=0)
        return max(float(outside.max()), float(unbalanced.max()))

    def total(self, case: Case) -> float:
        """Return the largest sum of |b| of a problem: float32 kernels err by eps/2 times that."""
        unit = case.machine.unit(case, self)
        return float((unit * np.abs(self.coef).sum(axis=0)).max())


def kernel_blocks(
    case: Case, rows: IntArray, columns: IntArray
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield K[rows, columns] in float64, some rows at a time."""
    right: Matrix = case.X[columns]
    step = max(1, BLOCK_ENTRIES // max(1, len(columns)))
    for start in range(0, len(rows), step):
        part = slice(start, min(start + step, len(rows)))
        yield part, rbf_kernel(case.X[rows[part]], right, gamma=case.gamma)


def objective(dual: Dual, case: Case) -> float:
    """Return the dual objective, summed over the problems."""
    quadratic = np.zeros(dual.problems)
    for part, block in kernel_blocks(case, dual.support, dual.support):
        quadratic += np.sum(dual.coef[part] * (block @ dual.coef), axis=0)
    unit = case.machine.unit(case, dual)
    return float(np.sum(case.machine.gain(case, dual) - unit**2 * quadratic / 2))
