"""Cross-validation and leave-one-out of smooth machines, by updates of the fit on all rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _clone_parametrized, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from onefit.estimators.base import HeldOut
from onefit.estimators.given import Split
from onefit.estimators.smooth import PreparedModel, SmoothMachine, in_turn
from onefit.estimators.smooth_folds import SharedFits, can_share
from onefit.estimators.smooth_svc import SmoothSVC
from onefit.folds import FoldWork
from onefit.kernels import Floats
from onefit.loo.ledger import LooLedger
from onefit.loo.result import LooResult, OwnValues
from onefit.model_selection.crossfit import are_different
from onefit.model_selection.each_row import EachRow
from onefit.report.ledger import Ledger
from onefit.report.progress import shown
from onefit.smooth.newton import Status

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
    """Of a smooth machine; ``exact`` also says which rows an estimate is exact for."""

    exact_rows: NDArray[np.bool_] | None = None

    @property
    def predicted(self) -> NDArray[np.bool_]:
        return np.asarray(self.decided_by != SettledBy.FAILED)

    def summary(self) -> str:
        text = super().summary()
        if (self.decided_by == SettledBy.ESTIMATE).any():
            text = text.replace("(not converged)", "(estimate)")
        return text


class SmoothFolds:
    """The folds of a smooth machine, as estimators that are fitted already."""

    def __init__(
        self,
        machine: SmoothMachine,
        X: Any,
        y: Any,
        sample_weight: Any,
        splits: Sequence[Split],
        progress: bool | None,
    ) -> None:
        began = perf_counter()
        self.splits, self._progress, self._given = splits, progress, X
        self._machine = _clone_parametrized(machine)
        checked, targets = self._machine._check_training_data(X, y)
        self._weights = self._machine._check_weights(sample_weight, checked)
        trains = [train for train, _ in splits]
        self._fits = SharedFits(self._machine, checked, targets, self._weights, trains, len(splits))
        self.work: list[FoldWork] = []
        self.full_work = FoldWork(seconds=perf_counter() - began)

    def in_turn(self) -> Any:
        """An estimator whose clones are the folds, one by one."""
        return in_turn(self._machine, self.fits())

    def fits(self) -> Iterator[PreparedModel]:
        name = f"{type(self._machine).__name__}, fold"
        return shown(self._all(), len(self.splits), name, self._progress)

    def _all(self) -> Iterator[PreparedModel]:
        for number, (train, test) in enumerate(self.splits):
            began = perf_counter()
            weights = None if self._weights is None else self._weights[train]
            prepared = PreparedModel(train, weights)
            work = FoldWork(seeded_from="all rows")
            try:
                fold = self._fits.fold(number, train, test)
                prepared.smooth = fold.model
                prepared.held_out = HeldOut(self._given, test, fold.values)
                work.n_iter = sum(s.n_iter for s in fold.model.solutions)
            except ValueError as error:
                prepared.error = error
            work.seconds = perf_counter() - began
            self.work.append(work)
            yield prepared


class FoldScores:
    """An estimator's own score of each fold, straight from the values of held-out rows."""

    def __init__(self, folds: SmoothFolds, machine: SmoothMachine, y: Any) -> None:
        self._scores = []
        y = np.asarray(y)
        for prepared in folds.fits():
            if prepared.error is not None or prepared.smooth is None:
                raise prepared.error or ValueError("A fold was not fitted.")
            assert prepared.held_out is not None
            test, values = prepared.held_out.test, prepared.held_out.values
            if isinstance(machine, SmoothSVC):
                labels = machine._labels(values, prepared.smooth.attributes["classes_"])
                self._scores.append(float(np.mean(labels == y[test])))
            else:
                self._scores.append(float(r2_score(y[test], values[:, 0])))
            if any(s.status is not Status.CONVERGED for s in prepared.smooth.solutions):
                raise ValueError("A fold did not converge.")  # for scikit-learn's way to warn of
        self.ledger = Ledger(folds.work, folds.full_work)

    def scores(self) -> dict[str, Any]:
        """The results of scikit-learn's ``cross_validate``."""
        zeros = np.zeros(len(self._scores))
        return {"fit_time": zeros, "score_time": zeros, "test_score": np.array(self._scores)}


