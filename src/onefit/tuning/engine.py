"""Every cell of a search, solved with what it can share.

Candidates are grouped by the transformers before their machine; each group is a workload on data
that its candidates share: all folds at once for a machine alone, one fold for a pipeline, whose
transformers see the training rows only. What is not understood here, or fails, scikit-learn does
and reports.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.given import is_given, is_worth_sharing
from onefit.model_selection.crossfit import are_different
from onefit.tuning.candidates import Setting, key_of, settings_of
from onefit.tuning.families import family_key
from onefit.tuning.ledger import SearchLedger
from onefit.tuning.outcomes import Outcomes, Take
from onefit.tuning.request import Cell, Known, Request
from onefit.tuning.transformed import TransformedFold, transformed_fold
from onefit.tuning.workload import NOTHING_KNOWN, UnsuitableError, Workload


class Engine:
    """Runs the cells of a request."""

    def __init__(
        self,
        request: Request,
        *,
        n_jobs: int | None,
        cold: bool = False,
        one_by_one: bool = False,
        comes_back: bool = False,
    ) -> None:
        """``comes_back``: cells of one fold are asked for in several calls of ``run``."""
        self._request = request
        self._n_jobs = n_jobs
        self._threads = effective_n_jobs(n_jobs)
        self._cold, self._one_by_one = cold, one_by_one
        self.ledger = SearchLedger()
        self._settings: list[Setting] = []
        if self._can_share():
            self._settings, _ = settings_of(request.estimator, request.candidates)
        self._comes_back = comes_back
        self._folds: dict[Any, TransformedFold | None] = {}
        self._works: dict[Any, Workload | None] = {}

    @property
    def machines(self) -> dict[int, KernelMachine]:
        """The machines of the candidates that are solved here."""
        return {k: m for setting in self._settings for k, m in setting.machines.items()}

    def run(self, cells: Iterable[Cell], take: Take, known: Known = NOTHING_KNOWN) -> None:
        """Solve and score these cells; ``take`` is given all of them, some at a time, but those
        that are ``known``."""
        by_candidate: dict[int, list[Cell]] = defaultdict(list)
        for cell in cells:
            by_candidate[cell.candidate].append(cell)
        left: list[Cell] = []
        for number, setting in enumerate(self._settings):
            mine = [c for k in setting.machines for c in by_candidate.pop(k, [])]
            if known.cells.issuperset(mine):
                continue
            if setting.pipeline is None:
                self._run_alone(number, setting, mine, take, left, known)
            else:
                self._run_pipeline(setting, mine, take, left, known)
        left += [cell for some in by_candidate.values() for cell in some]
        self._run_by_sklearn(sorted(cell for cell in left if cell not in known.cells), take)

    def on_all_rows(self) -> Iterator[Workload]:
        """Every candidate on all rows: a fold that holds nothing out."""
        request = self._request
        rows = np.arange(_num_samples(request.X))
        for setting in self._settings:
            X, y, weights = request.X, request.y, self._weights()
            if setting.pipeline is not None:
                try:
                    fold = transformed_fold(setting.pipeline, X, y, (rows, rows[:1]))
                except Exception:  # a fold may be possible where all rows are not
                    continue
                if fold is None:
                    continue
                X, y, weights = fold.X[fold.split[0]], fold.y[fold.split[0]], None
            for machines in _by_data(setting.machines).values():
                work = self._new_work(X, y, weights, [(rows, rows)], machines)
                if work is not None:
                    yield work

    def _weights(self) -> Any:
        return (self._request.option("fit_params") or {}).get("sample_weight")

    def _can_share(self) -> bool:
        request = self._request
        fit_params = request.option("fit_params") or {}
        allowed = {"sample_weight"} if isinstance(request.estimator, KernelMachine) else set()
        n = _num_samples(request.X)
        return (
            request.y is not None
            and not set(fit_params) - allowed
            and not vars(request.estimator).get("_skl_callbacks")
            and all(are_different(train, n) for train, _ in request.splits)
            and all(len(test) > 0 for _, test in request.splits)
        )

    # ---- workloads ------------------------------------------------------------------------------

    def _run_alone(
        self,
        number: int,
        setting: Setting,
        cells: list[Cell],
        take: Take,
        left: list[Cell],
        known: Known,
    ) -> None:
        for key, machines in _by_data(setting.machines).items():
            mine = [cell for cell in cells if cell.candidate in machines]
            work = self._work(number, key, machines)
            self._solve(work, mine, take, left, None, known)

    def _work(self, number: int, key: Any, machines: dict[int, KernelMachine]) -> Workload | None:
        """The workload of these machines on all rows; kept, with its kernels, for a second call."""
        if (number, key) not in self._works:
            request = self._request
            weights = self._weights()
            first = next(iter(machines.values()))
            possible = not is_given(first) or is_worth_sharing(first, request.X, request.splits)
            self._works[number, key] = (
                self._new_work(request.X, request.y, weights, request.splits, machines)
                if possible
                else None
            )
        return self._works[number, key]

    def _new_work(
        self, X: Any, y: Any, weights: Any, splits: Any, machines: dict[int, KernelMachine]
    ) -> Workload | None:
        """Of all of them, or of those that suit the data; None if there are none."""

        def work(of: dict[int, KernelMachine]) -> Workload | None:
            how = {"threads": self._threads, "cold": self._cold, "comes_back": self._comes_back}
            try:
                return Workload(X, y, weights, splits, of, **how)
            except UnsuitableError:  # for scikit-learn to say, fold by fold
                return None

        everyone = work(machines)
        if everyone is not None:
            return everyone
        families: dict[Any, dict[int, KernelMachine]] = defaultdict(dict)
        for k, machine in machines.items():
            families[family_key(machine)][k] = machine
        if len(families) == 1:
            return None
        possible = (some for some in families.values() if work(some) is not None)
        left = {k: machine for some in possible for k, machine in some.items()}
        return work(left) if left else None

    def _run_pipeline(
        self, setting: Setting, cells: list[Cell], take: Take, left: list[Cell], known: Known
    ) -> None:
        by_fold: dict[int, list[Cell]] = defaultdict(list)
        for cell in cells:
            by_fold[cell.fold].append(cell)
        for number, mine in by_fold.items():
            if known.cells.issuperset(mine):
                continue
            fold = self._transformed(setting, number)
            if fold is None:
                left += mine
                continue
            for machines in _by_data(setting.machines).values():
                some = [cell for cell in mine if cell.candidate in machines]
                work = self._new_work(fold.X, fold.y, None, [fold.split], machines)
                self._solve(work, some, take, left, (fold, number), known.of_fold(number))

    def _transformed(self, setting: Setting, number: int) -> TransformedFold | None:
        request, key = self._request, (id(setting), number)
        if key in self._folds:
            return self._folds[key]
        fold = None
        if (request.option("verbose") or 0) <= 1:
            assert setting.pipeline is not None
            try:
                split = request.splits[number]
                fold = transformed_fold(setting.pipeline, request.X, request.y, split)
                self.ledger.transformed += 1
            except Exception:  # for scikit-learn to say
                fold = None
        if self._comes_back:
            self._folds[key] = fold
        return fold

    def _solve(
        self,
        work: Workload | None,
        cells: list[Cell],
        take: Take,
        left: list[Cell],
        of_pipeline: tuple[TransformedFold, int] | None,
        known: Known,
    ) -> None:
        if work is None:
            left += cells
            return
        done: set[Cell] = set()

        def taken(some: list[Cell], outcomes: Any, values: Any, path: Any) -> None:
            try:
                take(some, outcomes, values, path)
            except Exception as error:  # of who takes them, which is not for scikit-learn to repeat
                raise _NotTakenError from error
            done.update(some)

        fold, number = of_pipeline or (None, 0)
        self.ledger.transformed_alone += 0 if fold is None else len(cells)
        inside = [
            c if fold is None else Cell(c.candidate, 0)
            for c in cells
            if c.candidate in work.machines
        ]
        score = Outcomes(self._request, work, taken, self.ledger, fold, number)
        entries = work.stores.entries_evaluated
        try:
            chains, _ = work.chains(inside, known)
            values_do = score.needs_values_only and not self._one_by_one
            work.solve(
                chains,
                score,
                one_by_one=self._one_by_one,
                take_values=score.take_values if values_do else None,
            )
        except _NotTakenError as failed:
            raise (failed.__cause__ or failed) from None
        except (ValueError, MemoryError):  # of one kernel, mostly
            pass  # what is not done is left to scikit-learn, one by one
        self.ledger.kernel_entries += work.stores.entries_evaluated - entries
        left += [cell for cell in cells if cell not in done]

    # ---- what is left to scikit-learn ------------------------------------------------------------

    def _run_by_sklearn(self, cells: list[Cell], take: Take) -> None:
        if not cells:
            return
        request = self._request
        self.ledger.by_sklearn += len(cells)
        calls = (
            delayed(request.function)(*args, **options)
            for args, options in (request.arguments(cell) for cell in cells)
        )
        for cell, outcome in zip(cells, in_turn(calls, self._n_jobs), strict=True):
            take([cell], [outcome], None, None)


class PlainEngine(Engine):
    """Runs the cells of any estimator by scikit-learn."""

    def _can_share(self) -> bool:
        return False


class _NotTakenError(Exception):
    """Cells were solved and scored, and could not be handed on; the cause says why."""


def in_turn(calls: Iterable[Any], n_jobs: int | None) -> Iterator[Any]:
    """What the calls return, one by one if the back end of joblib can do that."""
    backend, _ = get_active_backend()
    as_they_come = getattr(backend, "supports_return_generator", False)
    run = Parallel(n_jobs=n_jobs, return_as="generator" if as_they_come else "list")
    yield from run(calls)


def _by_data(machines: dict[int, KernelMachine]) -> dict[Any, dict[int, KernelMachine]]:
    """Machines that can share a store: of one kind, and with kernels of the rows or one given."""
    found: dict[Any, dict[int, KernelMachine]] = defaultdict(dict)
    for number, machine in machines.items():
        given = key_of(machine.kernel) if is_given(machine) else None
        key = (isinstance(machine, KernelClassifier), given, key_of(machine.cache_size))
        found[key][number] = machine
    return found
