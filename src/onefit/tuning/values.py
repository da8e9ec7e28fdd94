"""Decision values of the rows of a fold, from the solutions of its chain.

With two classes, and in regression, they are the gradients that the solver ended with: no kernel
entry is read. With more classes they are sums over the rows of the store.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators.base import KernelMachine, Model
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.given import values_from
from onefit.estimators.svc import SVC
from onefit.kernels import BLOCK_BYTES, Floats
from onefit.model_selection.crossfit import TIGHTEST, UNDECIDED
from onefit.problem import class_pairs
from onefit.solver import solve
from onefit.tuning.families import factor_of
from onefit.tuning.workload import Chain, SolvedSteps, Workload


class StepValues:
    """What solved steps of a chain say of rows, step by step."""

    def __init__(self, work: Workload, solved: SolvedSteps) -> None:
        self._work, self._solved = work, solved
        self.chain: Chain = solved.chain
        self._models: dict[int, Model] = {}
        self._plain = (
            type(self.chain.family.machine) is SVC
            and len(solved.solutions[0]) == 1
            and len(self.chain.part.training.order) == len(work.y)
            and work.matrix is None
        )

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
        if self._plain:
            return self._plain_values(rows)[:, :, np.newaxis]
        if self._work.matrix is None and len(self.chain.part.training.starts) > 3:
            return self._values_of_pairs(rows)
        return np.stack([self._values(k, rows) for k in range(len(self._solved.steps))])

    def _values_of_pairs(self, rows: NDArray[np.intp]) -> Floats:
        """The same for several classes: kernel entries are read once for all steps."""
        training, position = self.chain.part.training, self._work.position
        models = [self.model(k) for k in range(len(self._solved.steps))]
        coef = np.stack([model.coef for model in models])
        support = np.flatnonzero(np.any(coef != 0, axis=(0, 1)))
        members = position[training.order[support]]
        coef = coef[:, :, support]
        ends = np.searchsorted(support, training.starts).tolist()
        intercepts = np.stack([model.intercept for model in models])
        found = np.empty((len(models), len(rows), intercepts.shape[1]))
        at_a_time = max(1, BLOCK_BYTES // (8 * max(1, len(support))))
        for first in range(0, len(rows), at_a_time):
            some = slice(first, first + at_a_time)
            kernel = self.chain.store.block(position[rows[some]], members).astype(np.float64)
            found[:, some] = _pair_values(kernel, coef, ends, intercepts)
        return found

    def _plain_values(self, rows: NDArray[np.intp]) -> Floats:
        """The same for two classes of an SVC: of shape (steps, rows)."""
        at = self._work.position[rows]
        linear = self.chain.part.training.problems[0].linear[at]
        values = np.array([s.gradient[at] for [s] in self._solved.solutions])
        values -= linear
        values -= np.array([[s.offset] for [s] in self._solved.solutions])
        return values

    def _values(self, k: int, rows: NDArray[np.intp]) -> Floats:
        work, training, model = self._work, self.chain.part.training, self.model(k)
        solutions = self._solved.solutions[k]
        if work.matrix is not None:
            return values_from(work.matrix, training, model, rows)
        at = work.position[rows]
        if len(solutions) == 1 and len(training.order) == len(work.y):
            [solution], [problem] = solutions, training.problems
            products = problem.linear[at] - solution.gradient[at]
            values: Floats = model.factor * products + model.intercept[0]
            return values.reshape(-1, 1)
        members = work.position[training.order]
        products = _core.pair_products(self.chain.store, members, training.starts, model.coef, at)
        return np.asarray(products + model.intercept)

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
        least = np.abs(found).min(axis=(1, 2), initial=tol).tolist()
        for k, values in enumerate(found):
            if least[k] >= tol and self._plain:
                continue
            rho = 1.0 if self._plain else self.model(k).attributes.get("rho_", 1.0)
            while (needed := _undecided(np.abs(values) * rho, tol)) and self._solve_on(k, needed):
                tol_now = max(needed / 10, TIGHTEST / 10)
                values = found[k] = self._values(k, test)
                rho = 1.0 if self._plain else self.model(k).attributes.get("rho_", 1.0)
                if not _undecided(np.abs(values) * rho, tol_now):
                    break
        return found

    def _solve_on(self, k: int, needed: float) -> bool:
        """Solves a step to a tolerance below its values; whether that was possible."""
        solutions, part = self._solved.solutions[k], self.chain.part
        if any(s.status != _core.Status.converged for s in solutions):
            return False
        bounds = factor_of(self.machine(k)) * part.bounds
        problems = [
            self.chain.family.problems[number].with_bounds(bounds).started(s.beta, s.gradient)
            for number, s in zip(part.problems, solutions, strict=True)
        ]
        settings = replace(self.chain.family.settings, tol=max(needed / 10, TIGHTEST / 10))
        further = solve(self.chain.store, problems, settings)
        if any(s.status != _core.Status.converged for s in further):
            return False
        self._solved.solutions[k] = further
        self._models.pop(k, None)
        return True


def _pair_values(kernel: Floats, coef: Floats, ends: list[int], intercepts: Floats) -> Floats:
    """Decision values of every pair for many models on the same support vectors.

    As ``voting.pair_values``, from ``coef`` of shape (models, classes - 1, support vectors), with
    one product for each class: those of one model are too small to be fast. ``ends`` are the first
    support vector of each class, and their number.
    """
    n_models, n_others, n_support = coef.shape
    flat = coef.reshape(-1, n_support)
    parts = np.stack([flat[:, a:b] @ kernel[:, a:b].T for a, b in pairwise(ends)]).reshape(
        -1, n_models, n_others, len(kernel)
    )
    first, second = np.array(class_pairs(n_others + 1)).T
    values = parts[first, :, second - 1] + parts[second, :, first]  # pairs, models, rows
    values += intercepts.T[:, :, np.newaxis]
    return values.transpose(1, 2, 0)


def _undecided(sizes: Floats, tol: float) -> float:
    """The size that decides most values, if it is below the tolerance and can be reached; or 0."""
    if sizes.min(initial=tol) >= tol:
        return 0.0
    rank = int(UNDECIDED * sizes.size)
    if np.count_nonzero(sizes < tol) <= rank:
        return 0.0
    needed = float(np.partition(sizes, rank, axis=None)[rank])
    return 0.0 if needed >= tol or needed < TIGHTEST else min(needed, tol)
