"""``cross_validate``, ``cross_val_score`` and ``cross_val_predict`` with scikit-learn's signatures.

The folds are fitted together (:mod:`onefit.model_selection.crossfit`), and scikit-learn's own
functions do the rest: they clone the estimator once a fold, and here its clones are fitted folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config, model_selection
from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import indexable

from onefit.model_selection.crossfit import CrossFit, Split, can_share
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
) -> CrossValidation:
    """Scores of an estimator on every fold: :func:`sklearn.model_selection.cross_validate`, faster.

    Each fold minimises the same objective on other rows. Kernel rows are evaluated once and shared;
    a fold starts from a solved neighbour; the decision values of the rows that it holds out are
    gradients that the solver has anyway. None of this changes the answer.

    Parameters
    ----------
    estimator, X, y, groups, scoring, cv, n_jobs, verbose, params, pre_dispatch, \
return_train_score, return_estimator, return_indices, error_score
        As in scikit-learn. ``n_jobs`` are threads that share one store of kernel rows.
    seeding : {"auto", "none", "sir", "mir", "ato", "avg", "top"}, default="auto"
        Where a fold starts: from nothing, from the fold before ("sir", "mir", "ato") or from the
        fit on all rows ("avg", "top").

    Returns
    -------
    scores : dict
        scikit-learn's keys. Its attribute ``ledger`` says what was reused and what was paid.
    """
    splits, crossfit, estimator = _prepare(
        estimator, X, y, groups=groups, cv=cv, params=params, n_jobs=n_jobs, seeding=seeding
    )
    shared = crossfit is not None
    scores = CrossValidation(
        model_selection.cross_validate(
            estimator,
            X,
            y,
            groups=None if shared else groups,
            scoring=scoring,
            cv=splits if shared else cv,
            n_jobs=None if shared else n_jobs,
            verbose=verbose,
            params=params,
            pre_dispatch=pre_dispatch,
            return_train_score=return_train_score,
            return_estimator=return_estimator,
            return_indices=return_indices,
            error_score=error_score,
        )
    )
    scores.ledger = Ledger(crossfit.work if crossfit is not None else [])
    if crossfit is not None:
        scores["fit_time"] = scores["fit_time"] + [work.seconds for work in crossfit.work]
        for fitted in scores.get("estimator", ()):
            vars(fitted).pop("_held_out", None)
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
) -> NDArray[np.float64]:
    """Scores of every fold: :func:`sklearn.model_selection.cross_val_score`, faster.

    See :func:`cross_validate` for ``seeding``.
    """
    splits, crossfit, estimator = _prepare(
        estimator, X, y, groups=groups, cv=cv, params=params, n_jobs=n_jobs, seeding=seeding
    )
    shared = crossfit is not None
    scores: NDArray[np.float64] = model_selection.cross_val_score(
        estimator,
        X,
        y,
        groups=None if shared else groups,
        scoring=scoring,
        cv=splits if shared else cv,
        n_jobs=None if shared else n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        error_score=error_score,
    )
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
) -> Any:
    """Predictions of held-out rows: :func:`sklearn.model_selection.cross_val_predict`, faster.

    See :func:`cross_validate` for ``seeding``.
    """
    splits, crossfit, estimator = _prepare(
        estimator,
        X,
        y,
        groups=groups,
        cv=cv,
        params=params,
        n_jobs=n_jobs,
        seeding=seeding,
        encode=method == "decision_function",
    )
    shared = crossfit is not None
    return model_selection.cross_val_predict(
        estimator,
        X,
        y,
        groups=None if shared else groups,
        cv=splits if shared else cv,
        n_jobs=None if shared else n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        method=method,
    )


def _prepare(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    groups: Any,
    cv: Any,
    params: dict[str, Any] | None,
    n_jobs: int | None,
    seeding: str,
    encode: bool = False,
) -> tuple[Sequence[Split] | None, CrossFit | None, Any]:
    """The splits, their fits and an estimator whose clones are the folds in turn.

    No fits where they cannot be shared: scikit-learn then does it all.
    """
    if seeding != "auto" and seeding not in STRATEGIES:
        allowed = ", ".join(repr(name) for name in ("auto", *STRATEGIES))
        raise ValueError(f"seeding must be one of {allowed}; got {seeding!r}.")
    params = params or {}
    routed = get_config().get("enable_metadata_routing", False)
    if y is None or routed or set(params) - {"sample_weight"}:
        return None, None, estimator
    X, y = indexable(X, y)
    splits = list(check_cv(cv, y, classifier=is_classifier(estimator)).split(X, y, groups))
    if not can_share(estimator, X, splits):
        return None, None, estimator
    if encode:  # as scikit-learn does, for columns in one order
        y = np.unique(y, return_inverse=True)[1]
    crossfit = CrossFit(estimator, X, y, params.get("sample_weight"), splits, seeding, n_jobs)
    clones = clone(estimator)
    clones._folds = iter(crossfit)
    return splits, crossfit, clones
