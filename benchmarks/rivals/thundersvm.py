"""ThunderSVM, the CPU build (thundersvm-cpu) or the CUDA build (thundersvm), whichever is there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..case import Case, Matrix, Settings
from ..dual import Pair, pairs_of
from .base import Rival


class ThunderSvm(Rival):
    name = "thundersvm"
    module = "thundersvm"
    packages = ("thundersvm-cpu", "thundersvm")
    finest_tol = 1e-4  # its gradient is float32; tighter tolerances may never be met

    def refuses(self, case: Case, settings: Settings) -> str | None:
        # It passes int32 labels where float32 are read: 150 rows of iris become 150 classes.
        if case.sparse and self.version().startswith("thundersvm-cpu"):
            return "its sparse interface misreads the class labels"
        return super().refuses(case, settings)

    def fit(self, case: Case, settings: Settings) -> Any:
        from thundersvm import SVC

        # It would overwrite the values of a sparse matrix with float32: hand it a copy.
        X = case.X.copy() if case.sparse else case.X
        model = SVC(
            C=case.C,
            gamma=case.gamma,
            tol=settings.tol,
            cache_size=settings.rival_memory_mb,
            n_jobs=settings.threads,
        )
        model.fit(X, case.y)
        model.trained_on = case.y
        return model

    def labels(self, model: Any, X: Matrix) -> NDArray[np.int64]:
        return np.asarray(model.predict(X)).astype(np.int64)

    def pairs(self, model: Any) -> list[Pair]:
        labels, first_seen = np.unique(model.trained_on, return_index=True)
        return pairs_of(
            labels[np.argsort(first_seen)],
            model.support_,
            model.n_support_,
            model.dual_coef_,
            -model.intercept_,  # it calls LIBSVM's rho the intercept
        )


RIVAL = ThunderSvm()
