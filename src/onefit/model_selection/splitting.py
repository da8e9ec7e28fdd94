"""The folds of a splitter, with a short cut for the one that classifiers are validated with.

``StratifiedKFold`` without shuffling is a function of the labels alone. Sorted by class, in the
order in which classes appear, row r is dealt to fold r mod k; each class then hands its rows out in
their own order, fold by fold. That takes two sorts; scikit-learn's checks of what kind of labels
these are take longer than cross-validating some hundred rows does.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from onefit.estimators.given import Split


class Dealt(list[Split]):
    """Folds of which it is known that their rows are different."""


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
    _, first, codes, counts = np.unique(
        y, return_index=True, return_inverse=True, return_counts=True
    )
    if len(y) == 0 or counts.min() < n_splits:
        return None
    appearance = np.empty(len(first), dtype=np.intp)
    appearance[np.argsort(first)] = np.arange(len(first))
    codes = appearance[codes]
    order = np.argsort(codes, kind="stable")
    dealt = codes[order] * n_splits + np.arange(len(y)) % n_splits
    dealt.sort()
    fold = np.empty(len(y), dtype=np.intp)
    fold[order] = dealt % n_splits
    # All folds in one go: a call for each would take as long as what it does.
    held_out = fold == np.arange(n_splits)[:, np.newaxis]
    sizes = np.bincount(fold, minlength=n_splits)
    rows = np.broadcast_to(np.arange(len(y)), held_out.shape)
    test, train = _parts(rows[held_out], sizes), _parts(rows[~held_out], len(y) - sizes)
    return Dealt(zip(train, test, strict=True))


def _parts(rows: NDArray[np.intp], sizes: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    ends = accumulate(sizes.tolist(), initial=0)
    return [rows[first:last] for first, last in pairwise(ends)]
