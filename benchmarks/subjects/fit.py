"""One fit at the default tolerance. Compared: optimality, predictions and decision values.

What can differ between two right answers follows from the tolerance. If both solutions keep to
the KKT conditions up to tol (see ``dual``), then d = alpha - alpha' obeys d' Q d <= tol |d|_1,
so the parts of the decision values without the offset differ by at most sqrt(tol |d|_1) for a
kernel with K(x, x) = 1, and the offsets by that plus 2 tol wherever a support vector is free in
both. A prediction may therefore differ where

    |f(x)| <= 2 sqrt(tol |d|_1) + 2 tol,

and nowhere else. The bound grows with C, so it is cut off at a tenth of the margin.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..case import Case, Settings
from ..dual import Dual, FloatArray, IntArray
from ..rivals.base import Rival
from .base import Outcome, Subject, Verdict

BoolArray = NDArray[np.bool_]

CHECKED_ROWS = 1_000
CHECKED_ROWS_SEED = 0
TENTH_OF_MARGIN = 0.1
# Solvers measure their tolerance in different places (each row, or the worst pair of rows).
KKT_TOLERANCES = 2.0
# Every kernel entry of a float32 kernel is off by this share at most.
FLOAT32_ROUNDING = float(np.finfo(np.float32).eps) / 2
# Constraints may be missed by this share: what many float32 updates can add up to.
FEASIBLE = 1e-5
# A rival with another problem must be about as good; less would be speed bought with errors.
ACCURACY_SLACK = 0.02


@dataclass(frozen=True)
class Answer:
    """Predictions at the checked training rows, and the dual solution if the rival shows it."""

    rows: IntArray
    labels: NDArray[np.int64]
    dual: Dual | None
    values: FloatArray | None
    kkt: float = 0.0
    kkt_allowed: float = 0.0
    infeasible: float = 0.0


class Fit(Subject):
    name = "fit"
    title = "One fit of a C-SVC with a Gaussian kernel"

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        return rival.fit(case, settings)

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer:
        rows = checked_rows(case)
        labels = rival.labels(result, case.X[rows])
        pairs = rival.pairs(result)
        if pairs is None:
            return Answer(rows, labels, None, None)
        dual = Dual.from_pairs(pairs)
        values = dual.decisions(case, rows)
        allowed = KKT_TOLERANCES * self.tol + FLOAT32_ROUNDING * dual.total_alpha()
        kkt = dual.kkt_violation(case, rows, values)
        return Answer(rows, labels, dual, values, kkt, allowed, dual.infeasibility(case))

    def judge(self, rival: Rival, answer: Answer, reference: Answer, case: Case) -> Verdict:
        if rival.other_problem:
            return _judge_accuracy(rival.other_problem, answer, reference, case)
        differ = answer.labels != reference.labels
        unexplained = differ & ~_may_differ(answer, reference, self.tol)
        figures = {
            "rows_checked": len(answer.rows),
            "rows_different": int(differ.sum()),
            "rows_unexplained": int(unexplained.sum()),
            "largest_value_where_different": _closest_value(reference, differ),
            "kkt_violation": answer.kkt,
            "kkt_allowed": answer.kkt_allowed,
            "infeasibility": answer.infeasible,
            "largest_value_difference": _largest_difference(answer, reference),
        }
        text = f"{int(differ.sum())} of {len(differ)} rows differ"
        if differ.any():
            text += f", |f| <= {figures['largest_value_where_different']:.1e}"
        if answer.dual is not None:
            text += f"; values by {figures['largest_value_difference']:.1e}; kkt {answer.kkt:.1e}"
        if answer.infeasible > FEASIBLE:
            text += f"; constraints missed by {answer.infeasible:.1e}"
            return Verdict(Outcome.DISAGREES, text, figures)
        if answer.kkt > answer.kkt_allowed:
            text += f" > {answer.kkt_allowed:.1e}: not optimal"
            return Verdict(Outcome.DISAGREES, text, figures)
        if unexplained.any():
            text += f"; {int(unexplained.sum())} of them not near the boundary"
            return Verdict(Outcome.DISAGREES, text, figures)
        return Verdict(Outcome.AGREES, text, figures)


def checked_rows(case: Case) -> IntArray:
    """Return the training rows on which answers are compared: all, or a fixed sample."""
    if case.rows <= CHECKED_ROWS:
        return np.arange(case.rows)
    rng = np.random.default_rng(CHECKED_ROWS_SEED)
    return np.sort(rng.choice(case.rows, CHECKED_ROWS, replace=False))


def _may_differ(answer: Answer, reference: Answer, tol: float) -> BoolArray:
    """Return at which rows two right answers may predict different classes."""
    if reference.values is None or reference.dual is None:
        return np.zeros(len(answer.rows), dtype=bool)
    near = np.abs(reference.values)
    if answer.values is None or answer.dual is None:
        return np.asarray((near <= TENTH_OF_MARGIN).any(axis=1))
    slack = np.minimum(
        2 * np.sqrt(tol * _distance(answer.dual, reference.dual)) + 2 * tol, TENTH_OF_MARGIN
    )
    turned = (answer.values > 0) != (reference.values > 0)
    # Votes can be level; who wins then depends on the order in which a library keeps the classes.
    explained = turned.any(axis=1) | _level(reference.values, reference.dual)
    return np.asarray(explained & (~turned | (near <= slack)).all(axis=1))


def _level(values: FloatArray, dual: Dual) -> BoolArray:
    """Return at which rows the vote over the pairs has more than one winner."""
    classes = np.unique(np.concatenate([dual.first, dual.second]))
    winners = np.where(values > 0, dual.first, dual.second)
    votes = np.stack([(winners == label).sum(axis=1) for label in classes], axis=1)
    return np.asarray((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)


def _distance(one: Dual, other: Dual) -> FloatArray:
    """Return |alpha - alpha'|_1 of every pair."""
    rows = np.union1d(one.support, other.support)
    return np.asarray(np.abs(one.coef_at(rows) - other.coef_at(rows)).sum(axis=0))


def _largest_difference(answer: Answer, reference: Answer) -> float:
    if answer.values is None or reference.values is None:
        return float("nan")
    return float(np.abs(answer.values - reference.values).max())


def _closest_value(reference: Answer, differ: BoolArray) -> float:
    """Return the largest distance from the boundary at which a prediction differs."""
    if reference.values is None or not differ.any():
        return 0.0
    return float(np.abs(reference.values[differ]).min(axis=1).max())


def _judge_accuracy(reason: str, answer: Answer, reference: Answer, case: Case) -> Verdict:
    truth = case.y[answer.rows]
    own = float(np.mean(answer.labels == truth))
    theirs = float(np.mean(reference.labels == truth))
    text = f"{reason}; training accuracy {own:.3f}, reference {theirs:.3f}"
    outcome = Outcome.OTHER if own >= theirs - ACCURACY_SLACK else Outcome.DISAGREES
    return Verdict(outcome, text, {"accuracy": own, "reference_accuracy": theirs})


SUBJECT = Fit()
