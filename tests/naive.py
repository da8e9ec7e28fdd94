"""Slow, obvious oracles: what the fast code computes, written so that it can be checked by eye.

Every support vector machine here is one quadratic form over the coefficients β of the rows,

    minimise  ½ βᵀKβ - pᵀβ + ε‖β‖₁   subject to   lo ≤ β ≤ hi,   Σβ fixed in each group,

with p = y, lo = min(0, yC), hi = max(0, yC), ε = 0 and Σβ = 0 for C-SVC (β is y times the usual
multiplier), and with p = y, lo = -C, hi = C and Σβ = 0 for ε-SVR. ν-SVC and ν-SVR have two groups:
see ``nu_svc_dual`` and ``nu_svr_dual``. Nothing here is fast: plain float64, whole kernel matrices,
and one pair of coefficients at a time.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

# A coefficient this close to its bound (as a share of the box) counts as on it: C times the
# weights may be multiplied in another order elsewhere, which moves a bound by an ulp or two.
ON_BOUND = 1e-12

# The curvature used in place of one that is not positive (LIBSVM's TAU).
MIN_CURVATURE = 1e-12


# ---------------------------------------------------------------------------------------- kernels


def linear_kernel(X, Z):
    return _dense(X) @ _dense(Z).T


def poly_kernel(X, Z, *, gamma, coef0=0.0, degree=3):
    return (gamma * linear_kernel(X, Z) + coef0) ** degree


def rbf_kernel(X, Z, *, gamma):
    # Differences first: ‖x‖² + ‖z‖² - 2x·z would lose digits for rows that lie close together.
    difference = _dense(X)[:, None, :] - _dense(Z)[None, :, :]
    return np.exp(-gamma * (difference**2).sum(axis=2))


def sigmoid_kernel(X, Z, *, gamma, coef0=0.0):
    return np.tanh(gamma * linear_kernel(X, Z) + coef0)


def kernel_matrix(kernel, X, Z, *, gamma=1.0, coef0=0.0, degree=3):
    """K[i, j] = k(X[i], Z[j]) for a kernel given by scikit-learn's name or as a callable."""
    if callable(kernel):
        return np.asarray(kernel(X, Z), dtype=np.float64)
    if kernel == "linear":
        return linear_kernel(X, Z)
    if kernel == "poly":
        return poly_kernel(X, Z, gamma=gamma, coef0=coef0, degree=degree)
    if kernel == "rbf":
        return rbf_kernel(X, Z, gamma=gamma)
    if kernel == "sigmoid":
        return sigmoid_kernel(X, Z, gamma=gamma, coef0=coef0)
    raise ValueError(f"kernel={kernel!r} has no oracle")


def gamma_value(gamma, X):
    """The number that scikit-learn takes for ``gamma`` ("scale", "auto" or a number) on ``X``."""
    X = _dense(X)
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        variance = X.var()
        return 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
    return float(gamma)


def _dense(X):
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


# ------------------------------------------------------------------------------- the dual problem


@dataclass(frozen=True)
class Dual:
    """min ½ βᵀKβ - pᵀβ + ε‖β‖₁ over lo ≤ β ≤ hi with Σβ of each of ``groups`` as in ``start``."""

    K: np.ndarray
    p: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    epsilon: float
    groups: np.ndarray
    start: np.ndarray


@dataclass(frozen=True)
class Solved:
    """A solution of a ``Dual``; ``offset`` has one entry per group."""

    beta: np.ndarray
    objective: float
    gap: float
    offset: np.ndarray
    n_iter: int
    converged: bool


def dual(K, p, lo, hi, *, epsilon=0.0, groups=None, start=None):
    p = np.asarray(p, dtype=np.float64)
    groups = np.zeros(len(p), dtype=int) if groups is None else np.asarray(groups, dtype=int)
    start = np.zeros(len(p)) if start is None else np.asarray(start, dtype=np.float64)
    K = np.asarray(K, dtype=np.float64)
    return Dual(K, p, np.asarray(lo, float), np.asarray(hi, float), float(epsilon), groups, start)


