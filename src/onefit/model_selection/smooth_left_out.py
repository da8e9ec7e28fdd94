"""Leave-one-out of smooth machines, by updates of the fit on all rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _clone_parametrized, is_classifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from onefit.estimators.smooth import SmoothMachine
from onefit.estimators.smooth_folds import SharedFits, can_share
from onefit.folds import FoldWork
from onefit.kernels import Floats
from onefit.loo.ledger import LooLedger
from onefit.loo.result import LooResult, OwnValues
from onefit.report.progress import shown
from onefit.smooth.newton import Status
from onefit.smooth.systems import NOT_FINITE

METHODS = ("exact", "approximate")


class SettledBy(StrEnum):
    """What settled a left-out row of a smooth machine."""

    FULL_FIT = "not a support vector"
    UPDATE = "one update of the full fit"
    STEPS = "several updates"
    ESTIMATE = "estimate"
    FAILED = "cannot be fitted"  # without this row


@dataclass(frozen=True)
class SmoothLedger(LooLedger):
    """What a leave-one-out of a smooth machine has paid."""

    @property
    def rules(self) -> dict[Any, FoldWork]:
        found = {}
        for rule in SettledBy:
            rows = np.flatnonzero(self.decided_by == rule).tolist()
            if rows:
                seconds = sum(self.rows[row].seconds for row in rows)
                steps = sum(self.rows[row].n_iter for row in rows)
                found[rule] = FoldWork(steps, "all rows", 0, seconds)
        return found


@dataclass(frozen=True)
class SmoothLooResult(LooResult):
    """Of a smooth machine.

    ``exact_rows`` are those whose value is that of a fit without the row, to the tolerance of fits,
    also of an estimate. It names no row whose fit may have another kernel (``gamma="scale"``),
    other weights (``class_weight="balanced"``), another reduced set or fewer classes.
    """

    exact_rows: NDArray[np.bool_] | None = None


def smooth_leave_one_out(
    machine: SmoothMachine,
    X: Any,
    y: Any,
    method: str,
    sample_weight: Any = None,
    progress: bool | None = None,
) -> SmoothLooResult:
    """Every row by a fit to all others: exactly, or by one Newton step from the fit to all rows."""
    if method not in METHODS:
        names = ", ".join(repr(name) for name in METHODS)
        raise ValueError(
            f"method must be one of {names} for {type(machine).__name__}; got {method!r}."
        )
    machine._validate_params()
    began = perf_counter()
    given, machine = machine, _clone_parametrized(machine)
    data, targets = machine._check_training_data(X, y)
    weights = machine._check_weights(sample_weight, data)
    exact = method == "exact"
    n = _num_samples(data)
    every = np.arange(n)
    shared = None
    if not exact or can_share(given):
        trains = (np.delete(every, row) for row in range(n))
        shared = SharedFits(
            machine, data, targets, weights, trains, n, fixed_columns=not exact, each_row=True
        )
    found = _Rows(machine, data, targets, weights, shared)
    found.full()
    paid = perf_counter() - began
    if shared is not None and (not exact or shared.can_leave_rows_out_at_once()):
        found.at_once(exact)
    else:
        found.one_by_one(every, progress)
    return found.result(exact, paid, perf_counter() - began - paid)


class _Rows:
    """What is found out about left-out rows."""

    def __init__(
        self,
        machine: Any,
        X: Any,
        y: NDArray[Any],
        weights: Floats | None,
        shared: SharedFits | None,
    ) -> None:
        self.machine, self.X, self.y, self.weights, self.shared = machine, X, y, weights, shared
        self.n = _num_samples(X)
        self.parts, self.attributes = machine._parts(y, weights)
        self.n_iter = np.zeros(self.n, dtype=np.int64)
        self.by = np.full(self.n, SettledBy.FULL_FIT, dtype=object)
        self.exact_rows = np.ones(self.n, dtype=bool)
        self.predictions = np.full(self.n, None if is_classifier(machine) else np.nan, dtype=object)

    def full(self) -> None:
        if self.shared is not None:
            self.full_values, self.full_steps = self.shared.full()
        else:
            machine = _clone_parametrized(self.machine).fit(self.X, self.y, self.weights)
            self.full_values, self.full_steps = machine._values(self.X), int(machine.n_iter_.sum())
        self.values = self.full_values.copy()

    def at_once(self, exact: bool) -> None:
        """All rows that leave all classes behind."""
        assert self.shared is not None
        rule = SettledBy.ESTIMATE if not exact else SettledBy.UPDATE
        first_step = np.ones(self.n, dtype=bool)
        for number, part in enumerate(self.parts):
            left = self.shared.left_out(part, exact)
            moved = left.values != self.full_values[part.rows, number]
            self.values[part.rows, number] = left.values
            self.n_iter[part.rows] += left.n_iter
            self.by[part.rows[moved]] = rule
            self.exact_rows[part.rows] &= left.converged
            first_step[part.rows] &= left.first_step
        self._predict()
        if exact:
            self.by[~first_step & (self.by == SettledBy.UPDATE)] = SettledBy.STEPS
            self.one_by_one(self._indispensable())
        else:
            self.exact_rows &= first_step & self.shared.estimates_fits()
            self.exact_rows[self._indispensable()] = False

    def _indispensable(self) -> NDArray[np.intp]:
        """Rows without which a class is gone."""
        if not is_classifier(self.machine):
            return np.empty(0, dtype=np.intp)
        taken = np.ones(self.n, dtype=bool) if self.weights is None else self.weights > 0
        codes = np.searchsorted(self.attributes["classes_"], self.y)
        counts = np.bincount(codes[taken], minlength=len(self.attributes["classes_"]))
        return np.flatnonzero(taken & (counts[codes] == 1))

    def _predict(self) -> None:
        if is_classifier(self.machine):
            self.predictions[:] = self.machine._labels(self.values, self.attributes["classes_"])
        else:
            self.predictions[:] = self.values[:, 0]

    def one_by_one(self, rows: NDArray[np.intp], progress: bool | None = False) -> None:
        """Rows by a fold each."""
        every = np.arange(self.n)
        errors = []
        for row in shown(rows.tolist(), len(rows), "left-out row", progress):
            train, test = np.delete(every, row), np.array([row])
            try:
                values, classes, steps = self._fold(row, train, test)
                if not np.isfinite(values).all():
                    raise ValueError(NOT_FINITE)
            except ValueError as error:
                errors.append(error)
                self.by[row], self.values[row] = SettledBy.FAILED, np.nan
                self.exact_rows[row] = False
                self.predictions[row] = None if is_classifier(self.machine) else np.nan
                continue
            self.n_iter[row] = steps
            self.by[row] = SettledBy.STEPS if steps else SettledBy.FULL_FIT
            same = values.shape[1] == self.values.shape[1]
            self.values[row] = values[0] if same else np.nan
            labelled = is_classifier(self.machine)
            self.predictions[row] = (
                self.machine._labels(values, classes)[0] if labelled else values[0, 0]
            )
        if errors and len(errors) == self.n:
            raise errors[0]
        if errors:
            warnings.warn(
                f"{len(errors)} of {self.n} rows cannot be left out, and have no prediction. The "
                f"first error: {errors[0]}",
                FitFailedWarning,
                stacklevel=4,
            )

    def _fold(
        self, row: int, train: NDArray[np.intp], test: NDArray[np.intp]
    ) -> tuple[Floats, Any, int]:
        if self.shared is not None:
            fold = self.shared.fold(row, train, test)
            steps = sum(s.n_iter for s in fold.model.solutions)
            converged = all(s.status is Status.CONVERGED for s in fold.model.solutions)
            self.exact_rows[row] = converged
            return fold.values, fold.model.attributes.get("classes_"), steps
        X, queries = _safe_indexing(self.X, train), _safe_indexing(self.X, test)
        if self.machine.kernel == "precomputed":
            X, queries = X[:, train], queries[:, train]
        weights = None if self.weights is None else self.weights[train]
        machine = _clone_parametrized(self.machine).fit(X, self.y[train], weights)
        values = machine._values(queries)
        return values, getattr(machine, "classes_", None), int(machine.n_iter_.sum())

    def result(self, exact: bool, full_seconds: float, seconds: float) -> SmoothLooResult:
        classifies = is_classifier(self.machine)
        y = self.y
        predictions = self.predictions
        if (self.by != SettledBy.FAILED).all():
            predictions = predictions.astype(y.dtype if classifies else np.float64)
        elif not classifies:
            predictions = predictions.astype(np.float64)
        unfinished = int(np.sum(~self.exact_rows & (self.by != SettledBy.FAILED)))
        if exact and unfinished:
            warnings.warn(
                f"Newton's method did not converge without {unfinished} of {self.n} rows. Consider "
                "pre-processing your data with StandardScaler or MinMaxScaler, or increase "
                "max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        share = seconds / max(1, int((self.by != SettledBy.FULL_FIT).sum()))
        rows = [
            FoldWork(int(steps), "all rows", 0, 0.0 if by is SettledBy.FULL_FIT else share)
            for steps, by in zip(self.n_iter, self.by, strict=True)
        ]
        full = FoldWork(self.full_steps, "nothing", 0, full_seconds)
        return SmoothLooResult(
            y=y,
            predictions=predictions,
            decision_values=self._decision(self.values),
            full_values=self._decision(self.full_values),
            decided_by=self.by,
            n_iter=self.n_iter,
            exact=exact and not unfinished,
            classifies=classifies,
            ledger=SmoothLedger(full, rows, self.by),
            own_values=OwnValues(self._own(self.values), self._own(self.full_values)),
            exact_rows=self.exact_rows,
        )

    def _decision(self, values: Floats) -> Floats:
        if not is_classifier(self.machine):
            return values[:, 0]
        known: NDArray[np.bool_] = np.asarray(np.isfinite(values).all(axis=1))
        decision = self.machine._decision(
            np.where(known[:, None], values, 0.0), len(self.attributes["classes_"])
        )
        decision = np.array(decision)
        decision[~known] = np.nan
        return decision

    def _own(self, values: Floats) -> Floats:
        """One value a row; with several functions the smallest that its class is in."""
        if not is_classifier(self.machine) or values.shape[1] == 1:
            return np.array(values[:, 0])
        own = np.full(self.n, np.inf)
        for number, part in enumerate(self.parts):
            positive = np.flatnonzero(self.y == part.key[0])
            others = np.flatnonzero(self.y == part.key[1]) if len(part.key) > 1 else positive[:0]
            own[positive] = np.minimum(own[positive], values[positive, number])
            own[others] = np.minimum(own[others], -values[others, number])
        return own
