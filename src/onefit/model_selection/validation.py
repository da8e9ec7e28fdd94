"""``cross_validate``, ``cross_val_score`` and ``cross_val_predict`` with scikit-learn's signatures.

The folds are fitted together (:mod:`onefit.model_selection.crossfit`), and scikit-learn's own
functions do the rest: they clone the estimator once a fold, and here its clones are fitted folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config, model_selection
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples

from onefit.estimators import SVC
from onefit.estimators.base import KernelMachine
from onefit.estimators.classification import KernelClassifier
from onefit.estimators.given import Split
from onefit.estimators.smooth import SmoothMachine
from onefit.estimators.smooth_svc import SmoothSVC
from onefit.estimators.validation import check_sparse
from onefit.kernels import Kernel
from onefit.loo.checks import is_inner_product
from onefit.model_selection import at_once, quick
from onefit.model_selection.crossfit import CrossFit, are_different, can_share
from onefit.model_selection.each_row import EachRow, Wanted, each_row, leaves_each_row_out
from onefit.model_selection.leave_one_out import SEEDINGS
from onefit.model_selection.pipelines import Chain, last_machine
from onefit.model_selection.processes import ProcessFit, worker_processes
from onefit.model_selection.smooth import (
    FoldScores,
    SmoothFolds,
    own_predictions,
    own_scores,
    smooth_each_row,
    smooth_folds,
)
from onefit.model_selection.splitting import splits_of
from onefit.report.ledger import Ledger
from onefit.seeding import STRATEGIES


class CrossValidation(dict[str, Any]):
    """scikit-learn's dictionary of scores, with a :class:`~onefit.report.ledger.Ledger`."""

    ledger: Ledger


def cross_validate(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
    seeding: str = "auto",
    certify: bool = False,
    progress: bool | None = None,
) -> CrossValidation:
    """Scores of an estimator on every fold: :func:`sklearn.model_selection.cross_validate`, faster.

    Each fold minimises the same objective on other rows. Kernel rows are evaluated once and shared;
    a fold starts from a solved neighbour; the decision values of the rows that it holds out are
    gradients that the solver has anyway. None of this changes the answer.

    A kernel function of the user is called once, on all rows, where the folds alone would ask for
    more values than that; each fold takes its part of the matrix. So its values must depend on the
    two rows only, and not on which other rows it is given.

    Of a pipeline that ends in one of our machines scikit-learn fits the transformers of every fold
    on its training rows, as always; what folds share is where the last step starts.

    Parameters
    ----------
    estimator, X, y, groups, scoring, cv, n_jobs, verbose, params, pre_dispatch, \
return_train_score, return_estimator, return_indices, error_score
        As in scikit-learn. ``n_jobs`` are threads that share one store of kernel rows; in a
        ``joblib.parallel_config(backend="loky")``, or another back end without shared memory, they
        are processes, and each fits a run of the folds on a store of its own. Folds of a pipeline
        are fitted side by side by scikit-learn, each from nothing and without a ledger.
    seeding : {"auto", "none", "sir", "mir", "ato", "avg", "top", "follow"}, default="auto"
        Where a fold starts: from nothing, from the fold before ("sir", "mir", "ato") or from the
        fit on all rows ("avg", "top"; "follow" goes on to where its optimum moves while the rows
        of the fold leave). A warm start knows the labels of the rows that a fold holds out, and
        where within ``tol`` a fold ends depends on where it starts. So "auto" starts warm only
        where nobody sees more than predicted classes (accuracy, ``predict``), by what takes least
        time: "avg", or for a pipeline the fold before, from 2,000 rows and about ten folds on and
        with two classes. Where decision values or predictions of a regressor are seen, folds start
        from nothing, and no bit of their values depends on labels, targets or weights of the rows
        that they hold out. From 30 folds on it is "follow", which ends at the optimum. The other
        names also have the transformers of a pipeline fitted once on all rows, for the starts.
    certify : bool, default=False
        Whether to prove on which side of the boundary each held-out row falls at the optimum, by
        the certificate of :func:`leave_one_out`, and to solve on where that is not proven: such
        predictions hold whatever ``tol`` is. For ``SVC`` of two classes with a linear, polynomial
        (``coef0`` not negative) or RBF kernel, and its accuracy. The ledger counts the rows;
        those that are not proven are too near to the boundary, or the offset is not unique.
    progress : bool or None, default=None
        Whether to show a progress bar. None shows it in a terminal or notebook when the work is
        long.

    Returns
    -------
    scores : dict
        scikit-learn's keys. Its attribute ``ledger`` says what was reused and what was paid.
    """
    plain = not (verbose or return_train_score or return_estimator or return_indices)
    ours = isinstance(estimator, KernelClassifier | SmoothSVC) or last_machine(estimator)
    own = bool(ours) and quick.is_own_score(estimator, scoring)
    folds, cv, groups = _folds(
        estimator,
        X,
        y,
        groups,
        cv,
        params,
        n_jobs,
        seeding,
        progress,
        Wanted.LABELS if plain and own else Wanted.MODELS,
        certify=certify,
    )
    if isinstance(folds, SmoothFolds) and plain and quick.is_own_score(estimator, scoring):
        known: EachRow | FoldScores | None = own_scores(folds, estimator, y)
    else:
        known = folds if isinstance(folds, EachRow) else None
    if known is not None:
        scores = CrossValidation(known.scores())
        scores.ledger = known.ledger
        scores["fit_time"] = scores["fit_time"] + [work.seconds for work in known.ledger.folds]
        return scores
    assert not isinstance(folds, EachRow)
    if not isinstance(folds, CrossFit):
        scores = CrossValidation(
            model_selection.cross_validate(
                estimator if folds is None else folds.in_turn(),
                X,
                y,
                groups=groups,
                scoring=scoring,
                cv=cv,
                n_jobs=1 if isinstance(folds, SmoothFolds) else n_jobs,
                verbose=verbose,
                params=params,
                pre_dispatch=pre_dispatch,
                return_train_score=return_train_score,
                return_estimator=return_estimator,
                return_indices=return_indices,
                error_score=error_score,
            )
        )
        scores.ledger = Ledger([]) if folds is None else Ledger(folds.work, folds.full_work)
        if isinstance(folds, SmoothFolds):
            for fitted in scores.get("estimator", ()):
                fitted.__dict__.pop("_held_out", None)
        return scores
    found = at_once.scores(folds) if plain and own else None
    fits = quick.fits(folds, estimator, scoring) if plain and found is None else None
    if found is not None:
        scores = CrossValidation(found)
    elif fits is not None and quick.all_succeeded(fits):
        scores = CrossValidation(quick.scores(folds, estimator, fits, y))
    else:
        scores = CrossValidation(
            model_selection.cross_validate(
                folds.in_turn(fits),
                X,
                y,
                scoring=scoring,
                cv=cv,
                n_jobs=1,
                verbose=verbose,
                params=params,
                return_train_score=return_train_score,
                return_estimator=return_estimator,
                return_indices=return_indices,
                error_score=error_score,
            )
        )
        for fitted in scores.get("estimator", ()):
            fitted.__dict__.pop("_held_out", None)
    scores.ledger = Ledger(folds.work, folds.full_work)
    scores["fit_time"] = scores["fit_time"] + [work.seconds for work in folds.work]
    return scores


