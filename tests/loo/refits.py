"""The slow way: a fit for every row, on all others."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing


@dataclass
class Refits:
    """Predictions and values of left-out rows; None and NaN where there is no fit."""

    predictions: list
    values: list  # of every pair, in the units of its problem; of the function
    determined: list  # whether every offset is that of free rows

    @property
    def fitted(self):
        return np.array([prediction is not None for prediction in self.predictions])


def refits(machine, X, y, sample_weight=None):
    """What n fits say."""
    n = len(y)
    predictions, values, determined = [], [], []
    for row in range(n):
        train = np.delete(np.arange(n), row)
        weights = None if sample_weight is None else sample_weight[train]
        one = clone(machine)
        if hasattr(one, "decision_function_shape"):
            one.set_params(decision_function_shape="ovo", break_ties=False)
        if machine.kernel == "precomputed":
            inside, query = X[np.ix_(train, train)], X[[row]][:, train]
        else:
            inside, query = _safe_indexing(X, train), _safe_indexing(X, [row])
        try:
            one.fit(inside, y[train], weights)
        except ValueError:
            predictions.append(None)
            values.append(None)
            determined.append(False)
            continue
        if hasattr(one, "decision_function"):
            of_pairs = np.atleast_1d(one.decision_function(query)[0])
            values.append(of_pairs * getattr(one, "rho_", 1.0))
            one.set_params(**machine.get_params())
        else:
            values.append(one.predict(query))
        predictions.append(one.predict(query)[0])
        determined.append(_has_free_rows(one, weights))
    return Refits(predictions, values, determined)


def _has_free_rows(machine, weights):
    """Whether every offset is that of a free row; else any value between two is right."""
    coef = machine.dual_coef_
    coef = np.abs(coef.toarray() if hasattr(coef, "toarray") else coef)
    bound = np.full(len(machine.support_), float(getattr(machine, "C", 1)))
    if weights is not None:
        bound *= weights[machine.support_]
    if not hasattr(machine, "classes_"):
        return _any_free(coef[0], bound)
    ends = np.cumsum(machine.n_support_)
    of_class = [slice(end - size, end) for end, size in zip(ends, machine.n_support_, strict=True)]
    for k, rows in enumerate(of_class):
        bound[rows] *= machine.class_weight_[k]
    if hasattr(machine, "rho_"):
        return True  # the bounds of ν are those of the margin; these problems have free rows
    pairs = combinations(range(len(of_class)), 2)
    return all(
        _any_free(
            np.append(coef[j - 1, of_class[i]], coef[i, of_class[j]]),
            np.append(bound[of_class[i]], bound[of_class[j]]),
        )
        for i, j in pairs
    )


def _any_free(coef, bound):
    return bool(((coef > 1e-7 * bound) & (coef < (1 - 1e-7) * bound)).any())
