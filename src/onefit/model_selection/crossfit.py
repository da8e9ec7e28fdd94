"""An estimator of ours fitted to all folds of a splitter, as estimators that are fitted already."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import _num_samples

from onefit import _core
from onefit.estimators.base import HeldOut, KernelMachine, Model, Part, Prepared, Training
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.given import Split, is_given, is_worth_sharing, values_from
from onefit.estimators.sharing import SharedKernel
from onefit.folds import (
    Fold,
    FoldWork,
    Neighbours,
    SolvedFold,
    choose,
    solve_folds,
    solve_full,
)
from onefit.kernels import Floats, Kernel
from onefit.model_selection.splitting import Dealt, trained_share
from onefit.report.progress import shown
from onefit.seeding import Source
from onefit.solver import solve, solve_parts

T = TypeVar("T")

# So many values of a fold may be smaller than the tolerance. Those below a limit cannot be decided:
# entries of the kernel are not known that well.
UNDECIDED = 0.01
TIGHTEST = 1e-8

# So few folds are checked in one go.
FEW_FOLDS = 20


@dataclass
class Begun:
    """A fold on its way."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    part: Part | None = None
    kernel: Kernel | None = None
    store: Any = None
    error: ValueError | None = None


class CrossFit:
    """All folds of an estimator, fitted in turn."""

    def __init__(
        self,
        estimator: KernelMachine,
        X: Any,
        y: Any,
        sample_weight: Any,
        splits: Sequence[Split],
        seeding: str,
        n_jobs: int | None,
        progress: bool | None = False,
        *,
        certify: bool = False,
        labels_only: bool = False,
    ) -> None:
        """``labels_only``: nobody sees more of the rows that a fold holds out than their classes.

        Otherwise no bit of their values may depend on their own labels, targets or weights.
        """
        self.work: list[FoldWork] = []
        self.certify = certify
        self.full_work: FoldWork | None = None  # of the fit on all rows, where there was one
        self.machine = copy(estimator)  # what is fitted of it does not matter here
        self._given = X
        self.X, self._y = self.machine._check_training_data(X, y)
        self.weights = self.machine._check_weights(sample_weight, self.X)
        self.splits = splits
        self.progress = progress
        self._n = len(self._y)
        self.settings = self.machine._settings(n_jobs)
        # The rows of the store are in the order of the problems on all rows.
        self.whole: Training = self.machine._training(self._y, self.weights, every_row=True)
        self.problems = self.whole.problems
        share = trained_share(splits, self._n)
        largest = max(len(problem) for problem in self.problems)
        self._classifies = isinstance(self.machine, KernelClassifier)
        self._alone = not (certify or (labels_only and self._classifies))
        self.strategy = choose(seeding, len(splits), largest, share, labels_only=not self._alone)
        self.order = self.whole.order
        self.position = np.empty(self._n, dtype=np.int32)
        self.position[self.order] = np.arange(self._n, dtype=np.int32)
        self.kernel = SharedKernel(self.machine, self.X, self.order)
        if not self.kernel.depends_on_fold:
            # Raises where a row that some folds lack overflows.
            self.kernel.store(self.kernel.of_all)

    # ---- folds ----------------------------------------------------------------------------------

    def in_turn(self, fits: Iterable[Prepared] | None = None) -> KernelMachine:
        """An estimator whose clones are the folds, one by one: ``fit`` takes their fits over."""

        def folds() -> Iterator[KernelMachine]:
            for prepared in self.fits() if fits is None else fits:
                machine = clone(self.machine)
                machine._prepared = prepared
                yield machine

        estimator: KernelMachine = clone(self.machine)
        estimator._folds = folds()
        return estimator

    def fits(self) -> Iterator[Prepared]:
        """The fits of the folds in turn."""
        return self.counted(self._fits())

    def counted(self, folds: Iterable[T]) -> Iterator[T]:
        """The folds in turn, with a bar that counts them."""
        name = f"{type(self.machine).__name__}, fold"
        return shown(folds, len(self.splits), name, self.progress)

    def neighbours(self) -> Neighbours:
        """The fit on all rows, where the folds start from it."""
        if self.strategy.source is not Source.FULL:
            return {}
        store = self.kernel.store(self.kernel.of_all)
        solved, self.full_work = solve_full(store, self.problems, self.settings, self.strategy)
        return solved

    def _fits(self) -> Iterator[Prepared]:
        neighbours = self.neighbours()
        begun: deque[Begun] = deque()
        folds = self._begin(begun)
        given = (self.problems, neighbours, self.strategy, self.settings)
        for solved in solve_folds(folds, *given, n_folds=len(self.splits), alone=self._alone):
            while begun[0].error is not None:
                yield self._failed(begun.popleft())
            fold = begun.popleft()
            self.work.append(solved.work)
            yield self._finished(fold, solved)
        for fold in begun:
            yield self._failed(fold)

    def _begin(self, begun: deque[Begun]) -> Iterator[Fold]:
        """The folds to solve, as they are asked for; ``begun`` notes them, and those that fail."""
        for train, test in self.splits:
            fold = Begun(train, test)
            begun.append(fold)
            try:
                fold.part = self.machine._part(self.whole, self._y, self.weights, train)
            except ValueError as error:
                fold.error = error
                continue
            fold.kernel = self.kernel.of(train)
            fold.store = self.kernel.store(fold.kernel)
            yield Fold(fold.store, fold.part.bounds, fold.part.problems)

    def _prepared(self, fold: Begun) -> Prepared:
        weight = None if self.weights is None else self.weights[fold.train]
        return Prepared(fold.train, weight, fold.kernel, error=fold.error)

    def _failed(self, fold: Begun) -> Prepared:
        self.work.append(FoldWork())
        return self._prepared(fold)

    def _finished(self, fold: Begun, solved: SolvedFold) -> Prepared:
        assert fold.part is not None
        prepared = self._prepared(fold)
        prepared.training = fold.part.training
        prepared.solutions, prepared.model, values = self.decided(fold, solved)
        if self.certify:
            prepared.solutions = [self._certified(fold, prepared.solutions[0], solved.work)]
            prepared.model = self.machine._model(prepared.training, prepared.solutions)
            values = self._values(
                fold.store, prepared.training, prepared.solutions, prepared.model, fold.test
            )
        prepared.held_out = HeldOut(self._given, fold.test, values)
        return prepared

    def decided(
        self, fold: Begun, solved: SolvedFold
    ) -> tuple[list[_core.Solution], Model, Floats]:
        """The solutions of a fold, their model, and its values of the test rows.

        A value that is smaller than the tolerance is not decided: another start would give another
        sign. A few rows always are so near to the boundary. Where there are more (all of them, if
        the kernel matrix is almost the identity), the fold is solved on to a tolerance below their
        values.
        """
        assert fold.part is not None
        solutions, settings = solved.solutions, self.settings
        while True:
            model = self.machine._model(fold.part.training, solutions)
            values = self._values(fold.store, fold.part.training, solutions, model, fold.test)
            # The margin of a ν-SVC is ρ in the units of its solution.
            sizes = np.abs(values) * model.attributes.get("rho_", 1.0)
            if not self._classifies or sizes.min(initial=settings.tol) >= settings.tol:
                return solutions, model, values
            rank = int(UNDECIDED * sizes.size)
            if np.count_nonzero(sizes < settings.tol) <= rank:
                return solutions, model, values
            needed = np.partition(sizes, rank, axis=None)[rank]
            if needed < TIGHTEST:  # beyond what can be decided
                return solutions, model, values
            if any(s.status != _core.Status.converged for s in solutions):
                return solutions, model, values
            settings = replace(settings, tol=max(min(needed, settings.tol) / 10, TIGHTEST / 10))
            further = solve_parts(
                fold.store,
                [self.problems[k] for k in fold.part.problems],
                [fold.part.bounds] * len(solutions),
                solutions,
                settings,
                same_kernel=True,
                alone=self._alone,
            )
            solved.work.n_iter += sum(s.n_iter for s in further)
            if any(s.status != _core.Status.converged for s in further):
                return solutions, model, values
            solutions = further

    def _certified(self, fold: Begun, solution: _core.Solution, work: FoldWork) -> _core.Solution:
        """The solution, solved on until the sides of all test rows are proven, if they can be."""
        assert fold.part is not None
        problem = self.problems[0].with_bounds(fold.part.bounds)
        linear = problem.linear
        undecided = self.position[fold.test]
        tol = min(self.settings.tol, solution.gap)
        while True:
            values = linear[undecided] - solution.gradient[undecided] + solution.offset
            signs = [_core.proven_sign(fold.store, problem, solution, at) for at in undecided]
            undecided = undecided[np.asarray(signs) * values <= 0]
            work.n_certified = len(fold.test) - len(undecided)
            tol /= 10
            if len(undecided) == 0 or tol < TIGHTEST / 10:
                return solution
            started = problem.started(solution.beta, solution.gradient)
            [further] = solve(fold.store, [started], replace(self.settings, tol=tol))
            work.n_iter += further.n_iter
            if further.status != _core.Status.converged:
                return solution
            solution = further

    def _values(
        self,
        store: _core.KernelStore,
        training: Training,
        solutions: list[_core.Solution],
        model: Model,
        test: NDArray[np.intp],
    ) -> Floats:
        """Values of the test rows: of each pair, or of the function."""
        if self.kernel.matrix is not None:
            return values_from(self.kernel.matrix, training, model, test)
        # Sums over the training rows in their order: gradients of test rows would be rounded with
        # their own labels in them.
        rows, queries = self.position[training.order], self.position[test]
        starts = training.starts if self._classifies else [0, len(rows), len(rows)]
        products = _core.pair_products(store, rows, starts, model.coef, queries)
        return np.asarray(products + model.intercept)


