"""Leave-one-out: exact, certified, bound and approximate against n tight refits."""

from __future__ import annotations

from typing import Any

import numpy as np

import onefit
from campaign import draw as drawing
from campaign.case import Case, Difference, NothingToCompareError
from campaign.classes.fits import attempt, model, rows_given
from campaign.folds import Fold
from campaign.reference import Intervals
from campaign.snippet import keywords, model_text
from onefit.loo.checks import DecidedBy

SETTINGS = ("method", "certify", "seeding")


def draw(name: str, rng: np.random.Generator) -> Case:
    case = drawing.case(name, rng, n_rows=(6, 20), tols=(1e-2, 1e-3, 1e-6, 1e-9))
    options = case.options
    options["method"] = drawing.one(rng, ["exact", "exact", "exact", "bound", "approximate"])
    options["certify"] = drawing.one(rng, ["auto", True, False])
    options["seeding"] = drawing.one(rng, ["auto", "auto", "none", "avg", "top"])
    options["jobs"] = drawing.one(rng, [1, 1, 2])
    if drawing.maybe(rng, 0.2):
        options["given"] = drawing.one(rng, ["precomputed", "callable"])
    if options["method"] == "bound":
        case.params.pop("class_weight", None)
        if case.model != "SVC":
            options["method"] = "exact"
        if case.params.get("gamma") == "scale":
            case.params["gamma"] = 0.2
    return case


def check(case: Case) -> int:
    expected = [attempt(lambda row=row: left_out(case, row)) for row in range(len(case.y))]
    ours = attempt(lambda: call(case))
    if isinstance(ours, Exception):
        if not isinstance(ours, ValueError):
            raise ours
        raise NothingToCompareError(str(ours))
    method = case.options.get("method", "exact")
    if method == "bound":
        return _check_bound(case, ours, expected)
    ties = 0
    for row, found in enumerate(expected):
        if isinstance(found, Exception):
            continue
        # Whether an estimate can be relied on is a rule, not a proof: ``LooResult.reliable``.
        estimated = ours.decided_by[row] == DecidedBy.ESTIMATE or not ours.reliable[row]
        if method == "approximate" and estimated:
            continue
        ties += _check_row(case, ours, row, found, exact=method == "exact")
    if method == "approximate":
        ties += _check_refined(case, ours, expected)
    return ties


def _check_row(case: Case, ours: Any, row: int, found: Intervals, exact: bool) -> int:
    by = ours.decided_by[row]
    if not ours.predicted[row]:
        raise Difference("no prediction", f"row {row}, {by}: a fit without it exists")
    if case.classifies and not found.ties[0] and ours.predictions[row] != found.labels[0]:
        raise Difference(
            f"left-out predictions by {by}",
            f"row {row}: {ours.predictions[row]}, not {found.labels[0]}; right values are "
            f"{found.low[0]} to {found.high[0]}",
        )
    values = np.atleast_1d(ours.decision_values[row]).astype(float)
    if case.classifies and values.size == 1:
        values = -values
    known = np.isfinite(values)
    comparable = exact and values.size == found.low.shape[1] and known.all()
    if comparable and not found.contain(values[None, :])[0]:
        raise Difference(
            f"left-out values by {by}",
            f"row {row}: {values}, right are {found.low[0]} to {found.high[0]}",
        )
    return int(found.ties[0])


def _check_bound(case: Case, ours: Any, expected: list[Any]) -> int:
    clear = [k for k, found in enumerate(expected) if isinstance(found, Intervals)]
    wrong = [k for k in clear if not expected[k].ties[0] and expected[k].labels[0] != case.y[k]]
    predicted = [k for k in wrong if ours.predicted[k]]
    counted = int((ours.losses > 0).sum())
    if counted < len(predicted):
        raise Difference("bound", f"{counted} errors at most, but rows {predicted} are wrong")
    return sum(bool(expected[k].ties[0]) for k in clear)


def _check_refined(case: Case, ours: Any, expected: list[Any]) -> int:
    refined = ours.refine()
    ties = 0
    for row in np.flatnonzero(~ours.reliable & ours.predicted):
        if isinstance(expected[row], Intervals):
            ties += _check_row(case, refined, int(row), expected[row], exact=True)
    return ties


def left_out(case: Case, row: int) -> Intervals:
    train = np.delete(np.arange(len(case.y)), row)
    fold = Fold(case, train, np.array([row]), optimum=values_are_asked(case))
    if case.classifies and len(fold.reference.classes) < len(np.unique(case.y)):
        raise NothingToCompareError("the row is the only one of its class")
    return fold.intervals()


def values_are_asked(case: Case) -> bool:
    """Then they are those of the optimum, whatever ``tol`` is."""
    asked = case.options.get("certify", "auto") is False or not case.classifies
    return asked and case.options.get("method", "exact") == "exact"


def call(case: Case) -> Any:
    settings = {name: case.options[name] for name in SETTINGS if name in case.options}
    return onefit.leave_one_out(
        model(case), rows_given(case), case.y, sample_weight=case.weight, **settings
    )


def code(case: Case) -> str:
    settings = {name: case.options[name] for name in SETTINGS if name in case.options}
    text = f"onefit.{model_text(model(case))}"
    lines = []
    if case.options.get("given") == "precomputed":
        lines.append(f"X = np.array({rows_given(case).tolist()})")
    lines += [
        f"result = onefit.leave_one_out({text}, X, y, sample_weight=w, {keywords(settings)})",
        "print(result.predictions, result.decision_values, result.decided_by)",
        f"machine = {text.replace('onefit.', 'sklearn.svm.', 1)}",
        "# and scikit-learn's fit without each row, at tol=1e-9",
    ]
    return "\n".join(lines)
