"""onefit itself: the one all others are measured against."""

from __future__ import annotations

from typing import Any

from ..case import Case, Settings
from .base import SklearnFaced


class Onefit(SklearnFaced):
    name = "onefit"
    module = "onefit"
    packages = ("onefit",)
    rank = 0

    def estimator(self, case: Case, settings: Settings) -> Any:
        from onefit import SVC

        return SVC(
            C=case.C,
            gamma=case.gamma,
            tol=settings.tol,
            cache_size="auto" if settings.memory_mb is None else settings.memory_mb,
            n_jobs=settings.threads,
        )


RIVAL = Onefit()
