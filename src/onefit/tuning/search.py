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
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import _num_samples, check_is_fitted

from onefit.estimators.base import KernelMachine
from onefit.estimators.validation import QuickParameters, check_sparse
from onefit.model_selection.pipelines import last_machine
from onefit.model_selection.processes import worker_processes
from onefit.report.progress import is_shown
from onefit.seeding import STRATEGIES
from onefit.tuning.checkpoint import Checkpoint, check_path, check_repeatable
from onefit.tuning.choices import best_by_value, one_standard_error, simplest, warn_at_edges
from onefit.tuning.engine import Engine, PlainEngine
from onefit.tuning.ledger import SearchLedger
from onefit.tuning.out_of_fold import OutOfFold, calibrated_classifier
from onefit.tuning.processes import ProcessEngine
from onefit.tuning.request import Call, Folds, Outcome, Request, splitter_of, with_runner
from onefit.tuning.runner import Runner
from onefit.tuning.screening import Race, estimated_errors, largest_score

SEEDINGS = ("auto", "none")
# From so many rows on cells take long enough for a progress bar to be told of each.
LONG = 2000


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


class SharedSearch(QuickParameters):
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
    multimetric_: bool
    cv_results_: dict[str, Any]
    best_index_: int
    best_estimator_: Any
    param_grid: Any
    _out_of_fold: OutOfFold
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

            folds = Folds(how.pop("cv", None) or splitter_of(self, evaluate_candidates))

            def run(calls: Iterable[Call]) -> list[Outcome]:
                return self._run_candidates(calls, candidates, folds)

            if not vars(self).get("_skl_callbacks"):
                how.pop("callback_ctx", None)  # there is nobody to tell
            return with_runner(evaluate_candidates, run)(candidates, cv=folds, **how)

        context = {} if callback_ctx is None else {"callback_ctx": callback_ctx}
        try:
            super()._run_search(evaluate, **context)
        finally:
            self.__dict__.pop("_dropped", None)

    def _run_candidates(
        self, calls: Iterable[Call], candidates: list[dict[str, Any]], folds: Folds
    ) -> list[Outcome]:
        """In the place of ``joblib.Parallel``: all calls, in scikit-learn's order."""
        ours = is_ours(self.estimator)
        if self.checkpoint is not None:
            check_path(self.checkpoint)
            check_repeatable(self, folds.cv)
        if not ours and self.screen is not None:
            raise ValueError(
                f"screen={self.screen!r} is for SVC, NuSVC, SVR and NuSVR of onefit and for "
                f"pipelines that end in one; got {type(self.estimator).__name__}. Give "
                "screen=None."
            )
        if not ours and self.checkpoint is None:
            return self._by_joblib(calls)
        request, calls = Request.of(calls, candidates, folds.drawn, self.estimator)
        if request is None:
            return self._by_joblib(calls)
        engine = self._engine(request) if ours else PlainEngine(request, n_jobs=self.n_jobs)
        if not engine.machines and self.checkpoint is None:
            return self._by_joblib(calls)
        with ExitStack() as open_files:
            checkpoint = None
            if self.checkpoint is not None:
                checkpoint = Checkpoint(os.fspath(self.checkpoint), request, version())
                open_files.enter_context(checkpoint)
            runner = Runner(request, engine, checkpoint=checkpoint, progress=self.progress)
            open_files.callback(runner.close)
            self._run_cells(request, engine, runner)
        self.ledger_ = runner.ledger
        if engine.machines:
            self._out_of_fold = runner.out_of_fold
        return runner.in_order()

    def _by_joblib(self, calls: Iterable[Call]) -> list[Outcome]:
        outcomes = list(Parallel(n_jobs=self.n_jobs, pre_dispatch=self.pre_dispatch)(calls))
        if is_ours(self.estimator):
            self.ledger_ = SearchLedger(by_sklearn=len(outcomes))
        return outcomes

    def _engine(self, request: Request) -> Engine:
        watched = self.progress or (_num_samples(request.X) >= LONG and is_shown(self.progress))
        n_jobs = self.n_jobs or getattr(self.estimator, "n_jobs", None)
        how: dict[str, Any] = {
            "n_jobs": n_jobs,
            "cold": self.seeding == "none",
            "one_by_one": bool(self.checkpoint is not None or request.contexts or watched),
            "comes_back": self.screen is not None,
        }
        processes = worker_processes(n_jobs, request.n_cells)
        if processes > 1:
            return ProcessEngine(request, processes=processes, **how)
        return Engine(request, **how)

    def _run_cells(self, request: Request, engine: Engine, runner: Runner) -> None:
        """All of them, or those that may matter."""
        limit = largest_score(request.option("scorer"), self.refit)
        if self.screen is None or limit is None or not engine.machines:
            runner.run(request.cells)
            return
        errors = estimated_errors(request, engine, runner.checkpoint)
        race = Race(runner, *limit)
        race.run(np.argsort(errors, kind="stable").tolist())
        self._dropped[:] = [k in race.dropped for k in range(len(request.candidates))]

    def _format_results(self, *args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            if any(self.__dict__.get("_dropped", ())):  # which have no scores, as we know
                warnings.filterwarnings("ignore", "One or more of the (test|train) scores are non")
            return super()._format_results(*args, **kwargs)

    # ---- after the search -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Run all candidates; see scikit-learn's class."""
        check_sparse(X)
        if isinstance(self.seeding, str) and self.seeding in STRATEGIES.keys() - set(SEEDINGS):
            raise ValueError(
                f"seeding={self.seeding!r} is one of cross_validate, where folds start from one "
                "another. In a search every cell has a nearer neighbour, the next smaller C of its "
                "fold: seeding must be 'auto', to start there, or 'none'."
            )
        for name in ("ledger_", "_out_of_fold", "best_index_1se_", "best_params_1se_"):
            self.__dict__.pop(name, None)  # of an earlier search
        super().fit(X, y, **params)
        if "_out_of_fold" in self.__dict__ and hasattr(self, "best_index_"):
            self._look_back()
        return self

    def _look_back(self) -> None:
        """The simplest of the candidates that are as good as the best, and the edges."""
        name = self.refit if self.multimetric_ else "score"
        results = self.cv_results_
        if not isinstance(name, str) or f"mean_test_{name}" not in results:
            return
        means, deviations = results[f"mean_test_{name}"], results[f"std_test_{name}"]
        machines, best = self._out_of_fold.machines, self.best_index_
        if np.isnan(means[best]):
            return
        least = one_standard_error(means, deviations, best, self.n_splits_)
        among = np.flatnonzero(means >= least).tolist()
        self.best_index_1se_ = simplest(machines, among, best)
        self.best_params_1se_ = results["params"][self.best_index_1se_]
        if hasattr(self, "param_grid") and not callable(self.refit):
            scores = best_by_value(results["params"], means)
            warn_at_edges(self.param_grid, results["params"][best], scores)

    def out_of_fold(self, index: int | None = None) -> NDArray[np.float64]:
        """Decision values of every row by the fold that held it out.

        Parameters
        ----------
        index : int, default=None
            Number of a candidate in ``cv_results_``; ``best_index_`` if None.

        Returns
        -------
        values : ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            As ``decision_function`` gives them; predictions in regression. NaN for rows that no
            fold held out.
        """
        check_is_fitted(self, "cv_results_")
        if "_out_of_fold" not in self.__dict__:
            raise ValueError(
                "Out-of-fold values are those of SVC, NuSVC, SVR and NuSVR of onefit, and of "
                "pipelines that end in one; for others see cross_val_predict."
            )
        n = len(self.cv_results_["params"])
        if index is None:
            if self.multimetric_ and not self.refit:
                raise ValueError(
                    f"With several scores and refit=False no candidate is the best: index must be "
                    f"the number of one, from 0 to {n - 1}."
                )
            index = self.best_index_
        if not isinstance(index, Integral) or not 0 <= index < n:
            raise ValueError(
                f"index must be the number of a candidate, from 0 to {n - 1}; got {index!r}."
            )
        return self._out_of_fold.of(int(index))

    def calibrated(self, method: str = "sigmoid") -> CalibratedClassifierCV:
        """The best estimator with probabilities, from the out-of-fold values: no further fits.

        Parameters
        ----------
        method : {"sigmoid", "isotonic"}, default="sigmoid"
            As in :class:`sklearn.calibration.CalibratedClassifierCV`, whose result with
            ``ensemble=False``, the folds of this search and no weights it is.

        Returns
        -------
        classifier : CalibratedClassifierCV
            Fitted.
        """
        check_is_fitted(self, "cv_results_")
        if not self.refit:
            raise ValueError(f"There is no best estimator to calibrate with refit={self.refit!r}.")
        if not is_classifier(self.best_estimator_):
            raise ValueError("Only classifiers can be calibrated; this is a regressor.")
        values, kept = self.out_of_fold(), self._out_of_fold
        return calibrated_classifier(self.best_estimator_, values, kept.y, kept.splits, method)


def version() -> str:
    return metadata.version("onefit")


class GridSearchCV(SharedSearch, model_selection.GridSearchCV):  # type: ignore[misc]
    """A search over a grid of parameters: :class:`sklearn.model_selection.GridSearchCV`, faster.

    Squared distances are evaluated once, kernels once for each gamma, and all folds and all C share
    them. In a fold the fits follow one another from the smallest C to the largest, each started
    from the one before. The scores are computed from the solvers' gradients. None of this changes
    an answer. Of a pipeline that ends in one of our machines the transformers are fitted once for
    each fold and setting. Other estimators are handed to scikit-learn.

    A search of one of our machines warns (:class:`~onefit.tuning.EdgeOfGridWarning`) when the best
    value of a parameter is the smallest or largest of three or more that were tried.

    Parameters
    ----------
    estimator, param_grid, scoring, refit, cv, verbose, pre_dispatch, error_score, \
return_train_score
        As in scikit-learn.
    n_jobs : int or None, default=None
        Threads that share the kernels; in a ``joblib.parallel_config(backend="loky")``, or another
        back end without shared memory, processes that are given some of the kernels each.
    seeding : {"auto", "none"}, default="auto"
        Where a cell starts: from the next smaller C of its fold and kernel, or from nothing. It
        never changes the answer. (The ways of :func:`onefit.cross_validate`, from fold to fold,
        take more iterations here than a start from nothing.)
    checkpoint : str or path, default=None
        A file that every finished cell is written to at once, of any estimator. A search that was
        stopped, killed even, goes on from there when it is fitted again; a file of another search,
        or of another version, is refused.
    screen : {"approximate"} or None, default=None
        "approximate" ranks all candidates by approximate leave-one-out, cross-validates the best,
        and drops another as soon as its folds show that it cannot become the best any more: the
        choice is that of the full search. ``cv_results_["dropped"]`` says which; they have no mean
        score. Nothing is dropped where ``refit`` is a function, where it is False and there are
        several scores, or where a score has no known maximum.
    progress : bool or None, default=None
        Whether to show a progress bar. None shows it in a terminal or notebook when the work is
        long. scikit-learn's callbacks work, too.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, \
refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn. Cells that are solved together share their time by their iterations.
    best_index_1se_, best_params_1se_ : int, dict
        The most regular of all candidates whose score is within one standard error of the best (of
        those that were not dropped): the smallest C, then the smallest gamma.
    ledger_ : SearchLedger
        What was reused and what was paid; printed, a table.

    See Also
    --------
    onefit.tuning.GridDisplay, onefit.tuning.LedgerDisplay : Pictures of a search.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefit import SVC, GridSearchCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> grid = {"C": [0.1, 1, 10, 100], "gamma": [0.001, 0.01, 0.1]}
    >>> search = GridSearchCV(SVC(), grid).fit(StandardScaler().fit_transform(X), y)
    >>> search.best_params_
    {'C': 10, 'gamma': 0.01}
    >>> search.calibrated().predict_proba(StandardScaler().fit_transform(X)).shape
    (569, 2)
    """

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
    """A search over drawn parameters: :class:`sklearn.model_selection.RandomizedSearchCV`, faster.

    As :class:`onefit.GridSearchCV`, whose docstring has the details. Candidates share kernels where
    they share a gamma: draw it from a list rather than from a distribution.

    Parameters
    ----------
    estimator, param_distributions, n_iter, scoring, refit, cv, verbose, pre_dispatch, \
random_state, error_score, return_train_score
        As in scikit-learn.
    n_jobs, seeding, checkpoint, screen, progress
        As in :class:`onefit.GridSearchCV`. A checkpoint needs a ``random_state``.

    Attributes
    ----------
    cv_results_, best_estimator_, best_score_, best_params_, best_index_, scorer_, n_splits_, \
refit_time_, multimetric_, classes_, n_features_in_, feature_names_in_
        As in scikit-learn.
    best_index_1se_, best_params_1se_, ledger_
        As in :class:`onefit.GridSearchCV`.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from onefit import SVC, RandomizedSearchCV
    >>> ranges = {"C": loguniform(0.1, 100), "gamma": [0.01, 0.1, 1]}
    >>> search = RandomizedSearchCV(SVC(), ranges, n_iter=20, random_state=0)
    >>> search.fit(*load_iris(return_X_y=True)).n_splits_
    5
    """

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
