"""The slow way: a fit for every row, on all others."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing


@dataclass
class Refits:
    """Predictions and values of left-out rows; None and NaN where there is no fit."""

    predictions: list
    values: list  # of every pair, in the units of its problem; of the function
    determined: list  # whether the offset is that of free rows; of regressions

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
    coef = machine.dual_coef_
    share = np.abs(coef.toarray() if hasattr(coef, "toarray") else coef)[0] / getattr(
        machine, "C", 1
    )
    if weights is not None:
        share = share / weights[machine.support_]
    return bool(((share > 1e-7) & (share < 1 - 1e-7)).any())
