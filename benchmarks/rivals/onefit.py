"""onefit itself: the one all others are measured against."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..case import Case, Settings
from ..machines.base import FloatArray
from .base import SklearnFaced


class Onefit(SklearnFaced):
    name = "onefit"
    module = "onefit"
    packages = ("onefit",)
    rank = 0
    shares_folds = True

    def options(self, settings: Settings) -> dict[str, Any]:
        cache_size = "auto" if settings.memory_mb is None else settings.memory_mb
        return {"cache_size": cache_size, "n_jobs": settings.threads}

    def scores(self, case: Case, settings: Settings, cv: Any) -> FloatArray:
        import onefit

        return onefit.cross_val_score(self.estimator(case, settings), case.X, case.y, cv=cv)

    def iterations(self, case: Case, settings: Settings, cv: Any) -> dict[str, int]:
        import onefit

        counts = {}
        for seeding in ("auto", "none"):
            estimator = self.estimator(case, settings)
            run = onefit.cross_validate(estimator, case.X, case.y, cv=cv, seeding=seeding)
            counts[seeding] = run.ledger.n_iter
            if any(fold.seeded_from == "all rows" for fold in run.ledger.folds):
                # The ledger is about folds; the fit that they start from is paid for, too.
                counts[seeding] += int(np.sum(estimator.fit(case.X, case.y).n_iter_))
        return counts


RIVAL = Onefit()
