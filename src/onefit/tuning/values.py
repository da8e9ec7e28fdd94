"""Decision values of the rows of a fold, from the solutions of its chain.

Those of rows that it was trained on are the gradients that the solver ended with, where there is
one problem. Others are sums over the support vectors, in which a row's own label has no part.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators.base import KernelMachine, Model
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.given import values_from
from onefit.estimators.svc import SVC
from onefit.kernels import Floats
from onefit.model_selection.crossfit import TIGHTEST, UNDECIDED
from onefit.solver import solve_on
from onefit.tuning.families import factor_of
from onefit.tuning.workload import Chain, SolvedSteps, Workload

# Of what decides the values: where problems are solved on to.
FURTHER = 0.1


class StepValues:
    """What solved steps of a chain say of rows, step by step."""

    def __init__(self, work: Workload, solved: SolvedSteps) -> None:
        self._work, self._solved = work, solved
        self.chain: Chain = solved.chain
        self._models: dict[int, Model] = {}

    def machine(self, k: int) -> KernelMachine:
        return self._work.machines[self.chain.candidates[self._solved.steps[k]]]

    def model(self, k: int) -> Model:
        if k not in self._models:
            machine = self.machine(k)
            training = self.chain.part.training
            self._models[k] = machine._model(training, self._solved.solutions[k])
        return self._models[k]

    def at(self, rows: NDArray[np.intp]) -> Floats:
        """Values of some rows for each step, of every pair or of the function: of shape (steps,
        rows, values)."""
        if self._work.matrix is not None:
            return np.stack([self._given_values(k, rows) for k in range(len(self._solved.steps))])
        return self._values(list(range(len(self._solved.steps))), rows)

    def _given_values(self, k: int, rows: NDArray[np.intp]) -> Floats:
        """Those of one step, where the kernel is given by its values."""
        matrix, training = self._work.matrix, self.chain.part.training
        assert matrix is not None
        return values_from(matrix, training, self.model(k), rows)

    def _values(self, steps: list[int], rows: NDArray[np.intp]) -> Floats:
        at = self._work.position[rows]
        training = self.chain.part.training
        if len(training.problems) == 1 and len(training.order) == len(self._work.y):
            products = self._products(steps, at)
            models = [self.model(k) for k in steps]
            values = [m.factor * p + m.intercept[0] for m, p in zip(models, products, strict=True)]
            return np.array(values)[:, :, np.newaxis]
        machine = self.chain.family.machine
        assert isinstance(machine, KernelClassifier)
        pairs = [machine._pair_models(self._solved.solutions[k])[:2] for k in steps]
        sums = self._sums([beta for betas, _ in pairs for beta in betas], at)
        values_of_pairs = sums.reshape(len(steps), -1, len(at))
        values_of_pairs += np.array([offsets for _, offsets in pairs])[:, :, np.newaxis]
        sign = -1.0 if len(training.problems) == 1 else 1.0  # as in a model of two classes
        return sign * values_of_pairs.transpose(0, 2, 1)

    def _products(self, steps: list[int], at: NDArray[np.int32]) -> Floats:
        """Kβ for each step, where there is but one problem, which is about all rows."""
        [problem] = self.chain.part.training.problems
        solutions = [self._solved.solutions[k][0] for k in steps]
        products: Floats = np.array([problem.linear[at] - s.gradient[at] for s in solutions])
        unknown = np.isnan(products).any(axis=0)
        if unknown.any():
            products[:, unknown] = self._sums([s.beta for s in solutions], at[unknown])
        return products

    def _sums(self, betas: list[Floats], at: NDArray[np.int32]) -> Floats:
        """Sums of kernel values for coefficients of each problem of each step in turn."""
        problems = self.chain.part.training.problems
        rows = [problem.rows for problem in problems] * (len(betas) // len(problems))
        return _core.kernel_sums(self.chain.store, rows, betas, at)

    def held_out(self) -> Floats:
        """Values of the test rows as ``at`` gives them, each fold solved on until they are decided.

        As in a cross-validation: where more than a few of them are below the tolerance, another
        start would give other answers.
        """
        test = self._work.splits[self.chain.fold][1]
        found = self.at(test)
        if not isinstance(self.chain.family.machine, KernelClassifier):
            return found
        tol = self.chain.family.settings.tol
        for k, values in enumerate(found):
            while (needed := _undecided(np.abs(values) * self._rho(k), tol)) and (
                self._solve_on(k, tol_now := FURTHER * max(needed, TIGHTEST))
            ):
                if self._work.matrix is not None:
                    values = found[k] = self._given_values(k, test)
                else:
                    values = found[k] = self._values([k], test)[0]
                if not _undecided(np.abs(values) * self._rho(k), tol_now):
                    break
        return found

    def _rho(self, k: int) -> Any:
        """What values are in units of: the margin of a ν-SVC, 1 elsewhere."""
        if type(self.chain.family.machine) is SVC:
            return 1.0
        return self.model(k).attributes.get("rho_", 1.0)

    def _solve_on(self, k: int, tol: float) -> bool:
        """Solves a step to a smaller tolerance; whether that was possible."""
        solutions, part, family = self._solved.solutions[k], self.chain.part, self.chain.family
        if any(s.status != _core.Status.converged for s in solutions):
            return False
        settings = replace(family.settings, tol=tol)
        factor = factor_of(self.machine(k))
        further = []
        for number, s in zip(part.problems, solutions, strict=True):
            problem = family.problems[number]
            further.append(solve_on(self.chain.store, problem, part.bounds, factor, s, settings))
            if further[-1].status != _core.Status.converged:
                return False
        self._solved.solutions[k] = further
        self._models.pop(k, None)
        return True


def _undecided(sizes: Floats, tol: float) -> float:
    """The size that decides most values, if it is below the tolerance and can be reached; or 0."""
    if sizes.min(initial=tol) >= tol:
        return 0.0
    rank = int(UNDECIDED * sizes.size)
    if np.count_nonzero(sizes < tol) <= rank:
        return 0.0
    needed = float(np.partition(sizes, rank, axis=None)[rank])
    return 0.0 if needed >= tol or needed < TIGHTEST else min(needed, tol)
