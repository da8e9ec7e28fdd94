r"""Support vector machines as one quadratic form.

.. math::

    \min_\beta \tfrac12 \beta^\top K \beta - p^\top \beta + \epsilon \|\beta\|_1
    \quad\text{with}\quad l \le \beta \le u,\ \textstyle\sum \beta = 0

For C-SVC :math:`\beta_i = y_i \alpha_i`: then :math:`p = y`, the bounds are :math:`[0, C_i]` for
:math:`y_i = +1` and :math:`[-C_i, 0]` for :math:`y_i = -1`, and the labels disappear from the
kernel matrix, so that one store of kernel rows serves every labelling.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of one-versus-one classification, in LIBSVM's order."""
    return list(combinations(range(n_classes), 2))


def c_svc(rows: NDArray[np.int32], y: Floats, C: Floats) -> _core.Problem:
    """C-SVC on some rows of a store, with labels ±1 and a bound for each row."""
    bound = y * C
    return _core.Problem(rows, y, np.minimum(bound, 0.0), np.maximum(bound, 0.0))


def one_versus_one(starts: Sequence[int], C: Floats) -> list[_core.Problem]:
    """A C-SVC for each pair of classes of rows that are sorted by class.

    Class k is the rows ``starts[k]`` to ``starts[k + 1]``; the first class of a pair is +1.
    """
    problems = []
    for first, second in class_pairs(len(starts) - 1):
        one = np.arange(starts[first], starts[first + 1], dtype=np.int32)
        other = np.arange(starts[second], starts[second + 1], dtype=np.int32)
        rows = np.concatenate([one, other])
        y = np.repeat([1.0, -1.0], [len(one), len(other)])
        problems.append(c_svc(rows, y, C[rows]))
    return problems
