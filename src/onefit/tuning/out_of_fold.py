"""Decision values of rows by the folds that held them out, kept from a search.

With them calibration, thresholds and curves need no further fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV

from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.given import Split
from onefit.kernels import Floats
from onefit.memory import MEGABYTE
from onefit.tuning.request import Cell

# More than this is not kept.
MOST_BYTES = 512 * MEGABYTE


@dataclass
class OutOfFold:
    """Values of the test rows of every cell, as far as they are known."""

    splits: Sequence[Split]
    y: NDArray[Any]
    machines: dict[int, KernelMachine]
    values: dict[Cell, Floats] = field(default_factory=dict)  # of each pair, or of the function
    is_complete: bool = True
    size: int = 0  # in bytes

    def add(self, cells: Sequence[Cell], values: Sequence[Floats]) -> None:
        for cell, of_cell in zip(cells, values, strict=True):
            self.size += of_cell.nbytes
            if self.size > MOST_BYTES:
                self.is_complete = False
            else:
                self.values[cell] = of_cell

    def of(self, candidate: int) -> Floats:
        """The values of all rows, as ``decision_function`` (or ``predict`` in regression) gives
        them; NaN for rows that no fold held out."""
        folds = range(len(self.splits))
        there = [fold for fold in folds if Cell(candidate, fold) in self.values]
        if len(there) < len(self.splits):
            raise ValueError(
                f"The out-of-fold values of candidate {candidate} are not known: "
                + self._why(candidate)
            )
        counts = np.bincount(
            np.concatenate([test for _, test in self.splits]), minlength=len(self.y)
        )
        if counts.max() > 1:
            raise ValueError(
                "Some rows are held out by several folds, and have several out-of-fold values. "
                "Give a cv that holds out every row at most once."
            )
        machine = self.machines[candidate]
        n_classes = len(np.unique(self.y)) if isinstance(machine, KernelClassifier) else 0
        n_pairs = max(1, n_classes * (n_classes - 1) // 2)
        found: Floats | None = None
        for fold in there:
            values = self.values[Cell(candidate, fold)]
            if values.shape[1] != n_pairs:  # a class is missing in the fold
                continue
            if isinstance(machine, KernelClassifier):
                values = machine._decision_values(values, n_classes)
            else:
                values = values.ravel()
            if found is None:
                found = np.full((len(self.y), *values.shape[1:]), np.nan)
            found[self.splits[fold][1]] = values
        return np.full(len(self.y), np.nan) if found is None else found

    def _why(self, candidate: int) -> str:
        if not self.is_complete:
            return f"those of all candidates take more than {MOST_BYTES // MEGABYTE} MB."
        if candidate not in self.machines:
            return "scikit-learn has fitted it."
        return "it was dropped before all of its folds were done, or some of them failed."


class _Lookup(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier of row numbers that knows its decision values already."""

    def __init__(self, values: Floats | None = None, classes: Any = None) -> None:
        self.values, self.classes = values, classes

    def fit(self, X: Any, y: Any) -> _Lookup:
        self.classes_ = self.classes
        return self

    def decision_function(self, X: Any) -> Floats:
        assert self.values is not None
        values: Floats = self.values[np.asarray(X)[:, 0].astype(np.intp)]
        return values

    def predict(self, X: Any) -> NDArray[Any]:
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])


def calibrated_classifier(
    estimator: Any, values: Floats, y: NDArray[Any], splits: Sequence[Split], method: str
) -> CalibratedClassifierCV:
    """``CalibratedClassifierCV(estimator, ensemble=False)``, fitted without a single further fit.

    scikit-learn fits its calibrators on row numbers, whose decision values are looked up; then the
    fitted ``estimator`` takes the place of the table.
    """
    if np.isnan(values).any():
        raise ValueError(
            "Some rows have no out-of-fold value: calibration needs a cv that holds out every row "
            "once, with all classes in every fold."
        )
    rows = np.arange(len(y), dtype=np.float64).reshape(-1, 1)
    lookup = _Lookup(values, estimator.classes_)
    calibrated = CalibratedClassifierCV(lookup, method=method, cv=list(splits), ensemble=False)
    calibrated.fit(rows, y)
    [inner] = calibrated.calibrated_classifiers_
    inner.estimator = estimator
    calibrated.estimator = estimator
    for name in ("n_features_in_", "feature_names_in_"):
        vars(calibrated).pop(name, None)
        if hasattr(estimator, name):
            setattr(calibrated, name, getattr(estimator, name))
    return calibrated