def c_svc_dual(K, sign, C):
    """C-SVC for labels ``sign`` (+1 or -1) with one bound ``C`` for all rows or one per row."""
    sign = np.asarray(sign, dtype=np.float64)
    signed_bound = sign * np.broadcast_to(np.asarray(C, dtype=np.float64), sign.shape)
    return dual(K, sign, np.minimum(0.0, signed_bound), np.maximum(0.0, signed_bound))


def svr_dual(K, y, C, epsilon):
    """ε-SVR for targets ``y`` with one bound ``C`` for all rows or one per row."""
    y = np.asarray(y, dtype=np.float64)
    bound = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    return dual(K, y, -bound, bound, epsilon=epsilon)


def nu_svc_dual(K, sign, weight, nu):
    """ν-SVC in LIBSVM's scaling: β from 0 to ``sign * weight``, each class a group of sum ±νΣw/2.

    Its β is that of the C-SVC with C = 1/ρ, times the margin ρ. A row on the margin of class +1 has
    Kβ + b = ρ, so that the offset of its group is b - ρ; that of class -1 is b + ρ.
    """
    sign = np.asarray(sign, dtype=np.float64)
    bound = np.broadcast_to(np.asarray(weight, dtype=np.float64), sign.shape)
    lo, hi = np.minimum(0.0, sign * bound), np.maximum(0.0, sign * bound)
    start = nu * bound.sum() / 2 * sign * bound
    for one in (1.0, -1.0):
        start[sign == one] /= bound[sign == one].sum()
    return dual(K, np.zeros(len(sign)), lo, hi, groups=np.where(sign > 0, 0, 1), start=start)


def nu_svr_dual(K, y, C, nu):
    """ν-SVR in two coefficients a row: one in [0, C], a group of sum νΣC/2, and one in [-C, 0].

    The coefficient of the row is their sum. A row on the upper edge of the tube has y - Kβ = b + ε,
    the offset of the first group; that of the second is b - ε.
    """
    y = np.asarray(y, dtype=np.float64)
    bound = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    none, share = np.zeros(len(y)), nu * bound / 2
    return dual(
        np.tile(K, (2, 2)),
        np.tile(y, 2),
        np.concatenate([none, -bound]),
        np.concatenate([bound, none]),
        groups=np.repeat([0, 1], len(y)),
        start=np.concatenate([share, -share]),
    )


def nu_svr_split(problem, coef, intercept):
    """Both coefficients of the rows of a ``nu_svr_dual``, of which only their sum is known.

    Where ε > 0 one of the two is zero. What is left of the sums of the groups then is nothing;
    where it is something, ε = 0, and only rows on the function can have both coefficients.
    """
    n = len(coef)
    bound = problem.hi[:n]
    left = problem.start[:n].sum() - np.maximum(coef, 0.0).sum()
    both = np.zeros(n)
    distance = np.abs(problem.p[:n] - problem.K[:n, :n] @ coef - intercept)
    for row in np.argsort(distance, kind="stable"):
        if left <= 1e-9 * problem.start[:n].sum():  # rounding
            break
        both[row] = min(bound[row] - abs(coef[row]), left)
        left -= both[row]
    return np.concatenate([np.maximum(coef, 0.0) + both, np.minimum(coef, 0.0) - both])


def objective(problem, beta):
    quadratic = 0.5 * beta @ problem.K @ beta - problem.p @ beta
    return float(quadratic + problem.epsilon * np.abs(beta).sum())


def residual(problem, beta):
    """g = p - Kβ: minus the gradient of the smooth part; a free row of C-SVC has g = offset."""
    return problem.p - problem.K @ beta


def bound_slack(problem):
    width = problem.hi - problem.lo
    return ON_BOUND * np.where(np.isfinite(width), width, 0.0)


def movable(problem, beta):
    """Which coefficients can still go up, and which can still go down."""
    slack = bound_slack(problem)
    return beta < problem.hi - slack, beta > problem.lo + slack


def free_rows(problem, beta):
    """Rows whose slope is the offset: not on a bound, nor on the kink, where it is no number."""
    can_up, can_down = movable(problem, beta)
    return can_up & can_down & ((problem.epsilon == 0) | (beta != 0))