def cross_val_score(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    error_score: Any = np.nan,
    seeding: str = "auto",
    certify: bool = False,
    progress: bool | None = None,
) -> NDArray[np.float64]:
    """Scores of every fold: :func:`sklearn.model_selection.cross_val_score`, faster.

    See :func:`cross_validate` for ``seeding``, ``certify`` and ``progress``.
    """
    # As scikit-learn does it: one score, under one name.
    ours = isinstance(estimator, KernelMachine | SmoothMachine) or last_machine(estimator)
    if not (ours and quick.is_own_score(estimator, scoring)):
        scoring = {"score": check_scoring(estimator, scoring=scoring)}
    results = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        scoring=scoring,
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        error_score=error_score,
        seeding=seeding,
        certify=certify,
        progress=progress,
    )
    scores: NDArray[np.float64] = results["test_score"]
    return scores


def cross_val_predict(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    cv: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: dict[str, Any] | None = None,
    pre_dispatch: int | str = "2*n_jobs",
    method: str = "predict",
    seeding: str = "auto",
    certify: bool = False,
    progress: bool | None = None,
) -> Any:
    """Predictions of held-out rows: :func:`sklearn.model_selection.cross_val_predict`, faster.

    See :func:`cross_validate` for ``seeding``, ``certify`` and ``progress``.
    """
    wanted = {"predict": Wanted.LABELS, "decision_function": Wanted.VALUES}
    folds, cv, groups = _folds(
        estimator,
        X,
        y,
        groups,
        cv,
        params,
        n_jobs,
        seeding,
        progress,
        wanted.get(method, Wanted.MODELS) if hasattr(estimator, method) else Wanted.MODELS,
        encode=method == "decision_function",
        certify=certify,
    )
    if isinstance(folds, EachRow):
        return folds.predictions if method == "predict" else folds.values
    if isinstance(folds, SmoothFolds) and method in wanted and hasattr(estimator, method):
        found = own_predictions(folds, estimator, _num_samples(X), method)
        if found is not None:
            return found
    return model_selection.cross_val_predict(
        estimator if folds is None else folds.in_turn(),
        X,
        y,
        groups=groups,
        cv=cv,
        n_jobs=n_jobs if folds is None else 1,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        method=method,
    )


