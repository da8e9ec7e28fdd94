"""Every row left out, with the answers of n fits.

A fit without a row is the fit on all rows with a bound of 0 for it (:mod:`onefit.folds`): it is
solved from that fit on the same kernel rows, and only where :mod:`onefit.loo.checks` proves
nothing. Of several classes only the pairs with the row's class change. The gradient of the left-out
row is its decision value.

Where leaving a row out changes nothing but its bound, the optimum is followed from the one fit to
the other (:mod:`onefit.loo.paths`); else, and where the side that this leads to is in doubt, it is
solved for.

Where values are asked, not only sides, everything is solved until values are those of the optimum
up to rounding (:data:`VALUE_TOL`): values that are off by the tolerance are off to a side that
depends on the row's own label, and ranks that are made of them are biased.

With ``class_weight="balanced"`` every bound changes with the row, with ``gamma="scale"`` the
kernel, and with ν the sums: there nothing is proven, and all rows are solved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.estimators import SVC, NuSVC
from onefit.estimators.base import KernelMachine, Training
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.given import values_from
from onefit.estimators.regression import KernelRegressor
from onefit.estimators.sharing import SharedKernel
from onefit.folds import Fold, FoldWork, Solved, SolvedFold, solve_folds, solve_full
from onefit.kernels import Floats
from onefit.loo.checks import (
    BOUND,
    CERTIFICATE,
    FAILED,
    MARGIN,
    MISCLASSIFIED,
    NOT_SUPPORT,
    SOLVER,
    feature_spans,
    not_support,
    rules,
)
from onefit.loo.fits import scale_and_intercept
from onefit.loo.left_out import LeftOut, LeftOutRows, Proofs, Rules, Undecided
from onefit.loo.paths import LEAST_TOL, Paths
from onefit.memory import budget_bytes
from onefit.problem import Problem, class_pairs
from onefit.report.progress import shown
from onefit.seeding import STRATEGIES, Source
from onefit.solver import Settings, solve, warn_if_unfinished
from onefit.voting import votes

# Problems that the core is handed at a time: enough to hide the way there, and few enough for a
# progress bar to move.
AT_A_TIME = 32

# The fit on all rows is solved to this share of the tolerance before paths are followed from it.
TIGHTER = 0.1

# Where values are asked, the KKT gap of all problems is below this, or below so many times what
# rounding does to it; with more variables than entries in double precision have room for, up to
# the rounding of float32 entries. Until FLOAT_TOL the solver's float32 entries are good enough. A
# last part of the way is gone in a few iterations, or not at all.
VALUE_TOL = 1e-9
LAST_TOL = 1e-12
LAST_ITERATIONS = 2000
ROUNDING = 1e2 * np.finfo(np.float64).eps
FLOAT_TOL = 1e-6

# Values are rounded to this power of two, or to one above what rounding does to them: the digits
# beyond are of a size and a side that depend on how a row was solved, and with it on its label.
# Left-out values that are equal stay so.
GRID = 2.0**-26

# Smaller values cannot be decided: entries of the kernel are not known that well. They are ties,
# and count as 0.
TIGHTEST = GRID / 2

# So many rows are solved without looking for proofs, and as many with; then the others in the way
# that costs less (Franc, Laskov & Müller, section 4, look whether half of ten have a proof). Proofs
# of a problem cost about so many iterations: measured, but not each time, so that the same call
# settles the same rows in the same way.
TRIAL = 10
COST_OF_PROOFS = 60

ENDED_WELL = (_core.Status.converged, _core.Status.sign_proven)


class LeaveOneOutFit:
    """The fit of a machine on all rows, and the fits without each of them."""

    def __init__(
        self,
        machine: KernelMachine,
        X: Any,
        y: Any,
        sample_weight: Any,
        seeding: str,
        n_jobs: int | None,
        progress: bool | None,
        *,
        values: bool = False,
    ) -> None:
        """With ``values``, these are asked, and computed to more than the tolerance."""
        self.machine = copy(machine)  # what is fitted of it does not matter here
        self.X, self.y = self.machine._check_training_data(X, y)
        self._weights = self.machine._check_weights(sample_weight, self.X)
        self._settings = self.machine._settings(n_jobs)
        self._strategy = STRATEGIES["avg" if seeding == "auto" else seeding]
        self._follows = seeding == "auto"
        self._progress = progress
        self.n = len(self.y)
        self.whole: Training = self.machine._training(self.y, self._weights, every_row=True)
        self._values = values
        self._kernel = SharedKernel(self.machine, self.X, self.whole.order, precise=values)
        self._store = self._kernel.store(self._kernel.of_all)
        self._solved, self.full_work = solve_full(self._store, self.whole.problems, self._settings)
        if values:
            self._sharpen()
        self.full = self._full_values()

    def ask_values(self) -> None:
        """From now on values are asked, not only sides."""
        if self._values:
            return
        self._values = True
        self._kernel = SharedKernel(self.machine, self.X, self.whole.order, precise=True)
        self._store = self._kernel.store(self._kernel.of_all)
        self._sharpen()
        self.full = self._full_values()

    def _sharpen(self) -> None:
        for number, (_, problem, solution) in self._solved.items():
            sharper = self._sharpened(self._store, problem, solution, self.full_work)
            self._solved[number] = Solved(self._store, problem, sharper)

    # ---- rows and their problems ----------------------------------------------------------------

    @property
    def n_classes(self) -> int:
        return len(self.whole.starts) - 1

    @cached_property
    def class_of_row(self) -> NDArray[np.intp]:
        return np.repeat(np.arange(self.n_classes), np.diff(self.whole.starts))

    @property
    def others_stay(self) -> bool:
        """Whether a row that leaves changes nothing but its own bound."""
        balanced = getattr(self.machine, "class_weight", None) == "balanced"
        return not balanced and not self._kernel.depends_on_fold

    @property
    def has_rules_for_signs(self) -> bool:
        return isinstance(self.machine, SVC) and self.others_stay

    @cached_property
    def _spans(self) -> Floats | None:
        """How far rows are from each other; None where signs cannot be proven."""
        if not self.has_rules_for_signs:
            return None
        return feature_spans(self.X, self._kernel.of_all)

    def variables(self, row: int) -> list[tuple[int, int]]:
        """Where the row is a variable: numbers of problems, and of the first variable in each."""
        return [(number, row + shift) for number, shift in self._shifts[self.class_of_row[row]]]

    @cached_property
    def _shifts(self) -> list[list[tuple[int, int]]]:
        """For each class its problems, and what a row's number is less than its variable's."""
        if self.n_classes == 1:
            return [[(0, 0)]]
        starts = self.whole.starts
        shifts: list[list[tuple[int, int]]] = [[] for _ in range(self.n_classes)]
        for number, (i, j) in enumerate(class_pairs(self.n_classes)):
            shifts[i].append((number, -starts[i]))
            shifts[j].append((number, starts[i + 1] - starts[i] - starts[j]))
        return shifts

    @cached_property
    def all_take_part(self) -> bool:
        """Whether no row is without weight."""
        return bool(self.whole.bounds.min() > 0)

    def indispensable(self) -> NDArray[np.bool_]:
        """Rows whose class has no weight left without them."""
        smallest = min(end - start for start, end in pairwise(self.whole.starts))
        if smallest > 1 and self.all_take_part:
            return np.zeros(self.n, dtype=bool)
        present = self.whole.bounds > 0
        of_class = np.add.reduceat(present, self.whole.starts[:-1], dtype=np.intp)
        last: NDArray[np.bool_] = of_class[self.class_of_row] - present < 1
        return last

    # ---- what the fit on all rows says ----------------------------------------------------------

    @property
    def store(self) -> _core.KernelStore:
        """The kernel rows of the fit on all rows, in the order of the problems."""
        return self._store

    @property
    def kernel(self) -> SharedKernel:
        return self._kernel

    @property
    def solutions(self) -> list[_core.Solution]:
        return [self._solved[number].solution for number in range(len(self.whole.problems))]

    @property
    def tol(self) -> float:
        return self._settings.tol

    @property
    def threads(self) -> int:
        return self._settings.threads

    def rules(self, *, signs_suffice: bool) -> Rules:
        """What settles each variable of each problem; SOLVER where nothing does."""
        spans = self._spans if signs_suffice else None
        tables = []
        for number, problem in enumerate(self.whole.problems):
            solution = self._solved[number].solution
            idle = problem.lower == problem.upper
            if spans is not None:
                of_rows = spans[self.whole.order[problem.rows]]
                table = rules(problem, solution, of_rows, self._settings.tol)
            else:
                # ν shares its sums out among those that stay.
                settled = idle if problem.two_groups else not_support(problem, solution)
                table = np.where(settled, NOT_SUPPORT, SOLVER).astype(np.int8)
            if isinstance(self.machine, SVC):
                # Rows without weight may be anywhere, also where the full fit has not decided.
                small = np.abs(self.full[problem.rows, number]) < MARGIN * self._settings.tol
                table[idle & small] = SOLVER
            tables.append(table)
        return tables

    def settled(self, tables: Rules) -> LeftOutRows:
        """What the rules say of the rows. Where they say nothing it is what the full fit says."""
        found = LeftOutRows(
            values=self.full.copy(),
            signs=self.full.copy(),
            reached=self.full.copy(),
            decided=np.full(self.n, NOT_SUPPORT, dtype=np.int8),
            work=[FoldWork(seeded_from="all rows") for _ in range(self.n)],
        )
        for number, (problem, table) in enumerate(zip(self.whole.problems, tables, strict=True)):
            np.maximum.at(found.decided, problem.rows, table)
            for rule, side in ((BOUND, 1.0), (MISCLASSIFIED, -1.0)):
                rows = problem.rows[table == rule]
                found.values[rows, number] = found.reached[rows, number] = np.nan
                found.signs[rows, number] = side * problem.linear[table == rule]
        return found

    def _full_values(self) -> Floats:
        """Values of all rows, of each pair or of the function, by the fit on all."""
        warn_if_unfinished(self.solutions, self._settings)
        values = self._products(self.solutions)
        for number, solution in enumerate(self.solutions):
            values[:, number] = self._rounded(values[:, number], number, solution)
        return values

    def _products(self, solutions: list[_core.Solution]) -> Floats:
        if self.n_classes <= 2 and self._kernel.matrix is None:
            [problem], [solution] = self.whole.problems, solutions
            scale, intercept = scale_and_intercept(self.machine, solution)
            products = (problem.linear - solution.gradient)[: self.n]
            values: Floats = scale * products + intercept
            return values.reshape(-1, 1)
        model = self.machine._model(self.whole, solutions)
        rows = np.arange(self.n, dtype=np.int32)
        matrix = self._kernel.precise_matrix if self._kernel.matrix is None else self._kernel.matrix
        if matrix is not None:
            values = values_from(matrix, self.whole, model, self.whole.order)
        else:
            products = _core.pair_products(self._store, rows, self.whole.starts, model.coef, rows)
            values = products + model.intercept
        return -values if self.n_classes == 2 else np.asarray(values)

    # ---- the fits without a row -----------------------------------------------------------------

    def solve(
        self,
        tables: Rules,
        proofs: Proofs = Proofs.NONE,
        only: NDArray[np.bool_] | None = None,
    ) -> LeftOutRows:
        """Every row, by a rule or by a solver; of others than ``only`` what the full fit says."""
        found = self.settled(tables)
        if self._spans is None:
            proofs = Proofs.NONE
        unfinished: list[_core.Solution] = []
        undecided = [table == SOLVER for table in tables]
        if only is not None:
            for problem, variables in zip(self.whole.problems, undecided, strict=True):
                variables &= only[problem.rows]
        if self._follows and proofs is not Proofs.ALL:
            self._follow_paths(undecided, found)
        rows = [row for row in self._rows_to_solve(undecided) if only is None or only[row]]
        solved = self._solved_rows(rows, undecided, found, proofs)
        name = f"{type(self.machine).__name__}, row"
        for left_out, fold in shown(solved, len(rows), name, self._progress):
            fold.work.n_iter += found.work[left_out.row].n_iter  # of a path that left it in doubt
            found.work[left_out.row] = fold.work
            solutions = self._finish(left_out, fold, found, proofs)
            unfinished += [s for s in solutions if s.status not in ENDED_WELL]
        found.exact = warn_if_unfinished(unfinished, self._settings)
        return found

    def check_rows_that_cannot_go(self, found: LeftOutRows) -> None:
        """Notes rows without which a class is missing, or there is no fit at all.

        Only the pairs of a class change with one of its rows, so that nothing is to be solved then.
        """
        for row in self.indispensable().nonzero()[0]:
            self._part_without(int(row), found)

    def decide_other_pairs(self, found: LeftOutRows) -> None:
        """Solves on pairs that a row is no part of, where its vote there is in doubt and counts.

        These do not change with the row, and all rows of a pair share what it takes.
        """
        if self._values or self.n_classes <= 2 or not self.others_stay:
            return
        signs = found.signs
        is_small = np.abs(signs) < MARGIN * self._settings.tol
        for number, (i, j) in enumerate(class_pairs(self.n_classes)):
            is_small[np.isin(self.class_of_row, (i, j)), number] = False
        rows = np.flatnonzero(is_small.any(axis=1))
        if len(rows) == 0:
            return
        before = votes(signs[rows], self.n_classes)
        counts = np.zeros(len(rows), dtype=bool)
        for sign in (-1.0, 1.0):
            turned = np.where(is_small[rows], sign, signs[rows])
            counts |= votes(turned, self.n_classes) != before
            for number in range(signs.shape[1]):
                turned = signs[rows].copy()
                turned[is_small[rows, number], number] = sign
                counts |= votes(turned, self.n_classes) != before
        is_small[rows[~counts]] = False
        for number in np.flatnonzero(is_small.any(axis=0)).tolist():
            open_rows = np.flatnonzero(is_small[:, number]).astype(np.int32)
            problem, solution = self.whole.problems[number], self._solved[number].solution
            started = problem.started(solution.beta, solution.gradient)
            tight = replace(self._settings, tol=TIGHTEST / MARGIN)
            [further] = solve(self._store, [started], tight)
            self.full_work.n_iter += further.n_iter
            products = self._store.exact_block(open_rows, problem.rows) @ further.beta
            values = self._rounded(products + further.offset, number, further)
            for of_rows in (found.values, found.signs, found.reached):
                of_rows[open_rows, number] = values

    @property
    def _simple(self) -> bool:
        """Whether a row that leaves changes nothing but its own bound, and no sums."""
        return self.others_stay and not isinstance(self.machine, NuSVC)

    def _rows_to_solve(self, undecided: Undecided) -> list[int]:
        if not self._simple:
            return list(range(self.n))
        rows = self.indispensable()
        for problem, variables in zip(self.whole.problems, undecided, strict=True):
            rows[problem.rows[variables]] = True
        return np.flatnonzero(rows).tolist()

    def _follow_paths(self, undecided: Undecided, found: LeftOutRows) -> None:
        """Settles what paths from the fit on all rows lead to; the rest stays undecided."""
        if not self._simple or not self._kernel.is_symmetric:
            return
        last = self.indispensable()
        budget = budget_bytes(self.machine.cache_size, self.n)
        for number, problem in enumerate(self.whole.problems):
            variables = np.flatnonzero(undecided[number] & ~last[problem.rows])
            if len(variables) == 0:
                continue
            began = perf_counter()
            self._tighten(number)
            solved = self._solved[number]
            precise_to = self._value_tol(problem, solved.solution) if self._values else None
            paths = Paths(
                self._store, problem, solved, self._settings, budget, precise_to=precise_to
            )
            scale = 1.0 if self._classifies else self.machine._unit
            least = max(MARGIN * paths.uncertainty, TIGHTEST)
            ends = paths.without(variables)
            name = f"{type(self.machine).__name__}, row"
            for end in shown(ends, len(variables), name, self._progress):
                row = problem.rows[end.variable]
                value = scale * (problem.linear[end.variable] - end.excess)
                work = found.work[row]
                work.n_iter += end.n_swapped
                work.seconds -= began
                began = perf_counter()
                work.seconds += began
                if self._values:
                    value = self._rounded(value, number, solved.solution)
                elif self._classifies and abs(value) < max(MARGIN * end.gap, least):
                    continue
                undecided[number][end.variable] = False
                for values in (found.values, found.signs, found.reached):
                    values[row, number] = value

    def _tighten(self, number: int) -> None:
        """Paths end as exact as they start, and rows whose side is not sure take a solver."""
        solved, tol = self._solved[number], self._settings.tol * TIGHTER
        if self._values or tol < LEAST_TOL or solved.solution.gap < tol:
            return
        started = solved.problem.started(solved.solution.beta, solved.solution.gradient)
        [further] = solve(self._store, [started], replace(self._settings, tol=tol))
        self.full_work.n_iter += further.n_iter
        if further.status == _core.Status.converged:
            self._solved[number] = solved._replace(solution=further)

    def _value_tol(self, problem: Problem, solution: _core.Solution) -> float:
        """The KKT gap with which values of this problem are as good as exact."""
        rounding = self._rounding_of(problem, solution)
        return min(self._settings.tol, max(VALUE_TOL * self._size, rounding))

    def _rounding_of(self, problem: Problem, solution: _core.Solution) -> float:
        """What rounding may do to gradients in double precision."""
        size = np.abs(solution.beta).sum() * self._largest_diagonal + np.abs(problem.linear).max()
        return float(ROUNDING * size)

    def _rounded(self, values: Any, number: int, solution: _core.Solution) -> Any:
        """Values by a solution without the digits that are not known; of classes without what is a
        tie."""
        if not self._values:
            return np.where(np.abs(values) < TIGHTEST, 0.0, values) if self._classifies else values
        scale, _ = scale_and_intercept(self.machine, solution)
        noise = scale * self._rounding_of(self.whole.problems[number], solution)
        least = min(GRID * self._size, self._settings.tol)
        grid = 2.0 ** np.ceil(np.log2(max(least, noise)))
        return np.rint(values / grid) * grid + 0.0  # no negative zeros

    @property
    def _classifies(self) -> bool:
        return isinstance(self.machine, KernelClassifier)

    @cached_property
    def _size(self) -> float:
        """Of values: 1, or less where all targets are small."""
        if self._classifies:
            return 1.0
        return float(min(1.0, np.abs(np.asarray(self.y, dtype=np.float64)).max())) or 1.0

    @cached_property
    def _largest_diagonal(self) -> float:
        rows = np.arange(self.n, dtype=np.int32)
        return max(abs(float(self._store.exact_block(k, k)[0, 0])) for k in rows[:, None])

    def _sharpened(
        self, store: _core.KernelStore, problem: Problem, solution: _core.Solution, work: FoldWork
    ) -> _core.Solution:
        """The solution, solved on until its values are as good as exact.

        On entries in double precision where there is room for them, so far as rounding allows.
        """
        if solution.status != _core.Status.converged:
            return solution
        tol, precise = self._value_tol(problem, solution), _core.can_solve_precisely(len(problem))
        coarser = max(tol, FLOAT_TOL) if precise else tol
        if solution.gap >= coarser:
            started = problem.started(solution.beta)
            [further] = solve(store, [started], replace(self._settings, tol=coarser))
            work.n_iter += further.n_iter
            if further.gap < self._settings.tol:
                solution = further
        if not precise:
            return solution
        last = max(LAST_TOL, self._rounding_of(problem, solution))
        for aim, most in ((tol, self._settings.max_iter), (last, LAST_ITERATIONS)):
            started = problem.started(solution.beta)
            further = _core.solve_precisely(store, started, aim, most)
            work.n_iter += further.n_iter
            if further.gap >= self._settings.tol:
                break
            if further.status != _core.Status.converged:  # what can be had
                started = problem.started(further.beta)
                aim = np.nextafter(further.gap, np.inf)
                further = _core.solve_precisely(store, started, aim, 0)
            solution = further
        return solution

    def _solved_rows(
        self, rows: list[int], undecided: Undecided, found: LeftOutRows, proofs: Proofs
    ) -> Iterator[tuple[LeftOut, SolvedFold]]:
        """Rows with their solutions; proofs are looked for as long as they pay."""
        if proofs is not Proofs.WHERE_THEY_PAY:
            yield from self._solved_rows_alike(rows, undecided, found, proofs is Proofs.ALL)
            return
        stride = max(1, len(rows) // (2 * TRIAL))
        n_iter = []  # a problem, and what its proofs cost
        for prove in (False, True):
            trial = rows[int(prove) * stride :: 2 * stride][:TRIAL]
            yield from self._solved_rows_alike(trial, undecided, found, prove)
            solved = max(1, sum(len(self.variables(row)) for row in trial))
            total = sum(found.work[row].n_iter for row in trial)
            n_iter.append(total / solved + (COST_OF_PROOFS if prove else 0.0))
            rows = sorted(set(rows) - set(trial))
        yield from self._solved_rows_alike(rows, undecided, found, n_iter[True] < n_iter[False])

    def _solved_rows_alike(
        self, rows: list[int], undecided: Undecided, found: LeftOutRows, prove: bool
    ) -> Iterator[tuple[LeftOut, SolvedFold]]:
        begun: deque[LeftOut] = deque()
        folds = solve_folds(
            self._begin(rows, undecided, found, prove, begun),
            self.whole.problems,
            self._solved if self._strategy.source is Source.FULL else {},
            self._strategy,
            self._fold_settings,
            AT_A_TIME,
        )
        for fold in folds:
            yield begun.popleft(), fold

    @property
    def _fold_settings(self) -> Settings:
        if not self._values:
            return self._settings
        return replace(self._settings, tol=min(self._settings.tol, FLOAT_TOL))

    def _begin(
        self,
        rows: list[int],
        undecided: Undecided,
        found: LeftOutRows,
        prove: bool,
        begun: deque[LeftOut],
    ) -> Iterator[Fold]:
        """The problems to solve, as they are asked for; ``begun`` notes their rows."""
        last = self.indispensable()
        for row in rows:
            alone = self._simple and not last[row]
            left_out = self._without(row, undecided) if alone else self._part_without(row, found)
            if left_out is None or not left_out.to_solve:
                continue
            begun.append(left_out)
            at = dict(self.variables(row))
            asked = [at[k] for k in left_out.to_solve] if prove and alone else None
            yield Fold(left_out.store, left_out.bounds, left_out.to_solve, asked)

    def _without(self, row: int, undecided: Undecided) -> LeftOut:
        """What changes by the bound of this row alone."""
        bounds = self.whole.bounds.copy()
        bounds[row] = 0.0
        to_solve = [k for k, at in self.variables(row) if undecided[k][at]]
        return LeftOut(row, self._store, bounds, to_solve)

    def _part_without(self, row: int, found: LeftOutRows) -> LeftOut | None:
        """All that changes without this row; None if there is no fit without it."""
        train = np.delete(np.arange(self.n), self.whole.order[row])
        try:
            part = self.machine._part(self.whole, self.y, self._weights, train)
        except ValueError as error:
            found.errors.append(error)
            found.settle(row, FAILED, np.nan)
            return None
        if part.training.starts != self.whole.starts:
            found.trainings[row] = part.training
            found.settle(row, NOT_SUPPORT, np.nan, [number for number, _ in self.variables(row)])
        changed = part.bounds != self.whole.bounds
        if self._kernel.depends_on_fold:
            changed[:] = True
        to_solve = [k for k in part.problems if changed[self.whole.problems[k].rows].any()]
        return LeftOut(row, self._kernel.store(self._kernel.of(train)), part.bounds, to_solve)

    def _finish(
        self, left_out: LeftOut, fold: SolvedFold, found: LeftOutRows, proofs: Proofs
    ) -> list[_core.Solution]:
        """Takes the values of a left-out row from its solutions, once their signs are decided."""
        row, rule = left_out.row, NOT_SUPPORT
        solutions = []
        for number, solution in zip(left_out.to_solve, fold.solutions, strict=True):
            if self._values:
                problem = self.whole.problems[number].with_bounds(left_out.bounds)
                solution = self._sharpened(left_out.store, problem, solution, fold.work)
            else:
                solution = self._decided(left_out, number, solution, fold.work)
            proven = solution.status == _core.Status.sign_proven
            if proofs is Proofs.ALL and not proven:
                solution, proven = self._proven(left_out, number, solution, fold.work)
            value, _ = self._value(left_out, number, solution)
            if not proven:
                value = self._rounded(value, number, solution)
            found.signs[row, number] = found.reached[row, number] = value
            found.values[row, number] = np.nan if proven else value
            rule = max(rule, CERTIFICATE if proven else SOLVER)
            solutions.append(solution)
        found.decided[row] = rule
        return solutions

    def _decided(
        self, left_out: LeftOut, number: int, solution: _core.Solution, work: FoldWork
    ) -> _core.Solution:
        """The solution, solved on where a value is of the size of the tolerance."""
        if isinstance(self.machine, KernelRegressor):
            return solution
        tol = self._settings.tol
        while solution.status == _core.Status.converged:
            _, size = self._value(left_out, number, solution)
            if not TIGHTEST <= size < MARGIN * tol:
                break
            tol = max(size / (2 * MARGIN), TIGHTEST / MARGIN)
            further = self._solved_on(left_out, number, solution, tol, work)
            if further.status != _core.Status.converged:
                break
            solution = further
        return solution

    def _proven(
        self, left_out: LeftOut, number: int, solution: _core.Solution, work: FoldWork
    ) -> tuple[_core.Solution, bool]:
        """The solution, solved on until its sign is proven to be that of the optimum; if it was."""
        problem = self.whole.problems[number].with_bounds(left_out.bounds)
        at = dict(self.variables(left_out.row))[number]
        tol = min(self._settings.tol, solution.gap)
        while solution.status == _core.Status.converged:
            if _core.proven_sign(left_out.store, problem, solution, at) != 0:
                return solution, True
            tol /= 10
            if tol < TIGHTEST / MARGIN:
                break
            further = self._solved_on(left_out, number, solution, tol, work)
            if further.status != _core.Status.converged:
                break
            solution = further
        return solution, False

    def _solved_on(
        self, left_out: LeftOut, number: int, solution: _core.Solution, tol: float, work: FoldWork
    ) -> _core.Solution:
        problem = self.whole.problems[number].with_bounds(left_out.bounds)
        started = problem.started(solution.beta, solution.gradient)
        [further] = solve(left_out.store, [started], replace(self._settings, tol=tol))
        work.n_iter += further.n_iter
        return further

    def _value(
        self, left_out: LeftOut, number: int, solution: _core.Solution
    ) -> tuple[float, float]:
        """The value of the row that is left out, and its size in the units of the solution."""
        row, problem = left_out.row, self.whole.problems[number]
        at = dict(self.variables(row)).get(number)
        if self._kernel.matrix is not None:
            columns = self.whole.order[problem.rows]
            product = self._kernel.matrix[self.whole.order[row], columns] @ solution.beta
        elif at is not None:
            product = problem.linear[at] - solution.gradient[at]
        else:
            [entries] = left_out.store.exact_block(np.array([row], dtype=np.int32), problem.rows)
            product = entries @ solution.beta
        scale, intercept = scale_and_intercept(self.machine, solution)
        value = float(scale * product + intercept)
        return value, abs(value) / scale
