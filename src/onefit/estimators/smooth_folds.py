"""A smooth machine on all rows, and on those of each fold, sharing features and factorisations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from onefit.estimators.smooth import (
    Part,
    SmoothMachine,
    SmoothModel,
    bytes_of_fit,
    own_columns,
)
from onefit.estimators.smooth_features import Features, is_given, resolved
from onefit.kernels import Floats
from onefit.memory import budget_for
from onefit.smooth.design import Rows, quiet
from onefit.smooth.folds import Rule, Whole, bytes_of_influence
from onefit.smooth.left_out import NOBODY, LeftOut, left_out
from onefit.smooth.newton import Solution, Task
from onefit.smooth.starts import start_of
from onefit.smooth.systems import NOT_FINITE


def can_share(machine: SmoothMachine) -> bool:
    """Whether folds have the same kernel, and rows by which their columns are known."""
    depends_on_fold = machine.gamma == "scale" and machine.kernel in ("rbf", "poly", "sigmoid")
    unknown_rows = machine.reduced is not None and is_given(machine.kernel)
    return not (depends_on_fold or unknown_rows)


@dataclass
class FittedFold:
    """A fold, and its values of the rows that it holds out."""

    model: SmoothModel
    values: Floats  # of shape (n_rows, n_functions)


@dataclass
class _Whole:
    """One function on all rows."""

    part: Part
    columns: Rows | None  # positions of its columns among those of all functions
    whole: Whole


class SharedFits:
    """Fits of one machine to parts of one data set, each by an update of that to all of it."""

    @quiet()
    def __init__(
        self,
        machine: SmoothMachine,
        X: Any,
        y: NDArray[Any],
        weights: Floats | None,
        trains: Iterable[Rows],
        n_folds: int,
        fixed_columns: bool = False,
        each_row: bool = False,
    ) -> None:
        """With ``fixed_columns`` a reduced set is that of all rows, less what a fold lacks.

        ``each_row`` says that fold k is all rows but k.
        """
        self._machine, self.X, self.y, self.weights = machine, X, y, weights
        self.n, self._n_folds = _num_samples(X), n_folds
        positive = None if weights is None else np.maximum(weights, 0.0)
        self.kernel = resolved(
            machine.kernel, machine.gamma, machine.coef0, machine.degree, X, positive
        )
        self._seed = machine._seed()
        self._taken = np.arange(self.n) if positive is None else np.flatnonzero(positive)
        self._keys = np.empty(0, dtype=np.uint64)
        self._fixed = fixed_columns or machine.reduced is None
        # The keys of the columns of a fold.
        self._choice: Callable[[int], NDArray[np.uint64]] = lambda number: self._whole_keys
        columns = self._all_columns(trains, each_row)
        width = X.shape[1] if columns is None else len(columns)
        leaving = 0 if columns is None else width
        budget = budget_for(
            machine.cache_size,
            bytes_of_fit(machine.update, self.n, width, columns is not None)
            + bytes_of_influence(self.n, 1 + width, leaving),
        )
        machine._check_size(self.n, columns, budget)
        self._features = Features(
            machine.kernel, self.kernel, X, columns, machine.intercept_scaling, budget
        )
        self._rule = Rule(machine.update, float(machine.tol), int(machine.max_iter), budget)
        self.parts, self.attributes = machine._parts(y, weights)
        self._wholes: dict[tuple[Any, ...], _Whole] = {}
        for part in self.parts:
            self._wholes[part.key] = self._solve(part)

    # ---- columns --------------------------------------------------------------------------------

    def _all_columns(self, trains: Iterable[Rows], each_row: bool) -> Rows | None:
        """The columns of all rows and of all folds."""
        machine = self._machine
        if machine.kernel == "linear" and machine.reduced is None:
            return None
        used = self.X if len(self._taken) == self.n else _safe_indexing(self.X, self._taken)
        self._keys = np.zeros(self.n, dtype=np.uint64)
        self._keys[self._taken] = machine._selection(self._seed).keys(machine.kernel, used)
        self._whole_keys = self._keys[self._chosen(self._taken)]
        needed = {self._whole_keys.tobytes(): self._whole_keys}
        if not self._fixed:
            for keys in self._fold_keys(trains, each_row):
                needed.setdefault(keys.tobytes(), keys)
        wanted = np.unique(np.concatenate(list(needed.values())))
        known, first = np.unique(self._keys[self._taken], return_index=True)
        return np.sort(self._taken[first[np.searchsorted(known, wanted)]])

    def _fold_keys(self, trains: Iterable[Rows], each_row: bool) -> Iterator[NDArray[np.uint64]]:
        """The keys of the columns of every fold, and what gives them again."""
        without = self._machine._selection(self._seed).without_each(self._keys[self._taken])
        if each_row and without is not None:
            place = np.full(self.n, -1, dtype=np.intp)
            place[self._taken] = np.arange(len(self._taken))

            def of_row(row: int) -> NDArray[np.uint64]:
                return self._whole_keys if place[row] < 0 else without(int(place[row]))

            self._choice = of_row
            yield from map(of_row, range(self.n))
            return
        taken = np.zeros(self.n, dtype=bool)
        taken[self._taken] = True
        choices: list[NDArray[np.uint64]] = []
        for train in trains:
            choices.append(self._keys[self._chosen(train[taken[train]])])
            yield choices[-1]
        self._choice = choices.__getitem__

    def _chosen(self, rows: Rows) -> Rows:
        """The columns of a fit to these rows."""
        machine, X = self._machine, self.X
        if machine.reduced == "incremental" and len(rows) < self.n:
            X = _safe_indexing(X, rows)
        selection = machine._selection(self._seed)
        return rows[selection.choose(self._keys[rows], machine.kernel, self.kernel, X)]

    def _kept(self, number: int | None, rows: Rows) -> NDArray[np.bool_] | None:
        """Which columns of all folds a fold has that is fitted to these rows; None: features."""
        columns = self._features.columns
        if columns is None:
            return None
        if self._machine.reduced is None:
            return np.isin(self._keys[columns], self._keys[rows])
        keys = self._whole_keys if number is None else self._choice(number)
        return np.isin(self._keys[columns], keys)

    def _solve(self, part: Part) -> _Whole:
        machine, columns = self._machine, self._features.columns
        everything = len(part.rows) == self.n
        mine = None
        if machine.reduced is None and not everything:
            mine = own_columns(self._keys, columns, part.rows)
        design = self._features.design(None if everything else part.rows, mine)
        task = Task(design, machine._loss(), part.y, part.c)
        leaving = np.empty(0, dtype=np.intp) if columns is None else np.arange(1, design.p)
        square = None
        if columns is not None and machine.reduced is None:
            every = columns if mine is None else columns[mine]
            square = np.searchsorted(part.rows, every)
        start = start_of(task, self._rule.update, self._rule.budget, square)
        return _Whole(part, mine, Whole(task, self._rule, leaving, start, self._n_folds))

    # ---- folds ----------------------------------------------------------------------------------

    @quiet()
    def full(self) -> tuple[Floats, int]:
        """Values of all rows by the fit to all of them, and the Newton steps that it took."""
        thetas, solutions = self._thetas(self.parts, None, np.arange(self.n))
        steps = sum(solution.n_iter for solution in solutions)  # with the columns of folds or not
        steps += sum(found.whole.solution.n_iter for found in self._wholes.values())
        return self._features.design().values(thetas.T), steps

    @quiet()
    def fold(self, number: int, train: Rows, test: Rows) -> FittedFold:
        """The fit to these rows."""
        weights = None if self.weights is None else self.weights[train]
        parts, attributes = self._machine._parts(self.y[train], weights)
        parts = [replace(part, rows=train[part.rows]) for part in parts]
        thetas, solutions = self._thetas(parts, number, train)
        values = self._features.values(test, thetas)
        if not np.isfinite(values).all():
            raise ValueError(NOT_FINITE)
        taken = train if weights is None else train[weights > 0]
        kept = self._kept(number, taken)
        if kept is None:
            model = SmoothModel(thetas, None, self.kernel, solutions, attributes)
            return FittedFold(model, values)
        assert self._features.columns is not None
        places = np.flatnonzero(kept)
        wanted = self._keys[self._features.columns[places]]
        keys, first = np.unique(self._keys[taken], return_index=True)
        rows = taken[first[np.searchsorted(keys, wanted)]]
        position = np.full(self.n, -1, dtype=np.intp)
        position[train] = np.arange(len(train))
        order = np.argsort(position[rows])
        thetas = np.column_stack([thetas[:, 0], thetas[:, 1 + places[order]]])
        columns = position[rows][order]
        return FittedFold(SmoothModel(thetas, columns, self.kernel, solutions, attributes), values)

    def _thetas(
        self, parts: Sequence[Part], number: int | None, rows: Rows
    ) -> tuple[Floats, list[Solution]]:
        """The coefficients of functions of a fold, of all columns."""
        columns = self._features.columns
        width = self._features.phi.shape[1] if columns is None else len(columns)
        thetas = np.zeros((len(parts), 1 + width))
        solutions = []
        for k, part in enumerate(parts):
            solution, here = self._part(part, number)
            thetas[k, here] = solution.theta
            solutions.append(solution)
        return thetas, solutions

    def _part(self, part: Part, number: int | None) -> tuple[Solution, Any]:
        """One function of a fold, and where its coefficients are."""
        found = self._wholes[part.key]
        c = np.zeros(len(found.part.rows))
        c[np.searchsorted(found.part.rows, part.rows)] = part.c
        kept = self._kept(number, part.rows)
        gone = np.empty(0, dtype=np.intp)
        here: Any = slice(None)
        if kept is not None:
            if found.columns is not None:
                kept = kept[found.columns]
                here = np.concatenate([[0], 1 + found.columns])
            gone = 1 + np.flatnonzero(~kept)
        return found.whole.fold(c, gone), here

    # ---- left-out rows --------------------------------------------------------------------------

    def can_leave_rows_out_at_once(self) -> bool:
        """Whether leaving a row out changes nothing but that row, and one column at most."""
        several = len(self.parts) > 1 and any(len(p.rows) < len(self._taken) for p in self.parts)
        if self._is_balanced() or (several and self._machine.reduced is not None):
            return False
        return self._fixed or all(len(self._missing(row)) <= 1 for row in range(self.n))

    def _missing(self, number: int) -> Rows:
        """Columns of all folds that a fold lacks."""
        assert self._features.columns is not None
        every = self._keys[self._features.columns]
        return np.flatnonzero(~np.isin(every, self._choice(number)))

    def estimates_fits(self) -> NDArray[np.bool_]:
        """Rows without which a fit has the kernel, weights and columns that an estimate takes."""
        if not can_share(self._machine) or self._is_balanced():
            return np.zeros(self.n, dtype=bool)
        same = np.ones(self.n, dtype=bool)
        if self._features.columns is not None:
            selection = self._machine._selection(self._seed)
            same[self._taken] = selection.unchanged_without(self._keys[self._taken])
        return same

    def _is_balanced(self) -> bool:
        return getattr(self._machine, "class_weight", None) == "balanced"

    @quiet()
    def left_out(self, part: Part, exact: bool = True) -> LeftOut:
        """Values of all rows of a function, each without it."""
        found = self._wholes[part.key]
        rows = found.part.rows
        gone = np.full(len(rows), NOBODY, dtype=np.intp)
        columns = self._features.columns
        if columns is not None and self._fixed:
            # All functions have the columns of a reduced set: one leaves with the last row of all.
            among = rows if self._machine.reduced is None else self._taken
            keys, counts = np.unique(self._keys[among], return_counts=True)
            mine = columns if found.columns is None else columns[found.columns]
            place = np.full(len(keys), NOBODY, dtype=np.intp)
            known = np.isin(self._keys[mine], keys)
            place[np.searchsorted(keys, self._keys[mine[known]])] = 1 + np.flatnonzero(known)
            codes = np.searchsorted(keys, self._keys[rows])
            gone = np.where(counts[codes] == 1, place[codes], NOBODY)
        elif columns is not None:
            for k, row in enumerate(rows):
                missing = self._missing(int(row))
                gone[k] = 1 + missing[0] if len(missing) else NOBODY
        left = left_out(found.whole, gone, exact)
        if not np.isfinite(left.values).all():
            raise ValueError(NOT_FINITE)
        return left
