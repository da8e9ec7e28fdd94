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
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of one-versus-one classification, in LIBSVM's order."""
    return list(combinations(range(n_classes), 2))


def one_versus_one(starts: Sequence[int], C: Floats) -> list[_core.Problem]:
    """A C-SVC for each pair of classes of rows that are sorted by class, with a bound for each row.

    Class k is the rows ``starts[k]`` to ``starts[k + 1]``; the first class of a pair is +1.
    """
    rows = np.arange(starts[-1], dtype=np.int32)
    ones, zeros = np.ones(starts[-1]), np.zeros(starts[-1])
    classes = [slice(first, last) for first, last in pairwise(starts)]

    def both(one: slice, first: NDArray[Any], other: slice, second: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate((first[one], second[other]))

    return [
        _core.Problem(
            rows=both(classes[i], rows, classes[j], rows),
            linear=both(classes[i], ones, classes[j], -ones),
            lower=both(classes[i], zeros, classes[j], -C),
            upper=both(classes[i], C, classes[j], zeros),
        )
        for i, j in class_pairs(len(classes))
    ]
