"""Which values a right solver may give: intervals around a tight fit of scikit-learn's.

Let β* be the tight solution and β one whose KKT gap is below ``tol``, Δ = β - β*. As in
``naive.tolerance``, ‖w - w*‖² ≤ gaps · ½‖Δ‖₁. Only rows near their margin can move: a row whose
slope is more than 2·gaps away from the offset costs more than moving it can gain, so that
‖Δ‖₁ ≤ 4/3 of the room of the others, their boxes; where their kernel matrix is well conditioned it
is less, gaps·m/(2λ). The offset lies within the gap of the slopes of free rows. Where no row is
free, any offset of an interval is right. Kernel entries are float32, which widens the gaps.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import naive
import numpy as np
import scipy.sparse as sp
from estimators import comparison
from sklearn.exceptions import ConvergenceWarning
from strategies import Problem

from campaign.case import Case, NothingToCompareError

PAIRINGS = {
    "SVC": comparison.SVC,
    "SVR": comparison.SVR,
    "NuSVC": comparison.NU_SVC,
    "NuSVR": comparison.NU_SVR,
}
TIGHT = 1e-9
MAX_ITER = 300_000
# Left-out values that are asked are right to about 1e-7.
EXACT = 4e-7
# A coefficient this near to its bound, as a share of the box, may be on it in another solution.
NEARLY = 1e-6
# Parameters of ours that scikit-learn does not have, or takes otherwise.
OWN = ("cache_size", "n_jobs")


@dataclass(frozen=True)
class Intervals:
    """Between which values a right answer lies, one column per pair of classes (or one)."""

    low: np.ndarray
    high: np.ndarray
    classes: np.ndarray | None

    @property
    def centre(self) -> np.ndarray:
        return 0.5 * (self.low + self.high)

    @property
    def width(self) -> np.ndarray:
        """How far off one value may be."""
        return 0.5 * (self.high - self.low)

    @property
    def ties(self) -> np.ndarray:
        """Rows whose label is not decided: a value whose interval has both signs."""
        if self.classes is None:
            return np.zeros(len(self.low), dtype=bool)
        return ~((self.low > 0) | (self.high < 0)).all(axis=1)

    @property
    def labels(self) -> np.ndarray:
        assert self.classes is not None
        return self.classes[naive.vote(self.centre, len(self.classes))]

    def contain(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return ((values >= self.low) & (values <= self.high)).all(axis=1)


class Reference:
    """A tight fit of scikit-learn's model to rows, and what follows for other solutions."""

    def __init__(
        self,
        case: Case,
        X: Any,
        y: Any,
        weight: Any,
        params: dict[str, Any],
        optimum: bool = False,
    ) -> None:
        """``optimum``: the values of the optimum are meant, whatever ``tol`` and kernel entries."""
        self.params = {name: params[name] for name in params if name not in OWN}
        tol = self.params.pop("tol", 1e-3)
        unit = 1.0 if case.classifies else max(1e-12, float(np.abs(y).max(initial=0)))
        self.params |= {"tol": min(tol, TIGHT * unit), "max_iter": MAX_ITER}
        self.tol = tol
        X = np.asarray(X, dtype=np.float64)
        if self.params.get("gamma", "scale") == "scale" and self.params.get("kernel") != "linear":
            self.params["gamma"] = scale_of(X, is_sparse(case))
        problem = Problem(X, y, X[:0], weight, self.params)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.fitted = PAIRINGS[case.model].fit_theirs(problem)
        self.model = self.fitted.model
        if optimum:
            parts = [refined(part) for part in self.fitted.parts]
            self.ranges = [Range(part, TIGHT * unit / 10, rounded=False) for part in parts]
        else:
            self.ranges = [Range(part, tol) for part in self.fitted.parts]

    @property
    def classes(self) -> np.ndarray | None:
        return getattr(self.model, "classes_", None)

    def intervals(self, Z: np.ndarray) -> Intervals:
        Z = np.asarray(Z, dtype=np.float64)
        K = self.fitted.kernel_matrix(Z, self.fitted.problem.X)
        norms = np.sqrt([max(0.0, self.fitted.kernel_matrix(z, z)[0, 0]) for z in Z[:, None, :]])
        found = [one.interval(K, norms) for one in self.ranges]
        low, high = (np.stack(ends, axis=1) for ends in zip(*found, strict=True))
        return Intervals(low, high, self.classes)


