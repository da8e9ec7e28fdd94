"""Nu-support vector regression.

The sum of |b| is at most C nu n, and is that much unless epsilon is 0. Libraries do not show the
epsilon that they found, but it can be seen: rows inside the tube are nearer than epsilon to the
function, rows with a coefficient between the bounds are as far as epsilon, the others farther.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from .base import FloatArray, IntArray, Regressor

if TYPE_CHECKING:
    from ..case import Case
    from ..dual import Dual


class NuSvr(Regressor):
    name = "nu-svr"
    title = "a nu-SVR"
    rank = 3
    estimator = "NuSVR"
    settings: ClassVar = {"gentle": {"C": 1.0, "nu": 0.5}, "hard": {"C": 100.0, "nu": 0.2}}
    rule = (
        "C = 1 and nu = 0.5 (gentle) or C = 100 and nu = 0.2 (hard),"
        " for targets of mean 0 and variance 1"
    )

    def epsilon(self, case: Case, dual: Dual, rows: IntArray, values: FloatArray) -> float:
        """Return the one with which the worst of ``rows`` is nearest to optimal."""
        off_zero, off_bound = dual.off_zero(case, rows), dual.off_bound(case, rows)
        residual = self.linear(case, dual, rows) - values
        outwards = np.where(off_zero, np.sign(dual.coef_at(rows)) * residual, np.abs(residual))
        at_least = outwards[off_bound].max(initial=0.0)
        at_most = outwards[off_zero].min(initial=np.inf)
        if not np.isfinite(at_most):
            return float(at_least)
        return float(max(0.0, (at_least + at_most) / 2))

    def budget_missed(self, case: Case, dual: Dual, epsilon: float, tol: float) -> float:
        budget = case.parameters["C"] * case.parameters["nu"] * case.rows
        missed = float(np.abs(dual.coef).sum()) / budget - 1.0
        # A tube thinner than the tolerance may as well have none, and then less will do.
        return max(missed, -missed if epsilon > 2 * tol else 0.0)


MACHINE = NuSvr()
