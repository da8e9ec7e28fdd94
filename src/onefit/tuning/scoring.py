"""Scores of many cells from their decision values, with scikit-learn's numbers.

A scorer of scikit-learn asks an estimator for predictions, checks them and calls a function: a
fifth to two milliseconds each time, many times what a small cell takes to solve. Here the answers
are known. Common scores are computed from them by the same arithmetic, so that the same bits come
out; other functions of labels or of decision values are called by scikit-learn's scorers, with an
object in the place of the estimator that only hands out its answers. Scorers that may ask for more
than that get the fitted estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer
from sklearn.model_selection._validation import _score
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _check_method_params

from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import KernelClassifier
from onefit.kernels import Floats
from onefit.tuning.request import Request


@dataclass
class Answers:
    """What a fitted machine says of some rows."""

    machine: KernelMachine
    values: Floats  # of each pair of classes, or of the function
    classes: NDArray[Any] | None  # of the fold; None in regression

    @cached_property
    def labels(self) -> NDArray[Any]:
        """Predictions: classes, or numbers in regression."""
        if self.classes is None:
            return self.values.ravel()
        assert isinstance(self.machine, KernelClassifier)
        return self.machine._labels(self.values, self.classes)

    @property
    def decision_values(self) -> Floats:
        """As ``decision_function`` gives them."""
        assert isinstance(self.machine, KernelClassifier)
        assert self.classes is not None
        return self.machine._decision_values(self.values, len(self.classes))


class _Classifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Hands the answers of a fitted classifier to a scorer, whatever rows it is given."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.classes_ = answers.classes

    def predict(self, X: Any) -> NDArray[Any]:
        return self.answers.labels

    def decision_function(self, X: Any) -> Floats:
        return self.answers.decision_values


class _Regressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Likewise."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def predict(self, X: Any) -> NDArray[Any]:
        return self.answers.labels


@cache
def _stand_in(name: str, classifies: bool) -> Any:
    """A class with the name of the machine: scorers tell of it what is missing."""
    return type(name, (_Classifier if classifies else _Regressor,), {})


# A score of the true and the predicted targets.
Formula = Callable[[NDArray[Any], Answers], float]


class Scoring:
    """The scores of a search's cells."""

    def __init__(self, request: Request, machine: KernelMachine) -> None:
        self._scorer = request.option("scorer")
        self._error_score = request.option("error_score")
        y = request.y
        self._y = np.asarray(y) if getattr(y, "ndim", 1) == 1 else y
        self._params = request.option("score_params") or {}
        self._X = request.X
        self._targets: dict[int, NDArray[Any]] = {}
        self._signs: dict[int, NDArray[np.int8]] = {}
        self._rows: list[NDArray[np.intp]] = []  # kept, or their ids might be used again
        self._formulas = self._known(machine)

    @property
    def needs_estimator(self) -> bool:
        """Whether the scorer may ask for more than predictions and decision values."""
        return not all(
            isinstance(scorer, _BaseScorer)
            or (isinstance(scorer, _PassthroughScorer) and self._own_score)
            for scorer in self._each()
        )

    @property
    def is_accuracy(self) -> bool:
        """Whether the share of right labels is all that is asked."""
        return self._formulas is not None and self._formulas.get("score") is _accuracy

    def shares_of_right(
        self, rows: NDArray[np.intp], values: Floats, classes: NDArray[Any]
    ) -> list[float]:
        """The accuracy of each line of decision values of two classes."""
        if id(rows) not in self._signs:
            y = self._targets_of(rows)
            signs = np.where(y == classes[1], 1, np.where(y == classes[0], 0, -1))
            self._signs[id(rows)] = signs.astype(np.int8)
        right = (values >= 0) == self._signs[id(rows)]
        return (right.sum(axis=1) / values.shape[1]).tolist()  # type: ignore[no-any-return]

    def scores(self, rows: NDArray[np.intp], answers: Answers) -> Any:
        """What scikit-learn's scorer gives for these rows: a number, or one by name."""
        y = self._targets_of(rows)
        if self._formulas is not None:
            scores = {name: formula(y, answers) for name, formula in self._formulas.items()}
            return scores if isinstance(self._scorer, _MultimetricScorer) else scores["score"]
        name = type(answers.machine).__name__
        stand_in = _stand_in(name, answers.classes is not None)(answers)
        params = _check_method_params(self._X, params=self._params, indices=rows)
        return _score(stand_in, rows, y, self._scorer, params, self._error_score)

    def scores_of(self, estimator: Any, X: Any, rows: NDArray[np.intp]) -> Any:
        """The same by a fitted estimator."""
        params = _check_method_params(self._X, params=self._params, indices=rows)
        y = self._targets_of(rows)
        return _score(estimator, X, y, self._scorer, params, self._error_score)

    def _targets_of(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        # Folds are the same arrays every time.
        if id(rows) not in self._targets:
            self._targets[id(rows)] = _safe_indexing(self._y, rows)
            self._rows.append(rows)
        return self._targets[id(rows)]

    def _each(self) -> Sequence[Any]:
        if isinstance(self._scorer, _MultimetricScorer):
            return list(self._scorer._scorers.values())
        return [self._scorer]

    def _known(self, machine: KernelMachine) -> dict[str, Formula] | None:
        """Formulas of all scores, or None where one of them has none here."""
        classifies = isinstance(machine, KernelClassifier)
        base = ClassifierMixin if classifies else RegressorMixin
        self._own_score = type(machine).score is base.score
        if self._params or not isinstance(self._y, np.ndarray) or self._y.ndim != 1:
            return None
        # Whole numbers and strings are classes without a look.
        plain = not classifies or self._y.dtype.kind in "biuUS"
        if not plain and type_of_target(self._y) not in ("binary", "multiclass"):
            return None
        multi = isinstance(self._scorer, _MultimetricScorer)
        scorers = self._scorer._scorers if multi else {"score": self._scorer}
        formulas = {name: self._formula(scorer, classifies) for name, scorer in scorers.items()}
        if any(formula is None for formula in formulas.values()):
            return None
        return {name: formula for name, formula in formulas.items() if formula is not None}

    def _formula(self, scorer: Any, classifies: bool) -> Formula | None:
        if isinstance(scorer, _PassthroughScorer):
            if not self._own_score:
                return None
            return _accuracy if classifies else _r2
        if not isinstance(scorer, _BaseScorer) or scorer._kwargs:
            return None
        formula = (FOR_CLASSES if classifies else FOR_NUMBERS).get(scorer._score_func)
        if formula is None or scorer._response_method != "predict":
            return None
        sign = scorer._sign
        if sign == 1:
            return formula
        return lambda y, answers: sign * formula(y, answers)


# ---- the arithmetic of sklearn.metrics, without its checks --------------------------------------


def _accuracy(y: NDArray[Any], answers: Answers) -> float:
    return float(np.count_nonzero(y == answers.labels) / len(y))


def _balanced_accuracy(y: NDArray[Any], answers: Answers) -> float:
    """The mean over the classes of y of the share that is found again."""
    classes, codes = np.unique(y, return_inverse=True)
    sizes = np.bincount(codes)
    found = np.bincount(codes[y == answers.labels], minlength=len(classes))
    if not np.isin(answers.labels, classes, assume_unique=False).all():
        # scikit-learn warns of classes that are predicted but are not there.
        return float(metrics.balanced_accuracy_score(y, answers.labels))
    return float(np.mean(found / sizes))


def _errors(y: NDArray[Any], answers: Answers) -> Floats:
    errors: Floats = y - answers.labels
    return errors.reshape(-1, 1)


def _squared_error(y: NDArray[Any], answers: Answers) -> float:
    return float(np.average(np.average(_errors(y, answers) ** 2, axis=0)))


def _root_squared_error(y: NDArray[Any], answers: Answers) -> float:
    return float(np.average(np.sqrt(np.average(_errors(y, answers) ** 2, axis=0))))


def _absolute_error(y: NDArray[Any], answers: Answers) -> float:
    return float(np.average(np.average(np.abs(_errors(y, answers)), axis=0)))


def _r2(y: NDArray[Any], answers: Answers) -> float:
    if len(y) < 2:  # scikit-learn warns that there is none
        return float(metrics.r2_score(y, answers.labels))
    column = y.reshape(-1, 1)
    left = np.sum(_errors(y, answers) ** 2, axis=0)
    total = np.sum((column - np.average(column, axis=0)) ** 2, axis=0)
    if left[0] == 0 or total[0] == 0:
        return float(metrics.r2_score(y, answers.labels))
    return float(np.average(1 - left / total))


FOR_CLASSES: dict[Any, Formula] = {
    metrics.accuracy_score: _accuracy,
    metrics.balanced_accuracy_score: _balanced_accuracy,
}
FOR_NUMBERS: dict[Any, Formula] = {
    metrics.r2_score: _r2,
    metrics.mean_squared_error: _squared_error,
    metrics.root_mean_squared_error: _root_squared_error,
    metrics.mean_absolute_error: _absolute_error,
}
