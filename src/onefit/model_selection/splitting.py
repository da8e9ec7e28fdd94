"""The folds of a splitter, with a short cut for the one that classifiers are validated with.

``StratifiedKFold`` without shuffling is a function of the labels alone, which the core deals
(``core/labels.hpp``): scikit-learn's checks of what kind of labels these are take longer than
cross-validating some hundred rows does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, check_cv

from onefit import _core
from onefit.estimators.given import Split


class Dealt(list[Split]):
    """Folds that train on all rows but those that they hold out, and none twice."""


def splits_of(cv: Any, X: Any, y: Any, groups: Any, *, classifier: bool) -> list[Split]:
    """All folds that scikit-learn draws for this ``cv``."""
    # Whole numbers and strings are classes without a look.
    plain = type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuUS"
    plain = plain and classifier and groups is None
    splitter = cv
    if plain and (cv is None or type(cv) is int):
        splitter = StratifiedKFold(5 if cv is None else cv)
    if plain and type(splitter) is StratifiedKFold and not splitter.shuffle:
        splits = _stratified(y, splitter.n_splits)
        if splits is not None:
            return splits
    drawn = check_cv(cv, y, classifier=classifier).split(X, y, groups)
    return [(np.asarray(train), np.asarray(test)) for train, test in drawn]


def _stratified(y: Any, n_splits: int) -> Dealt | None:
    """The folds of ``StratifiedKFold(n_splits)``; None where a class has fewer rows than folds."""
    labels = y if y.dtype.kind in "biu" else np.unique(y, return_inverse=True)[1]
    folds = _core.dealt_folds(labels.astype(np.int64, copy=False), int(n_splits))
    return None if folds is None else Dealt(zip(*folds, strict=True))
