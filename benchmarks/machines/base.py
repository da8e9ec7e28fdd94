"""What sets the support vector machines apart: their parameters and the terms of their dual.

All are the same problem in the coefficients b of the decision function f(x) = b' K(., x) + offset:

    max_b  p'b - epsilon |b|_1 - 1/2 b'Kb   with   lo <= b <= hi   and   sum(b) = 0.

A classifier solves it for each pair of its classes, with p = +1 and 0 <= b <= C for the rows of the
first, p = -1 and -C <= b <= 0 for those of the second; a regressor solves it once, with p = y and
-C <= b <= C. The nu variants fix the sum of |b| and find C or epsilon instead: each is checked as
the machine that it turns out to be equivalent to.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..case import Case
    from ..dual import Dual

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Machine(ABC):
    """A kind of support vector machine. Arrays have a column for each of its problems."""

    name: str
    title: str  # with its article
    rank: int
    estimator: str  # the class in scikit-learn, and in all libraries that follow it
    regression: bool
    # Parameters as scikit-learn calls them, for two settings fixed before anything was timed.
    settings: ClassVar[dict[str, dict[str, float]]]
    rule: str  # how they are set, for the reports
    # A row this near to the boundary may be predicted differently after a cross-validation: ten
    # times the default tolerance.
    near: float = 0.01
    max_rows: int | None = None  # larger data sets are left out, for the sake of time

    def parameters(self, setting: str, y: NDArray[Any]) -> dict[str, float]:
        """Return the parameters for targets ``y``."""
        return self.settings[setting]

    @abstractmethod
    def linear(self, case: Case, dual: Dual, rows: IntArray) -> FloatArray:
        """Return p of some rows; NaN where a row takes no part in a problem."""

    @abstractmethod
    def bounds(self, case: Case, dual: Dual, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return lo and hi of some rows; 0 where a row takes no part in a problem."""

    def box(self, case: Case, dual: Dual) -> FloatArray:
        """Return the C of each problem."""
        return np.full(dual.problems, case.parameters["C"])

    def epsilon(self, case: Case, dual: Dual, rows: IntArray, values: FloatArray) -> float:
        """Return half the width of the tube; ``values`` are the decision values of ``rows``."""
        return 0.0

    def unit(self, case: Case, dual: Dual) -> FloatArray:
        """Return by what coefficients and decision values are to be multiplied, problem by problem,
        to have them as the solver had them: this is what its tolerance is about."""
        return np.ones(dual.problems)

    def budget_missed(self, case: Case, dual: Dual, epsilon: float, tol: float) -> float:
        """Return by what share the sum of |b| is wrong."""
        return 0.0

    @abstractmethod
    def gain(self, case: Case, dual: Dual) -> FloatArray:
        """Return the part of the objective that is not quadratic, as the solver had it."""


class Classifier(Machine):
    """Machines with a problem for each pair of classes."""

    regression = False

    def linear(self, case: Case, dual: Dual, rows: IntArray) -> FloatArray:
        label = case.y[rows][:, None]
        return np.where(label == dual.first, 1.0, np.where(label == dual.second, -1.0, np.nan))

    def bounds(self, case: Case, dual: Dual, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        signed = np.nan_to_num(self.linear(case, dual, rows)) * self.box(case, dual)
        return np.minimum(signed, 0.0), np.maximum(signed, 0.0)


class Regressor(Machine):
    """Machines with one problem, for one function."""

    regression = True

    def linear(self, case: Case, dual: Dual, rows: IntArray) -> FloatArray:
        return case.y[rows][:, None]

    def bounds(self, case: Case, dual: Dual, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        C = np.broadcast_to(self.box(case, dual), (len(rows), dual.problems))
        return -C, C

    def gain(self, case: Case, dual: Dual) -> FloatArray:
        return np.asarray(case.y[dual.support] @ dual.coef)