def exactly_on_bounds(problem, beta):
    """Every coefficient is on a bound, or the kink, to the last bit: the offset is the middle.

    One that rounding left an ulp beside its bound counts as free in LIBSVM's rule, and its slope,
    which may be any in the interval, becomes the offset.
    """
    on_kink = (beta == 0) & (problem.epsilon > 0)
    return bool(((beta == problem.lo) | (beta == problem.hi) | on_kink).all())


def _slopes(problem, beta):
    """What the objective gains per unit of β when it goes up, and loses per unit when it goes down.

    They differ only at the kink of ε‖β‖₁: there up costs ε and down costs ε as well.
    """
    g = residual(problem, beta)
    up = g - problem.epsilon * np.where(beta >= 0, 1.0, -1.0)
    down = g - problem.epsilon * np.where(beta > 0, 1.0, -1.0)
    return up, down


def kkt_gap(problem, beta):
    """The largest slope along which some pair of coefficients of one group can still move.

    At an optimum it is not positive; LIBSVM stops when it is below ``tol``. A group where nothing
    can go up, or nothing can go down, has no pair to move and a gap of -∞.
    """
    up, down = _slopes(problem, beta)
    can_up, can_down = movable(problem, beta)
    gaps = [-np.inf]
    for group in np.unique(problem.groups):
        inside = problem.groups == group
        if (can_up & inside).any() and (can_down & inside).any():
            gaps.append(up[can_up & inside].max() - down[can_down & inside].min())
    return float(max(gaps))


def offset_interval(problem, beta):
    """Between which values, per group, the offset of a solution lies: two arrays.

    These are the largest slope of a row that can go up and the smallest slope of a row that can
    go down. Where a row is free they meet, up to the gap, and then either may be the larger one.
    """
    up, down = _slopes(problem, beta)
    can_up, can_down = movable(problem, beta)
    groups = [problem.groups == group for group in np.unique(problem.groups)]
    largest = [up[can_up & inside].max(initial=-np.inf) for inside in groups]
    smallest = [down[can_down & inside].min(initial=np.inf) for inside in groups]
    return np.array(largest), np.array(smallest)


def offset(problem, beta):
    """LIBSVM's rule, per group: the mean slope of the free rows, else the middle of what fits.

    Without a free row every offset between the largest slope of a row that can go up and the
    smallest slope of a row that can go down satisfies the optimality conditions. Where nothing can
    go up, or nothing down, the offset is the one end that there is (LIBSVM's is infinite).
    """
    up, _ = _slopes(problem, beta)
    free = free_rows(problem, beta)
    offsets = []
    ends = zip(*offset_interval(problem, beta), strict=True)
    for group, (largest, smallest) in zip(np.unique(problem.groups), ends, strict=True):
        inside = problem.groups == group
        if (free & inside).any():
            offsets.append(up[free & inside].mean())
        else:
            ends = np.array([largest, smallest])
            offsets.append(ends[np.isfinite(ends)].mean())
    return np.array(offsets)


def solve(problem, *, start=None, tol=1e-10, max_iter=200_000):
    """Sequential minimal optimisation, one pair at a time, until the KKT gap is below ``tol``.

    The pair is the most violating row that can go up, and the row going down that gains most by
    the second-order estimate. ``start`` fixes what Σβ is in each group; default: the problem's.
    """
    beta = np.array(problem.start if start is None else start, dtype=np.float64)
    diagonal = np.diag(problem.K)
    n_iter = 0
    while n_iter < max_iter:
        pair = _best_pair(problem, beta, diagonal, tol)
        if pair is None:
            break
        _move(problem, beta, *pair)
        n_iter += 1
    gap = kkt_gap(problem, beta)
    return Solved(
        beta, objective(problem, beta), gap, offset(problem, beta), n_iter, bool(gap < tol)
    )


def _best_pair(problem, beta, diagonal, tol):
    up, down = _slopes(problem, beta)
    can_up, can_down = movable(problem, beta)
    best = None
    best_gain = -np.inf
    for group in np.unique(problem.groups):
        ups = np.flatnonzero(can_up & (problem.groups == group))
        downs = np.flatnonzero(can_down & (problem.groups == group))
        if len(ups) == 0 or len(downs) == 0:
            continue
        i = ups[np.argmax(up[ups])]
        slope = up[i] - down[downs]
        curvature = diagonal[i] + diagonal[downs] - 2 * problem.K[i, downs]
        gain = np.where(slope >= tol, slope**2 / np.maximum(curvature, MIN_CURVATURE), -np.inf)
        if gain.max() > best_gain:
            best_gain = gain.max()
            best = i, downs[np.argmax(gain)]
    return best


