"""Cross-validation of smooth machines, by updates of the fit on all rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import _clone_parametrized, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import r2_score
from sklearn.utils.validation import _num_samples

from onefit.estimators.base import HeldOut
from onefit.estimators.given import Split
from onefit.estimators.smooth import PreparedModel, SmoothMachine, in_turn
from onefit.estimators.smooth_folds import SharedFits, can_share
from onefit.estimators.smooth_svc import SmoothSVC
from onefit.folds import FoldWork
from onefit.model_selection.crossfit import are_different
from onefit.model_selection.each_row import EachRow
from onefit.model_selection.smooth_left_out import smooth_leave_one_out
from onefit.report.ledger import Ledger
from onefit.report.progress import shown
from onefit.smooth.newton import Status


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
