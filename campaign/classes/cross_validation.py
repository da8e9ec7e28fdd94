"""Cross-validations: values and scores of every fold against tight refits."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import model_selection, svm
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline

import onefit
from campaign import draw as drawing
from campaign import splitters
from campaign.case import Case, Difference, NothingToCompareError
from campaign.classes.fits import attempt, compare_errors, model, rows_given
from campaign.folds import OF_LABELS, OF_NUMBERS, TRANSFORMERS, Fold, share_of_first
from campaign.reference import OWN
from campaign.snippet import keywords
from onefit.seeding import STRATEGIES

FUNCTIONS = ("cross_val_predict", "cross_val_predict", "cross_val_score", "cross_validate")


def draw(name: str, rng: np.random.Generator) -> Case:
    case = drawing.case(name, rng, n_rows=(8, 60), tols=(1e-3, 1e-6, 1e-8))
    options = case.options
    options["function"] = drawing.one(rng, FUNCTIONS)
    partition = options["function"] == "cross_val_predict"
    options["cv"] = splitters.draw(rng, partition=partition, n=len(case.y))
    options["seeding"] = drawing.one(rng, ["auto", "auto", *STRATEGIES])
    options["jobs"] = drawing.one(rng, [1, 1, 2])
    if drawing.maybe(rng, 0.3):
        options["pipeline"] = drawing.one(rng, TRANSFORMERS)
        if options["layout"] not in ("dense", "float32", "Fortran order"):
            options["layout"] = "dense"
    elif drawing.maybe(rng, 0.3):
        options["given"] = drawing.one(rng, ["precomputed", "callable"])
    if partition:
        options["method"] = drawing.one(rng, ["predict", "decision_function"])
        if not case.classifies:
            options["method"] = "predict"
    else:
        known = [*OF_LABELS, share_of_first] if case.classifies else list(OF_NUMBERS)
        if case.classifies and len(np.unique(case.y)) == 2:
            known.append("roc_auc")
        options["scoring"] = drawing.one(rng, [None, *known])
    if options["function"] == "cross_validate":
        for entry in ("return_train_score", "return_estimator", "return_indices"):
            options[entry] = drawing.maybe(rng, 0.4)
    return case


def check(case: Case) -> int:
    ours = attempt(lambda: call(case, onefit, estimator(case)))
    theirs = attempt(lambda: call(case, model_selection, estimator(case, of_sklearn=True)))
    compare_errors(ours, theirs, lambda: again(theirs))
    folds = list(_splits(case))
    if case.options.get("function", "cross_val_predict") == "cross_val_predict":
        if np.shape(ours) != np.shape(theirs):
            raise Difference("shape", f"{np.shape(ours)}, not {np.shape(theirs)}")
        return sum(_check_values(case, ours, train, test) for train, test in folds)
    if not isinstance(ours, dict):
        ours, theirs = {"test_score": ours}, {"test_score": theirs}
    if list(ours) != list(theirs):
        raise Difference("keys", f"{list(ours)}, not {list(theirs)}")
    ties = 0
    for key in ours:
        if key in ("test_score", "train_score"):
            ties += _check_scores(case, key, ours[key], theirs[key], folds)
        elif key == "indices":
            for part in ("train", "test"):
                for one, other in zip(ours[key][part], theirs[key][part], strict=True):
                    if not np.array_equal(one, other):
                        raise Difference("indices", f"{part}: {one}, not {other}")
    return ties


def _check_values(case: Case, ours: Any, train: np.ndarray, test: np.ndarray) -> int:
    found = Fold(case, train, test).intervals()
    if case.options.get("method", "predict") == "predict" and case.classifies:
        wrong = (ours[test] != found.labels) & ~found.ties
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            raise Difference(
                "predictions",
                f"row {test[k]}: {ours[test[k]]}, not {found.labels[k]}; right values are "
                f"{found.low[k]} to {found.high[k]}",
            )
        return int(found.ties.sum())
    values = np.asarray(ours[test], dtype=float)
    if len(found.low[0]) > 1 and values.shape[1] != found.low.shape[1]:
        return 0  # a fold that lacks a class: scikit-learn fills in columns
    values = values.reshape(len(test), -1)
    if case.classifies and values.shape[1] == 1:
        values = -values
    inside = found.contain(values)
    if not inside.all():
        k = int(np.flatnonzero(~inside)[0])
        raise Difference(
            "held-out values",
            f"row {test[k]}: {values[k]}, right are {found.low[k]} to {found.high[k]}",
        )
    return int(found.ties.sum())


def _check_scores(case: Case, key: str, ours: Any, theirs: Any, folds: Any) -> int:
    # Where the margin of ν-SVC is zero scikit-learn has no model.
    missing = np.isnan(ours) | np.isnan(theirs) if case.model == "NuSVC" else np.isnan(ours)
    if not np.array_equal(missing, np.isnan(theirs)):
        if case.classifies and case.weight is not None and (case.weight == 0).any():
            raise NothingToCompareError("a class without weight in a fold, which is refused here")
        raise Difference("missing scores", f"{key}: {ours}, not {theirs}")
    ties = 0
    for k, (train, test) in enumerate(folds):
        if np.isnan(theirs[k]):
            continue
        rows = test if key == "test_score" else train
        value, tolerance = Fold(case, train, test).score(case.options.get("scoring"), rows)
        ties += not np.isfinite(tolerance)
        if abs(ours[k] - value) > tolerance:
            raise Difference(
                "scores", f"{key} of fold {k}: {ours[k]}, not {value} ± {tolerance:.2g}"
            )
    return ties


def _splits(case: Case) -> Any:
    n = len(case.y)
    cv = check_cv(
        splitters.built(case.options.get("cv", {}), n), case.y, classifier=case.classifies
    )
    for train, test in cv.split(case.X, case.y, splitters.groups_of(n)):
        yield tuple(
            np.flatnonzero(part) if np.asarray(part).dtype == bool else np.asarray(part)
            for part in (train, test)
        )


def estimator(case: Case, of_sklearn: bool = False) -> Any:
    last = model(case)
    if of_sklearn:
        params = {name: value for name, value in last.get_params().items() if name not in OWN}
        last = getattr(svm, case.model)(**params)
    name = case.options.get("pipeline")
    return last if name is None else Pipeline([("scale", TRANSFORMERS[name]()), ("svm", last)])


def settings(case: Case, ours: bool = True) -> dict[str, Any]:
    options = case.options
    found = {}
    names = ("method", "scoring", "return_train_score", "return_estimator", "return_indices")
    for name in names:
        if options.get(name):
            found[name] = options[name]
    if case.weight is not None:
        prefix = "svm__" if options.get("pipeline") else ""
        found["params"] = {f"{prefix}sample_weight": case.weight}
    if options.get("jobs", 1) != 1 and ours:
        found["n_jobs"] = options["jobs"]
    if ours:
        found["seeding"] = options.get("seeding", "auto")
    return found


def call(case: Case, module: Any, estimator: Any) -> Any:
    n = len(case.y)
    function = getattr(module, case.options.get("function", "cross_val_predict"))
    cv = splitters.built(case.options.get("cv", {}), n)
    more = settings(case, ours=module is onefit)
    return function(
        estimator, rows_given(case), case.y, cv=cv, groups=splitters.groups_of(n), **more
    )


def again(found: Any) -> Any:
    """What was returned, or raised."""
    if isinstance(found, Exception):
        raise found
    return found


def code(case: Case) -> str:
    function = case.options.get("function", "cross_val_predict")
    lines = [f"cv = {splitters.text(case.options.get('cv', {}), len(case.y))}"]
    lines += ["groups = np.arange(len(y)) * 5 % 11 % 6"]
    if case.options.get("given") == "precomputed":
        lines.append(f"X = np.array({rows_given(case).tolist()})")
    defaults = getattr(onefit, case.model)().get_params()
    params = {k: v for k, v in model(case).get_params().items() if v != defaults[k]}
    for name, module in (("ours", "onefit"), ("theirs", "sklearn")):
        known = {k: v for k, v in params.items() if module == "onefit" or k not in OWN}
        built = (
            f"{'onefit' if module == 'onefit' else 'sklearn.svm'}.{case.model}({keywords(known)})"
        )
        if case.options.get("pipeline"):
            step = TRANSFORMERS[case.options["pipeline"]].__name__
            lines.append(
                "from sklearn.preprocessing import *; from sklearn.pipeline import Pipeline"
            )
            built = f'Pipeline([("scale", {step}()), ("svm", {built})])'
        more = settings(case, ours=module == "onefit")
        more.pop("params", None)
        if case.weight is not None:
            key = "svm__sample_weight" if case.options.get("pipeline") else "sample_weight"
            more["params"] = {key: "w"}
        text = keywords(more).replace("'w'", "w")
        where = "onefit" if module == "onefit" else "sklearn.model_selection"
        lines.append(f"{name} = {where}.{function}({built}, X, y, cv=cv, groups=groups, {text})")
    return "\n".join([*lines, "print(ours)", "print(theirs)"])
