r"""Candidates in the order of an estimate, and only as many folds of each as can matter.

Approximate leave-one-out (:mod:`onefit.loo.approximate`) ranks all candidates from one fit each on
all rows. The best few are cross-validated; every other one fold by fold, and no further once it is
certain that it cannot become the best. With :math:`u` the most that a score can be, a candidate
with the scores :math:`s_1 … s_j` in j of k folds has a mean of at most

.. math:: \frac1k \Big(\sum_{i \le j} s_i + (k - j)\, u\Big),

so that it is dropped where this is below the mean of another that is done. The estimate decides
only in which order that happens: what is best is decided by exact scores.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.metrics._scorer import _BaseScorer, _MultimetricScorer, _PassthroughScorer

from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import ClassTraining, KernelClassifier
from onefit.kernels import Floats
from onefit.loo.approximate import left_out
from onefit.loo.fits import Fit
from onefit.problem import Problem
from onefit.solver import blas_threads
from onefit.tuning.checkpoint import Checkpoint
from onefit.tuning.engine import Engine
from onefit.tuning.families import factor_of
from onefit.tuning.request import Cell, Known, Request
from onefit.tuning.runner import Runner
from onefit.tuning.values import StepValues
from onefit.tuning.workload import SolvedSteps, Workload

# So many candidates are cross-validated before any other is dropped: at least this many, or this
# share of all. The first of them is the best of all more often than not.
AT_LEAST = 2
SHARE = 0.05

# Matrices of so few rows are factorised faster by one thread than by several.
FEW_ROWS = 2000

# Means that differ by less may be the same but for rounding.
ROUNDING = 1e-12

# The most that a score can be, by what it is computed with.
AT_MOST_ONE = (
    metrics.accuracy_score,
    metrics.balanced_accuracy_score,
    metrics.f1_score,
    metrics.precision_score,
    metrics.recall_score,
    metrics.jaccard_score,
    metrics.matthews_corrcoef,
    metrics.roc_auc_score,
    metrics.average_precision_score,
    metrics.r2_score,
    metrics.explained_variance_score,
)
ERRORS = (
    metrics.mean_squared_error,
    metrics.root_mean_squared_error,
    metrics.mean_absolute_error,
    metrics.median_absolute_error,
    metrics.max_error,
)


def largest_score(scorer: Any, refit: Any) -> tuple[float, str | None] | None:
    """The most that the score by which the best is chosen can be, and its name if there are more.

    None where the choice is the user's, or nothing is known of the score.
    """
    name = None
    if callable(refit):
        return None
    if isinstance(scorer, _MultimetricScorer):
        if not isinstance(refit, str):
            return None
        name, scorer = refit, scorer._scorers[refit]
    if isinstance(scorer, _PassthroughScorer):
        return 1.0, name
    if not isinstance(scorer, _BaseScorer):
        return None
    if scorer._score_func in AT_MOST_ONE and scorer._sign == 1:
        return 1.0, name
    if scorer._score_func in ERRORS and scorer._sign == -1:
        return 0.0, name
    return None


class Race:
    """Candidates that drop out as soon as they cannot win."""

    def __init__(self, runner: Runner, largest: float, name: str | None) -> None:
        self._runner = runner
        self._largest, self._name = largest, name
        self._n_folds = len(runner.request.splits)
        self.dropped: set[int] = set()

    def run(self, ranking: list[int]) -> None:
        """Every candidate, or as many of its folds as it takes; the likeliest first."""
        first = max(AT_LEAST, int(SHARE * len(ranking)))
        folds = range(self._n_folds)
        self._runner.run(Cell(k, fold) for k in ranking[:first] for fold in folds)
        left = ranking[first:]
        for fold in folds:
            best = self._best()
            left = [k for k in left if self._may_win(k, best) or self._drop(k)]
            self._runner.run(Cell(k, fold) for k in left)

    def _best(self) -> tuple[float, int]:
        """The best mean of all candidates that are done, and the first of those that have it."""
        means = [
            (mean, -k)
            for k in range(len(self._runner.request.candidates))
            if not np.isnan(mean := self._mean(k))
        ]
        mean, number = max(means, default=(-np.inf, 0))
        return mean, -number

    def _scores(self, candidate: int) -> list[float]:
        outcomes = self._runner.outcomes
        cells = (Cell(candidate, fold) for fold in range(self._n_folds))
        found = (outcomes[cell]["test_scores"] for cell in cells if cell in outcomes)
        return [float(scores if self._name is None else scores[self._name]) for scores in found]

    def _mean(self, candidate: int) -> float:
        """NaN unless all folds are done."""
        scores = self._scores(candidate)
        return float(np.average(scores)) if len(scores) == self._n_folds else np.nan

    def _may_win(self, candidate: int, best: tuple[float, int]) -> bool:
        scores = self._scores(candidate)
        if any(np.isnan(scores)) or len(scores) == self._n_folds:
            return True  # for scikit-learn to say; or there is nothing left to be saved
        open_folds = self._n_folds - len(scores)
        most = (sum(scores) + open_folds * self._largest) / self._n_folds
        return not most < best[0] - ROUNDING

    def _drop(self, candidate: int) -> bool:
        self.dropped.add(candidate)
        self._runner.drop(Cell(candidate, fold) for fold in range(self._n_folds))
        return False


# ---- the estimate -------------------------------------------------------------------------------


def estimated_errors(
    request: Request, engine: Engine, checkpoint: Checkpoint | None = None
) -> Floats:
    """The approximate leave-one-out error of each candidate; infinite where there is none."""
    errors = np.full(len(request.candidates), np.inf)
    known = {} if checkpoint is None else checkpoint.estimates()
    for candidate, error in known.items():
        errors[candidate] = error
    if all(k in known for k in engine.machines):
        return errors
    for work in engine.on_all_rows():
        everyone = [Cell(k, 0) for k in work.machines]
        chains, _ = work.chains(everyone, Known(frozenset(Cell(k, 0) for k in known)))
        with blas_threads(1 if len(work.y) < FEW_ROWS else None):
            taker = _Estimate(work, errors, checkpoint)
            work.solve(chains, taker, one_by_one=checkpoint is not None)
    return errors


class _Estimate:
    """Takes fits on all rows and notes what their left-out rows come to."""

    def __init__(self, work: Workload, errors: Floats, checkpoint: Checkpoint | None) -> None:
        self._work, self._errors, self._checkpoint = work, errors, checkpoint
        self._rows = np.arange(len(work.y))

    def __call__(self, solved: SolvedSteps) -> None:
        values = StepValues(self._work, solved)
        of_rows = values.at(self._rows)
        for k, step in enumerate(solved.steps):
            if step in solved.chain.known:
                continue
            machine, training = values.machine(k), solved.chain.part.training
            tol = solved.chain.family.settings.tol
            fits = [
                Fit.of(_with_bounds(problem, factor_of(machine)), solution, tol)
                for problem, solution in zip(training.problems, solved.solutions[k], strict=True)
            ]
            classifies = isinstance(machine, KernelClassifier)
            sign = -1.0 if classifies and len(fits) == 1 else 1.0
            # As the store has them.
            in_order = None if len(fits) == 1 else of_rows[k][training.order]
            found = left_out(solved.chain.store, fits, in_order, signs_only=classifies)
            candidate = solved.chain.candidates[step]
            self._errors[candidate] = self._error(machine, training, sign * found.values)
            if self._checkpoint is not None:
                self._checkpoint.add_estimate(candidate, self._errors[candidate])

    def _error(self, machine: KernelMachine, training: Any, values: Floats) -> float:
        y: NDArray[Any] = self._work.y[training.order]
        if isinstance(machine, KernelClassifier):
            assert isinstance(training, ClassTraining)
            return float(np.mean(machine._labels(values, training.classes) != y))
        return float(np.mean((values[:, 0] * machine._unit - y) ** 2))


def _with_bounds(problem: Problem, factor: float) -> Problem:
    lower, upper = factor * problem.lower, factor * problem.upper
    return Problem(problem.rows, problem.linear, lower, upper, problem.kink, problem.split)
