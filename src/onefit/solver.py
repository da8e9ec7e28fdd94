"""From problems to solutions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from onefit import _core
from onefit.kernels import NOT_FINITE, Floats

# SciPy carries LAPACK; the core takes what it needs from there.
_core.use_lapack(cython_lapack.__pyx_capi__["dpotrf"], cython_blas.__pyx_capi__["dtrsv"])
_core.use_blas(cython_blas.__pyx_capi__, cython_lapack.__pyx_capi__)


@dataclass(frozen=True)
class Settings:
    """When a solver stops, and on how many threads it works."""

    tol: float = 1e-3
    max_iter: int = -1
    shrinking: bool = True
    threads: int = 1


def solve(
    store: _core.KernelStore,
    problems: Sequence[_core.Problem],
    settings: Settings,
    *,
    forget: bool = False,
    progress: Callable[[float], bool] | None = None,
) -> list[_core.Solution]:
    """Solve every problem on one store of kernel rows, each to a KKT gap below ``tol``.

    With ``forget``, kernel entries are given up as soon as none of these problems needs them.
    ``progress`` is called now and then with the share of the work that is done; when it returns
    True the solutions are what was reached by then.
    """
    with _ClearErrors(store):
        return _core.solve(
            store,
            list(problems),
            tol=settings.tol,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
            threads=settings.threads,
            forget=forget,
            progress=progress,
        )


def solve_parts(
    store: _core.KernelStore,
    problems: Sequence[_core.Problem],
    bounds: Sequence[Floats],
    solutions: Sequence[_core.Solution | None],
    settings: Settings,
    *,
    same_kernel: bool,
    sign_of: Sequence[int | None] = (),
    alone: bool = False,
) -> list[_core.Solution]:
    """Solve every problem with other bounds, one for each row of the store.

    Each starts from a solution of the same variables, or cold; ``same_kernel`` says that the
    gradients of these belong to this store. ``sign_of`` are held-out variables of C-SVC of whose
    values only the signs are asked. ``alone``: no bit of a problem that starts cold, or from its
    own solution, depends on the labels of rows that it holds out.
    """
    with _ClearErrors(store):
        return _core.solve_folds(
            store,
            list(problems),
            list(bounds),
            list(solutions),
            same_kernel=same_kernel,
            tol=settings.tol,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
            threads=settings.threads,
            sign_of=list(sign_of),
            alone=alone,
        )


def solve_together(
    store: _core.KernelStore,
    problems: Sequence[_core.Problem],
    bounds: Floats,
    solutions: Sequence[_core.Solution | None],
    settings: Settings,
    paths: Sequence[_core.FoldPaths | None] | None = None,
) -> _core.FoldSolutions:
    """Solve every problem with the bounds of each fold, a row of ``bounds`` with an entry for each
    row of the store, from a solution of it on this store, or cold. Where there are paths from that
    solution they are followed. Folds that end without a free row are solved cold.
    """
    with _ClearErrors(store), blas_threads(None if paths is None else settings.threads):
        return _core.solve_together(
            store,
            list(problems),
            bounds,
            list(solutions),
            paths=None if paths is None else list(paths),
            tol=settings.tol,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
            threads=settings.threads,
        )


def solve_chains(
    stores: Sequence[_core.KernelStore],
    problems: Sequence[_core.Problem],
    bounds: Sequence[Floats],
    factors: Sequence[Sequence[float]],
    settings: Settings,
    *,
    before: Sequence[tuple[float, Floats, Floats] | None],
    cold: bool = False,
    finished: Callable[[int, int, _core.Solution], bool] | None = None,
) -> list[list[_core.Solution]]:
    """Solve every problem with its bounds times each of its factors in turn, which do not fall.

    A step starts from the one before, scaled, unless all are to start ``cold``; the first from what
    ``before`` has of another: its factor, coefficients and gradients. Rows without a bound have no
    part in it. ``finished`` is given every solution as soon as it is there, with the numbers of its
    chain and step, and stops the work by returning True; then nothing is returned. BLAS starts no
    threads of its own meanwhile.
    """
    with _ClearErrors(stores[0]), blas_threads(1):
        return _core.solve_chains(
            list(stores),
            list(problems),
            list(bounds),
            [list(values) for values in factors],
            list(before),
            tol=settings.tol,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
            threads=settings.threads,
            cold=cold,
            finished=finished,
        )


def solve_on(
    store: _core.KernelStore,
    problem: _core.Problem,
    bounds: Floats,
    factor: float,
    solution: _core.Solution,
    settings: Settings,
) -> _core.Solution:
    """Solve a step of a chain to another tolerance, from its solution."""
    with _ClearErrors(store), blas_threads(1):
        return _core.solve_on(
            store,
            problem,
            bounds,
            factor,
            solution,
            tol=settings.tol,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
            threads=settings.threads,
        )


def solve_cells(
    stores: Sequence[_core.KernelStore],
    problems: Sequence[Sequence[_core.Problem]],
    starts: Sequence[int],
    bounds: Sequence[Floats],
    factors: Sequence[Sequence[float]],
    queries: Sequence[NDArray[np.int32]],
    codes: Sequence[NDArray[np.int32]],
    settings: Settings,
    *,
    share: float,
    tightest: float,
    cold: bool,
    finished: Callable[..., bool],
) -> None:
    """Solve chains of all pairs of classes of a C-SVC as :func:`solve_chains` does.

    For each store, ``finished`` is given the values of its queries in every step, how many of them
    get their class in ``codes``, iterations, whether values are finite, and what did not converge.
    """
    with _ClearErrors(stores[0]), blas_threads(1):
        _core.solve_cells(
            list(stores),
            [list(pairs) for pairs in problems],
            list(starts),
            list(bounds),
            [list(values) for values in factors],
            list(queries),
            list(codes),
            share=share,
            tightest=tightest,
            tol=settings.tol,
            max_iter=settings.max_iter,
            shrinking=settings.shrinking,
            threads=settings.threads,
            cold=cold,
            finished=finished,
        )


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def blas_threads(number: int | None) -> AbstractContextManager[Any]:
    """So many threads for BLAS at most; None leaves it as it is.

    Several solvers that factorise small matrices at once would wait for one another's threads: five
    folds of german.numer on 8 × 8 parameters and two cores took 2.7 s instead of 0.75. Where there
    are no more of them nothing is changed, nor changed back.
    """
    if number is None:
        return nullcontext()
    libraries = _blas().lib_controllers
    if all(library.get_num_threads() <= number for library in libraries):
        return nullcontext()
    limited: AbstractContextManager[Any] = _blas().limit(limits=number)
    return limited


class _ClearErrors:
    """Says of errors of the core what a user can do about them."""

    def __init__(self, store: _core.KernelStore) -> None:
        self._store = store

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, OverflowError):
            raise ValueError(f"{NOT_FINITE} ({error})") from None
        if isinstance(error, MemoryError):
            raise MemoryError(
                f"No memory for the kernel rows of {len(self._store)} samples. Give a smaller "
                "cache_size (in MB)."
            ) from None


def warn_if_unfinished(solutions: Sequence[_core.Solution], settings: Settings) -> bool:
    """Warn, naming the remedy, when a solution did not converge; says whether all did."""
    by_status = {s.status: s for s in solutions if s.status != _core.Status.converged}
    if _core.Status.max_iter in by_status:
        warnings.warn(
            f"Solver terminated early (max_iter={settings.max_iter}).  Consider pre-processing "
            "your data with StandardScaler or MinMaxScaler, or increase max_iter.",
            ConvergenceWarning,
            stacklevel=4,
        )
    if _core.Status.stalled in by_status:
        gap = by_status[_core.Status.stalled].gap
        warnings.warn(
            f"Solver stopped at a KKT gap of {gap:.3g}: tol={settings.tol:g} is below what "
            "rounding allows on these data.  Consider pre-processing your data with "
            "StandardScaler or MinMaxScaler, or increase tol.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return not by_status
