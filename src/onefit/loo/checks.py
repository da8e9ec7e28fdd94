r"""What the fit on all rows proves of a row that is left out.

A C-SVC minimises :math:`F(w, b) = \tfrac12\|w\|^2 + \sum_i C_i \xi_i`. Without the row r it is
:math:`F - C_r \xi_r`, with another optimum; here :math:`y_r f(x_r) = 1 - s_r` is what the fit on
all rows says of r, and :math:`\alpha_r` is its coefficient.

1. :math:`\alpha_r = 0`: the fit on all rows is also that of the others.
2. :math:`y_r f(x_r) < 0`: without r it is no better, as :math:`\xi_r` can only grow when it is no
   longer minimised. The left-out row is misclassified.
3. :math:`\alpha_r d_r + \max(0, s_r) < 1`, where :math:`d_r` bounds
   :math:`\|\phi(x_i) - \phi(x_r)\|^2` over all rows i: the left-out row is classified correctly.
   (For an RBF kernel :math:`d_r \le 2`: :math:`2 \alpha_r R^2 + \xi_r < 1` with :math:`R^2 = 1`.)

Rule 3 holds if free rows other than r have more room than :math:`\alpha_r`. Moved to these, it
makes a dual point of the problem without r whose value is short of the primal one of the full fit
by at most :math:`\tfrac12 \alpha_r^2 d_r`. The primal function is strongly convex, so that w moves
by no more than :math:`\alpha_r \sqrt{d_r}`, and every :math:`\langle w, \phi(x_i) - \phi(x_r)
\rangle` by no more than :math:`\alpha_r d_r`. For fixed w the best :math:`f(x_r)` is a weighted
median of :math:`y_i - \langle w, \phi(x_i) - \phi(x_r) \rangle`, which moves no further than the
values that it is the median of; with that room it is still at the free rows when r is gone. With
just as much room it need not be: then no row is free, any offset between two is right, and one of
them may be on the other side, or be a tie.

The rules are those of the optimum. What the solver says is right up to its tolerance, and a rule
counts where it holds by a margin of several times that.

References: Joachims, "Estimating the generalization performance of a SVM efficiently", ICML 2000;
Franc, Laskov & Müller, "Stopping conditions for exact computation of leave-one-out error in support
vector machines", ICML 2008, Table 1.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats, Kernel, Matrix
from onefit.problem import Problem

# Rules have to hold by so many times the solver's tolerance; so have signs of decision values.
MARGIN = 10.0

# Squared distances are bounded from above, whatever their rounding.
ROUNDING = 1 + 1e-6

# Nearer than this to a bound, relative to the largest coefficient, a row is there but for rounding.
AT_BOUND = 1e-9


class DecidedBy(StrEnum):
    """What settled a left-out row, from the strongest rule to none."""

    NOT_SUPPORT = "not a support vector"
    MISCLASSIFIED = "misclassified by the full fit"
    BOUND = "bound"
    CERTIFICATE = "certificate"
    SOLVER = "solver"
    ESTIMATE = "estimate"  # only with method="approximate"
    DOUBTFUL = "estimate in doubt"  # likewise
    UNDECIDED = "undecided"  # only with method="bound"
    FAILED = "cannot be fitted"  # without this row


RULES = np.array(list(DecidedBy), dtype=object)  # by number
NOT_SUPPORT, MISCLASSIFIED, BOUND, CERTIFICATE, SOLVER = range(5)
ESTIMATE, DOUBTFUL, UNDECIDED, FAILED = range(5, len(RULES))


def not_support(problem: Problem, solution: _core.Solution) -> NDArray[np.bool_]:
    """Variables without which the solution stays what it is.

    Those that take no part; those that are 0, if the offset is that of free rows. Else it lies
    between rows at their bounds, of which any may be the next one to it.
    """
    idle: NDArray[np.bool_] = problem.lower == problem.upper
    if solution.status != _core.Status.converged:
        return idle
    beta = solution.beta
    near = AT_BOUND * float(np.abs(beta).max(initial=0.0))
    inside = (beta - problem.lower > near) & (problem.upper - beta > near)
    determined = bool((inside & (np.abs(beta) > near)).any())
    return np.asarray(idle | ((beta == 0) & determined), dtype=bool)


def rules(
    problem: Problem, solution: _core.Solution, spans: Floats, tol: float
) -> NDArray[np.int8]:
    """The number of the rule that settles each row of a solved C-SVC; SOLVER where none does.

    ``spans`` are the :math:`d_r`.
    """
    decided = np.full(len(problem.rows), SOLVER, dtype=np.int8)
    beta, sign = solution.beta, problem.linear
    if solution.status == _core.Status.converged:
        alpha = np.abs(beta)
        slack = sign * (solution.gradient - solution.offset)
        free = _free(problem, beta)
        above = np.where(free, problem.upper - beta, 0.0)
        below = np.where(free, beta - problem.lower, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):  # room without end, less its own
            room = np.where(sign > 0, above.sum() - above, below.sum() - below)
            enough = room > ROUNDING * alpha + AT_BOUND * alpha.max(initial=0.0)
            lost = alpha * spans + np.maximum(0.0, slack)
        decided[enough & (lost < 1 - MARGIN * tol)] = BOUND
        decided[1 - slack < -MARGIN * tol] = MISCLASSIFIED
    decided[not_support(problem, solution)] = NOT_SUPPORT
    return decided


def is_inner_product(kernel: Kernel) -> bool:
    """Whether it is known to be one; of a sigmoid it is not."""
    return kernel.name != "sigmoid" and not (kernel.name == "poly" and kernel.coef0 < 0)


def feature_spans(X: Matrix, kernel: Kernel | None) -> Floats | None:
    """An upper bound of ‖φ(xᵢ) - φ(xᵣ)‖² over all rows i, for each row r.

    None where it is not known that the kernel is an inner product: a given one, or a sigmoid.
    """
    if kernel is None or not is_inner_product(kernel):
        return None
    with np.errstate(over="ignore"):
        if kernel.name == "poly":
            lengths = np.sqrt((kernel.gamma * _squares(X) + kernel.coef0) ** kernel.degree)
            return ROUNDING * _reach(lengths)
        reach = ROUNDING * _reach(_distances_to_mean(X))
        return reach if kernel.name == "linear" else -2 * np.expm1(-kernel.gamma * reach)


def _reach(lengths: Floats) -> Floats:
    """How far, squared, rows of these distances to one point are at most from any other row."""
    reach: Floats = (lengths + lengths.max()) ** 2
    return reach


def _distances_to_mean(X: Matrix) -> Floats:
    mean: Any = np.asarray(X.mean(axis=0)).ravel()
    if not sp.issparse(X):
        return np.asarray(np.sqrt(_squares(X - mean)))
    squares, square = _squares(X), mean @ mean
    # What the difference of large numbers may have lost is added.
    distances = squares - 2 * (X @ mean) + square + 1e-12 * (squares + square)
    return np.asarray(np.sqrt(np.maximum(0.0, distances)))


def _squares(X: Matrix) -> Floats:
    squares = X.multiply(X).sum(axis=1) if sp.issparse(X) else (X * X).sum(axis=1)
    return np.asarray(squares, dtype=np.float64).ravel()


def _free(problem: Problem, beta: Floats) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (beta > problem.lower) & (beta < problem.upper)
    return inside & (beta != 0) if problem.kink > 0 else inside
