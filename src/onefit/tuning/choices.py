"""What a finished search says of its grid: whether it is wide enough, and what is simplest.

The standard error of a mean over k folds is their standard deviation over :math:`\\sqrt{k - 1}`
(scikit-learn's deviation is that of the folds themselves). The one-standard-error rule takes, of
all candidates whose mean is within one of these of the best, the most regular (Breiman, Friedman,
Olshen & Stone, *Classification and Regression Trees*, 1984, section 3.4.3).
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from math import inf, isnan
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import ParameterGrid

from onefit.estimators.base import KernelMachine

# Parameters whose range is the user's to choose, and whose score mostly has a maximum inside.
RANGED = ("C", "gamma", "nu", "epsilon", "coef0", "degree")
# Fewer values are a choice, not a range.
LEAST_VALUES = 3


class EdgeOfGridWarning(UserWarning):
    """The best value of a parameter is the smallest or largest that was tried."""


def one_standard_error(
    means: NDArray[np.float64], deviations: NDArray[np.float64], best: int, n_folds: int
) -> float:
    """The least mean that is not worse than the best by more than its standard error."""
    error = deviations[best] / np.sqrt(max(1, n_folds - 1))
    return float(means[best] - error)


def simplest(machines: Mapping[int, KernelMachine], among: Iterable[int], best: int) -> int:
    """The most regular of some candidates: the smallest C, or largest ν, then the smallest γ."""

    def rank(k: int) -> tuple[float, ...]:
        machine = machines[k]
        gamma = machine.gamma if isinstance(machine.gamma, Real) else 0.0
        curved = 0.0 if machine.kernel == "linear" else 1.0
        nu = getattr(machine, "nu", 0.0)
        return (float(getattr(machine, "C", 0.0)), -float(nu), curved, float(gamma), k)

    return min((k for k in among if k in machines), key=rank, default=best)


def warn_at_edges(param_grid: Any, best: Mapping[str, Any], scores: Mapping[Any, float]) -> None:
    """Warn where the best value is the first or last of a range, and none inside is as good.

    ``scores`` are the best means by name and value of a parameter.
    """
    values: dict[str, set[float]] = defaultdict(set)
    for grid in ParameterGrid(param_grid).param_grid:
        if grid.keys() != best.keys():
            continue
        for name, tried in grid.items():
            numbers = (float(v) for v in tried if isinstance(v, Real))
            values[name].update(v for v in numbers if np.isfinite(v))
    for name, found in best.items():
        short = name.rpartition("__")[2]
        tried = sorted(values[name])
        if short not in RANGED or len(tried) < LEAST_VALUES or not isinstance(found, Real):
            continue
        if any(scores.get((name, v), -np.inf) >= scores[name, found] for v in tried[1:-1]):
            continue
        for edge, which, direction in (
            (tried[0], "smallest", "smaller"),
            (tried[-1], "largest", "larger"),
        ):
            if found == edge:
                warnings.warn(
                    f"The best {name}={found:g} is the {which} of the grid: {direction} values may "
                    "be better still.",
                    EdgeOfGridWarning,
                    stacklevel=4,
                )


def best_by_value(candidates: list[dict[str, Any]], means: NDArray[np.float64]) -> dict[Any, float]:
    """The best mean of each value of each parameter."""
    best: dict[Any, float] = {}
    for parameters, mean in zip(candidates, means.tolist(), strict=True):
        if isnan(mean):
            continue
        for name, value in parameters.items():
            if isinstance(value, Real):
                best[name, value] = max(mean, best.get((name, value), -inf))
    return best
