"""The demonstration: onefit beside scikit-learn on data that scikit-learn ships."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from sklearn import model_selection
from sklearn import svm as sklearn_svm
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from onefit.estimators import SVC
from onefit.model_selection import cross_val_score, leave_one_out
from onefit.report.comparison import Comparison

REPEATS = 15
FOLDS = (10, 100)
LONG_REPEATS = 3  # of work that takes scikit-learn seconds


def timed_pair(
    one: Callable[[], Any], other: Callable[[], Any], repeats: int
) -> tuple[tuple[float, Any], tuple[float, Any]]:
    """Median seconds and result of two functions, called in turns on the same machine."""
    seconds: tuple[list[float], list[float]] = ([], [])
    results: list[Any] = [None, None]
    for _ in range(repeats):
        for k, function in enumerate((one, other)):
            start = time.perf_counter()
            results[k] = function()
            seconds[k].append(time.perf_counter() - start)
    return (median(seconds[0]), results[0]), (median(seconds[1]), results[1])


def breast_cancer() -> list[Comparison]:
    """A fit, a prediction, folds and a leave-one-out on scikit-learn's breast cancer data."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    theirs, ours = sklearn_svm.SVC(C=10), SVC(C=10)

    def support(model: Any) -> str:
        return str(model.n_support_.sum())

    def accuracy(predicted: Any) -> str:
        return f"{(predicted == y).mean():.4f}"

    def mean(scores: Any) -> str:
        return f"{scores.mean():.4f}"

    rows = [
        compared("one fit: SVs", lambda: theirs.fit(X, y), lambda: ours.fit(X, y), support),
        compared("predict: accuracy", lambda: theirs.predict(X), lambda: ours.predict(X), accuracy),
    ]
    for folds in FOLDS:
        rows.append(
            compared(
                f"{folds} folds: accuracy",
                partial(model_selection.cross_val_score, theirs, X, y, cv=folds),
                partial(cross_val_score, ours, X, y, cv=folds),
                mean,
            )
        )
    # With gamma="scale" every left-out row would have a kernel of its own.
    their_auto, our_auto = sklearn_svm.SVC(C=10, gamma="auto"), SVC(C=10, gamma="auto")
    every_row = model_selection.LeaveOneOut()
    rows.append(
        compared(
            "leave one out: accuracy",
            lambda: model_selection.cross_val_predict(their_auto, X, y, cv=every_row),
            lambda: leave_one_out(our_auto, X, y, progress=False).predictions,
            accuracy,
            LONG_REPEATS,
        )
    )
    return rows


def compared(
    task: str,
    theirs: Callable[[], Any],
    ours: Callable[[], Any],
    result: Callable[[Any], str],
    repeats: int = REPEATS,
) -> Comparison:
    """The same work by scikit-learn and by onefit, with what came out in words."""
    (sk_seconds, sk_result), (our_seconds, our_result) = timed_pair(theirs, ours, repeats)
    return Comparison(task, sk_seconds, our_seconds, result(sk_result), result(our_result))
