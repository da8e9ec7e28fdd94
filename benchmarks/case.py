"""What is asked of every rival: one data set with one setting of the hyper-parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .machines.base import Machine

WARM_UP = "warm-up"  # the group of a case before all others
Matrix = Any  # a C-ordered float64 ndarray, or a scipy.sparse.csr_matrix of float64


@dataclass(frozen=True)
class Case:
    """A machine with the kernel exp(-gamma |x - z|^2), on all rows of ``X``."""

    machine: Machine
    dataset: str
    group: str
    setting: str
    scaling: str
    X: Matrix
    y: NDArray[Any]  # int64 classes or float64 targets
    parameters: dict[str, float]  # of the machine, as scikit-learn calls them
    gamma: float
    folds: int | None = None  # of a cross-validation; None: as many as the command line says
    unseen: tuple[Matrix, NDArray[Any]] | None = None  # rows to try the chosen model on

    @property
    def name(self) -> str:
        return f"{self.dataset}/{self.setting}"

    @property
    def rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def features(self) -> int:
        return int(self.X.shape[1])

    @property
    def sparse(self) -> bool:
        return not isinstance(self.X, np.ndarray)

    def facts(self) -> dict[str, Any]:
        """Return what the reports tell about this case."""
        return {
            "name": self.name,
            "machine": self.machine.name,
            "dataset": self.dataset,
            "group": self.group,
            "setting": self.setting,
            "scaling": self.scaling,
            "rows": self.rows,
            "features": self.features,
            "classes": None if self.machine.regression else len(np.unique(self.y)),
            "sparse": self.sparse,
            **self.parameters,
            "gamma": self.gamma,
            **({} if self.folds is None else {"folds": self.folds}),
        }


@dataclass(frozen=True)
class Settings:
    """How a rival is asked to work; the same for all rivals of a run."""

    threads: int
    tol: float
    memory_mb: float | None  # None: what follows for rivals, its own default for onefit

    @property
    def rival_memory_mb(self) -> float:
        """Five times scikit-learn's default: what a person who waits would try first."""
        return 1000.0 if self.memory_mb is None else self.memory_mb
