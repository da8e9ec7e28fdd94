"""``GridSearchCV`` and ``RandomizedSearchCV`` with scikit-learn's interface.

scikit-learn's own ``fit`` prepares, ranks, refits and reports; only what runs the candidates on the
folds is another (:mod:`onefit.tuning.engine`).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from importlib import metadata
from typing import Any, ClassVar

import numpy as np
from sklearn import model_selection
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.parallel import Parallel

from onefit.estimators.base import KernelMachine
from onefit.model_selection.pipelines import last_machine
from onefit.tuning.checkpoint import Checkpoint, check_path
from onefit.tuning.engine import Engine
from onefit.tuning.ledger import SearchLedger
from onefit.tuning.request import Call, Outcome, Request, with_runner
from onefit.tuning.runner import Runner
from onefit.tuning.screening import Race, estimated_errors, largest_score

SEEDINGS = ("auto", "none")


def is_ours(estimator: Any) -> bool:
    """Whether this is one of our machines, or a pipeline that ends in one.

    A class derived from ours that fits or predicts in its own way is not.
    """
    if not isinstance(estimator, KernelMachine):
        estimator = last_machine(estimator)
    methods = ("fit", "_fit", "predict", "decision_function")
    return estimator is not None and all(
        getattr(type(estimator), name).__module__.startswith("onefit.")
        for name in methods
        if hasattr(type(estimator), name)
    )


class SharedSearch:
    """What the two searches have in common: how candidates are run."""

    _own_constraints: ClassVar[dict[str, Any]] = {
        "seeding": [StrOptions(set(SEEDINGS))],
        "checkpoint": [str, os.PathLike, None],
        "screen": [StrOptions({"approximate"}), None],
        "progress": ["boolean", None],
    }

    estimator: Any
    seeding: str
    checkpoint: str | os.PathLike[str] | None
    screen: str | None
    progress: bool | None
    refit: Any
    n_jobs: int | None
    _dropped: list[bool]
    pre_dispatch: int | str
    n_splits_: int
    ledger_: SearchLedger

    def _run_search(
        self, evaluate_candidates: Callable[..., Any], *, callback_ctx: Any = None
    ) -> None:
        def evaluate(candidates: Any, **how: Any) -> Any:
            candidates = list(candidates)
            if self.screen is not None:
                self._dropped = [False] * len(candidates)
                more = how.get("more_results") or {}
                how["more_results"] = {**more, "dropped": self._dropped}

            def run(calls: Iterable[Call]) -> list[Outcome]:
                return self._run_candidates(calls, candidates)

            if not vars(self).get("_skl_callbacks"):
                how.pop("callback_ctx", None)  # there is nobody to tell
            return with_runner(evaluate_candidates, run)(candidates, **how)

        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
        try:
            super()._run_search(evaluate, **context)  # type: ignore[misc]
        finally:
            self.__dict__.pop("_dropped", None)

    def _run_candidates(
        self, calls: Iterable[Call], candidates: list[dict[str, Any]]
    ) -> list[Outcome]:
        """In the place of ``joblib.Parallel``: all calls, in scikit-learn's order."""
        parallel = Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch)
        if self.checkpoint is not None:
            check_path(self.checkpoint)
        if not is_ours(self.estimator):
            if self.screen is not None:
                raise ValueError(
                    f"screen={self.screen!r} is for SVC, NuSVC, SVR and NuSVR of onefit and for "
                    f"pipelines that end in one; got {type(self.estimator).__name__}. Give "
                    "screen=None."
                )
            return list(parallel(calls))
        request, calls = Request.of(calls, candidates, self.n_splits_, self.estimator)
        if request is None:
            return list(parallel(calls))
        engine = Engine(
            request,
            n_jobs=self.n_jobs,
            cold=self.seeding == "none",
            one_by_one=self.checkpoint is not None,
            comes_back=self.screen is not None,
        )
        if not engine.understood:
            return list(parallel(calls))
        with ExitStack() as open_files:
            checkpoint = None
            if self.checkpoint is not None:
                checkpoint = Checkpoint(os.fspath(self.checkpoint), request, version())
                open_files.enter_context(checkpoint)
            runner = Runner(request, engine, checkpoint=checkpoint, progress=self.progress)
            open_files.callback(runner.close)
            self._run_cells(request, engine, runner)
        self.ledger_ = runner.ledger
        return runner.in_order()

    def _run_cells(self, request: Request, engine: Engine, runner: Runner) -> None:
        """All of them, or those that may matter."""
        limit = largest_score(request.option("scorer"), self.refit)
        if self.screen is None or limit is None:
            runner.run(request.cells)
            return
        errors = estimated_errors(request, engine)
        race = Race(runner, *limit)
        race.run(np.argsort(errors, kind="stable").tolist())
        self._dropped[:] = [k in race.dropped for k in range(len(request.candidates))]

    def _format_results(self, *args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            if any(self.__dict__.get("_dropped", ())):  # which have no scores, as we know
                warnings.filterwarnings("ignore", "One or more of the (test|train) scores are non")
            return super()._format_results(*args, **kwargs)  # type: ignore[misc]


def version() -> str:
    return metadata.version("onefit")


class GridSearchCV(SharedSearch, model_selection.GridSearchCV):  # type: ignore[misc]
    """scikit-learn's."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **model_selection.GridSearchCV._parameter_constraints,
        **SharedSearch._own_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        seeding: str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        screen: str | None = None,
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.seeding = seeding
        self.checkpoint = checkpoint
        self.screen = screen
        self.progress = progress


class RandomizedSearchCV(SharedSearch, model_selection.RandomizedSearchCV):  # type: ignore[misc]
    """scikit-learn's."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **model_selection.RandomizedSearchCV._parameter_constraints,
        **SharedSearch._own_constraints,
    }

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
        seeding: str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        screen: str | None = None,
        progress: bool | None = None,
    ) -> None:
        super().__init__(
            estimator,
            param_distributions,
            n_iter=n_iter,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            random_state=random_state,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.seeding = seeding
        self.checkpoint = checkpoint
        self.screen = screen
        self.progress = progress
