"""Folds shared out to processes, for who has chosen a back end of joblib that works with them.

Threads on one store of kernel rows are faster, and the default. With ``backend="loky"``, say, every
worker is given a run of folds and fits them as one process does, on a store of its own. joblib
hands large arrays over as memory maps of one file, so that the data are not copied for each worker.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from onefit import _core
from onefit.estimators.base import HeldOut, KernelMachine, Prepared
from onefit.estimators.given import Split
from onefit.folds import FoldWork
from onefit.kernels import Floats
from onefit.memory import MEGABYTE, budget_bytes
from onefit.model_selection.crossfit import CrossFit
from onefit.seeding import Source

# Every worker solves the fit on all rows that its folds start from; for fewer of them than this it
# takes longer than it saves: a fold takes about 0.7 of its time from there.
LEAST_FOLDS = 4


def worker_processes(n_jobs: int | None, n_folds: int) -> int:
    """How many processes fit so many folds; 1 unless a back end with processes was chosen."""
    # Asked for threads, joblib answers with threads if nothing else was chosen.
    backend, _ = get_active_backend(prefer="threads")
    if getattr(backend, "uses_threads", False) or getattr(backend, "supports_sharedmem", False):
        return 1
    return min(int(effective_n_jobs(n_jobs)), n_folds)


@dataclass(frozen=True)
class Ended:
    """What the warnings of a fit are about: how its solver ended."""

    status: _core.Status
    gap: float


@dataclass
class FittedFold:
    """A fold on its way back from a worker: without what its parent has."""

    prepared: Prepared
    values: Floats | None
    work: FoldWork
    warnings: list[Warning]


class ProcessFit(CrossFit):
    """All folds of an estimator, fitted by several processes."""

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
        labels_only: bool = False,
    ) -> None:
        given = (estimator, X, y, sample_weight, splits, seeding, n_jobs, progress)
        super().__init__(*given, labels_only=labels_only)
        self._labels_only = labels_only
        self._processes = worker_processes(n_jobs, len(splits))
        self._seeding = self.strategy.name
        few = len(splits) < LEAST_FOLDS * self._processes
        if seeding == "auto" and self.strategy.source is Source.FULL and few:
            self._seeding = "none"

    def _fits(self) -> Iterator[Prepared]:
        machine, X = self._for_workers()
        parts = np.array_split(np.arange(len(self.splits)), self._processes)
        run = Parallel(n_jobs=self._processes, batch_size=1, pre_dispatch="all")
        batches = run(
            delayed(fit_batch)(
                machine,
                X,
                self._y,
                self.weights,
                [self.splits[number] for number in part],
                self._seeding,
                int(part[0]),
                self._labels_only,
            )
            for part in parts
        )
        fulls = [full for _, full in batches if full is not None]
        if fulls:
            self.full_work = FoldWork(
                n_iter=sum(full.n_iter for full in fulls),
                kernel_entries=sum(full.kernel_entries for full in fulls),
                seconds=sum(full.seconds for full in fulls),
            )
        folds = (fold for batch, _ in batches for fold in batch)
        for fold, (train, test) in zip(folds, self.splits, strict=True):
            for warning in fold.warnings:
                warnings.warn(warning, stacklevel=4)
            prepared = fold.prepared
            prepared.sample_weight = None if self.weights is None else self.weights[train]
            if fold.values is not None:
                prepared.held_out = HeldOut(self._given, test, fold.values)
            self.work.append(fold.work)
            yield prepared

    def _for_workers(self) -> tuple[KernelMachine, Any]:
        """The estimator and its data as workers get them."""
        machine = clone(self.machine)
        machine.set_params(n_jobs=machine.n_jobs or 1)
        vars(machine).pop("_skl_callbacks", None)  # theirs is this process
        if machine.cache_size == "auto":  # what is free is for all of them
            budget = budget_bytes("auto", self._n) / self._processes
            machine.set_params(cache_size=budget / MEGABYTE)
        if self.kernel.matrix is None:
            return machine, self.X
        return machine.set_params(kernel="precomputed"), self.kernel.matrix


def fit_batch(
    machine: KernelMachine,
    X: Any,
    y: Any,
    weights: Floats | None,
    splits: Sequence[Split],
    seeding: str,
    first: int,
    labels_only: bool,
) -> tuple[list[FittedFold], FoldWork | None]:
    """In a worker: the folds from the ``first`` on, and what a fit on all rows took."""
    fitted: list[FittedFold] = []
    with warnings.catch_warnings(record=True) as caught:
        # All of them: which are shown is for the parent's filters to say.
        warnings.simplefilter("always")
        given = (machine, X, y, weights, splits, seeding, machine.n_jobs)
        crossfit = CrossFit(*given, labels_only=labels_only)
        caught.clear()  # about the data: the parent has looked at them too
        for prepared in crossfit.fits():
            raised = [w.message for w in caught if isinstance(w.message, Warning)]
            caught.clear()
            fitted.append(_light(prepared, _counted_from(first, crossfit.work[-1]), raised))
    return fitted, crossfit.full_work


def _light(prepared: Prepared, work: FoldWork, raised: list[Warning]) -> FittedFold:
    """Without the problems, which nobody asks for any more, and with what can be pickled."""
    values = None if prepared.held_out is None else prepared.held_out.values
    if prepared.training is not None:
        prepared.training = replace(prepared.training, problems=[])
    prepared.solutions = cast(Any, [Ended(s.status, s.gap) for s in prepared.solutions])
    prepared.held_out = prepared.sample_weight = None
    return FittedFold(prepared, values, work, raised)


def _counted_from(first: int, work: FoldWork) -> FoldWork:
    """The work of a fold whose neighbour is named as in all folds, not in those of a worker."""
    name, _, number = work.seeded_from.partition(" ")
    return replace(work, seeded_from=f"fold {first + int(number)}") if name == "fold" else work
