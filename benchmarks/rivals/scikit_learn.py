"""scikit-learn: its own version of LIBSVM, dense or sparse as the data are."""

from __future__ import annotations

from typing import Any

from ..case import Settings
from .base import SklearnFaced


class ScikitLearn(SklearnFaced):
    name = "scikit-learn"
    module = "sklearn.svm"
    packages = ("scikit-learn",)
    max_threads = 1

    def options(self, settings: Settings) -> dict[str, Any]:
        return {"cache_size": settings.rival_memory_mb}


RIVAL = ScikitLearn()
