"""Nu-support vector classification.

In LIBSVM's scaling the coefficients of each class of a pair are at most 1 and their sizes add up to
nu n / 2, where n is the number of rows of the pair. What libraries show is divided by the margin
rho, and is the solution of the C-SVC with C = 1 / rho; rho follows from the sum. A tolerance of tol
then is one of tol / rho for that C-SVC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .base import Classifier, FloatArray

if TYPE_CHECKING:
    from ..case import Case
    from ..dual import Dual


class NuSvc(Classifier):
    name = "nu-svc"
    title = "a nu-SVC"
    rank = 2
    estimator = "NuSVC"
    # Shares of the largest nu possible. Where classes overlap the margin vanishes below some nu:
    # the answer is what rounding makes it then. A tenth of the largest is too small for some data.
    settings: ClassVar = {"gentle": {"nu": 0.8}, "hard": {"nu": 0.4}}
    rule = (
        "nu = 0.8 (gentle) or 0.4 (hard) times the largest that the classes allow, to three digits;"
        " data sets of up to 20,000 rows"
    )
    near = 0.1  # its tolerance is in units in which the margin is rho, often far below 1
    max_rows = 20_000

    def parameters(self, setting: str, y: NDArray[Any]) -> dict[str, float]:
        counts = np.unique(y, return_counts=True)[1]
        largest = 2 * counts.min() / (counts.min() + counts.max())
        return {"nu": float(f"{self.settings[setting]['nu'] * largest:.3g}")}

    def unit(self, case: Case, dual: Dual) -> FloatArray:
        """Return rho."""
        label = case.y[:, None]
        rows = ((label == dual.first) | (label == dual.second)).sum(axis=0)
        return np.asarray(case.parameters["nu"] * rows / np.abs(dual.coef).sum(axis=0))

    def box(self, case: Case, dual: Dual) -> FloatArray:
        return 1.0 / self.unit(case, dual)

    def gain(self, case: Case, dual: Dual) -> FloatArray:
        return np.zeros(dual.problems)


MACHINE = NuSvc()
