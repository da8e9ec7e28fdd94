r"""Which rows are the columns of a kernel: all that are different, or a few of them.

A reduced machine has :math:`k(x_i, z_j)` for a few rows z, the reduced set. RSVM draws them at
random; IRSVM goes through the rows and takes one whose column is further than a threshold from the
span of those it has, :math:`r = \|(I - P) k(X, x)\|`, until several rows in succession bring
nothing.

Rows are drawn in an order that depends on their content and a seed, not on where they are: without
some other rows, as in a fold, the same rows come first. This is what folds share.

Lee & Mangasarian, "RSVM: Reduced support vector machines", SDM 2001; Lee, Lo & Huang, "Incremental
reduced support vector machines", 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from onefit.kernels import Floats

Keys = NDArray[np.uint64]
Rows = NDArray[np.intp]
Columns = Callable[[Rows], Floats]  # the kernel columns of some rows

# The size of a random set: 35 of 350 rows and 46 of 768, as in the papers, and 400 of 500,000.
SIZE_FACTOR = 5.0

# IRSVM begins with so many rows.
FIRST = 2

# The sequential version looks at so many kernel columns at a time, still one after another.
AT_A_TIME = 32

# A column whose distance to the others is less than this share of its length adds only rounding.
INDEPENDENT = 1e-7

_ODD = np.uint64(0x9E3779B97F4A7C15)


def row_keys(X: Any, seed: int) -> Keys:
    """A number for each row that looks random and depends on its entries only; equal rows, equal
    keys. Dense and sparse rows with the same entries have the same keys."""
    with np.errstate(over="ignore"):
        salt = _mixed(np.arange(X.shape[1], dtype=np.uint64) * _ODD + np.uint64(seed) + _ODD)
        if sp.issparse(X):
            entries = _mixed(_bits(X.data) ^ salt[X.indices])
            entries[X.data == 0] = 0
            sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries)])
            keys = sums[X.indptr[1:]] - sums[X.indptr[:-1]]
        else:
            keys = np.zeros(X.shape[0], dtype=np.uint64)
            for j in range(X.shape[1]):
                column = X[:, j]
                keys += np.where(column != 0, _mixed(_bits(column) ^ salt[j]), np.uint64(0))
        return _mixed(keys + np.uint64(seed))


def _bits(values: Floats) -> Keys:
    return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)


def _mixed(keys: Keys) -> Keys:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def distinct(keys: Keys) -> Rows:
    """The first row of each key, in the order of the rows."""
    return np.sort(np.unique(keys, return_index=True)[1])


def in_order(keys: Keys) -> Rows:
    """The first row of each key, in the order of the keys."""
    return np.asarray(np.unique(keys, return_index=True)[1], dtype=np.intp)


def measured_rows(keys: Keys, most: int) -> Rows | None:
    """So many rows on which distances are measured; None for all, where there are no more.

    They depend on their content, like the order in which rows are drawn, but not on that order.
    """
    if len(keys) <= most:
        return None
    with np.errstate(over="ignore"):
        return np.sort(np.argsort(_mixed(keys * _ODD), kind="stable")[:most])


def automatic_size(n_different: int) -> int:
    return min(n_different, int(np.ceil(SIZE_FACTOR * n_different ** (1 / 3))))


def random_sets_without(keys: Keys, size: int | None) -> Callable[[int], Keys]:
    """A function that gives the keys of the random set without one of these rows."""
    order, counts = np.unique(keys, return_counts=True)
    fewer = automatic_size(len(order) - 1) if size is None else size
    same = automatic_size(len(order)) if size is None else size

    def without(row: int) -> Keys:
        place = int(np.searchsorted(order, keys[row]))
        if counts[place] > 1:
            return np.asarray(order[:same])
        first = order[: fewer + 1]
        return np.asarray(np.delete(first, place) if place < len(first) else first[:fewer])

    return without


def unchanged_without(keys: Keys, size: int | None) -> NDArray[np.bool_]:
    """Rows without which the random set of these rows is the same."""
    order, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    now, then = (
        automatic_size(n) if size is None else min(size, n) for n in (len(order), len(order) - 1)
    )
    return np.asarray((counts[codes] > 1) | ((codes >= now) & (now == then)))


def random_set(keys: Keys, size: int | None) -> Rows:
    """RSVM: so many different rows, those with the smallest keys; by default as n grows."""
    order = in_order(keys)
    return np.sort(order[: automatic_size(len(order)) if size is None else size])


def incremental_set(
    keys: Keys,
    columns: Columns,
    threshold: float,
    batch_size: int,
    failures: int,
    most: int | None = None,
) -> Rows:
    """IRSVM: rows whose kernel columns are further than ``threshold`` from the span of the others.

    A distance is a root mean square over the rows, :math:`r / \\sqrt n`, or over those that
    ``columns`` has. With a ``batch_size`` of 1
    every row is tested against all that were taken before it (the sequential version); else all of
    a batch against those that were taken before the batch. It ends after so many ``failures`` in
    succession, or with ``most`` rows.
    """
    order = in_order(keys)
    most = len(order) if most is None else min(most, len(order))
    chosen = order[: min(FIRST, most)].tolist()
    first_columns = columns(order[: len(chosen)])
    span = _Span(len(first_columns))
    for column in first_columns.T:
        span.append(column)
    size = batch_size if batch_size > 1 else AT_A_TIME
    failed = 0
    for first in range(len(chosen), len(order), size):
        if len(chosen) >= most or failed >= failures:
            break
        batch = order[first : first + size]
        candidates = columns(batch)
        rests = span.rests(candidates)
        before = np.sqrt(np.mean(rests * rests, axis=0))
        for k, row in enumerate(batch.tolist()):
            if len(chosen) >= most or failed >= failures:
                break
            distance = before[k]
            if batch_size == 1:
                distance = np.sqrt(np.mean(rests[:, k] ** 2))
            if distance <= threshold:
                failed += 1
                continue
            failed = 0
            chosen.append(row)
            direction = span.append(candidates[:, k])
            if batch_size == 1 and direction is not None:
                rests -= np.outer(direction, direction @ rests)
    return np.sort(np.array(chosen, dtype=np.intp))


class _Span:
    """An orthonormal basis of the span of columns, to which columns are appended."""

    def __init__(self, n: int) -> None:
        self._room = np.empty((n, AT_A_TIME), order="F")
        self._size = 0

    @property
    def _basis(self) -> Floats:
        return self._room[:, : self._size]

    def rests(self, columns: Floats) -> Floats:
        """Columns less their part in the span; twice is enough (Kahan and Parlett)."""
        for _ in range(2):
            columns = columns - self._basis @ (self._basis.T @ columns)
        return columns

    def append(self, column: Floats) -> Floats | None:
        """The direction that a column adds; None for a near-copy, as a batch may have."""
        rest = self.rests(column)
        length = float(np.linalg.norm(rest))
        if not length > INDEPENDENT * float(np.linalg.norm(column)):
            return None
        if self._size == self._room.shape[1]:
            room = np.empty((len(column), 2 * self._size), order="F")
            room[:, : self._size] = self._room
            self._room = room
        self._room[:, self._size] = rest / length
        self._size += 1
        return np.asarray(self._room[:, self._size - 1])
