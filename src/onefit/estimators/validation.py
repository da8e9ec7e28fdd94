"""What is checked before a fit, with short cuts for fits that take less time than that does.

None changes what is accepted: they only recognise, in microseconds, what scikit-learn's own
checks are known to let pass, and leave everything else to them.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import _num_samples, validate_data

from onefit import _core

# Parameter values that scikit-learn has found valid, by class; forgotten when they are too many.
_valid: set[tuple[Any, ...]] = set()
_MOST_VALID = 10_000
# The names of the parameters of a class, and the constructor that they were read from.
_names: WeakKeyDictionary[type, tuple[Any, list[str]]] = WeakKeyDictionary()
_PLAIN_TYPES = frozenset((str, int, float, bool, type(None)))

# What the core counts with 32 and with 64 bits.
LARGEST_DEGREE = MOST_THREADS = int(np.iinfo(np.int32).max)
MOST_ITERATIONS = int(np.iinfo(np.int64).max)


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
            self._check_numbers(values)
            super()._validate_params()
            return
        # With the types: True, 1 and 1.0 are equal but not equally valid.
        key = (type(self), *values, *types)
        if key not in _valid:
            self._check_numbers(values)
            super()._validate_params()
            if len(_valid) >= _MOST_VALID:
                _valid.clear()
            _valid.add(key)

    def _check_numbers(self, values: list[Any]) -> None:
        """Checks that numbers are ones that scikit-learn's checks, and a float, can hold."""
        for name, value in zip(self._parameter_constraints, values, strict=True):
            if not isinstance(value, Real):
                continue
            known = isinstance(value, int | float | np.number | np.bool_)
            if known and not (isinstance(value, int) and abs(value) > sys.float_info.max):
                continue
            got = repr(value) if not known else f"an integer of {int(value).bit_length()} bits"
            raise InvalidParameterError(
                f"The {name!r} parameter of {type(self).__name__} must be a number of Python or "
                f"NumPy of at most {sys.float_info.max:.3g}. Got {got} instead."
            )


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


def check_sparse(X: Any) -> None:
    """Check the indices of a sparse matrix, which scipy takes on trust.

    Conversions, sums of duplicates and kernels write where they point to, scipy's own too: nothing
    may touch X before.
    """
    if not sp.issparse(X):
        return
    if X.format == "coo":
        coords = X.coords if hasattr(X, "coords") else (X.row, X.col)  # scipy 1.13 and older ones
        for axis, (index, size) in enumerate(zip(coords, X.shape, strict=True)):
            _check_indices(X, f"index along axis {axis}", index, size)
            if len(index) != len(X.data):
                raise _broken(
                    X,
                    f"{len(index)} indices and {len(X.data)} values are stored",
                    "as many of both",
                )
    elif X.format in ("csr", "csc", "bsr"):
        blocks = X.blocksize if X.format == "bsr" else (1, 1)
        rows, columns = X.shape[0] // blocks[0], X.shape[1] // blocks[1]
        along, across = (columns, rows) if X.format == "csc" else (rows, columns)
        indptr, stored = X.indptr, min(len(X.indices), len(X.data))
        if len(indptr) != along + 1:
            raise _broken(X, f"indptr has {len(indptr)} entries", f"{along + 1} of them")
        if indptr[0] != 0:
            raise _broken(X, f"indptr begins with {indptr[0]}", "0 there")
        if (indptr[1:] < indptr[:-1]).any():
            raise _broken(X, "indptr falls", "entries that never do")
        if indptr[-1] > stored:
            raise _broken(
                X, f"indptr ends with {indptr[-1]}", f"at most {stored}, the values stored"
            )
        _check_indices(X, "index", X.indices[: indptr[-1]], across)


def _check_indices(X: Any, what: str, indices: Any, size: int) -> None:
    if len(indices) == 0:
        return
    smallest, largest = indices.min(), indices.max()
    if not (smallest >= 0 and largest < size):
        wrong = largest if smallest >= 0 else smallest
        raise _broken(X, f"{what} {wrong} is out of range", f"0 to {size - 1}")


def _broken(X: Any, wrong: str, allowed: str) -> ValueError:
    kind = f"{X.format.upper()} matrix of shape {X.shape}"
    return ValueError(f"X is not a valid {kind}: {wrong}; allowed is {allowed}.")


def training_data(machine: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X and y as arrays; with a callable kernel X may be anything that has a length."""
    check_sparse(X)
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
