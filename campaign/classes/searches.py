"""Searches: every score against tight refits; resumed after a kill, screened, with failures."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import model_selection, svm
from sklearn.model_selection import check_cv

import onefit
from campaign import draw as drawing
from campaign.case import Case, Difference, NothingToCompareError
from campaign.classes.cross_validation import again
from campaign.classes.fits import attempt, compare_errors, model
from campaign.folds import OF_LABELS, OF_NUMBERS, Fold
from campaign.reference import OWN
from campaign.snippet import keywords, model_text

FILE = "search.db"
GRIDS = {
    "C": {"C": [0.1, 1.0, 10.0]},
    "C and gamma": {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]},
    "kernel": {"kernel": ["linear", "rbf"], "C": [0.5, 5.0]},
    "gamma": {"gamma": ["scale", "auto", 0.2]},
    "failing": {"C": [1.0, -1.0]},
}


def draw(name: str, rng: np.random.Generator) -> Case:
    models = ("SVC", "SVC", "SVR")
    case = drawing.case(
        name, rng, models=models, n_rows=(15, 60), tols=(1e-5, 1e-7), weighted=False
    )
    case.params.pop("class_weight", None)
    options = case.options
    options["grid"] = drawing.one(rng, GRIDS)
    options["randomized"] = drawing.maybe(rng, 0.25)
    options["k"] = int(rng.integers(2, 5))
    options["jobs"] = drawing.one(rng, [1, 1, 2])
    options["seeding"] = drawing.one(rng, ["auto", "auto", "none"])
    options["train"] = drawing.maybe(rng, 0.3)
    options["way"] = drawing.one(rng, ["plain", "plain", "screened", "checkpoint", "killed"])
    options["moment"] = float(rng.random())
    known = list(OF_LABELS) if case.classifies else list(OF_NUMBERS)
    if case.classifies and len(np.unique(case.y)) == 2:
        known.append("roc_auc")
    options["scoring"] = drawing.one(rng, [None, *known])
    return case


def check(case: Case) -> int:
    Path(FILE).unlink(missing_ok=True)
    way = case.options.get("way", "plain")
    if way == "killed":
        return _check_killed(case)
    ours = attempt(lambda: fitted(case, onefit))
    theirs = attempt(lambda: fitted(case, model_selection))
    compare_errors(ours, theirs, lambda: again(theirs))
    _check_keys(ours.cv_results_, theirs.cv_results_)
    return _check_scores(case, ours, theirs)


def _check_keys(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    keys = [key for key in ours if key != "dropped"]
    if keys != list(theirs):
        raise Difference("keys", f"{keys}, not {list(theirs)}")
    if ours["params"] != theirs["params"]:
        raise Difference("candidates", f"{ours['params']}, not {theirs['params']}")


def _check_scores(case: Case, ours: Any, theirs: Any) -> int:
    ties = 0
    folds = list(
        check_cv(case.options.get("k", 3), case.y, classifier=case.classifies).split(case.X, case.y)
    )
    dropped = ours.cv_results_.get("dropped", [False] * len(ours.cv_results_["params"]))
    clear = True
    for number, candidate in enumerate(ours.cv_results_["params"]):
        for k, (train, test) in enumerate(folds):
            parts = [("test", test)] + ([("train", train)] if case.options.get("train") else [])
            for part, rows in parts:
                key = f"split{k}_{part}_score"
                score, other = ours.cv_results_[key][number], theirs.cv_results_[key][number]
                if dropped[number] and np.isnan(score):
                    continue
                if np.isnan(score) != np.isnan(other):
                    raise Difference("missing scores", f"{candidate}, {key}: {score}, not {other}")
                if np.isnan(other):
                    continue
                fold = Fold(case, train, test, candidate)
                value, tolerance = fold.score(case.options.get("scoring"), rows)
                ties += not np.isfinite(tolerance)
                clear &= tolerance < 1e-8 or part == "train"
                if abs(score - value) > tolerance:
                    raise Difference(
                        "scores", f"{candidate}, {key}: {score}, not {value} ± {tolerance:.2g}"
                    )
    # Equal means are told apart by rounding, theirs as ours: what counts is the best score.
    if clear and abs(ours.best_score_ - theirs.best_score_) > 1e-9:
        raise Difference("best score", f"{ours.best_score_}, not {theirs.best_score_}")
    return ties


def _check_killed(case: Case) -> int:
    """A child is killed at a drawn moment; the search goes on with the same scores."""
    whole = attempt(lambda: search(case, onefit).fit(case.given, case.y))
    if isinstance(whole, Exception):
        raise NothingToCompareError(str(whole))
    began = time.perf_counter()
    search(case, onefit).set_params(checkpoint=None).fit(case.given, case.y)
    took = time.perf_counter() - began
    child = os.fork()
    if child == 0:
        attempt(lambda: search(case, onefit).set_params(checkpoint=FILE).fit(case.given, case.y))
        os._exit(0)
    time.sleep(case.options.get("moment", 0.5) * 2 * took)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    resumed = search(case, onefit).set_params(checkpoint=FILE).fit(case.given, case.y)
    for key, values in whole.cv_results_.items():
        if "score" not in key or "time" in key:
            continue
        found = resumed.cv_results_[key]
        if not np.array_equal(found, values, equal_nan=True):
            raise Difference("resumed search", f"{key}: {found!r}, not {values!r}")
    return 0


def search(case: Case, module: Any) -> Any:
    estimator = model(case)
    if module is not onefit:
        params = {name: value for name, value in estimator.get_params().items() if name not in OWN}
        estimator = getattr(svm, case.model)(**params)
    options: dict[str, Any] = {
        "scoring": case.options.get("scoring"),
        "cv": case.options.get("k", 3),
        "return_train_score": bool(case.options.get("train")),
    }
    if module is onefit:
        options["n_jobs"] = case.options.get("jobs", 1)
        options["seeding"] = case.options.get("seeding", "auto")
        way = case.options.get("way", "plain")
        if way == "screened":
            options["screen"] = "approximate"
        if way == "checkpoint":
            options["checkpoint"] = FILE
    grid = GRIDS[case.options.get("grid", "C")]
    if case.options.get("randomized"):
        return module.RandomizedSearchCV(estimator, grid, n_iter=2, random_state=0, **options)
    return module.GridSearchCV(estimator, grid, **options)


def fitted(case: Case, module: Any) -> Any:
    return search(case, module).fit(case.given, case.y)


def code(case: Case) -> str:
    lines = ["results = []"]
    for name, module in (("onefit", onefit), ("sklearn.svm", model_selection)):
        built = search(case, module)
        settings = {
            k: v
            for k, v in built.get_params(deep=False).items()
            if k not in ("estimator", "param_grid", "param_distributions")
        }
        defaults = type(built)(None, {}).get_params(deep=False)
        settings = {k: v for k, v in settings.items() if v != defaults[k]}
        where = "onefit" if module is onefit else "sklearn.model_selection"
        lines.append(
            f"search = {where}.{type(built).__name__}({name}.{model_text(built.estimator)}, "
            f"{GRIDS[case.options.get('grid', 'C')]}, {keywords(settings)}).fit(X, y)"
        )
        lines.append("print(search.cv_results_)")
    if case.options.get("way") == "killed":
        lines.append("# killed at a drawn moment with checkpoint='search.db', then fitted again")
    return "\n".join(lines)
