"""onefit itself: the one all others are measured against."""

from __future__ import annotations

from functools import partial
from typing import Any

from numpy.typing import NDArray

from ..case import Case, Settings
from ..machines.base import FloatArray
from .base import SklearnFaced, smallest


class Onefit(SklearnFaced):
    name = "onefit"
    module = "onefit"
    packages = ("onefit",)
    rank = 0
    shares_folds = True
    seeding = "auto"  # where folds start

    def options(self, settings: Settings) -> dict[str, Any]:
        cache_size = "auto" if settings.memory_mb is None else settings.memory_mb
        return {"cache_size": cache_size, "n_jobs": settings.threads}

    def scores(self, case: Case, settings: Settings, cv: Any) -> FloatArray:
        import onefit

        estimator = self.estimator(case, settings)
        return onefit.cross_val_score(estimator, case.X, case.y, cv=cv, seeding=self.seeding)

    def held_out(
        self, case: Case, settings: Settings, cv: Any, folds: list[int]
    ) -> list[tuple[NDArray[Any], FloatArray]]:
        from onefit import cross_val_predict

        # All folds: a fit of one alone would have another start.
        estimator = self.estimator(case, settings).set_params(decision_function_shape="ovo")
        predict = partial(cross_val_predict, estimator, case.X, case.y, cv=cv, seeding=self.seeding)
        classes, values = predict(), smallest(predict(method="decision_function"))
        splits = list(cv.split(case.X, case.y))
        return [(classes[test], values[test]) for _, test in (splits[fold] for fold in folds)]

    def search_class(self) -> Any:
        import onefit

        return onefit.GridSearchCV

    def iterations(self, case: Case, settings: Settings, cv: Any) -> dict[str, int]:
        import onefit

        counts = {}
        for seeding in ("auto", "none"):
            estimator = self.estimator(case, settings)
            run = onefit.cross_validate(estimator, case.X, case.y, cv=cv, seeding=seeding)
            counts[seeding] = run.ledger.n_iter  # the fit that folds start from included
        return counts


RIVAL = Onefit()
