"""The rows of a machine, as approximate leave-one-out estimates them, and which can be relied on.

The estimate is of a fit without the row that has everything else from the fit on all rows: its
kernel, also with ``gamma="scale"``; its bounds, also with ``class_weight="balanced"``; and with ν
the C or the ε that was found. Where these would change with the row no estimate is exact, and
values that are small enough to change their sign with them are in doubt.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators import SVC
from onefit.estimators.regression import KernelRegressor
from onefit.folds import FoldWork
from onefit.kernels import Floats
from onefit.loo.approximate import Estimates, left_out
from onefit.loo.checks import DOUBTFUL, ESTIMATE, MARGIN, NOT_SUPPORT, not_support
from onefit.loo.exact import LeaveOneOutFit
from onefit.loo.fits import Fit, scale_and_intercept
from onefit.loo.left_out import LeftOutRows
from onefit.memory import ALWAYS, budget_bytes
from onefit.problem import class_pairs
from onefit.solver import blas_threads
from onefit.voting import vote_counts

# With a kernel, bounds or sums that change with the row, values of rows that are no support vectors
# moved by 0.1 to 2 times the typical value over the number of rows (medians of 45 cases of 8 data
# sets with up to 400 rows). A wrong sign that nothing else had found was at 1.05 times that.
DRIFT = 5.0


def estimated_rows(fit: LeaveOneOutFit, *, all_values: bool) -> tuple[LeftOutRows, FoldWork]:
    """Every row by its estimate, and the work of all of them.

    Without ``all_values``, values of classes whose sign is certain are not corrected.
    """
    began, entries = perf_counter(), fit.store.entries_evaluated
    estimator = _Estimator(fit)
    found = estimator.estimates(all_values=all_values)
    decided = np.where(estimator.in_doubt(found), np.int8(DOUBTFUL), np.int8(ESTIMATE))
    decided[estimator.is_not_support(found)] = NOT_SUPPORT
    values = found.values if estimator.unit == 1.0 else found.values * estimator.unit
    rows = LeftOutRows(
        values=values,
        signs=values,
        reached=values,
        decided=decided,
        work=[FoldWork(seeded_from="all rows")] * fit.n,
        exact=False,
        is_estimate=True,
    )
    fit.check_rows_that_cannot_go(rows)
    work = FoldWork(
        kernel_entries=fit.store.entries_evaluated - entries, seconds=perf_counter() - began
    )
    return rows, work


class _Estimator:
    """The problems of a fit, and the scales of their values."""

    def __init__(self, fit: LeaveOneOutFit) -> None:
        self._fit, solutions = fit, fit.solutions
        self._is_regression = isinstance(fit.machine, KernelRegressor)
        # Values of the machine are those of the problem times its scale.
        scales: Any = 1.0
        if not isinstance(fit.machine, SVC):
            scales = np.array([scale_and_intercept(fit.machine, s)[0] for s in solutions])
        self.unit = float(scales[0]) if self._is_regression else 1.0
        self._tolerances: Floats | float = fit.tol * scales / self.unit  # of each problem, or all
        self._full = fit.full if self.unit == 1.0 else fit.full / self.unit
        self._drift: Floats | float = 0.0
        if not fit.others_stay or fit.whole.problems[0].two_groups:
            self._drift = DRIFT * np.sqrt(np.mean(self._full**2, axis=0)) / fit.n
        below: Any = self._tolerances + self._drift
        scalar = isinstance(below, float)
        self._undecided_below = [below] * len(solutions) if scalar else below.tolist()
        self._fits = [self._fit_of(number, solution) for number, solution in enumerate(solutions)]

    def estimates(self, *, all_values: bool) -> Estimates:
        """What is known of every row, in units of the problem."""
        fit = self._fit
        # Threads of BLAS that have to be woken up take longer than most of this does.
        with blas_threads(fit.threads):
            return left_out(
                fit.store,
                self._fits,
                self._full,
                undecided_below=self._undecided_below,
                signs_only=not (all_values or self._is_regression),
                budget_bytes=_budget_bytes(fit.machine.cache_size, fit.n),
            )

    def in_doubt(self, found: Estimates) -> NDArray[np.bool_]:
        fit = self._fit
        if self._is_regression:
            return found.value_in_doubt(fit.y[fit.whole.order] / self.unit)
        return self._labels_in_doubt(found)

    def is_not_support(self, found: Estimates) -> NDArray[np.bool_]:
        """Rows without which the fit is what it is; none where all others change with a row.

        As :func:`onefit.loo.checks.not_support`, of all problems of a row. Rows without weight may
        be anywhere, also where the fit has not decided.
        """
        fit = self._fit
        if not fit.others_stay:
            return np.zeros(fit.n, dtype=bool)
        bounds = fit.whole.bounds
        if fit.whole.problems[0].two_groups:
            return np.asarray(bounds == 0)
        settled = ~found.is_support
        all_decide = fit.all_take_part or not isinstance(fit.machine, SVC)
        for number, (problem, fitted) in enumerate(
            zip(fit.whole.problems, self._fits, strict=True)
        ):
            if not fitted.is_determined:
                settled[problem.rows[~not_support(problem, fit.solutions[number])]] = False
            if not all_decide:
                near = np.abs(fit.full[problem.rows, number]) < MARGIN * fit.tol
                settled[problem.rows[near & (bounds[problem.rows] == 0)]] = False
        return settled

    def _fit_of(self, number: int, solution: _core.Solution) -> Fit:
        """A problem, and whether its solution says anything."""
        fit = Fit.of(self._fit.whole.problems[number], solution, self._fit.tol)
        determined = fit.is_determined and solution.status == _core.Status.converged
        if self._fit.kernel.matrix is not None:
            # A matrix that is not symmetric has other values for rows than for columns.
            apart = np.abs(fit.values - self._full[fit.rows, number])
            tolerance = np.broadcast_to(self._tolerances, len(self._fit.solutions))[number]
            determined &= bool((apart <= MARGIN * tolerance).all())
        return fit if determined else replace(fit, is_determined=False)

    def _labels_in_doubt(self, found: Estimates) -> NDArray[np.bool_]:
        """Rows that may lose the class that they seem to have, or get it."""
        fit, either = self._fit, found.is_open
        if fit.n_classes == 2:
            return either[:, 0]
        # If the row's class loses what is in doubt.
        first, starts = found.values > 0, fit.whole.starts
        for number, (i, j) in enumerate(class_pairs(fit.n_classes)):
            of_i, of_j = slice(starts[i], starts[i + 1]), slice(starts[j], starts[j + 1])
            first[of_i, number] &= ~either[of_i, number]
            first[of_j, number] |= either[of_j, number]
        votes = vote_counts(first, fit.n_classes)
        mine, rows = fit.class_of_row, np.arange(fit.n)
        own = votes[rows, mine]
        votes[rows, mine] = -1.0
        certain: NDArray[np.bool_] = own > votes.max(axis=1)
        if fit.machine.break_ties:  # by the values, where votes do not decide
            either |= found.low < found.high
        return (either.any(axis=1) & ~certain) | ~found.is_known


def _budget_bytes(cache_size: str | float, n: int) -> int:
    """What the estimate may take; of "auto" what every machine can spare, without asking it."""
    return ALWAYS if isinstance(cache_size, str) else min(ALWAYS, budget_bytes(cache_size, n))
