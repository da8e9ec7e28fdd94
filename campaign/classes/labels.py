"""Label independence: labels, targets and weights of held-out rows change no held-out value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import onefit
from campaign import draw as drawing
from campaign import splitters
from campaign.case import Case, Difference, NothingToCompareError
from campaign.classes.cross_validation import estimator
from campaign.classes.fits import model, rows_given
from campaign.folds import TRANSFORMERS, Fold
from campaign.snippet import array, keywords, model_text
from onefit.seeding import STRATEGIES


def draw(name: str, rng: np.random.Generator) -> Case:
    case = drawing.case(name, rng, n_rows=(8, 60), tols=(1e-3, 1e-6))
    case.options["seeding"] = drawing.one(rng, ["none", "none", "auto", *STRATEGIES])
    case.options["k"] = int(rng.integers(2, 6))
    case.options["fold"] = int(rng.integers(0, 2))
    case.options["change"] = drawing.one(rng, ["targets", "weights", "both"])
    case.options["jobs"] = drawing.one(rng, [1, 1, 2])
    if drawing.maybe(rng, 0.2):
        case.options["pipeline"] = drawing.one(rng, TRANSFORMERS)
        case.options["layout"] = "dense"
    elif drawing.maybe(rng, 0.2):
        case.options["given"] = drawing.one(rng, ["precomputed", "callable"])
    return case


def check(case: Case) -> int:
    train, test = fold(case)
    other = changed(case, test)
    if case.classifies:
        for y in (case.y, other.y):
            if any(len(np.unique(y[rows])) < len(np.unique(case.y)) for rows, _ in folds(case)):
                raise NothingToCompareError("a fold lacks a class")
    try:
        one, two = values(case)[test], values(other)[test]
    except ValueError as error:  # ν is not feasible in a fold
        if not any(word in str(error) for word in ("nu", "weight", "not finite")):
            raise
        raise NothingToCompareError(str(error)) from error
    seeding = case.options.get("seeding", "auto")
    _check_duplicates(case, test, one)
    if seeding in ("none", "auto"):  # where values are seen, "auto" starts cold
        _check_equal(case, "held-out labels leak", test, one, two)
        return 0
    try:
        found = Fold(case, train, test).intervals()
    except ValueError as error:
        raise NothingToCompareError(str(error)) from error
    for values_ in (one, two):
        columns = values_.reshape(len(test), -1)
        inside = found.contain(-columns if case.classifies and columns.shape[1] == 1 else columns)
        if not inside.all():
            k = int(np.flatnonzero(~inside)[0])
            raise Difference(
                "held-out labels change values",
                f"row {test[k]}: {columns[k]}, right {found.low[k]} to {found.high[k]} (positive "
                "for the first class)",
            )
    return int(found.ties.sum())


def _check_equal(case: Case, kind: str, rows: np.ndarray, one: np.ndarray, two: np.ndarray) -> None:
    if not np.array_equal(one, two):
        k = int(np.flatnonzero(~np.equal(one, two).reshape(len(rows), -1).all(axis=1))[0])
        raise Difference(kind, f"row {rows[k]}: {one[k]!r} becomes {two[k]!r}")


def _check_duplicates(case: Case, test: np.ndarray, values: np.ndarray) -> None:
    """Equal rows that the same fold holds out have equal values."""
    _, first, group = np.unique(case.X[test], axis=0, return_index=True, return_inverse=True)
    others = values[first[group.ravel()]]
    if _is_predicted(case):
        others = np.where(np.isclose(values, others, rtol=1e-9, atol=1e-9), values, others)
    _check_equal(case, "equal rows differ", test, values, others)


def _is_predicted(case: Case) -> bool:
    """Whether values are predictions of fitted folds: BLAS rounds a row by its place."""
    options = case.options
    by_itself = "int64" in options.get("layout", "dense")  # refused as a whole, taken in parts
    return bool(by_itself or options.get("pipeline") or options.get("given") == "callable")


def folds(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    return splitters.every_kth(len(case.y), case.options.get("k", 2))


def fold(case: Case) -> tuple[np.ndarray, np.ndarray]:
    return folds(case)[case.options.get("fold", 0)]


def changed(case: Case, test: np.ndarray) -> Case:
    """Other targets and weights for the rows that the fold holds out."""
    change = case.options.get("change", "targets")
    y, weight = case.y.copy(), np.ones(len(case.y)) if case.weight is None else case.weight.copy()
    if change != "weights":
        classes = np.unique(case.y)
        place = np.searchsorted(classes, y[test])
        y[test] = classes[(place + 1) % len(classes)] if case.classifies else -2 * y[test] + 1
    if change != "targets":
        weight[test] = np.where(weight[test] > 1, 0.5, 2.0)
    return replace(case, y=y, weight=case.weight if change == "targets" else weight)


def values(case: Case) -> np.ndarray:
    prefix = "svm__" if case.options.get("pipeline") else ""
    weight = {} if case.weight is None else {"params": {f"{prefix}sample_weight": case.weight}}
    if case.weight is None and case.options.get("change", "targets") != "targets":
        weight = {"params": {f"{prefix}sample_weight": np.ones(len(case.y))}}
    return np.asarray(
        onefit.cross_val_predict(
            estimator(case),
            rows_given(case),
            case.y,
            cv=folds(case),
            method="decision_function" if case.classifies else "predict",
            seeding=case.options.get("seeding", "auto"),
            n_jobs=case.options.get("jobs", 1),
            **weight,
        )
    )


def code(case: Case) -> str:
    options = case.options
    other = changed(case, fold(case)[1])
    text, lines, prefix = f"onefit.{model_text(model(case))}", [], ""
    if options.get("given") == "precomputed":
        lines.append(f"X = np.array({rows_given(case).tolist()})")
    if options.get("pipeline"):
        step, prefix = TRANSFORMERS[options["pipeline"]].__name__, "svm__"
        lines.append(f"from sklearn.preprocessing import {step}")
        lines.append("from sklearn.pipeline import Pipeline")
        text = f'Pipeline([("scale", {step}()), ("svm", {text})])'
    how = {
        "method": "decision_function" if case.classifies else "predict",
        "seeding": options.get("seeding", "auto"),
        "n_jobs": options.get("jobs", 1),
    }
    weight = array(other.weight) if other.weight is not None else None
    lines += [
        splitters.text_of_every_kth(len(case.y), options.get("k", 2)),
        f"test = folds[{options.get('fold', 0)}][1]",
        f"y2, w2 = {array(other.y)}, {weight}",
        f"machine = {text}",
        "for y, w in ((y, w), (y2, w2)):",
        f"    params = {{'{prefix}sample_weight': np.ones(len(y)) if w is None else w}}",
        f"    how = dict(cv=folds, params=params, {keywords(how)})",
        "    print(onefit.cross_val_predict(machine, X, y, **how)[test])",
    ]
    return "\n".join(lines)
