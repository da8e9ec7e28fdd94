r"""Support vector machines as one quadratic form.

.. math::

    \min_\beta \tfrac12 \beta^\top K \beta - p^\top \beta + \epsilon \|\beta\|_1
    \quad\text{with}\quad l \le \beta \le u

and the sum of :math:`\beta`, or of each of two groups of it, fixed by where it starts.

- C-SVC: :math:`\beta_i = y_i \alpha_i`. Then :math:`p = y`, the bounds are :math:`[0, C_i]` for
  :math:`y_i = +1` and :math:`[-C_i, 0]` for :math:`y_i = -1`, and the labels disappear from the
  kernel matrix, so that one store of kernel rows serves every labelling.
- ε-SVR: :math:`p = y`, the bounds are :math:`\pm C_i`; half the variables of the usual form.
- ν-SVC: as C-SVC with :math:`p = 0` and bounds of the weights of the rows; each class is a group.
- ν-SVR: every row twice, with bounds :math:`[0, C_i]` and :math:`[-C_i, 0]`, a group each.

A group has an offset, the gradient :math:`p - K \beta` of its free variables. The ν variants
find with theirs what the user did not give: the margin :math:`\rho` and the width
:math:`\epsilon`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats

Problem = _core.Problem


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """The pairs of one-versus-one classification, in LIBSVM's order."""
    return list(combinations(range(n_classes), 2))


def bounds_of_rows(C: float, weights: Floats) -> Floats:
    """C times the weight of each row; 0 without weight, however large C is."""
    bounds = np.zeros(len(weights))
    np.multiply(C, weights, out=bounds, where=weights > 0)
    return bounds


def nu_svc_pairs(starts: Sequence[int], weights: Floats, nu: float) -> list[Problem]:
    """A ν-SVC for each pair of classes, with bounds of 0 and the weight of each row.

    Its coefficients are those of the C-SVC with C = 1/ρ, times ρ: see :func:`nu_svc_model`.
    """
    rows, zeros = _numbers(starts[-1]), np.zeros(starts[-1])

    def problem(both: _Join) -> Problem:
        return Problem(
            rows=both(rows, rows),
            linear=both(zeros, zeros),
            lower=both(zeros, -weights),
            upper=both(weights, zeros),
            split=both.size_of_first,
            nu=nu,
        )

    return _each_pair(starts, problem)


class NuSVCModel(NamedTuple):
    """What a solved ν-SVC says: C-SVC coefficients, their intercept and the margin ρ."""

    beta: Floats
    intercept: float
    rho: float
    has_margin: bool


def nu_svc_model(solution: _core.Solution, tol: float) -> NuSVCModel:
    """The C-SVC that a solved ν-SVC is equivalent to: the one with C = 1/ρ.

    Where there is no margin, ρ is 0 as far as two offsets that are known to ``tol`` can tell; a
    small part of ``tol`` then takes its place.
    """
    first, second = solution.offsets
    # On the margin K b + i = ±ρ, and the gradient is -K b.
    margin, intercept = (second - first) / 2, (first + second) / 2
    rho = max(margin, 1e-3 * tol)
    return NuSVCModel(solution.beta / rho, intercept / rho, rho, margin == rho)


def largest_nu(totals: Floats) -> float:
    """The largest ν that every pair of classes allows, from the weights of all rows of each."""
    ordered = np.sort(totals)
    return float(2 * ordered[0] / (ordered[0] + ordered[-1]))


def epsilon_svr(y: Floats, bounds: Floats, epsilon: float, unit: float) -> Problem:
    """An ε-SVR with a bound C for each row. y and ε become multiples of a unit, as C is already:
    see :func:`unit_of_tube`."""
    return Problem(
        rows=_numbers(len(y)), linear=y / unit, lower=-bounds, upper=bounds, kink=epsilon / unit
    )


def unit_of_tube(epsilon: float, tol: float) -> float:
    """A unit, next to 1, in which ε is a float32, as the solver keeps it; 1 where tol hides it."""
    rounded = float(np.float32(epsilon))
    if rounded < np.finfo(np.float32).tiny:  # no float32 has the digits of so small a tube
        return 1.0
    return epsilon / rounded if abs(epsilon - rounded) > 1e-3 * tol else 1.0


def nu_svr(y: Floats, C: Floats, nu: float) -> Problem:
    """A ν-SVR with a bound for each row, in two variables a row: see :func:`nu_svr_model`."""
    rows, zeros = _numbers(len(y)), np.zeros(len(y))
    return Problem(
        rows=np.concatenate((rows, rows)),
        linear=np.concatenate((y, y)),
        lower=np.concatenate((zeros, -C)),
        upper=np.concatenate((C, zeros)),
        split=len(y),
        start_gradient=np.concatenate((y, y)),  # the two halves of the start cancel in K b
        nu=nu,
    )


class NuSVRModel(NamedTuple):
    """What a solved ν-SVR says: coefficients, their intercept and the width ε."""

    beta: Floats
    intercept: float
    epsilon: float


def nu_svr_model(solution: _core.Solution) -> NuSVRModel:
    """The ε-SVR that a solved ν-SVR is equivalent to, with the same C."""
    above, below = solution.offsets
    n = len(solution.beta) // 2
    # Rows on the upper edge of the tube have y - K b = i + ε, those on the lower one i - ε.
    return NuSVRModel(
        solution.beta[:n] + solution.beta[n:], (above + below) / 2, max(0.0, (above - below) / 2)
    )


def _numbers(n: int) -> NDArray[np.int32]:
    return np.arange(n, dtype=np.int32)


class _Join:
    """Joins the parts of arrays that belong to the two classes of a pair."""

    def __init__(self, starts: Sequence[int], first: int, second: int) -> None:
        self._slices = [slice(starts[k], starts[k + 1]) for k in (first, second)]
        self.size_of_first = starts[first + 1] - starts[first]

    def __call__(self, of_first: NDArray[Any], of_second: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate((of_first[self._slices[0]], of_second[self._slices[1]]))


def _each_pair(starts: Sequence[int], problem: Callable[[_Join], Problem]) -> list[Problem]:
    return [problem(_Join(starts, i, j)) for i, j in class_pairs(len(starts) - 1)]
