r"""Folds by following the optimum of all rows while the rows of a fold leave.

While the same rows are free the conditions of the optimum are linear, so that it moves in straight
lines as the coefficients that leave go to 0, all at the same pace; a row becomes free or stops
being so at every corner (core/path.hpp). One matrix of the fit on all rows serves all folds
(core/fold_paths.hpp), and the few corners of a path take less time than the hundreds of iterations
that a solver needs from the next best start.

What a path leads to is checked like any other solution, by its gradient and the conditions of all
rows; where rounding or a row that was far from being free have left a gap, the solver goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onefit import _core
from onefit.kernels import Floats
from onefit.solver import Settings, blas_threads

# The fit on all rows is solved to this share of the tolerance: ends of paths are as good as it is.
TIGHTER = 0.1

# A smaller KKT gap needs entries in double precision, which the solver has.
LEAST_TOL = 1e-5

# Of what the store's budget leaves, matrices may take this share.
SHARE_OF_SPARE = 0.5

# The matrix may take so many products for each variable that the iterations of the folds would look
# at, if each took as many as the fit on all rows: those of a matrix are made several at a time.
PRODUCTS_PER_LOOK = 4


def can_follow(settings: Settings) -> bool:
    """Whether paths are of use at this tolerance, and nobody counts iterations."""
    return settings.tol >= LEAST_TOL and settings.max_iter < 0


def tighter(settings: Settings) -> Settings:
    """How the fit on all rows is solved."""
    return replace(settings, tol=settings.tol * TIGHTER) if can_follow(settings) else settings


class FollowedFolds:
    """Paths from the fit on all rows, for each of its problems."""

    def __init__(
        self,
        store: _core.KernelStore,
        fitted: Mapping[int, tuple[_core.Problem, _core.Solution]],
        n_folds: int,
        settings: Settings,
        memory: _core.PathMemory,
    ) -> None:
        self.store = store
        self._settings, self._memory = settings, memory
        self._n_folds = n_folds
        self._fitted = fitted if can_follow(settings) else {}
        self._paths: dict[int, _core.FoldPaths] = {}

    def paths(self, number: int) -> _core.FoldPaths | None:
        """Those of a problem, if there are any."""
        if number not in self._fitted:
            return None
        if number not in self._paths:
            with blas_threads(self._settings.threads):
                self._paths[number] = self._paths_of(*self._fitted[number])
        return self._paths[number]

    def ends(self, number: int, bounds: Sequence[Floats]) -> list[_core.Solution | None]:
        """Where the paths of a problem end with the bounds of each fold, if they do."""
        paths = self.paths(number)
        if paths is None:
            return [None] * len(bounds)
        with blas_threads(self._settings.threads):
            return paths.ends(list(bounds), self._settings.tol, self._settings.threads)

    def _paths_of(self, problem: _core.Problem, solution: _core.Solution) -> _core.FoldPaths:
        looks = self._n_folds * solution.n_iter * len(problem)
        return _core.FoldPaths(
            self.store,
            problem,
            solution,
            bytes=int(SHARE_OF_SPARE * self.store.spare_bytes / len(self._fitted)),
            products=float(PRODUCTS_PER_LOOK * looks),
            memory=self._memory,
        )
