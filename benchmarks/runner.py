"""Runs all rivals on a case in one process, taking turns, and judges before it reports.

Taking turns (A, B, C, A, B, C, ...) spreads whatever else the machine does over all rivals.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris
from threadpoolctl import threadpool_limits

from .case import WARM_UP, Case, Settings
from .machines.base import Machine
from .measure import Sample, measure
from .record import OURS, CaseRecord, Entry
from .rivals.base import Rival
from .subjects.base import Outcome, Subject, Verdict

# Whose answer is taken for right, the first that ran: LIBSVM in the form most people know it.
REFERENCES = ("scikit-learn", "libsvm", OURS)
# Runs of some milliseconds are repeated more often, up to this many times the usual repeats ...
SHORT_RUN_FACTOR = 5
# ... until this much time has been spent on them.
SHORT_RUN_SECONDS = 0.2
# Before a large case each rival is tried on a share of the rows, for nothing can stop a library
# that computes for an hour within this process.
TRIAL_SHARE = 1 / 8
TRIAL_SEED = 0


@dataclass(frozen=True)
class Plan:
    """How a run is done."""

    subject: Subject
    machine: Machine
    rivals: list[Rival]
    settings: Settings
    repeats: int
    time_limit: float
    patience: float


@dataclass
class Turn:
    """A rival during a case; its answer is kept until it can be judged."""

    rival: Rival
    entry: Entry
    subject: Subject
    answer: Any = None

    def done(self, plan: Plan) -> bool:
        samples = self.entry.samples
        if not samples or self.entry.not_run:
            return bool(self.entry.not_run)
        if max(s.seconds for s in samples) > plan.time_limit:
            return True
        if len(samples) < plan.repeats:
            return False
        spent = sum(s.seconds for s in samples)
        return spent > SHORT_RUN_SECONDS or len(samples) >= SHORT_RUN_FACTOR * plan.repeats


def run_cases(
    plan: Plan, cases: Iterator[Case | CaseRecord], starting: Callable[[Case], None]
) -> Iterator[CaseRecord]:
    """Yield a record for every case, in order; records of skipped cases pass through."""
    with threadpool_limits(plan.settings.threads):
        _warm_up(plan)
        gc.collect()
        gc.freeze()  # or collecting all that was imported would cost more than small fits
        for case in cases:
            if isinstance(case, CaseRecord):
                yield case
            else:
                starting(case)
                yield _run_case(plan, case)


def _run_case(plan: Plan, case: Case) -> CaseRecord:
    turns = []
    for rival in plan.rivals:
        if not plan.subject.takes_part(rival, case):
            continue
        turn = _turn(rival, plan)
        turn.entry.share = plan.subject.share(rival, case)
        turn.entry.not_run = plan.subject.suits(rival, case, plan.settings)
        if turn.entry.not_run is None:
            _limit(turn, plan, case)
        turns.append(turn)
    while waiting := [turn for turn in turns if not turn.done(plan)]:
        for turn in waiting:
            _take(turn, plan, case)
    reference = _judge(turns, plan.subject, case)
    return CaseRecord(case.facts(), reference, [turn.entry for turn in turns])


def _turn(rival: Rival, plan: Plan) -> Turn:
    return Turn(rival, Entry(rival.name, rival.threads(plan.settings)), plan.subject)


def _limit(turn: Turn, plan: Plan, case: Case) -> None:
    """Let a rival that is not worth waiting for do a part of the work, or none.

    This is judged by a share of the rows. Time is taken to grow with their square; it usually grows
    faster. A part of the work tells better: if all of it would not take so long, all is done.
    """
    subject, rival = plan.subject, turn.rival
    if case.rows < subject.trial_from_rows(case):
        return
    size = int(case.rows * TRIAL_SHARE)
    rows = np.random.default_rng(TRIAL_SEED).choice(case.rows, size, replace=False)
    trial = _turn(rival, plan)
    trial.subject, trial.entry.share = subject.trial(rival, case)
    _take(trial, plan, replace(case, X=case.X[rows], y=case.y[rows]))
    if trial.entry.seconds is None:
        turn.entry.not_run = trial.entry.not_run
        return
    expected = trial.entry.seconds / TRIAL_SHARE**2
    longest = min(plan.patience, subject.longest)
    if expected > longest and (part := subject.part(rival, case)):
        turn.subject, turn.entry.share = part
    if expected * turn.entry.share > plan.patience:
        turn.entry.not_run = (
            f"about {expected:.0f} s expected (from {size} rows), more than --patience allows"
        )
    elif turn.entry.share < 1:
        _take(turn, plan, case)
        if turn.entry.seconds is not None and turn.entry.seconds <= longest:
            turn.subject, turn.entry = subject, _turn(rival, plan).entry


def _take(turn: Turn, plan: Plan, case: Case) -> None:
    """Measure one run; the first one also gives the answer, outside the time."""
    try:
        work = partial(turn.subject.run, turn.rival, case, plan.settings)
        before = partial(turn.subject.before, turn.rival, case, plan.settings)
        result, sample = measure(work, before)
        if not turn.entry.samples:
            turn.answer = turn.subject.answer(turn.rival, result, case)
        turn.entry.samples.append(sample)
    except Exception as error:  # a rival that breaks must not end the run of the others
        turn.entry.not_run = f"failed: {type(error).__name__}: {error}"
        turn.entry.samples.clear()


def _judge(turns: list[Turn], subject: Subject, case: Case) -> str | None:
    """Give every answer its verdict; return whose answer was the reference."""
    answered = {turn.rival.name: turn for turn in turns if turn.entry.samples}
    name = next((name for name in REFERENCES if name in answered), None)
    for turn in answered.values():
        if turn.rival.baseline:
            turn.entry.verdict = Verdict(Outcome.BASELINE, "what the harness costs")
        elif turn.rival.yardstick:
            figures = subject.finished(turn.rival, turn.answer, case)
            turn.entry.verdict = Verdict(Outcome.YARDSTICK, turn.rival.yardstick, figures)
        elif name is None:
            text = f"nothing to compare with: none of {', '.join(REFERENCES)} ran"
            turn.entry.verdict = Verdict(Outcome.DISAGREES, text)
        else:
            reference = answered[name].answer
            turn.entry.verdict = subject.judge(turn.rival, turn.answer, reference, case)
    return None if subject.own_reference else name


def _warm_up(plan: Plan) -> None:
    """Let every rival load its code and start its threads on something tiny, dense and sparse."""
    machine = plan.machine
    X, y = load_iris(return_X_y=True)
    parameters = machine.parameters(next(iter(machine.settings)), y)
    y = y.astype(float) if machine.regression else y
    for data in (np.ascontiguousarray(X), csr_matrix(X)):
        scaling = "as distributed"
        case = Case(machine, "iris", WARM_UP, "tiny", scaling, data, y, parameters, 0.25)
        for rival in plan.rivals:
            if plan.subject.suits(rival, case, plan.settings) is None:
                turn = _turn(rival, plan)
                turn.subject, _ = plan.subject.trial(rival, case)
                _take(turn, plan, case)


def busy_cores(entry: Entry, slack: float = 0.25) -> bool:
    """Return whether a rival clearly used more cores than it was told to use."""
    long_enough: list[Sample] = [s for s in entry.samples if s.seconds > SHORT_RUN_SECONDS]
    used = sum(s.cpu_seconds for s in long_enough)
    return used > (entry.threads + slack) * sum(s.seconds for s in long_enough)