def own_predictions(folds: SmoothFolds, machine: SmoothMachine, n: int, method: str) -> Any:
    """What ``cross_val_predict`` returns, straight from the values of held-out rows.

    None where some rows are held out twice or never, or folds have different classes.
    """
    if not np.array_equal(
        np.sort(np.concatenate([test for _, test in folds.splits])), np.arange(n)
    ):
        return None
    found: NDArray[Any] | None = None
    classes: Any = None
    for prepared in folds.fits():
        if prepared.smooth is None or prepared.held_out is None:
            return None
        if any(s.status is not Status.CONVERGED for s in prepared.smooth.solutions):
            return None
        known: Any = prepared.smooth.attributes.get("classes_")
        if classes is not None and not np.array_equal(known, classes):
            return None
        classes, values = known, prepared.held_out.values
        if method == "predict":
            answer = machine._labels(values, classes) if classes is not None else values[:, 0]
        else:
            answer = machine._decision(values, len(classes))
        if found is None:
            found = np.empty((n, *answer.shape[1:]), dtype=answer.dtype)
        found[prepared.held_out.test] = answer
    return found


def smooth_folds(
    machine: SmoothMachine,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    params: dict[str, Any],
    progress: bool | None,
) -> SmoothFolds | None:
    """The folds of a smooth machine; None where they share nothing, for scikit-learn to fit."""
    plain = isinstance(X, np.ndarray) or sp.issparse(X)
    n = _num_samples(X)
    if set(params) - {"sample_weight"} or not plain or not can_share(machine):
        return None
    if not all(are_different(train, n) for train, _ in splits):
        return None
    try:
        machine._validate_params()
        return SmoothFolds(machine, X, y, params.get("sample_weight"), splits, progress)
    except (TypeError, ValueError):  # for scikit-learn to say, fold by fold
        return None


def smooth_each_row(
    machine: SmoothMachine,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    params: dict[str, Any],
    progress: bool | None,
) -> EachRow | None:
    """Folds of one row each, all at once; None where one cannot be fitted, or has fewer classes."""
    if set(params) - {"sample_weight"} or not can_share(machine):
        return None
    if is_classifier(machine) and np.unique(y, return_counts=True)[1].min() < 2:
        return None
    try:
        weights = params.get("sample_weight")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitFailedWarning)
            result = smooth_leave_one_out(machine, X, y, "exact", weights, progress)
    except (TypeError, ValueError):  # for scikit-learn to say, fold by fold
        return None
    return EachRow(result, splits) if result.predicted.all() and result.exact else None


def own_scores(folds: SmoothFolds, machine: SmoothMachine, y: Any) -> FoldScores | None:
    """The estimator's own score of all folds; None where one has to be reported on."""
    try:
        return FoldScores(folds, machine, y)
    except ValueError:
        folds.work.clear()
        return None


# ---- leave-one-out ------------------------------------------------------------------------------


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
        self.converged = True
        self.predictions = np.full(self.n, None if is_classifier(machine) else np.nan, dtype=object)

    def full(self) -> None:
        if self.shared is not None:
            self.full_values, solutions = self.shared.full()
        else:
            machine = _clone_parametrized(self.machine).fit(self.X, self.y, self.weights)
            self.full_values, solutions = machine._values(self.X), []
        self.full_steps = sum(s.n_iter for s in solutions)
        self.values = self.full_values.copy()

    def at_once(self, exact: bool) -> None:
        """All rows that leave all classes behind."""
        assert self.shared is not None
        rule = SettledBy.ESTIMATE if not exact else SettledBy.UPDATE
        for number, part in enumerate(self.parts):
            left = self.shared.left_out(part, exact)
            moved = left.values != self.full_values[part.rows, number]
            self.values[part.rows, number] = left.values
            self.n_iter[part.rows] += left.n_iter
            self.exact_rows[part.rows] &= left.first_step
            self.by[part.rows[moved]] = rule
            self.converged &= bool(left.converged.all())
        if exact:
            several = ~self.exact_rows & (self.by == SettledBy.UPDATE)
            self.by[several] = SettledBy.STEPS
            self.exact_rows[:] = True
        self._predict()
        if exact:
            self.one_by_one(self._indispensable())

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
            except ValueError as error:
                errors.append(error)
                self.by[row], self.values[row] = SettledBy.FAILED, np.nan
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
            self.converged &= all(s.status is Status.CONVERGED for s in fold.model.solutions)
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
            exact=exact and self.converged,
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
