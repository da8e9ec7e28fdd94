"""A solved problem as leave-one-out reads it: values, coefficients and bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.regression import KernelRegressor
from onefit.kernels import Floats
from onefit.problem import Problem, nu_svc_model, nu_svr_model


@dataclass(frozen=True)
class Fit:
    """A solved C-SVC or ε-SVR, or what a ν-SVC or ν-SVR is equivalent to."""

    rows: NDArray[np.int32]  # of the store
    values: Floats  # of the decision function at these rows
    above: Floats  # by which targets are above these values; free rows: 0, or ±ε
    beta: Floats
    lower: Floats
    upper: Floats
    kink: float = 0.0  # ε
    is_determined: bool = True  # or a ν-SVC without a margin

    @classmethod
    def of(cls, problem: Problem, solution: _core.Solution, tol: float) -> Fit:
        """The fit of any of the four machines; ``tol`` is the tolerance that it was solved to."""
        if not problem.two_groups:
            return cls._plain(problem, solution)
        n = problem.split
        if 2 * n == len(problem.rows) and np.array_equal(problem.rows[:n], problem.rows[n:]):
            return cls._of_nu_svr(problem, solution)
        return cls._of_nu_svc(problem, solution, tol)

    @classmethod
    def _plain(cls, problem: Problem, solution: _core.Solution) -> Fit:
        above = solution.gradient - solution.offset
        return cls(
            problem.rows,
            problem.linear - above,
            above,
            solution.beta,
            problem.lower,
            problem.upper,
            problem.kink,
        )

    @classmethod
    def _of_nu_svc(cls, problem: Problem, solution: _core.Solution, tol: float) -> Fit:
        """The C-SVC with C = 1/ρ."""
        beta, intercept, rho, has_margin = nu_svc_model(solution, tol)
        values = intercept - solution.gradient / rho
        sides = np.where(np.arange(len(beta)) < problem.split, 1.0, -1.0)
        return cls(
            problem.rows,
            values,
            sides - values,
            beta,
            problem.lower / rho,
            problem.upper / rho,
            is_determined=has_margin,
        )

    @classmethod
    def _of_nu_svr(cls, problem: Problem, solution: _core.Solution) -> Fit:
        """The ε-SVR with the width that was found."""
        beta, intercept, epsilon = nu_svr_model(solution)
        n = len(beta)
        above = solution.gradient[:n] - intercept
        return cls(
            problem.rows[:n],
            problem.linear[:n] - above,
            above,
            beta,
            problem.lower[n:],
            problem.upper[:n],
            epsilon,
        )

    @property
    def takes_part(self) -> NDArray[np.bool_]:
        return self.lower < self.upper

    @property
    def is_free(self) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = (self.beta > self.lower) & (self.beta < self.upper)
        return inside & (self.beta != 0) if self.kink > 0 else inside


def scale_and_intercept(machine: KernelMachine, solution: _core.Solution) -> tuple[float, float]:
    """What makes a value of K b."""
    if isinstance(machine, KernelClassifier):
        _, [intercept], attributes = machine._pair_models([solution])
        return 1 / float(attributes.get("rho_", [1.0])[0]), intercept
    assert isinstance(machine, KernelRegressor)
    _, intercept, _ = machine._function(solution)
    return machine._unit, intercept
