"""From solved cells to what scikit-learn's ``_fit_and_score`` would have returned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from itertools import compress
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from onefit import _core
from onefit.estimators.base import HeldOut, KernelMachine, Prepared
from onefit.estimators.classification import ClassTraining
from onefit.kernels import Floats
from onefit.solver import warn_if_unfinished
from onefit.tuning.families import factor_of
from onefit.tuning.ledger import SearchLedger
from onefit.tuning.request import Cell, Outcome, PairState, Request
from onefit.tuning.scoring import Answers, Scoring
from onefit.tuning.transformed import TransformedFold
from onefit.tuning.values import StepValues
from onefit.tuning.workload import Chain, SolvedSteps, ValuedSteps, Workload

CONVERGED = _core.Status.converged


class Path(NamedTuple):
    """Where a path goes on after a cell."""

    states: list[PairState]
    before: list[Cell]  # cells of it that are done, from where it need not go on any more


# Cells that are done: what each came to, the values of its test rows, where they are known, and
# where the path goes on that the last of them is of, if it does.
Take = Callable[[list[Cell], list[Outcome], list[Floats] | None, Path | None], None]


class Outcomes:
    """Scores the solved steps of a workload and hands on what they come to."""

    def __init__(
        self,
        request: Request,
        work: Workload,
        take: Take,
        ledger: SearchLedger,
        fold: TransformedFold | None = None,
        number: int = 0,
    ) -> None:
        self._request, self._work, self._take, self._ledger = request, work, take, ledger
        self._fold, self._number = fold, number  # of a pipeline
        machine = next(iter(work.machines.values()))
        self._scoring = Scoring(request, machine)
        self._train_too = bool(request.option("return_train_score"))
        self._by_sklearn = self._scoring.needs_estimator or (request.option("verbose") or 0) > 1

    @property
    def needs_values_only(self) -> bool:
        """Whether nothing is asked of a solution but its values of the test rows."""
        return not (self._by_sklearn or self._train_too)

    def take_values(self, solved: ValuedSteps) -> None:
        """Scores the steps of a chain whose values are known."""
        chain, began = solved.chain, perf_counter()
        self._ledger.note_values(solved)
        for solutions in solved.unfinished:
            warn_if_unfinished(solutions, chain.family.settings)
        n_steps, n_test = len(solved.values), solved.values.shape[1]
        scores = self._scores_of_values(solved)
        now = perf_counter()
        common = {
            "fit_error": None,
            "n_test_samples": n_test,
            "fit_time": solved.seconds / n_steps + self._seconds_before(),
            "score_time": (now - began) / n_steps,
        }
        outcomes = [common | {"test_scores": score} for score in scores]
        self._hand_on(chain, range(n_steps), outcomes, solved.values, solved.finite)

    def _scores_of_values(self, solved: ValuedSteps) -> list[Any]:
        chain, n_test = solved.chain, solved.values.shape[1]
        machines = [self._work.machines[k] for k in chain.candidates]
        training = chain.part.training
        assert isinstance(training, ClassTraining)
        classes = training.classes
        votes_do = len(classes) == 2 or not any(machine.break_ties for machine in machines)
        if self._scoring.is_accuracy and votes_do:
            return [n_right / n_test for n_right in solved.n_right]
        rows = self._rows(self._work.splits[chain.fold][1])
        return [
            self._scoring.scores(rows, Answers(machine, values, classes))
            for machine, values in zip(machines, solved.values, strict=True)
        ]

    def __call__(self, solved: SolvedSteps) -> None:
        chain = solved.chain
        self._ledger.note(solved)
        began = perf_counter()
        path = self._path(solved)  # the next step starts here, wherever this one is solved on to
        values = StepValues(self._work, solved)
        held_out = values.held_out()
        spent = solved.seconds + perf_counter() - began
        seconds = spent / len(solved.steps) + self._seconds_before()
        if any(s.status is not CONVERGED for pairs in solved.solutions for s in pairs):
            for solutions in solved.solutions:
                warn_if_unfinished(solutions, chain.family.settings)
        finite = np.asarray(np.isfinite(held_out).all(axis=(1, 2))).tolist()
        outcomes: list[Outcome]
        if self._by_sklearn:
            outcomes = [
                self._by_estimator(k, solved, values, held_out[k], seconds) if finite[k] else {}
                for k in range(len(held_out))
            ]
        else:
            outcomes = self._scored(values, held_out, seconds)
        self._hand_on(chain, solved.steps, outcomes, held_out, finite, path)

    def _path(self, solved: SolvedSteps) -> Path | None:
        """Where the path goes on; None where it has ended, or where every step is cold."""
        chain, last = solved.chain, solved.steps[-1]
        if not chain.is_seeded:
            return None
        before = [Cell(candidate, self._fold_of(chain)) for candidate in chain.candidates[:last]]
        if last == chain.n_cells - 1:
            return Path([], before)
        solutions = solved.solutions[-1]
        return Path(
            [PairState(s.status is CONVERGED, s.beta, s.gradient) for s in solutions], before
        )

    def _fold_of(self, chain: Chain) -> int:
        """As the request numbers it."""
        return chain.fold if self._fold is None else self._number

    def _hand_on(
        self,
        chain: Chain,
        steps: Iterable[int],
        outcomes: list[Outcome],
        values: Floats,
        finite: list[bool],
        path: Path | None = None,
    ) -> None:
        """Steps with finite values; scikit-learn says what it thinks of the others."""
        steps, fold = list(steps), self._fold_of(chain)
        cells = [Cell(chain.candidates[step], fold) for step in steps]
        of_cells = list(values)
        wanted = [
            is_finite and step not in chain.known
            for step, is_finite in zip(steps, finite, strict=True)
        ]
        if not all(wanted):
            cells, outcomes = list(compress(cells, wanted)), list(compress(outcomes, wanted))
            of_cells = list(compress(of_cells, wanted))
        if self._request.contexts and not self._by_sklearn:
            for cell in cells:
                self._request.tell(cell)
        self._take(cells, outcomes, of_cells, path)

    def _scored(self, values: StepValues, held_out: Floats, seconds: float) -> list[Outcome]:
        train, test = self._work.splits[values.chain.fold]
        began = perf_counter()
        test_scores = self._scores(values, self._rows(test), held_out)
        outcomes = [
            {
                "fit_error": None,
                "test_scores": scores,
                "n_test_samples": len(test),
                "fit_time": seconds,
            }
            for scores in test_scores
        ]
        scoring_time = (perf_counter() - began) / len(outcomes)
        for outcome in outcomes:
            outcome["score_time"] = scoring_time
        if self._train_too:
            train_scores = self._scores(values, self._rows(train), values.at(train))
            for outcome, scores in zip(outcomes, train_scores, strict=True):
                outcome["train_scores"] = scores
        return outcomes

    def _scores(self, values: StepValues, rows: NDArray[np.intp], of_steps: Floats) -> list[Any]:
        """What the scorer gives for each step."""
        classes = getattr(values.chain.part.training, "classes", None)
        if classes is not None and len(classes) == 2 and self._scoring.is_accuracy:
            return self._scoring.shares_of_right(rows, of_steps[:, :, 0], classes)
        return [
            self._scoring.scores(rows, Answers(values.machine(k), of_step, classes))
            for k, of_step in enumerate(of_steps)
        ]

    def _rows(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """As the request numbers them."""
        if self._fold is None:
            return rows
        train, test = self._request.splits[self._number]
        return train if rows is self._fold.split[0] else test

    def _seconds_before(self) -> float:
        return 0.0 if self._fold is None else self._fold.seconds / len(self._work.machines)

    # ---- fitted estimators, for scorers that ask for more ---------------------------------------

    def _by_estimator(
        self, k: int, solved: SolvedSteps, values: StepValues, held_out: Floats, seconds: float
    ) -> Outcome:
        prepared = self._prepared(solved, values, k, held_out)
        request, chain = self._request, solved.chain
        cell = Cell(chain.candidates[solved.steps[k]], self._fold_of(chain))
        if self._fold is None:
            machine = clone(request.estimator)
            machine._prepared = prepared
            outcome = request.call(cell, machine)
            outcome["fit_time"] += seconds
            return outcome
        began = perf_counter()
        pipeline = self._fitted_pipeline(values.machine(k), prepared)
        train, test = request.splits[cell.fold]
        outcome = {"fit_error": None}
        X_test = _safe_indexing(request.X, test)
        outcome["test_scores"] = self._scoring.scores_of(pipeline, X_test, test)
        outcome["score_time"] = perf_counter() - began
        if self._train_too:
            X_train = _safe_indexing(request.X, train)
            outcome["train_scores"] = self._scoring.scores_of(pipeline, X_train, train)
        request.tell(cell)
        return outcome | {"n_test_samples": len(test), "fit_time": seconds}

    def _prepared(
        self, solved: SolvedSteps, values: StepValues, k: int, held_out: Floats
    ) -> Prepared:
        work, chain = self._work, solved.chain
        train, test = work.splits[chain.fold]
        weights = None if work.weights is None else work.weights[train]
        machine = values.machine(k)
        bounds = factor_of(machine) * chain.part.training.bounds
        return Prepared(
            train,
            weights,
            chain.kernel,
            replace(chain.part.training, bounds=bounds),
            solved.solutions[k],
            values.model(k),
            HeldOut(work.given, test, held_out) if self._fold is None else None,
        )

    def _fitted_pipeline(self, machine: KernelMachine, prepared: Prepared) -> Any:
        assert self._fold is not None
        fitted: KernelMachine = clone(machine)
        fitted._prepared = prepared
        train, _ = self._fold.split
        fitted.fit(self._fold.train, self._fold.y[train])
        return _with_last(self._fold.pipeline, fitted)


def _with_last(pipeline: Any, machine: KernelMachine) -> Any:
    """A copy of a fitted pipeline with another machine at its end."""
    result = copy(pipeline)
    name, last = pipeline.steps[-1]
    if not isinstance(last, KernelMachine):
        machine = _with_last(last, machine)
    result.steps = [*pipeline.steps[:-1], (name, machine)]
    return result