def _move(problem, beta, i, j):
    """Raise β[i] and lower β[j] by the best common step that stays in the box and on one side
    of each kink of ε‖β‖₁ (the next step goes on from there)."""
    K = problem.K
    up, down = _slopes(problem, beta)
    curvature = max(K[i, i] + K[j, j] - 2 * K[i, j], MIN_CURVATURE)
    room_up = problem.hi[i] - beta[i]
    room_down = beta[j] - problem.lo[j]
    if problem.epsilon > 0:
        room_up = min(room_up, -beta[i]) if beta[i] < 0 else room_up
        room_down = min(room_down, beta[j]) if beta[j] > 0 else room_down
    step = min((up[i] - down[j]) / curvature, room_up, room_down)
    beta[i] += step
    beta[j] -= step
    slack = bound_slack(problem)
    for k in (i, j):  # land on a bound, or on the kink, exactly
        for place in (problem.lo[k], problem.hi[k], 0.0):
            if abs(beta[k] - place) <= slack[k]:
                beta[k] = place


# ------------------------------------------------------------------------------ one versus one


@dataclass(frozen=True)
class Pair:
    """One of the two-class problems: class ``first`` is +1, class ``second`` is -1.

    ``rows`` are the rows of the two classes, ``sign`` their labels, and ``beta``, where given,
    their coefficients.
    """

    first: int
    second: int
    rows: np.ndarray
    sign: np.ndarray
    beta: np.ndarray | None = None


def pairs(labels, n_classes):
    """The two-class problems in LIBSVM's order; ``labels`` are class numbers 0, 1, …"""
    labels = np.asarray(labels)
    found = []
    for first, second in combinations(range(n_classes), 2):
        rows = np.flatnonzero((labels == first) | (labels == second))
        found.append(Pair(first, second, rows, np.where(labels[rows] == first, 1.0, -1.0)))
    return found


def unpack_pairs(labels, n_classes, dual_coef, n_support, support):
    """The pairs with their coefficients taken out of scikit-learn's fitted arrays.

    ``dual_coef`` has n_classes - 1 rows: a support vector of class c has its coefficient against
    class d in row d - 1 where c < d, and in row d where c > d. With two classes scikit-learn turns
    the signs, so that the second class is the positive one; that is undone here.
    """
    dual_coef = _dense(dual_coef) * (-1.0 if n_classes == 2 else 1.0)
    owner = np.repeat(np.arange(n_classes), n_support)
    found = []
    for pair in pairs(labels, n_classes):
        whole = np.zeros(len(labels))
        of_first = np.flatnonzero(owner == pair.first)
        of_second = np.flatnonzero(owner == pair.second)
        whole[support[of_first]] = dual_coef[pair.second - 1, of_first]
        whole[support[of_second]] = dual_coef[pair.first, of_second]
        found.append(Pair(pair.first, pair.second, pair.rows, pair.sign, whole[pair.rows]))
    return found


def vote(decisions, n_classes):
    """LIBSVM's vote: each pair's class wins a point, zero goes to the second, ties to the lowest.

    ``decisions`` has one column per pair, positive for the pair's first class.
    """
    winners = np.empty(len(decisions), dtype=int)
    for row, values in enumerate(decisions):
        points = [0] * n_classes
        for (first, second), value in zip(combinations(range(n_classes), 2), values, strict=True):
            points[first if value > 0 else second] += 1
        winners[row] = points.index(max(points))
    return winners


def one_versus_rest(decisions, n_classes):
    """scikit-learn's ``decision_function_shape="ovr"``: votes, plus less than half a vote of
    summed decision values. Here a value of exactly zero counts for the first class of the pair."""
    result = np.empty((len(decisions), n_classes))
    for row, values in enumerate(decisions):
        points = np.zeros(n_classes)
        confidence = np.zeros(n_classes)
        for (first, second), value in zip(combinations(range(n_classes), 2), values, strict=True):
            points[second if value < 0 else first] += 1
            confidence[first] += value
            confidence[second] -= value
        result[row] = points + confidence / (3 * (np.abs(confidence) + 1))
    return result


