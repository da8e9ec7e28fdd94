"""An estimator of ours fitted to all folds of a splitter, as estimators that are fitted already."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from onefit import _core, voting
from onefit.estimators.base import HeldOut, KernelMachine, Prepared, Training
from onefit.estimators.classification import ClassTraining
from onefit.folds import FoldWork, choose, solve_folds
from onefit.kernels import Floats, Kernel, make_store, resolve_gamma
from onefit.memory import budget_bytes
from onefit.problem import Problem
from onefit.report.progress import shown
from onefit.seeding import Source

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


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
    ) -> None:
        self.work: list[FoldWork] = []
        self._estimator = clone(estimator)
        self._given = X
        self._X, self._y = self._estimator._check_training_data(X, y)
        self._weights = self._estimator._check_weights(sample_weight, self._X)
        self.splits = splits
        self._progress = progress
        self._n = len(self._y)
        self.settings = replace(
            self._estimator._settings(), threads=effective_n_jobs(n_jobs or estimator.n_jobs)
        )
        share = float(np.mean([len(train) for train, _ in splits])) / self._n
        self._strategy = choose(seeding, len(splits), self._n, share)
        # In the order of classes, as a fit has it: then a pair of them is two runs of a row.
        self._order = (
            np.argsort(self._y, kind="stable")
            if hasattr(estimator, "class_weight")
            else np.arange(self._n)
        )
        self._position = np.empty(self._n, dtype=np.int32)
        self._position[self._order] = np.arange(self._n, dtype=np.int32)
        self._shared: _core.KernelStore | None = None

    # ---- kernels --------------------------------------------------------------------------------

    @property
    def _kernel_depends_on_fold(self) -> bool:
        machine = self._estimator
        return machine.gamma == "scale" and machine.kernel in ("rbf", "poly", "sigmoid")

    def _kernel(self, train: NDArray[np.intp] | None) -> Kernel | None:
        kernel: Kernel | None = self._estimator._resolve_kernel(self._X)
        if kernel is None or train is None or not self._kernel_depends_on_fold:
            return kernel
        return replace(kernel, gamma=resolve_gamma("scale", self._X[train]))

    def _store(self, kernel: Kernel | None) -> _core.KernelStore:
        machine = self._estimator
        if not self._kernel_depends_on_fold:
            if self._shared is None:
                self._shared = machine._store(self._X, kernel, self._order)
            return self._shared
        assert kernel is not None
        budget = budget_bytes(machine.cache_size, self._n) // 2
        if kernel.name != "rbf":
            return make_store(self._X, kernel, budget, rows=self._order)
        if self._shared is None:
            distances = Kernel("distance")
            self._shared = make_store(self._X, distances, budget, rows=self._order)
        return _core.KernelStore.from_distances(self._shared, kernel.gamma, budget)

    # ---- problems -------------------------------------------------------------------------------

    def _training(self, train: NDArray[np.intp] | None) -> Training:
        held_out = np.zeros(self._n, dtype=bool)
        if train is not None:
            held_out[:] = True
            held_out[train] = False
        training: Training = self._estimator._training(self._y, self._weights, held_out)
        return training

    def _problems(self, training: Training) -> dict[Hashable, Problem]:
        rows = self._position[training.order]
        keys: Sequence[Hashable] = [None]
        if isinstance(training, ClassTraining):
            keys = list(combinations(training.classes.tolist(), 2))
        return {
            key: replace(problem, rows=rows[problem.rows])
            for key, problem in zip(keys, training.problems, strict=True)
        }

    # ---- folds ----------------------------------------------------------------------------------

    def in_turn(self, fits: Iterable[Prepared] | None = None) -> KernelMachine:
        """An estimator whose clones are the folds, one by one: ``fit`` takes their fits over."""

        def folds() -> Iterator[KernelMachine]:
            for prepared in self.fits() if fits is None else fits:
                machine = clone(self._estimator)
                machine._prepared = prepared
                yield machine

        estimator: KernelMachine = clone(self._estimator)
        estimator._folds = folds()
        return estimator

    def fits(self) -> Iterator[Prepared]:
        """The fits of the folds in turn."""
        name = f"{type(self._estimator).__name__}, fold"
        return shown(self._fits(), len(self.splits), name, self._progress)

    def _fits(self) -> Iterator[Prepared]:
        full = None
        if self._strategy.source is Source.FULL:
            try:
                kernel = self._kernel(None)
                full = (self._store(kernel), self._problems(self._training(None)))
            except ValueError:  # a fold may be possible where all rows are not
                full = None
        trainings: list[Training | ValueError] = []
        for train, _ in self.splits:
            try:
                trainings.append(self._training(train))
            except ValueError as error:
                trainings.append(error)
        kernels = [self._kernel(train) for train, _ in self.splits]
        possible = [k for k, t in enumerate(trainings) if isinstance(t, Training)]
        stores = {k: self._store(kernels[k]) for k in possible}
        solved = solve_folds(
            [(stores[k], self._problems(trainings[k])) for k in possible],  # type: ignore[arg-type]
            full,
            self._strategy,
            self.settings,
        )
        for k, (train, test) in enumerate(self.splits):
            training, weight = trainings[k], None
            if self._weights is not None:
                weight = self._weights[train]
            prepared = Prepared(len(train), weight, kernels[k])
            if isinstance(training, ValueError):
                prepared.error = training
                self.work.append(FoldWork())
            else:
                fold = next(solved)
                self.work.append(fold.work)
                solutions = list(fold.solutions.values())
                self._finish(prepared, stores[k], training, solutions, train, test)
            yield prepared

    def _finish(
        self,
        prepared: Prepared,
        store: _core.KernelStore,
        training: Training,
        solutions: list[_core.Solution],
        train: NDArray[np.intp],
        test: NDArray[np.intp],
    ) -> None:
        local = np.full(self._n, -1, dtype=np.intp)
        local[train] = np.arange(len(train))
        model = self._estimator._model(training, solutions)
        prepared.training = replace(training, order=local[training.order])
        prepared.solutions = solutions
        prepared.model = model
        values = self._values(store, training, solutions, model, test)
        prepared.held_out = HeldOut(self._given, test, values)

    def _values(
        self,
        store: _core.KernelStore,
        training: Training,
        solutions: list[_core.Solution],
        model: Any,
        test: NDArray[np.intp],
    ) -> Floats:
        """Values of the test rows: of each pair, or of the function."""
        variable = np.full(self._n, -1, dtype=np.intp)
        variable[training.order] = np.arange(len(training.order))
        at = variable[test]
        if len(solutions) == 1 and (at >= 0).all():
            [solution], [problem] = solutions, training.problems
            n = len(training.order)
            beta = solution.beta[:n] + (solution.beta[n:] if len(solution.beta) > n else 0.0)
            largest = int(np.argmax(np.abs(beta)))
            # The model's coefficients are the solution's times a factor.
            factor = model.coef[0, largest] / beta[largest] if beta[largest] != 0 else 0.0
            products = problem.linear[at] - solution.gradient[at]
            values: Floats = factor * products + model.intercept[0]
            return values.reshape(-1, 1)
        support = np.flatnonzero(np.any(model.coef != 0, axis=0))
        n_support = np.diff(np.searchsorted(support, training.starts)).astype(np.int32)
        rows = self._position[training.order[support]]
        kernel = store.block(rows, self._position[test]).T.astype(np.float64)
        return voting.pair_values(kernel, model.coef[:, support], n_support, model.intercept)


def can_share(estimator: Any, X: Any, splits: Sequence[Split]) -> bool:
    """Whether the folds of this estimator can be fitted together."""
    return (
        isinstance(estimator, KernelMachine)
        and not callable(estimator.kernel)
        and estimator.kernel != "precomputed"
        and (isinstance(X, np.ndarray) or sp.issparse(X))
        and all(len(train) and len(np.unique(train)) == len(train) for train, _ in splits)
    )
