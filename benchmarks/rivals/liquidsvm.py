"""liquidSVM, which is made for searches: a fit is one fold and a grid of one point.

Its SVM has no offset and its own stopping rule, so it solves another problem.
"""

from __future__ import annotations

import os
import sysconfig
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..case import Case, Matrix, Settings
from ..machines.base import FloatArray
from ..memory import memory_gb
from .base import Grid, Rival

BYTES_PER_ENTRY = 12  # measured: 655 MB for 7,400 rows

# Columns of its table of all fits.
FOLD, LENGTH, LAMBDA, ERROR = 2, 3, 5, 7


@contextmanager
def own_cores() -> Iterator[None]:
    """It binds the thread that calls it to one core, which threads started later inherit: without
    this, whoever takes the next turn would have that core only, whatever number it is told."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


class LiquidSvm(Rival):
    name = "liquidsvm"
    module = "liquidSVM"
    packages = ("liquidSVM",)
    machines = ("c-svc",)
    other_problem = "no offset, own stopping rule"

    def available(self) -> tuple[bool, str]:
        # It finds its library through a configuration variable that newer Pythons do not set.
        variables = sysconfig.get_config_vars()
        if variables.get("SO") is None:
            variables["SO"] = variables.get("EXT_SUFFIX")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pkg_resources is deprecated
            return super().available()

    def refuses(self, case: Case, settings: Settings) -> str | None:
        if reason := super().refuses(case, settings):
            return reason
        if case.sparse:
            return "takes dense data only"
        pair = int(np.sort(np.unique(case.y, return_counts=True)[1])[-2:].sum())
        needed, there = BYTES_PER_ENTRY * pair**2 / 2**30, memory_gb()
        if there is not None and needed > there:
            return f"keeps whole kernel matrices: {needed:.0f} GB, there are {there:.0f} GB"
        return None

    def fit(self, case: Case, settings: Settings) -> Any:
        from liquidSVM import SVM

        model = SVM(
            case.X,
            case.y,
            scenario="MC AvA_hinge",
            gammas=[case.gamma**-0.5],  # its kernel is exp(-|x - z|^2 / gamma^2)
            c_values=[case.parameters["C"]],
            folds=1,
            RETRAIN_METHOD="SELECT_ON_EACH_FOLD",
            threads=settings.threads,
        )
        with own_cores():
            model.train()
            model.select()
        return model

    def search(
        self, case: Case, settings: Settings, cv: Any, grid: Grid
    ) -> tuple[FloatArray, dict[str, float]]:
        """Its own search with as many folds, which it draws itself."""
        model = self._model(case, settings, cv, grid)
        # Lines of folds, gammas and costs, the last changing fastest.
        with own_cores():
            errors = np.asarray(model.train())[:, ERROR]
        scores = 1.0 - errors.reshape(-1, len(grid.gamma), len(grid.C)).mean(axis=0)
        g, c = np.unravel_index(int(scores.argmax()), scores.shape)
        return scores.T.ravel(), {"C": grid.C[c], "gamma": grid.gamma[g]}

    def chosen(self, case: Case, settings: Settings, cv: Any, grid: Grid) -> Any:
        """Its own search; then, as is its default, the best model of each fold has a vote."""
        model = self._model(case, settings, cv, grid)
        with own_cores():
            model.train()
            model.select()
        return model

    def own_grid(self, case: Case, settings: Settings, cv: Any) -> Grid:
        """Return the values that it takes when it is not told any, in terms of C and gamma.

        It minimises lambda |f|^2 plus the mean of the losses, which is an SVM with
        C = 1 / (2 lambda n) on n rows. Its lambdas follow the size of a fold, which may be one row
        more or less.
        """
        with own_cores():
            table = np.asarray(self._model(case, settings, cv, None).train())
        table = table[table[:, FOLD] == 0]
        n = case.rows * (1 - 1 / cv.get_n_splits())
        C = 1 / (2 * n * np.unique(table[:, LAMBDA]))
        gamma = np.unique(table[:, LENGTH]) ** -2.0
        return Grid(sorted(C.tolist()), sorted(gamma.tolist()))

    def _model(self, case: Case, settings: Settings, cv: Any, grid: Grid | None) -> Any:
        from liquidSVM import SVM

        values: dict[str, list[float]] = {}
        if grid is not None:
            lengths = [gamma**-0.5 for gamma in grid.gamma]
            values = {"gammas": lengths, "c_values": grid.C}
        return SVM(
            case.X,
            case.y,
            scenario="MC AvA_hinge",
            folds=cv.get_n_splits(),
            threads=settings.threads,
            **values,
        )

    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        # Its predict makes up labels of zero and then refuses them for two classes -1 and 1.
        made_up = np.resize(np.unique(case.y), X.shape[0])
        with own_cores():
            labels, _ = model.test(X, made_up)
        return np.asarray(labels[:, 0]).astype(case.y.dtype)


RIVAL = LiquidSvm()