# ----------------------------------------------------------- what two correct solvers may differ by

# Kernel entries may be evaluated and kept in float32. Two ulps: half an ulp each for the products,
# the argument of the exponential, the exponential, and what is kept (LIBSVM: the last one only).
FLOAT32_ROUNDING = 4 * 2.0**-24


@dataclass(frozen=True)
class Tolerance:
    """How far two solutions of one problem may be apart; see ``tolerance``."""

    objective: float
    distance: float
    offsets: np.ndarray  # of each group

    @property
    def offset(self):
        """Of the mean of the offsets, the intercept, or half their difference: ρ, or ε."""
        return self.offsets.mean()

    def of_decisions(self, squared_norms):
        """|f₁(x) - f₂(x)| ≤ ‖φ(x)‖ ‖w₁ - w₂‖ + |b₁ - b₂|, where ``squared_norms`` are k(x, x)."""
        return np.sqrt(np.maximum(squared_norms, 0.0)) * self.distance + self.offset

    def of_scaled_decisions(self, squared_norms, scale_1, decisions_2):
        """The same for f₁/s₁ and f₂/s₂, whose scales s are half the difference of the offsets.

        f₁/s₁ - f₂/s₂ = (f₁ - f₂)/s₁ + (f₂/s₂)(s₂ - s₁)/s₁, where ``decisions_2`` are f₂/s₂.
        """
        norms = np.sqrt(np.maximum(squared_norms, 0.0))
        return (norms * self.distance + (1 + np.abs(decisions_2)) * self.offset) / scale_1


def rounding(K, beta):
    """What float32 entries of K may change in Kβ."""
    return FLOAT32_ROUNDING * (np.abs(K) @ np.abs(beta)).max(initial=0.0)


def gap_tolerance(problem, beta, tol):
    """The largest KKT gap, in exact arithmetic, of a solver that stops below ``tol``."""
    return tol + 2 * rounding(problem.K, beta)


def tolerance(problem, beta_1, beta_2, tol):
    """What follows for two solutions when both have a KKT gap below their ``gap_tolerance``.

    Let Δ = β₂ - β₁. Both are feasible, so Δ only moves coefficients that can move and sums to
    zero in each group; such a move gains at most gap·½‖Δ‖₁ to first order, and K is positive
    semidefinite:

    - objectives: f(β₁) - f(β₂) ≤ gap₁·½‖Δ‖₁, and the other way round with gap₂;
    - weights: ‖w₁ - w₂‖² = ΔᵀKΔ = (g₁ - g₂)ᵀΔ ≤ (gap₁ + gap₂)·½‖Δ‖₁;
    - offsets: each lies within its gap of the slope of every free row of its group, so one row
      that is free in both, on the same side of the kink, ties them together. Where all rows are
      on their bounds each is the middle of the same interval. Otherwise the offset is not unique
      (any value of an interval is optimal, and rounding decides whether a row counts as free): no
      finite tolerance.
    """
    gaps = gap_tolerance(problem, beta_1, tol) + gap_tolerance(problem, beta_2, tol)
    moved = np.abs(beta_2 - beta_1).sum()
    magnitude = np.abs(problem.p @ beta_1) + np.abs(beta_1 @ problem.K @ beta_1)
    distance = np.sqrt(0.5 * gaps * moved)

    norms = np.sqrt(np.maximum(np.diag(problem.K), 0.0))
    free_in_both = free_rows(problem, beta_1) & free_rows(problem, beta_2)
    if problem.epsilon > 0:
        free_in_both &= np.sign(beta_1) == np.sign(beta_2)
    same_bounds = np.array_equal(beta_1, beta_2) and exactly_on_bounds(problem, beta_1)
    offsets = []
    for group in np.unique(problem.groups):
        tied = free_in_both & (problem.groups == group)
        if tied.any():
            offsets.append(gaps + distance * norms[tied].min())
        else:
            offsets.append(gaps if same_bounds else np.inf)
    return Tolerance(
        # 1e-12: the two objectives are themselves sums in float64.
        objective=0.5 * gaps * moved + 1e-12 * (1 + magnitude),
        distance=distance,
        offsets=np.array(offsets),
    )
