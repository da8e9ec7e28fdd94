"""One fit at the default tolerance. Compared: optimality, predictions and decision values.

What can differ between two right answers follows from the tolerance. If both solutions keep to
the KKT conditions up to tol (see ``dual``), then d = b - b' obeys d' K d <= tol |d|_1, so the
parts of the decision values without the offset differ by at most sqrt(tol |d|_1) for a kernel
with K(x, x) = 1, and the offsets by that plus 2 tol wherever a support vector is free in both.
Decision values may therefore differ by

    2 sqrt(tol |d|_1) + 2 tol:

so much a regressor's predictions may differ, and a classifier's classes where |f(x)| is not larger.
The bound grows with C, so it is cut off: at a tenth of the margin for classifiers, at a tenth of
the standard deviation of the targets, which is 1, for regressors. A nu-SVC has all this in units
in which its margin is rho, so that a tenth of 1 is the limit where rho is smaller than 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..case import Case, Settings
from ..dual import BoolArray, Dual
from ..machines.base import FloatArray, IntArray
from ..rivals.base import Rival
from .base import Outcome, Subject, Verdict

CHECKED_ROWS = 1_000
CHECKED_ROWS_SEED = 0
LARGEST_SLACK = 0.1  # the margin is 1, and so is the standard deviation of targets
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
    predictions: NDArray[Any]
    dual: Dual | None
    values: FloatArray | None
    kkt: float = 0.0
    kkt_allowed: float = 0.0
    rounding: float = 0.0  # what a float32 kernel may change in a decision value
    infeasible: float = 0.0


class Fit(Subject):
    name = "fit"
    title = "One fit of {machine} with a Gaussian kernel"

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        return rival.fit(case, settings)

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer:
        rows = checked_rows(case)
        predictions = rival.predictions(result, case, case.X[rows])
        pairs = rival.pairs(result, case)
        if pairs is None:
            return Answer(rows, predictions, None, None)
        dual = Dual.from_pairs(pairs)
        values = dual.decisions(case, rows)
        epsilon = case.machine.epsilon(case, dual, rows, values)
        rounding = FLOAT32_ROUNDING * dual.total(case)
        return Answer(
            rows,
            predictions,
            dual,
            values,
            kkt=dual.kkt_violation(case, rows, values, epsilon),
            kkt_allowed=KKT_TOLERANCES * self.tol + rounding,
            rounding=rounding,
            infeasible=max(
                dual.infeasibility(case),
                case.machine.budget_missed(case, dual, epsilon, self.tol),
            ),
        )

    def judge(self, rival: Rival, answer: Answer, reference: Answer, case: Case) -> Verdict:
        if rival.other_problem:
            return _judge_accuracy(rival.other_problem, answer, reference, case)
        compare = _compare_values if case.machine.regression else _compare_classes
        text, figures = compare(answer, reference, case, self.tol)
        figures |= {
            "rows_checked": len(answer.rows),
            "kkt_violation": answer.kkt,
            "kkt_allowed": answer.kkt_allowed,
            "infeasibility": answer.infeasible,
            "largest_value_difference": _largest_difference(answer, reference),
        }
        if answer.dual is not None:
            text += f"; values by {figures['largest_value_difference']:.1e}; kkt {answer.kkt:.1e}"
        if answer.infeasible > FEASIBLE:
            text += f"; constraints missed by {answer.infeasible:.1e}"
            return Verdict(Outcome.DISAGREES, text, figures)
        if answer.kkt > answer.kkt_allowed:
            text += f" > {answer.kkt_allowed:.1e}: not optimal"
            return Verdict(Outcome.DISAGREES, text, figures)
        if unexplained := figures["rows_unexplained"]:
            text += f"; {unexplained} of them farther than the tolerance explains"
            return Verdict(Outcome.DISAGREES, text, figures)
        return Verdict(Outcome.AGREES, text, figures)


def _compare_classes(
    answer: Answer, reference: Answer, case: Case, tol: float
) -> tuple[str, dict[str, float]]:
    differ = answer.predictions != reference.predictions
    unexplained = differ & ~_may_differ(answer, reference, case, tol)
    closest = _closest_value(reference, differ)
    text = f"{int(differ.sum())} of {len(differ)} rows differ"
    if differ.any():
        text += f", |f| <= {closest:.1e}"
    return text, {
        "rows_different": int(differ.sum()),
        "rows_unexplained": int(unexplained.sum()),
        "largest_value_where_different": closest,
    }


def _compare_values(
    answer: Answer, reference: Answer, case: Case, tol: float
) -> tuple[str, dict[str, float]]:
    apart = np.abs(answer.predictions - reference.predictions)
    allowed = _slack(answer, reference, case, tol)[0] + answer.rounding + reference.rounding
    text = f"predictions differ by {apart.max():.1e}, allowed {allowed:.1e}"
    return text, {
        "largest_prediction_difference": float(apart.max()),
        "prediction_difference_allowed": float(allowed),
        "rows_unexplained": int((apart > allowed).sum()),
    }


def checked_rows(case: Case) -> IntArray:
    """Return the training rows on which answers are compared: all, or a fixed sample."""
    if case.rows <= CHECKED_ROWS:
        return np.arange(case.rows)
    rng = np.random.default_rng(CHECKED_ROWS_SEED)
    return np.sort(rng.choice(case.rows, CHECKED_ROWS, replace=False))


def _slack(answer: Answer, reference: Answer, case: Case, tol: float) -> FloatArray:
    """Return by how much decision values of two right answers may differ, for each problem."""
    if answer.dual is None or reference.dual is None:
        return np.array([LARGEST_SLACK])
    unit = case.machine.unit(case, answer.dual)
    other = case.machine.unit(case, reference.dual)
    rows = np.union1d(answer.dual.support, reference.dual.support)
    apart = np.abs(unit * answer.dual.coef_at(rows) - other * reference.dual.coef_at(rows))
    follows = (2 * np.sqrt(tol * apart.sum(axis=0)) + 2 * tol) / other
    return np.asarray(np.minimum(follows, LARGEST_SLACK / np.minimum(other, 1.0)))


def _may_differ(answer: Answer, reference: Answer, case: Case, tol: float) -> BoolArray:
    """Return at which rows two right answers may predict different classes."""
    if reference.values is None or reference.dual is None:
        return np.zeros(len(answer.rows), dtype=bool)
    near = np.abs(reference.values) <= _slack(answer, reference, case, tol)
    if answer.values is None:
        return np.asarray(near.any(axis=1))
    turned = (answer.values > 0) != (reference.values > 0)
    # Votes can be level; who wins then depends on the order in which a library keeps the classes.
    explained = turned.any(axis=1) | _level(reference.values, reference.dual)
    return np.asarray(explained & (~turned | near).all(axis=1))


def _level(values: FloatArray, dual: Dual) -> BoolArray:
    """Return at which rows the vote over the pairs has more than one winner."""
    classes = np.unique(np.concatenate([dual.first, dual.second]))
    winners = np.where(values > 0, dual.first, dual.second)
    votes = np.stack([(winners == label).sum(axis=1) for label in classes], axis=1)
    return np.asarray((votes == votes.max(axis=1, keepdims=True)).sum(axis=1) > 1)


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
    own = float(np.mean(answer.predictions == truth))
    theirs = float(np.mean(reference.predictions == truth))
    text = f"{reason}; training accuracy {own:.3f}, reference {theirs:.3f}"
    outcome = Outcome.OTHER if own >= theirs - ACCURACY_SLACK else Outcome.DISAGREES
    return Verdict(outcome, text, {"accuracy": own, "reference_accuracy": theirs})


SUBJECT = Fit()