class Range:
    """How far solutions of one dual problem may be from a tight one."""

    def __init__(self, part: comparison.Part, tol: float, rounded: bool = True) -> None:
        self.part = part
        self.rounded = rounded
        dual, beta = part.dual, part.beta
        with np.errstate(over="ignore", invalid="ignore"):
            gap = naive.kkt_gap(dual, beta)
            self.rounding = naive.rounding(dual.K, beta) if rounded else 0.0
        self.gaps = tol + 4 * self.rounding + max(0.0, gap)
        if not np.isfinite(self.gaps) or gap > 100 * (tol + self.rounding):
            raise NothingToCompareError(f"scikit-learn's gap is {gap:.2g}")
        self._offsets()
        self._distance()

    def _offsets(self) -> None:
        """Ends of the offset, per group; rows that are nearly on a bound may be on it."""
        dual, beta = self.part.dual, self.part.beta
        width = dual.hi - dual.lo
        nearly = NEARLY * np.where(np.isfinite(width), width, 0.0)
        self.can_up, self.can_down = beta < dual.hi - nearly, beta > dual.lo + nearly
        slope, side = naive.residual(dual, beta), np.where(np.abs(beta) <= nearly, 0.0, beta)
        self.up = slope - dual.epsilon * np.where(side >= 0, 1.0, -1.0)
        self.down = slope - dual.epsilon * np.where(side > 0, 1.0, -1.0)
        self.ends = []
        for group, own in zip(np.unique(dual.groups), naive.offset(dual, beta), strict=True):
            inside = dual.groups == group
            ends = [
                own,
                self.up[self.can_up & inside].max(initial=-np.inf),
                self.down[self.can_down & inside].min(initial=np.inf),
            ]
            ends = [end for end in ends if np.isfinite(end)]
            if not ends:
                raise NothingToCompareError("no offset is determined")
            self.ends.append((min(ends), max(ends)))

    def _distance(self) -> None:
        dual, beta = self.part.dual, self.part.beta
        low = np.array([self.ends[g][0] for g in _group_numbers(dual)])
        high = np.array([self.ends[g][1] for g in _group_numbers(dual)])
        slack = np.full(len(beta), np.inf)
        slack = np.where(self.can_up, np.minimum(slack, low - self.up), slack)
        slack = np.where(self.can_down, np.minimum(slack, self.down - high), slack)
        near = (slack <= 2 * self.gaps) & (dual.hi > dual.lo)
        room = np.maximum(dual.hi - beta, beta - dual.lo)
        moved = 4 / 3 * room[near].sum()
        norms = np.sqrt(np.maximum(np.diag(dual.K), 0.0))
        if near.any():
            smallest = np.linalg.eigvalsh(dual.K[np.ix_(near, near)])[0]
            if smallest > 0:
                moved = min(moved, 4 * self.gaps * near.sum() / (2 * smallest))
        self.distance = np.sqrt(0.5 * self.gaps * moved)
        self.of_offset = self.gaps + self.distance * norms[near].max(initial=0.0)
        if not np.isfinite(self.distance):
            raise NothingToCompareError("coefficients without a bound may move without a limit")

    def interval(self, K: np.ndarray, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        part = self.part
        K = K[:, part.rows]
        values = K @ part.coef
        apart = norms * self.distance + self.of_offset
        in_units_of_dual = np.abs(part.coef) * (part.scale or 1.0)
        size = np.abs(K) @ in_units_of_dual
        apart = apart + (naive.FLOAT32_ROUNDING * size if self.rounded else EXACT * (1 + size))
        widths = np.array([high - low for low, high in self.ends])
        if part.scale is not None:  # ν-SVC: everything is divided by ρ, half of two offsets
            values = values + part.intercept
            spread = self.of_offset + widths.mean()
            rho = part.scale - spread
            if rho <= 0:
                raise NothingToCompareError("the margin of ν-SVC may be zero")
            apart = (apart + widths.mean() + (1 + np.abs(values)) * spread) / rho
            return values - apart, values + apart
        low = np.mean([low for low, _ in self.ends])
        high = np.mean([high for _, high in self.ends])
        return values + low - apart, values + high + apart


def refined(part: comparison.Part) -> comparison.Part:
    """The same part solved on in double precision."""
    dual, n = part.dual, len(part.coef)
    start = np.clip(part.beta, dual.lo, dual.hi)
    unit = max(1.0, float(np.abs(dual.p).max(initial=0.0)))
    solved = naive.solve(dual, start=start, tol=1e-11 * unit, max_iter=1_000)
    if not solved.gap < 1e-10 * unit:
        raise NothingToCompareError(f"the naive solver's gap is {solved.gap:.2g}")
    beta, offset = solved.beta, float(solved.offset.mean())
    coef = beta if len(beta) == n else beta[:n] + beta[n:]
    if part.scale is None:
        return replace(part, beta=beta, coef=coef, intercept=offset, offsets=solved.offset)
    rho = float(solved.offset[1] - solved.offset[0]) / 2
    if rho <= 0:
        raise NothingToCompareError("the margin of ν-SVC is zero")
    return replace(
        part, beta=beta, coef=coef / rho, intercept=offset / rho, offsets=solved.offset, scale=rho
    )


def is_sparse(case: Case) -> bool:
    return case.options.get("layout", "dense").startswith(("cs", "coo"))


def scale_of(X: np.ndarray, sparse: bool) -> float:
    """The number for gamma="scale"; of sparse rows scikit-learn takes it from sums of squares."""
    if not sparse:
        return naive.gamma_value("scale", X)
    rows = sp.csr_matrix(X)
    variance = (rows.multiply(rows)).mean() - rows.mean() ** 2
    return float(1.0 / (X.shape[1] * variance)) if variance != 0 else 1.0


def _group_numbers(dual: naive.Dual) -> np.ndarray:
    return np.searchsorted(np.unique(dual.groups), dual.groups)
