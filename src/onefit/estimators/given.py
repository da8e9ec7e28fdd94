"""Folds of a kernel that is given by its values: a matrix, or a function of the user.

The values of all rows are known before the first fold, so that every fold is a part of one matrix:
``K[train, train]`` to fit, ``K[test, train]`` to predict, the very parts that scikit-learn hands
out of a precomputed kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from onefit import voting
from onefit.estimators.base import KernelMachine, Model, Training
from onefit.kernels import Floats, row_products
from onefit.memory import keeps_matrix

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class KernelFunctionError(ValueError):
    """The user's function could not be called on all rows."""


def is_given(machine: KernelMachine) -> bool:
    return callable(machine.kernel) or machine.kernel == "precomputed"


def given_matrix(machine: KernelMachine, X: Any) -> Floats | None:
    """The kernel values of all rows where they are given, else None.

    None too for a function whose values do not fit in ``cache_size``: they are evaluated by blocks.
    """
    if not is_given(machine):
        return None
    if callable(machine.kernel) and not keeps_matrix(machine.cache_size, int(_num_samples(X))):
        return None
    if not callable(machine.kernel):
        matrix: Floats = X
        return matrix
    try:
        return machine._call_kernel(X, X)
    except Exception as error:  # whatever a user's function may raise
        raise KernelFunctionError(str(error)) from error


def is_worth_sharing(machine: KernelMachine, X: Any, splits: Sequence[Split]) -> bool:
    """Whether the matrix of all rows takes no more values than the folds would by themselves, and
    no more memory than there is for it."""
    if machine.kernel == "precomputed":
        return isinstance(X, np.ndarray)
    if not keeps_matrix(machine.cache_size, int(_num_samples(X))):
        return False  # every fold evaluates its rows as they are asked for
    alone = sum(len(train) * (len(train) + len(test)) for train, test in splits)
    return alone >= int(_num_samples(X)) ** 2


def values_from(matrix: Floats, training: Training, model: Model, test: NDArray[np.intp]) -> Floats:
    """Values of the test rows, of each pair or of the function, as prediction computes them."""
    support = np.flatnonzero(np.any(model.coef != 0, axis=0))
    kernel = matrix[np.ix_(test, training.order[support])]
    coef = model.coef[:, support]
    n_support = np.diff(np.searchsorted(support, training.starts)).astype(np.int32)
    if len(n_support) == 1:  # regression
        values: Floats = row_products(kernel, coef) + model.intercept
        return values
    return voting.pair_values(kernel, coef, n_support, model.intercept, by_row=True)