def can_share(estimator: Any, X: Any, splits: Sequence[Split]) -> bool:
    """Whether the folds of this estimator can be fitted together."""
    if not isinstance(estimator, KernelMachine):
        return False
    if is_given(estimator):
        possible = is_worth_sharing(estimator, X, splits)
    else:
        possible = isinstance(X, np.ndarray) or sp.issparse(X)
    if not possible or len(splits) == 0:
        return False
    return isinstance(splits, Dealt) or are_all_different(
        [train for train, _ in splits], _num_samples(X)
    )


def are_all_different(folds: Sequence[NDArray[Any]], n: int) -> bool:
    """Whether the rows of each of these are different: a few folds are looked at together."""
    if len(folds) <= FEW_FOLDS and all(rows.dtype == np.intp for rows in folds):
        sizes = [len(rows) for rows in folds]
        rows = np.concatenate(folds) if folds else np.empty(0, dtype=np.intp)
        if all(sizes) and rows.min(initial=0) >= 0 and rows.max(initial=0) < n:
            return are_different(
                rows + np.arange(0, n * len(folds), n).repeat(sizes), n * len(folds)
            )
    return all(are_different(rows, n) for rows in folds)


def are_different(rows: NDArray[Any], n: int) -> bool:
    """Whether these are row numbers, counted from 0, at least one and none twice."""
    if len(rows) == 0 or rows.dtype.kind not in "iu" or rows.min() < 0:
        return False
    marked = np.zeros(n, dtype=bool)
    marked[rows] = True
    return int(np.count_nonzero(marked)) == len(rows)
