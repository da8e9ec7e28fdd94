"""Solutions in their dual form, looked at in float64, independently of who computed them.

A C-SVC of k classes is k(k-1)/2 binary problems, each

    max_a  sum_i a_i - 1/2 sum_ij c_i K_ij c_j,   c_i = y_i a_i,   0 <= a_i <= C,   sum_i c_i = 0,

with decision values f(x) = sum_i c_i K(x_i, x) + b. A solver with tolerance tol ends where every
row keeps to the optimality (KKT) conditions up to tol:

    a_i = 0: y_i f_i >= 1 - tol;  0 < a_i < C: |y_i f_i - 1| <= tol;  a_i = C: y_i f_i <= 1 + tol.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from .case import Case, Matrix

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Kernel blocks of 64 MB: large enough for BLAS, small enough never to matter.
BLOCK_ENTRIES = 8_000_000
# A multiplier this close to 0 or C (as a share of C) counts as being there: float32 rounding.
AT_BOUND = 1e-6


@dataclass(frozen=True)
class Pair:
    """One binary problem: f > 0 votes for class ``first``, ``coef`` is y * alpha of ``rows``."""

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


@dataclass(frozen=True)
class Dual:
    """All pairs of one solution as one matrix: a line per support row, a column per pair."""

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

    def coef_at(self, rows: IntArray) -> FloatArray:
        """Return the coefficients of any training rows; those outside the support have 0."""
        coef = np.zeros((len(rows), self.coef.shape[1]))
        if len(self.support):
            at = np.minimum(np.searchsorted(self.support, rows), len(self.support) - 1)
            inside = self.support[at] == rows
            coef[inside] = self.coef[at[inside]]
        return coef

    def decisions(self, case: Case, rows: IntArray) -> FloatArray:
        """Return f at training rows ``rows``, a column per pair."""
        values = np.empty((len(rows), self.coef.shape[1]))
        for part, block in kernel_blocks(case, rows, self.support):
            values[part] = block @ self.coef
        return values + self.offsets

    def kkt_violation(self, case: Case, rows: IntArray, values: FloatArray) -> float:
        """Return how far the worst of ``rows``, with decision ``values``, is from optimal."""
        label = case.y[rows][:, None]
        side = np.where(label == self.first, 1.0, np.where(label == self.second, -1.0, np.nan))
        short = 1.0 - side * values  # NaN where the row takes no part in the pair
        alpha = np.abs(self.coef_at(rows))
        violation = np.maximum(
            np.where(alpha < case.C * (1 - AT_BOUND), short, 0.0),  # could still grow
            np.where(alpha > case.C * AT_BOUND, -short, 0.0),  # could still shrink
        )
        return float(max(0.0, np.nanmax(violation, initial=0.0)))

    def infeasibility(self, case: Case) -> float:
        """Return how far the constraints are missed, as a share: box, signs and balance."""
        label = case.y[self.support][:, None]
        side = np.where(label == self.first, 1.0, np.where(label == self.second, -1.0, 0.0))
        alpha = side * self.coef
        above = float(alpha.max()) - case.C
        below = -float(alpha.min())
        stray = float(np.abs(self.coef[side == 0.0]).max(initial=0.0))  # rows of other classes
        unbalanced = np.abs(self.coef.sum(axis=0)) / np.abs(self.coef).sum(axis=0)
        return max(above / case.C, below / case.C, stray / case.C, float(unbalanced.max()))

    def total_alpha(self) -> float:
        """Return the largest sum of alpha of a pair: float32 kernels err by eps/2 times that."""
        return float(np.abs(self.coef).sum(axis=0).max())


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
    """Return the dual objective, summed over the pairs."""
    quadratic = 0.0
    for part, block in kernel_blocks(case, dual.support, dual.support):
        quadratic += float(np.sum(dual.coef[part] * (block @ dual.coef)))
    return float(np.abs(dual.coef).sum()) - quadratic / 2