def _folds(
    estimator: Any,
    X: Any,
    y: Any,
    groups: Any,
    cv: Any,
    params: dict[str, Any] | None,
    n_jobs: int | None,
    seeding: str,
    progress: bool | None,
    wanted: Wanted,
    encode: bool = False,
    certify: bool = False,
) -> tuple[CrossFit | EachRow | Chain | SmoothFolds | None, Any, Any]:
    """The folds of a machine of ours, fitted together, or of a pipeline that ends in one.

    Folds of one row each are left-out rows, if no model is ``wanted`` of them.
    None where that cannot be, and scikit-learn does it all. Also the cv and the groups to give it:
    a splitter is asked once, because the next time it may draw other folds or have none left.
    """
    check_sparse(X)
    if seeding != "auto" and seeding not in STRATEGIES:
        allowed = ", ".join(repr(name) for name in ("auto", *STRATEGIES))
        raise ValueError(f"seeding must be one of {allowed}; got {seeding!r}.")
    if certify:
        _check_can_be_certified(estimator, y)
    ours = isinstance(estimator, KernelMachine)
    routed = get_config().get("enable_metadata_routing", False)
    smooth = isinstance(estimator, SmoothMachine)
    if routed or y is None or not (ours or smooth or last_machine(estimator) is not None):
        return None, cv, groups
    if not (type(X) is type(y) is np.ndarray and X.shape[:1] == y.shape[:1] != ()):
        X, y = indexable(X, y)
    classifier = isinstance(estimator, KernelClassifier) or is_classifier(estimator)
    splits = splits_of(cv, X, y, groups, classifier=classifier)
    if encode:  # as scikit-learn does, for columns in one order
        y = np.unique(y, return_inverse=True)[1]
    if smooth:
        return _smooth(estimator, X, y, splits, params or {}, progress, wanted), splits, None
    given, how = (estimator, X, y, splits, params or {}), (n_jobs, seeding, progress)
    folds = _together(*given, *how, wanted, certify) if ours else _one_by_one(*given, *how, wanted)
    if certify and folds is None:
        raise ValueError(
            "certify=True needs folds of different rows, and no params but sample_weight."
        )
    return folds, splits, None


def _check_can_be_certified(estimator: Any, y: Any) -> None:
    ours = isinstance(estimator, SVC) and isinstance(estimator.kernel, str)
    kernel = Kernel(estimator.kernel, coef0=estimator.coef0) if ours else None
    known = kernel is not None and kernel.name != "precomputed" and is_inner_product(kernel)
    if known and len(np.unique(np.asarray(y))) == 2:
        return
    raise ValueError(
        "certify=True is for onefit's SVC of two classes with kernel='linear', 'rbf' or 'poly' "
        f"(coef0 >= 0); got {estimator!r} and {len(np.unique(np.asarray(y)))} classes."
    )


def _together(
    machine: KernelMachine,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    params: dict[str, Any],
    n_jobs: int | None,
    seeding: str,
    progress: bool | None,
    wanted: Wanted,
    certify: bool,
) -> CrossFit | EachRow | None:
    """The folds of a machine."""
    if set(params) - {"sample_weight"} or not can_share(machine, X, splits):
        return None
    weights, labels_only = params.get("sample_weight"), wanted is Wanted.LABELS
    try:
        machine._validate_params()
        if worker_processes(n_jobs, len(splits)) > 1 and not certify:
            return ProcessFit(
                machine, X, y, weights, splits, seeding, n_jobs, progress, labels_only=labels_only
            )
        if (
            wanted is not Wanted.MODELS
            and not certify
            and seeding in SEEDINGS
            and leaves_each_row_out(splits, len(y))
        ):
            rows = each_row(machine, X, y, weights, splits, seeding, n_jobs, progress, wanted)
            if rows is not None:
                return rows
        how = (seeding, n_jobs, progress)
        return CrossFit(
            machine, X, y, weights, splits, *how, certify=certify, labels_only=labels_only
        )
    except (TypeError, ValueError):  # for scikit-learn to say, fold by fold
        return None


def _smooth(
    machine: SmoothMachine,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    params: dict[str, Any],
    progress: bool | None,
    wanted: Wanted,
) -> SmoothFolds | EachRow | None:
    """The folds of a smooth machine."""
    if wanted is not Wanted.MODELS and leaves_each_row_out(splits, _num_samples(X)):
        rows = smooth_each_row(machine, X, y, splits, params, progress)
        if rows is not None:
            return rows
    return smooth_folds(machine, X, y, splits, params, progress)


def _one_by_one(
    pipeline: Any,
    X: Any,
    y: Any,
    splits: Sequence[Split],
    params: dict[str, Any],
    n_jobs: int | None,
    seeding: str,
    progress: bool | None,
    wanted: Wanted,
) -> Chain | None:
    """The folds of a pipeline, in turn; None where they are to be fitted side by side."""
    n = _num_samples(X)
    if effective_n_jobs(n_jobs) > 1 or not all(are_different(train, n) for train, _ in splits):
        return None
    labels_only = wanted is Wanted.LABELS and is_classifier(pipeline)
    return Chain(pipeline, X, y, params, splits, seeding, progress, labels_only=labels_only)
