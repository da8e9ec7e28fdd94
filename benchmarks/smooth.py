"""Ways to cross-validate and to fit smooth machines, and what they are measured against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import LeaveOneOut, StratifiedKFold

from .case import Case, Matrix, Settings
from .datasets.smooth_published import FIT, LOO, REDUCED, SAMPLE, SAMPLE_ROWS, TEST_ROWS
from .record import OURS
from .rivals.base import Rival

FOLDS_SEED = 0
TOL = 1e-8  # of smooth machines, whose answers are compared
COMPONENTS = 200  # of the RSVM on many rows
# The RSVM of the papers' smaller data sets.
PAPER_COMPONENTS = {"cleveland": 30, "bupa": 35, "ionosphere": 35, "pima": 35}
# A way that would take longer does a part of the folds.
LONGEST = 20.0  # seconds
FLOPS = 2e10  # of one thread, for that estimate
STEPS = 4  # of Newton's method in a fold, likewise


@dataclass(frozen=True)
class Done:
    """What a way has found."""

    predictions: NDArray[Any]
    rows: NDArray[Any]  # that were predicted
    objective: float | None = None
    sizes: list[int] = field(default_factory=list)  # of reduced sets


class Way(Rival):
    """A way that is not a library: all are onefit's or scikit-learn's code."""

    module = "onefit"
    packages = ("onefit",)

    def __init__(
        self,
        name: str,
        does: Callable[[Case, float], Done],
        settings: tuple[str, ...],
        yardstick: str | None = None,
        cost: Callable[[Case], float] | None = None,
    ) -> None:
        self.name, self.does, self.settings = name, does, settings
        self.yardstick, self._cost = yardstick, cost

    def share(self, case: Case) -> float:
        """Of the folds, so that they take no longer than a person waits."""
        if self._cost is None:
            return 1.0
        folds = case.rows if case.setting.endswith(LOO) else 10
        expected = folds * self._cost(case) / FLOPS
        return max(2, int(folds * min(1.0, LONGEST / expected))) / folds if expected else 1.0

    def fit(self, case: Case, settings: Settings) -> Any:
        raise NotImplementedError(f"{self.name} has no fit of its own")

    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        raise NotImplementedError(f"{self.name} has no fit of its own")


def splits(case: Case, share: float = 1.0) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    loo = case.setting.endswith(LOO)
    cv = LeaveOneOut() if loo else StratifiedKFold(10, shuffle=True, random_state=FOLDS_SEED)
    found = list(cv.split(case.X, case.y))
    if share == 1.0:
        return found
    some = np.linspace(0, len(found) - 1, round(share * len(found))).astype(int)
    return [found[k] for k in some]


def kernel_of(case: Case) -> str:
    return "linear" if case.setting.startswith("linear") else "rbf"


def _machine(case: Case, **options: Any) -> Any:
    from onefit import SmoothSVC

    options = {"kernel": kernel_of(case), "gamma": case.gamma, "tol": TOL} | options
    return SmoothSVC(C=case.parameters["C"], **options)


def _updated(update: str) -> Callable[[Case, float], Done]:
    """``cross_val_predict`` with folds by updates."""

    def does(case: Case, share: float) -> Done:
        from onefit import cross_val_predict

        cv = splits(case)
        every = np.arange(case.rows)
        return Done(cross_val_predict(_machine(case, update=update), case.X, case.y, cv=cv), every)

    return does


def _refitted(naive: bool) -> Callable[[Case, float], Done]:
    """A fit for each fold, from the coefficients of all rows, that factorises at every step.

    ``naive``: always the Hessian, of as many rows as there are coefficients, as SSVM does.
    """

    def does(case: Case, share: float) -> Done:
        if share == 1.0 and not naive:
            return _updated("none")(case, share)
        from sklearn.metrics.pairwise import rbf_kernel

        from onefit.smooth.design import StoredDesign
        from onefit.smooth.loss import SquaredHinge
        from onefit.smooth.newton import Task, minimise
        from onefit.smooth.systems import PrimalSystem, make_system

        linear = kernel_of(case) == "linear"
        phi = case.X if linear else rbf_kernel(case.X, gamma=case.gamma)
        y, loss = case.y.astype(float), SquaredHinge()
        c = np.full(case.rows, case.parameters["C"])
        design = StoredDesign(phi)
        start = minimise(Task(design, loss, y, c), make_system("auto", design), TOL, 100).theta
        predictions, rows = [], []
        for train, test in splits(case, share):
            kept = np.arange(design.p) if linear else np.concatenate([[0], 1 + train])
            part = StoredDesign(phi[train] if linear else phi[np.ix_(train, train)])
            system = PrimalSystem(part, False) if naive else make_system("none", part)
            theta = minimise(Task(part, loss, y[train], c[train]), system, TOL, 100, start[kept])
            block = phi[test] if linear else phi[np.ix_(test, train)]
            predictions.append(np.where(block @ theta.theta[1:] + theta.theta[0] > 0, 1, -1))
            rows.append(test)
        return Done(np.concatenate(predictions), np.concatenate(rows))

    return does


def _naive_cost(case: Case) -> float:
    p = case.features if kernel_of(case) == "linear" else case.rows
    return STEPS * (2 / 3 * p**3 + case.rows * p * p / 2)


def _refit_cost(case: Case) -> float:
    p = case.features if kernel_of(case) == "linear" else case.rows
    small = min(p, case.rows)
    return STEPS * (2 / 3 * small**3 + small * small * max(p, case.rows) / 2)


def _libsvm(case: Case, share: float) -> Done:
    from sklearn.model_selection import cross_val_predict
    from sklearn.svm import SVC

    machine = SVC(C=case.parameters["C"], kernel=kernel_of(case), gamma=case.gamma, cache_size=2000)
    cv = splits(case, share)
    if share == 1.0:
        every = np.arange(case.rows)
        return Done(cross_val_predict(machine, case.X, case.y, cv=cv), every)
    predictions = [machine.fit(case.X[t], case.y[t]).predict(case.X[s]) for t, s in cv]
    return Done(np.concatenate(predictions), np.concatenate([s for _, s in cv]))


def _libsvm_cost(case: Case) -> float:
    return 10.0 * case.rows * case.rows * case.features


def _reduced(**options: Any) -> Callable[[Case, float], Done]:
    """Ten folds of a full, random or incremental kernel."""

    def does(case: Case, share: float) -> Done:
        from onefit import cross_validate

        if options.get("reduced") == "random":
            options["n_components"] = PAPER_COMPONENTS[case.dataset]
        machine = _machine(case, random_state=0, **options)
        cv = splits(case)
        run = cross_validate(machine, case.X, case.y, cv=cv, return_estimator=True)
        predictions = np.empty_like(case.y)
        for estimator, (_, test) in zip(run["estimator"], cv, strict=True):
            predictions[test] = estimator.predict(case.X[test])
        sizes = [len(estimator.component_indices_) for estimator in run["estimator"]]
        return Done(predictions, np.arange(case.rows), sizes=sizes)

    return does


def _linear_fit(case: Case, share: float) -> Done:
    return _of_linear(case, _machine(case).fit(case.X, case.y))


def _linear_svc(tol: float) -> Callable[[Case, float], Done]:
    def does(case: Case, share: float) -> Done:
        from sklearn.svm import LinearSVC

        machine = LinearSVC(C=case.parameters["C"] / 2, dual="auto", tol=tol, max_iter=100_000)
        return _of_linear(case, machine.fit(case.X, case.y))

    return does


def _of_linear(case: Case, model: Any) -> Done:
    """With the objective: ½(‖w‖² + b²) + C/2 Σ max(0, 1 - y f)²."""
    w, b = model.coef_.ravel(), float(model.intercept_[0])
    f = case.X @ w + b
    slack = np.maximum(0.0, 1.0 - case.y * f)
    objective = 0.5 * (w @ w + b * b) + 0.5 * case.parameters["C"] * float(slack @ slack)
    return Done(np.where(f > 0, 1, -1), np.arange(case.rows), objective)


def sample_of(case: Case) -> tuple[NDArray[Any], NDArray[Any]]:
    """Training rows, as many as LIBSVM can do, and others to predict."""
    order = np.random.default_rng(FOLDS_SEED).permutation(case.rows)
    return order[TEST_ROWS : TEST_ROWS + SAMPLE_ROWS], order[:TEST_ROWS]


def _rsvm(all_rows: bool) -> Callable[[Case, float], Done]:
    def does(case: Case, share: float) -> Done:
        train, test = sample_of(case)
        if all_rows:
            train = np.setdiff1d(np.arange(case.rows), test)
        options: dict[str, Any] = {"reduced": "random", "n_components": COMPONENTS}
        if case.dataset == "covtype":  # few columns need large coefficients
            options["C"] = 1e5
        from onefit import SmoothSVC

        machine = SmoothSVC(**{"C": case.parameters["C"], "gamma": case.gamma} | options)
        machine.set_params(random_state=0).fit(case.X[train], case.y[train])
        return Done(machine.predict(case.X[test]), test)

    return does


def _libsvm_sample(case: Case, share: float) -> Done:
    from sklearn.svm import SVC

    train, test = sample_of(case)
    machine = SVC(C=case.parameters["C"], gamma=case.gamma, cache_size=1000)
    machine.fit(case.X[train], case.y[train])
    return Done(machine.predict(case.X[test]), test)


FOLDS = tuple(f"{kernel}-{folds}" for kernel in ("linear", "rbf") for folds in (LOO, "10fold"))
NAIVE, REFITTED, LIBSVM = "refactorised Hessian", "refactorised", "LIBSVM"
INVERSE, DUAL = f"{OURS}, inverse", f"{OURS}, dual"
IRSVM, BATCHES = "IRSVM, sequential", "IRSVM, batches of 10"
ANOTHER = "another machine (a C-SVC with an offset that is not penalised)"


def ways() -> list[Way]:
    every = (*FOLDS, FIT, SAMPLE, REDUCED)

    def ours(case: Case, share: float) -> Done:
        if case.setting == FIT:
            return _linear_fit(case, share)
        if case.setting == SAMPLE:
            return _rsvm(all_rows=False)(case, share)
        return _updated("auto")(case, share) if case.setting in FOLDS else _reduced()(case, share)

    return [
        Way(OURS, ours, every),
        Way(INVERSE, _updated("inverse"), FOLDS),
        Way(DUAL, _updated("dual"), FOLDS),
        Way(REFITTED, _refitted(naive=False), FOLDS, cost=_refit_cost),
        Way(NAIVE, _refitted(naive=True), FOLDS, cost=_naive_cost),
        Way(LIBSVM, _libsvm, FOLDS, ANOTHER, cost=_libsvm_cost),
        Way("RSVM", _reduced(reduced="random"), (REDUCED,), "a reduced kernel"),
        Way(IRSVM, _reduced(reduced="incremental"), (REDUCED,), "a reduced kernel"),
        Way(
            BATCHES,
            _reduced(reduced="incremental", batch_size=10),
            (REDUCED,),
            "a reduced kernel",
        ),
        Way("LinearSVC", _linear_svc(1e-4), (FIT,)),
        Way("LinearSVC, tol 1e-6", _linear_svc(1e-6), (FIT,)),
        Way("RSVM on all rows", _rsvm(all_rows=True), (SAMPLE,), "more rows"),
        Way("LIBSVM fit", _libsvm_sample, (SAMPLE,), ANOTHER),
    ]
