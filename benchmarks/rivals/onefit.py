"""onefit itself: the one all others are measured against."""

from __future__ import annotations

from typing import Any

from ..case import Settings
from .base import SklearnFaced


class Onefit(SklearnFaced):
    name = "onefit"
    module = "onefit"
    packages = ("onefit",)
    rank = 0

    def options(self, settings: Settings) -> dict[str, Any]:
        cache_size = "auto" if settings.memory_mb is None else settings.memory_mb
        return {"cache_size": cache_size, "n_jobs": settings.threads}


RIVAL = Onefit()
