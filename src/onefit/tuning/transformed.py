"""What the machine at the end of a pipeline is given in a fold.

The transformers are fitted on the training rows by the pipeline itself, with a fit of its last step
that only takes note of what it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.metaestimators import _safe_split

from onefit.estimators.given import Split, is_given
from onefit.model_selection.pipelines import last_machine


@dataclass
class TransformedFold:
    """Training rows, then test rows, of a fold after the transformers."""

    pipeline: Pipeline  # its transformers are fitted, its machine is not
    train: Any  # as the machine is given them
    test: Any
    X: Any  # both
    y: NDArray[Any]
    split: Split
    seconds: float  # to fit and to transform


def transformed_fold(pipeline: Pipeline, X: Any, y: Any, split: Split) -> TransformedFold | None:
    """The fold, or None where the rows cannot be put together. Raises what transformers raise."""
    began = perf_counter()
    pipeline = clone(pipeline)
    machine = last_machine(pipeline)
    if machine is None or is_given(machine):
        return None
    train_rows, test_rows = split
    X_train, y_train = _safe_split(pipeline, X, y, train_rows)
    X_test, y_test = _safe_split(pipeline, X, y, test_rows, train_rows)
    given: list[tuple[Any, ...]] = []
    attributes: Any = vars(machine)
    attributes["_fit"] = lambda *data: given.append(data)  # in the place of a fit
    try:
        pipeline.fit(X_train, y_train)
    finally:
        del attributes["_fit"]
    [(train, y_train, _)] = given
    test = transformed(pipeline, X_test)
    both = _joined(train, test)
    if both is None:
        return None
    n = both.shape[0] - len(test_rows)
    rows = np.arange(both.shape[0])
    y_both = np.concatenate((np.asarray(y_train), np.asarray(y_test)))
    seconds = perf_counter() - began
    return TransformedFold(pipeline, train, test, both, y_both, (rows[:n], rows[n:]), seconds)


def transformed(pipeline: Any, X: Any) -> Any:
    """The rows as the last step of a pipeline, whose last step may be another, is given them."""
    while isinstance(pipeline, Pipeline):
        for _, _, step in pipeline._iter(with_final=False):
            X = step.transform(X)
        pipeline = pipeline.steps[-1][1]
    return X


def _joined(train: Any, test: Any) -> Any:
    """Both sets of rows in one matrix."""
    how = {"dtype": np.float64, "order": "C", "accept_sparse": "csr"}
    parts = [check_array(part, **how) for part in (train, test)]
    if sp.issparse(parts[0]) != sp.issparse(parts[1]) or parts[0].shape[1] != parts[1].shape[1]:
        return None
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)
