"""The free rows of a path, and how they follow what moves.

With the members of each group marked by a column of E, the changes of their coefficients and of the
groups' offsets solve

    [0  Eᵀ; E  K] [Δo; Δb] = [lack; pull].

Kept is the inverse of K + κ EEᵀ, which exists where that of the whole matrix does: with κ E lack
added to the pull the solution is the same. A row that joins or leaves changes it by a matrix of
rank one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dpotri, dpstrf

from onefit.kernels import Floats
from onefit.seeding.base import Indices

# A row depends on the members if they explain all but this share of its diagonal entry. Less may be
# rounding: entries of equal rows in single precision have been seen to differ by 5e-6.
INDEPENDENT = 1e-5


class Members:
    """Rows that do not depend on one another, their kernel rows, and the inverse.

    They are in no order: the last takes the place of one that leaves. Beyond the last the inverse
    is 0, so that changes of all of it, in place, are changes of the members' part.
    """

    def __init__(self, group: NDArray[np.intp], rows: Indices, kernel: Floats) -> None:
        self._marks = np.eye(2)[group]  # E, of all rows
        self._size = len(rows)
        self._rows, self._kernel = rows, kernel
        self._inverse = np.zeros((self._size, self._size), order="F")
        # κ of the size of the kernel, so that neither hides the other.
        self._lift = float(np.abs(kernel[np.arange(len(rows)), rows]).sum() / max(1, len(rows)))
        self._invert()

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> Indices:
        return self._rows[: self._size]

    def join(self, row: int, kernel: Floats) -> bool:
        """Take a row in, unless it depends on the members."""
        if self._size == len(self._rows):
            self._grow()
        if self._lift == 0.0:
            self._lift = abs(float(kernel[row])) or 1.0
        m, rows = self._size, self.rows
        column = kernel[rows] + self._lift * (self._marks[rows] @ self._marks[row])
        explained = self._inverse[:, :m] @ column
        whole = kernel[row] + self._lift
        rest = whole - column @ explained[:m]
        if not rest > INDEPENDENT * abs(whole):
            return False
        explained[m] = -1.0
        self._add_square(1.0 / rest, explained)
        self._rows[m], self._kernel[m] = row, kernel
        self._size = m + 1
        self._changed()
        return True

    def leave(self, place: int) -> None:
        """Let the member at this place go."""
        last = self._size - 1
        column = self._inverse[:, place].copy()
        self._add_square(-1.0 / column[place], column)
        self._inverse[place] = self._inverse[last]
        self._inverse[:, place] = self._inverse[:, last]
        self._inverse[last] = self._inverse[:, last] = 0.0
        self._rows[place], self._kernel[place] = self._rows[last], self._kernel[last]
        self._size = last
        self._changed()

    def follow(self, pull: Floats, lack: Floats) -> tuple[Floats, Floats, Floats]:
        """The changes of the members, of all gradients through them, and of the offsets.

        A group without members keeps its offset. Not finite where rounding has made it singular.
        """
        m, marks, offsets = self._size, self._marks[self.rows], np.zeros(2)
        present = marks.any(axis=0)
        right = np.column_stack((pull[self.rows] + self._lift * (marks @ lack), marks[:, present]))
        solved = self._inverse[:m, :m] @ right
        sums = marks[:, present].T @ solved
        try:
            offsets[present] = np.linalg.solve(sums[:, 1:], sums[:, 0] - lack[present])
        except np.linalg.LinAlgError:
            offsets[present] = np.nan
        change = solved[:, 0] - solved[:, 1:] @ offsets[present]
        return change, -(change @ self._kernel[:m]), offsets

    def _add_square(self, factor: float, vector: Floats) -> None:
        """A matrix of rank one, added in place."""
        self._inverse = dger(factor, vector, vector, a=self._inverse, overwrite_a=1)

    def _invert(self) -> None:
        """The inverse from scratch, of as many members as do not depend on one another."""
        self._changes = 0
        if not self._size:
            return
        marks = self._marks[self.rows]
        matrix = self._kernel[: self._size, self.rows] + self._lift * (marks @ marks.T)
        least = INDEPENDENT * float(matrix.diagonal().max())
        factor, order, rank, _ = dpstrf(matrix, tol=least, lower=1)
        self._inverse[:] = 0.0
        if rank:
            half = np.tril(dpotri(factor[:rank, :rank], lower=1)[0])
            self._inverse[:rank, :rank] = half + np.tril(half, -1).T
        chosen = order[:rank] - 1
        self._rows[:rank], self._kernel[:rank] = self._rows[chosen], self._kernel[chosen]
        self._size = int(rank)

    def _changed(self) -> None:
        """From scratch now and then, as rounding adds up: about as much work as the changes."""
        self._changes += 1
        if self._changes > max(self._size, 16):
            self._invert()

    def _grow(self) -> None:
        """Room for a quarter as many members again."""
        m, room = self._size, 16 + self._size * 5 // 4
        rows, kernel, inverse = self._rows, self._kernel, self._inverse
        self._rows = np.empty(room, dtype=np.intp)
        self._kernel = np.empty((room, kernel.shape[1]))
        self._inverse = np.zeros((room, room), order="F")
        self._rows[:m], self._kernel[:m], self._inverse[:m, :m] = rows, kernel, inverse
