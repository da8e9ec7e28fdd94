"""Folds of one row each: what leave-one-out says of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import FitFailedWarning

from onefit.estimators.base import KernelMachine
from onefit.estimators.given import Split
from onefit.loo.answers import exact_result, needs_values
from onefit.loo.exact import LeaveOneOutFit
from onefit.loo.left_out import Proofs
from onefit.loo.result import LooResult
from onefit.report.ledger import Ledger


class Wanted(Enum):
    """What is asked of the folds, beyond which they need not be known."""

    MODELS = auto()
    VALUES = auto()
    LABELS = auto()


class EachRow:
    """Every row by a fit to all others, in the order of the folds."""

    def __init__(self, result: LooResult, splits: Sequence[Split]) -> None:
        self._result = result
        self._rows = np.concatenate([test for _, test in splits])

    @property
    def predictions(self) -> NDArray[Any]:
        return self._result.predictions

    @property
    def values(self) -> NDArray[Any]:
        return self._result.decision_values

    @property
    def ledger(self) -> Ledger:
        ledger = self._result.ledger
        return Ledger([ledger.rows[row] for row in self._rows], ledger.full)

    def scores(self) -> dict[str, Any]:
        """The results of scikit-learn's ``cross_validate`` with the accuracy."""
        right = self._result.predictions == self._result.y
        return {
            "fit_time": np.zeros(len(right)),
            "score_time": np.zeros(len(right)),
            "test_score": right[self._rows].astype(np.float64),
        }


def leaves_each_row_out(splits: Sequence[Split], n: int) -> bool:
    """Whether every row is the test row of one fold, which is fitted to all others."""
    if len(splits) != n or any(len(test) != 1 or len(train) != n - 1 for train, test in splits):
        return False
    rows = np.concatenate([test for _, test in splits])
    if rows.dtype.kind not in "iu" or not np.array_equal(np.sort(rows), np.arange(n)):
        return False
    # Rows of a fold are different, as the caller has seen; none is the test row.
    return all(not (train == test).any() for train, test in splits)


def each_row(
    machine: KernelMachine,
    X: Any,
    y: Any,
    sample_weight: Any,
    splits: Sequence[Split],
    seeding: str,
    n_jobs: int | None,
    progress: bool | None,
    wanted: Wanted,
) -> EachRow | None:
    """All folds at once; None where one cannot be fitted, for scikit-learn to say."""
    values = wanted is Wanted.VALUES or needs_values(machine)
    fit = LeaveOneOutFit(machine, X, y, sample_weight, seeding, n_jobs, progress, values=values)
    if fit.indispensable().any():
        return None
    proofs = Proofs.WHERE_THEY_PAY if wanted is Wanted.LABELS else Proofs.NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        result = exact_result(fit, proofs)
    return EachRow(result, splits) if result.predicted.all() else None
