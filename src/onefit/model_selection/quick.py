"""Scores of folds straight from their decision values.

scikit-learn takes about a millisecond a fold to clone, slice and score, several times what a fold
of some hundred rows takes to fit. For an estimator's own score none of that is needed.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from onefit.estimators.base import KernelMachine, Prepared
from onefit.estimators.classification import KernelClassifier
from onefit.model_selection.crossfit import CrossFit
from onefit.solver import warn_if_unfinished

# With more folds than this their fits are not kept until all are done.
MOST_FOLDS = 200


def fits(crossfit: CrossFit, estimator: KernelMachine, scoring: Any) -> list[Prepared] | None:
    """The fits of all folds, or None where another score is asked for.

    None too where a fold holds no row out: what that means is for scikit-learn to say.
    """
    if not is_own_score(estimator, scoring) or len(crossfit.splits) > MOST_FOLDS:
        return None
    if any(len(test) == 0 for _, test in crossfit.splits):
        return None
    return list(crossfit.fits())


def is_own_score(estimator: KernelMachine, scoring: Any) -> bool:
    """Whether this is what ``estimator.score`` gives."""
    if isinstance(estimator, KernelClassifier) and not estimator._can_predict:
        return False  # for scikit-learn to say
    classifies = isinstance(estimator, KernelClassifier) or is_classifier(estimator)
    own = "accuracy" if classifies else "r2"
    return scoring is None or (isinstance(scoring, str) and scoring == own)


def all_succeeded(fits: list[Prepared]) -> bool:
    return all(fit.error is None for fit in fits)


def scores(
    crossfit: CrossFit, estimator: KernelMachine, fits: list[Prepared], y: Any
) -> dict[str, Any]:
    """The results of scikit-learn's ``cross_validate`` with the score of the estimator."""
    y = np.asarray(y)
    test_scores, seconds = [], []
    for fit, (_, test) in zip(fits, crossfit.splits, strict=True):
        began = perf_counter()
        warn_if_unfinished(fit.solutions, crossfit.settings)
        assert fit.held_out is not None
        assert fit.model is not None
        if isinstance(estimator, KernelClassifier):
            labels = estimator._labels(fit.held_out.values, fit.model.attributes["classes_"])
            test_scores.append(float(np.mean(labels == y[test])))
        else:
            test_scores.append(float(r2_score(y[test], fit.held_out.values.ravel())))
        seconds.append(perf_counter() - began)
    return {
        "fit_time": np.zeros(len(fits)),
        "score_time": np.array(seconds),
        "test_score": np.array(test_scores),
    }
