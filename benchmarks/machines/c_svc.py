"""C-support vector classification."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import Classifier, FloatArray

if TYPE_CHECKING:
    from ..case import Case
    from ..dual import Dual


class CSvc(Classifier):
    name = "c-svc"
    title = "a C-SVC"
    rank = 0
    estimator = "SVC"
    settings: ClassVar = {"gentle": {"C": 1.0}, "hard": {"C": 100.0}}
    rule = "C = 1 (gentle) or 100 (hard)"

    def gain(self, case: Case, dual: Dual) -> FloatArray:
        return np.asarray(np.abs(dual.coef).sum(axis=0))


MACHINE = CSvc()
