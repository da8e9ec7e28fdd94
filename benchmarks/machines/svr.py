"""Epsilon-support vector regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import FloatArray, IntArray, Regressor

if TYPE_CHECKING:
    from ..case import Case
    from ..dual import Dual


class Svr(Regressor):
    name = "svr"
    title = "an epsilon-SVR"
    rank = 1
    estimator = "SVR"
    settings: ClassVar = {
        "gentle": {"C": 1.0, "epsilon": 0.1},
        "hard": {"C": 100.0, "epsilon": 0.1},
    }
    rule = "C = 1 (gentle) or 100 (hard) and epsilon = 0.1, for targets of mean 0 and variance 1"

    def epsilon(self, case: Case, dual: Dual, rows: IntArray, values: FloatArray) -> float:
        return case.parameters["epsilon"]

    def gain(self, case: Case, dual: Dual) -> FloatArray:
        cost = case.parameters["epsilon"] * np.abs(dual.coef).sum(axis=0)
        return np.asarray(super().gain(case, dual) - cost)


MACHINE = Svr()
