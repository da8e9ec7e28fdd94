"""The demonstration: onefit beside scikit-learn on data that scikit-learn ships."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from sklearn import svm as sklearn_svm
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from onefit.estimators import SVC
from onefit.report.comparison import Comparison

REPEATS = 15


def timed_pair(
    one: Callable[[], Any], other: Callable[[], Any]
) -> tuple[tuple[float, Any], tuple[float, Any]]:
    """Median seconds and result of two functions, called in turns on the same machine."""
    seconds: tuple[list[float], list[float]] = ([], [])
    results: list[Any] = [None, None]
    for _ in range(REPEATS):
        for k, function in enumerate((one, other)):
            start = time.perf_counter()
            results[k] = function()
            seconds[k].append(time.perf_counter() - start)
    return (median(seconds[0]), results[0]), (median(seconds[1]), results[1])


def breast_cancer() -> list[Comparison]:
    """One fit and one prediction on scikit-learn's breast cancer data."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)

    def support(model: Any) -> str:
        return str(model.n_support_.sum())

    def accuracy(predicted: Any) -> str:
        return f"{(predicted == y).mean():.4f}"

    (sk_seconds, sk_model), (our_seconds, our_model) = timed_pair(
        lambda: sklearn_svm.SVC(C=10).fit(X, y), lambda: SVC(C=10).fit(X, y)
    )
    rows = [
        Comparison(
            "one fit: SVs",
            sk_seconds,
            our_seconds,
            support(sk_model),
            support(our_model),
        )
    ]
    (sk_seconds, sk_labels), (our_seconds, our_labels) = timed_pair(
        lambda: sk_model.predict(X), lambda: our_model.predict(X)
    )
    rows.append(
        Comparison(
            "predict: accuracy", sk_seconds, our_seconds, accuracy(sk_labels), accuracy(our_labels)
        )
    )
    return rows
