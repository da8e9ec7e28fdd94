"""The do-nothing baseline: what the harness itself costs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..case import Case, Matrix, Settings
from .base import Rival


class Nothing(Rival):
    name = "nothing"
    module = "numpy"
    packages = ("numpy",)
    rank = 2
    max_threads = 1
    baseline = True

    def fit(self, case: Case, settings: Settings) -> None:
        return None

    def predictions(self, model: None, case: Case, X: Matrix) -> NDArray[Any]:
        return np.zeros(X.shape[0], dtype=case.y.dtype)


RIVAL = Nothing()
