"""Loading and scaling, and the one rule by which all hyper-parameters are set.

The rule was fixed before anything was timed: gamma = 1 / (d * var(X)), scikit-learn's "scale",
as a number of three digits, and for the rest two settings of each machine, "gentle" and "hard"
(see ``machines``). Nothing is tuned.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.preprocessing import StandardScaler

from ..case import Case, Matrix
from ..machines.base import Machine

DATA_FOLDER = "ONEFIT_DATA"  # environment variable
SHUFFLE_SEED = 0
GAMMA_RULE = "gamma = 1 / (features * var(X)) to three digits"

Source = Callable[[], tuple[Matrix, Any]]


class MissingDataError(Exception):
    """The data set cannot be had on this machine; the message says why."""


class Scaling(Enum):
    """What is done to the features; the value is what the reports say."""

    NONE = "as distributed"
    STANDARDISE = "each feature to mean 0 and variance 1"
    UNIT = "all features divided by their common maximum"


@dataclass(frozen=True)
class DataSet:
    """Where a data set comes from and how its features are scaled."""

    name: str
    source: Source
    scaling: Scaling

    def names(self, machine: Machine) -> list[str]:
        """Return what its cases are called, without loading anything."""
        return [f"{self.name}/{setting}" for setting in machine.settings]

    def cases(self, group: str, machine: Machine) -> Iterator[Case]:
        """Load the data and yield a case for each setting, or raise MissingDataError."""
        X, y = self.source()
        X = scaled(X, self.scaling)
        y = _standardised(y) if machine.regression else y.astype(np.int64)
        gamma = scale_gamma(X)
        for setting in machine.settings:
            parameters = machine.parameters(setting, y)
            scaling = self.scaling.value
            yield Case(machine, self.name, group, setting, scaling, X, y, parameters, gamma)


@dataclass(frozen=True)
class Group:
    """Data sets of one kind."""

    name: str
    rank: int
    datasets: tuple[DataSet, ...]
    regression: bool = False


def npz(name: str, rows: int | None = None) -> Source:
    """Return a loader of the first ``rows`` of ``name.npz`` in the folder ``ONEFIT_DATA`` names.

    Dense files hold ``X`` and ``y``; sparse ones the CSR parts ``data``, ``indices``, ``indptr``,
    ``shape``, and ``y``.
    """

    def load() -> tuple[Matrix, Any]:
        with np.load(npz_path(name)) as parts:
            if "indptr" in parts:
                values = parts["data"].astype(float)
                X = csr_matrix((values, parts["indices"], parts["indptr"]), shape=parts["shape"])
                X.sort_indices()
            else:
                X = np.ascontiguousarray(parts["X"], dtype=float)
            return X[:rows], parts["y"][:rows]

    return load


def npz_path(name: str) -> Path:
    """Return where ``name.npz`` is, or raise MissingDataError."""
    folder = os.environ.get(DATA_FOLDER)
    if not folder:
        raise MissingDataError(f"the environment variable {DATA_FOLDER} names no folder")
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        raise MissingDataError(f"there is no {path.name} in the folder {DATA_FOLDER} names")
    return path


def shuffled(source: Source) -> Source:
    """Return a loader of the same rows in another order, always the same one."""

    def load() -> tuple[Matrix, Any]:
        X, y = source()
        order = np.random.default_rng(SHUFFLE_SEED).permutation(len(y))
        return X[order], y[order]

    return load


def shipped(loader: str) -> Source:
    """Return a loader of a data set that comes with scikit-learn, e.g. ``load_digits``."""

    def load() -> tuple[Matrix, Any]:
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, loader)(return_X_y=True)
        return np.ascontiguousarray(X, dtype=float), y

    return load


def scaled(X: Matrix, scaling: Scaling) -> Matrix:
    if scaling is Scaling.STANDARDISE:
        return StandardScaler().fit_transform(X)
    if scaling is Scaling.UNIT:
        return X / X.max()
    return X


def _standardised(y: Any) -> Any:
    """Return targets with mean 0 and variance 1: epsilon and the tolerance are in their units."""
    y = np.asarray(y, dtype=float)
    return (y - y.mean()) / y.std()


def scale_gamma(X: Matrix) -> float:
    """Return 1 / (d * var(X)) to three digits; zeros of a sparse matrix count."""
    mean = float(X.mean())
    square = X.multiply(X) if isinstance(X, csr_matrix) else X * X
    gamma = 1.0 / (X.shape[1] * (float(square.mean()) - mean * mean))
    return float(f"{gamma:.3g}")
