"""scikit-learn: its own version of LIBSVM, dense or sparse as the data are."""

from __future__ import annotations

from typing import Any

from ..case import Case, Settings
from .base import SklearnFaced


class ScikitLearn(SklearnFaced):
    name = "scikit-learn"
    module = "sklearn.svm"
    packages = ("scikit-learn",)
    max_threads = 1

    def estimator(self, case: Case, settings: Settings) -> Any:
        from sklearn.svm import SVC

        return SVC(
            C=case.C, gamma=case.gamma, tol=settings.tol, cache_size=settings.rival_memory_mb
        )


RIVAL = ScikitLearn()
