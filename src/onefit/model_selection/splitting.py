"""The folds of a splitter, with a short cut for the one that classifiers are validated with.

``StratifiedKFold`` without shuffling is a function of the labels alone, which the core deals
(``core/labels.hpp``): scikit-learn's checks of what kind of labels these are take longer than
cross-validating some hundred rows does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, check_cv

from onefit import _core
from onefit.estimators.given import Split


class Dealt(Sequence[Split]):
    """Folds that train on all rows but those that they hold out, each row being held out once.

    Rows to train on are counted out when they are asked for.
    """

    def __init__(self, rows: NDArray[np.intp], sizes: list[int]) -> None:
        self.rows, self.sizes = rows, sizes  # held out fold by fold, so many each
        self._ends = list(accumulate(sizes, initial=0))

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, fold: int) -> Split: ...
    @overload
    def __getitem__(self, fold: slice) -> list[Split]: ...
    def __getitem__(self, fold: int | slice) -> Split | list[Split]:
        if isinstance(fold, slice):
            return [self[k] for k in range(*fold.indices(len(self)))]
        k = range(len(self))[fold]  # IndexError where there is none
        test = self.rows[self._ends[k] : self._ends[k + 1]]
        takes_part = np.ones(len(self.rows), dtype=bool)
        takes_part[test] = False
        return np.flatnonzero(takes_part), test


def held_out(splits: Sequence[Split]) -> tuple[NDArray[np.intp], list[int]]:
    """The rows that folds hold out, fold by fold, and how many each."""
    if isinstance(splits, Dealt):
        return splits.rows, splits.sizes
    tests = [test for _, test in splits]
    return np.concatenate(tests), [len(test) for test in tests]


def trained_share(splits: Sequence[Split], n: int) -> float:
    """Which share of n rows folds train on."""
    if isinstance(splits, Dealt):
        return 1 - 1 / len(splits)
    return sum(len(train) for train, _ in splits) / len(splits) / n


def splits_of(cv: Any, X: Any, y: Any, groups: Any, *, classifier: bool) -> Sequence[Split]:
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
    return None if folds is None else Dealt(*folds)
