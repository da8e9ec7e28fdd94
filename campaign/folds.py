"""What a fold may say: intervals of its held-out values and of its scores, from a tight refit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from campaign.case import Case
from campaign.classes import fits
from campaign.kernels import of_user
from campaign.reference import Intervals, Reference

TRANSFORMERS = {"standard": StandardScaler, "minmax": MinMaxScaler}
# Scores of labels, of the order of decision values, and of numbers.
OF_LABELS = ("accuracy", "balanced_accuracy", "f1_macro", "precision_micro")
OF_NUMBERS = ("r2", "neg_mean_absolute_error", "neg_mean_squared_error", "max_error")


@dataclass
class Fold:
    """A tight refit to the training rows of a fold; ``error`` where there is none."""

    case: Case
    train: np.ndarray
    test: np.ndarray
    params: dict[str, Any] = field(default_factory=dict)
    optimum: bool = False  # see Reference

    def __post_init__(self) -> None:
        X, y = self.case.X, self.case.y
        weight = self.case.weight
        weight = None if weight is None else weight[self.train]
        self.transform = transformer(self.case, X[self.train])
        params = {**fits.params_of_rows(self.case), **self.params}
        rows = self.transform(X[self.train])
        self.reference = Reference(self.case, rows, y[self.train], weight, params, self.optimum)

    def intervals(self, rows: np.ndarray | None = None) -> Intervals:
        rows = self.test if rows is None else rows
        return self.reference.intervals(self.transform(self.case.X[rows]))

    def score(self, scoring: Any, rows: np.ndarray) -> tuple[float, float]:
        """A score and how far it may be off; infinitely where there is a tie."""
        found, y = self.intervals(rows), self.case.y[rows]
        if scoring is None:
            scoring = "accuracy" if self.case.classifies else "r2"
        known = self.reference
        value = float(_scorer(scoring)(Known(found, known.classes), None, y))
        return value, _tolerance(scoring, found, y)


class Known:
    """An estimator whose values are known, for scorers."""

    def __init__(self, intervals: Intervals, classes: np.ndarray | None) -> None:
        self.intervals = intervals
        if classes is not None:
            self.classes_ = classes
            self._estimator_type = "classifier"

    def __sklearn_tags__(self) -> Any:
        from sklearn.svm import SVC, SVR

        return (SVR() if self.intervals.classes is None else SVC()).__sklearn_tags__()

    def fit(self) -> None: ...

    def predict(self, X: Any) -> np.ndarray:
        if self.intervals.classes is None:
            return self.intervals.centre[:, 0]
        return self.intervals.labels

    def decision_function(self, X: Any) -> np.ndarray:
        return -self.intervals.centre[:, 0]


def share_of_first(estimator: Any, X: Any, y: Any) -> float:
    """A scorer of the user's: the share of predictions that equal the first target."""
    return float(np.mean(estimator.predict(X) == y[0]))


def _scorer(scoring: Any) -> Any:
    return scoring if callable(scoring) else get_scorer(scoring)


def _tolerance(scoring: Any, found: Intervals, y: np.ndarray) -> float:
    if found.classes is not None and scoring != "roc_auc":
        return np.inf if found.ties.any() else 1e-9
    if scoring == "roc_auc":
        order = np.argsort(found.low[:, 0])
        touching = found.high[order[:-1], 0] >= found.low[order[1:], 0]
        # Equal rows have equal values, whoever computes them.
        same = found.centre[order[:-1], 0] == found.centre[order[1:], 0]
        return np.inf if (touching & ~same).any() else 1e-9
    residual, apart = np.abs(y - found.centre[:, 0]), found.width[:, 0]
    squares = float(np.mean(2 * residual * apart + apart**2))
    if scoring == "r2":
        variance = float(np.var(y))
        return 1e-9 + squares / variance * (1 + 1e-6) if variance > 0 else np.inf
    if scoring == "neg_mean_squared_error":
        return squares + 1e-9 * float(np.mean(residual**2) + np.mean(y**2))
    if scoring in ("neg_mean_absolute_error", "max_error"):
        return float(apart.max()) + 1e-9 * float(np.abs(y).max())
    return np.inf


def transformer(case: Case, rows: np.ndarray) -> Any:
    name = case.options.get("pipeline")
    if name is None:
        return lambda X: X
    return TRANSFORMERS[name]().fit(rows).transform


def kernel_of(case: Case) -> Any:
    return of_user if case.options.get("given") == "callable" else case.params.get("kernel", "rbf")
