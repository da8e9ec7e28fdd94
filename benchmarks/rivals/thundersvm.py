"""ThunderSVM, the CPU build (thundersvm-cpu) or the CUDA build (thundersvm), whichever is there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..case import Case, Matrix, Settings
from ..dual import Pair, one_function, pairs_of
from .base import Rival


class ThunderSvm(Rival):
    name = "thundersvm"
    module = "thundersvm"
    packages = ("thundersvm-cpu", "thundersvm")
    finest_tol = 1e-4  # its gradient is float32; tighter tolerances may never be met

    def refuses(self, case: Case, settings: Settings) -> str | None:
        # It passes int32 labels where float32 are read: 150 rows of iris become 150 classes.
        if case.sparse and self.version().startswith("thundersvm-cpu"):
            return "its sparse interface misreads the labels"
        return super().refuses(case, settings)

    def fit(self, case: Case, settings: Settings) -> Any:
        import thundersvm

        # It would overwrite the values of a sparse matrix with float32: hand it a copy.
        X = case.X.copy() if case.sparse else case.X
        model = getattr(thundersvm, case.machine.estimator)(
            **case.parameters,
            gamma=case.gamma,
            tol=settings.tol,
            cache_size=settings.rival_memory_mb,
            n_jobs=settings.threads,
        )
        model.fit(X, case.y)
        return model

    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        return np.asarray(model.predict(X)).astype(case.y.dtype)

    def pairs(self, model: Any, case: Case) -> list[Pair]:
        offsets = -model.intercept_  # it calls LIBSVM's rho the intercept
        if case.machine.regression:
            return one_function(model.support_, model.dual_coef_, offsets[0])
        labels, first_seen = np.unique(case.y, return_index=True)
        in_its_order = labels[np.argsort(first_seen)]
        return pairs_of(in_its_order, model.support_, model.n_support_, model.dual_coef_, offsets)


RIVAL = ThunderSvm()
