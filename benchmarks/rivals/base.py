"""The small interface that a library has to be given in order to take part."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..case import Case, Matrix, Settings
from ..dual import Pair, one_function, pairs_of
from ..machines.base import FloatArray


@dataclass(frozen=True)
class Grid:
    """Values that a search tries, all with all."""

    C: list[float]
    gamma: list[float]

    def as_parameters(self) -> dict[str, list[float]]:
        return {"C": self.C, "gamma": self.gamma}


class Rival(ABC):
    """A library that can train some of the machines with a Gaussian kernel."""

    name: str
    module: str  # imported to find out whether the rival can run
    packages: tuple[str, ...]  # distributions that provide it; the first one installed counts
    rank: int = 1  # order in tables
    machines: tuple[str, ...] | None = None  # those it has; None: all
    max_threads: int | None = None  # None: as many as it is told
    finest_tol: float = 0.0  # tighter tolerances are beyond its arithmetic
    # Why its answer cannot equal the others', if so. It is then compared on accuracy only.
    other_problem: str | None = None
    baseline: bool = False  # not a contender: shows what the harness costs
    yardstick: str | None = None  # other work of a known size, in words: only its time counts
    shares_folds: bool = False  # in a cross-validation a fold is not a fit of its own

    def available(self) -> tuple[bool, str]:
        """Return whether the library can be used here, and its version or the reason why not."""
        try:
            importlib.import_module(self.module)
        except Exception as error:  # a broken native library can raise anything
            return False, f"{type(error).__name__}: {error}"
        return True, self.version()

    def version(self) -> str:
        for package in self.packages:
            try:
                return f"{package} {metadata.version(package)}"
            except metadata.PackageNotFoundError:
                continue
        return "version unknown"

    def refuses(self, case: Case, settings: Settings) -> str | None:
        """Return why this case cannot be run, or None. Never used to hide slowness."""
        if self.machines is not None and case.machine.name not in self.machines:
            return f"has no {case.machine.name}"
        if settings.tol < self.finest_tol:
            return f"cannot reach a tolerance of {settings.tol:g}"
        return None

    def threads(self, settings: Settings) -> int:
        """Return how many threads the rival works with."""
        return min(settings.threads, self.max_threads or settings.threads)

    @abstractmethod
    def fit(self, case: Case, settings: Settings) -> Any:
        """Train and return the library's model. This is what is timed."""

    @abstractmethod
    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        """Return the library's own predictions: classes or values of the function."""

    def pairs(self, model: Any, case: Case) -> list[Pair] | None:
        """Return the dual solution, or None if the library does not show it."""
        return None

    def scores(self, case: Case, settings: Settings, cv: Any) -> FloatArray:
        """Cross-validate and return the score of each fold. ``cv`` is a splitter or its splits."""
        raise NotImplementedError(f"{self.name} cannot be given folds")

    def held_out(
        self, case: Case, settings: Settings, cv: Any, folds: list[int]
    ) -> list[tuple[NDArray[Any], FloatArray]]:
        """Return the classes that each of these folds predicts for the rows it leaves out, as it
        did for ``scores``, and for each row the smallest size of a decision value."""
        raise NotImplementedError(f"{self.name} cannot be given folds")

    def search(
        self, case: Case, settings: Settings, cv: Any, grid: Grid
    ) -> tuple[FloatArray, dict[str, float]]:
        """Search a grid and return the mean score of every candidate, and the best of them."""
        raise NotImplementedError(f"{self.name} cannot be given a grid")

    def chosen(self, case: Case, settings: Settings, cv: Any, grid: Grid) -> Any:
        """Search a grid and return the model that the library predicts with afterwards."""
        raise NotImplementedError(f"{self.name} cannot be given a grid")

    def iterations(self, case: Case, settings: Settings, cv: Any) -> dict[str, int]:
        """Return the iterations of a cross-validation, by what the folds start from."""
        return {}


def smallest(values: FloatArray) -> FloatArray:
    """Return the smallest size of each row's decision values."""
    return np.asarray(np.abs(values).reshape(len(values), -1).min(axis=1))


class SklearnFaced(Rival):
    """A rival with scikit-learn's interface and attributes: ``module`` has its classes."""

    def options(self, settings: Settings) -> dict[str, Any]:
        """Return the parameters that are not those of the machine."""
        return {"cache_size": settings.rival_memory_mb, "n_jobs": settings.threads}

    def estimator(self, case: Case, settings: Settings) -> Any:
        estimator = getattr(importlib.import_module(self.module), case.machine.estimator)
        return estimator(
            **case.parameters, gamma=case.gamma, tol=settings.tol, **self.options(settings)
        )

    def fit(self, case: Case, settings: Settings) -> Any:
        return self.estimator(case, settings).fit(case.X, case.y)

    def scores(self, case: Case, settings: Settings, cv: Any) -> FloatArray:
        from sklearn.model_selection import cross_val_score

        # Who has no threads of its own gets processes.
        n_jobs = settings.threads // self.threads(settings)
        estimator = self.estimator(case, settings)
        return np.asarray(cross_val_score(estimator, case.X, case.y, cv=cv, n_jobs=n_jobs))

    def search(
        self, case: Case, settings: Settings, cv: Any, grid: Grid
    ) -> tuple[FloatArray, dict[str, float]]:
        done = self._searched(case, settings, cv, grid, refit=False)
        return np.asarray(done.cv_results_["mean_test_score"]), done.best_params_

    def chosen(self, case: Case, settings: Settings, cv: Any, grid: Grid) -> Any:
        return self._searched(case, settings, cv, grid, refit=True)

    def search_class(self) -> Any:
        from sklearn.model_selection import GridSearchCV

        return GridSearchCV

    def _searched(self, case: Case, settings: Settings, cv: Any, grid: Grid, *, refit: bool) -> Any:
        estimator = self.estimator(case, settings)
        options = {"cv": cv, "refit": refit, "n_jobs": settings.threads}
        search = self.search_class()(estimator, grid.as_parameters(), **options)
        return search.fit(case.X, case.y)

    def held_out(
        self, case: Case, settings: Settings, cv: Any, folds: list[int]
    ) -> list[tuple[NDArray[Any], FloatArray]]:
        splits = list(cv.split(case.X, case.y))
        estimator = self.estimator(case, settings).set_params(decision_function_shape="ovo")
        found = []
        for train, test in (splits[fold] for fold in folds):
            model = estimator.fit(case.X[train], case.y[train])
            values = model.decision_function(case.X[test])
            found.append((model.predict(case.X[test]), smallest(values)))
        return found

    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        return np.asarray(model.predict(X)).astype(case.y.dtype)

    def pairs(self, model: Any, case: Case) -> list[Pair]:
        coef = model.dual_coef_
        coef = coef if isinstance(coef, np.ndarray) else coef.toarray()
        offsets = np.asarray(model.intercept_)
        if case.machine.regression:
            return one_function(model.support_, coef, offsets[0])
        # scikit-learn turns the sign round for two classes only: f > 0 means classes_[1] there.
        sign = -1.0 if len(model.classes_) == 2 else 1.0
        return pairs_of(
            model.classes_, model.support_, model.n_support_, sign * coef, sign * offsets
        )
