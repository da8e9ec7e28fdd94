"""What is checked before a fit, with short cuts for fits that take less time than that does.

None changes what is accepted: they only recognise, in microseconds, what scikit-learn's own
checks are known to let pass, and leave everything else to them.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _num_samples, validate_data

from onefit import _core

# Parameter values that scikit-learn has found valid, by class; forgotten when they are too many.
_valid: set[tuple[Any, ...]] = set()
_MOST_VALID = 10_000
# The names of the parameters of a class, and the constructor that they were read from.
_names: WeakKeyDictionary[type, tuple[Any, list[str]]] = WeakKeyDictionary()
_PLAIN_TYPES = frozenset((str, int, float, bool, type(None)))


class QuickParameters(BaseEstimator):  # type: ignore[misc]
    """Reads the names of the parameters once, and validates the same values of them once, not for
    every clone and in every fit of a search."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        known = _names.get(cls)
        if known is None or known[0] is not cls.__init__:
            known = _names[cls] = (cls.__init__, super()._get_param_names())
        return list(known[1])

    def _validate_params(self) -> None:
        values = [getattr(self, name) for name in self._parameter_constraints]
        types = list(map(type, values))
        if not _PLAIN_TYPES.issuperset(types):
            super()._validate_params()
            return
        # With the types: True, 1 and 1.0 are equal but not equally valid.
        key = (type(self), *values, *types)
        if key not in _valid:
            super()._validate_params()
            if len(_valid) >= _MOST_VALID:
                _valid.clear()
            _valid.add(key)


@contextmanager
def features_kept(estimator: BaseEstimator) -> Iterator[None]:
    """Puts back what an estimator knew of its features when a fit fails.

    scikit-learn sets it as soon as it has looked at X; an earlier model would no longer predict.
    """
    known = vars(estimator)
    names = ("n_features_in_", "feature_names_in_")
    earlier = {name: known[name] for name in names if name in known}
    try:
        yield
    except BaseException:
        for name in names:
            known.pop(name, None)
        known.update(earlier)
        raise


def training_data(machine: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X and y as arrays; with a callable kernel X may be anything that has a length."""
    if machine.kernel == "precomputed" and sp.issparse(X):
        raise TypeError("Sparse precomputed kernels are not supported.")
    if callable(machine.kernel):
        check_consistent_length(X, y)
        if _num_samples(X) == 0:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        return X, column_or_1d(y, warn=True)
    if is_plain(X, y):
        machine.n_features_in_ = X.shape[1]
        vars(machine).pop("feature_names_in_", None)  # of an earlier fit
    else:
        X, y = validate_data(
            machine,
            X,
            y,
            dtype=np.float64,
            order="C",
            accept_sparse="csr",
            accept_large_sparse=False,
        )
    if machine.kernel == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(
            "Precomputed matrix must be a square matrix."
            f" Input is a {X.shape[0]}x{X.shape[1]} matrix."
        )
    return X, y


def is_plain(X: Any, y: Any) -> bool:
    """Whether X and y are arrays that scikit-learn's ``validate_data`` would return as they are."""
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and y.ndim == 1
        and X.flags.c_contiguous
        and X.size > 0
        and X.shape[0] == y.shape[0]
        and y.dtype.kind in "biuf"
        and _core.is_finite(X)
        and (y.dtype.kind in "biu" or _core.is_finite(y.astype(np.float64, copy=False)))
    )


def same_rows(X: Any, rows: Any) -> bool:
    """Whether two containers of one type hold the same rows; False where that is hard to say."""
    if sp.issparse(X):
        return bool(X.shape == rows.shape and (rows != X).nnz == 0)
    if isinstance(X, np.ndarray) and X.dtype != object:
        return bool(np.array_equal(X, rows))
    if isinstance(X, np.ndarray | list | tuple):
        # Objects may be anything; those that were taken out of one container are the same.
        return len(X) == len(rows) and all(map(operator.is_, X, rows))
    return bool(X.equals(rows)) if hasattr(X, "equals") else False
