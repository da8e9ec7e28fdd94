"""What scikit-learn asks of a search: every candidate fitted and scored on every fold.

Its ``fit`` hands a list of calls to ``joblib.Parallel``, one for each candidate and fold. Read as
data they say everything: the rows, the folds, the scorer, what to do about errors. A call that
nobody here understands can be made all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from inspect import getclosurevars
from itertools import chain, islice, product, starmap
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split

from onefit.estimators.given import Split
from onefit.kernels import Floats
from onefit.model_selection.splitting import splits_of

# What scikit-learn's ``_fit_and_score`` returns: scores, times, and the error if there was one.
Outcome = dict[str, Any]
Call = tuple[Callable[..., Outcome], tuple[Any, ...], dict[str, Any]]


class Cell(NamedTuple):
    """A candidate on a fold."""

    candidate: int
    fold: int


class PairState(NamedTuple):
    """Where the path of a pair of classes, or of a regression, goes on."""

    converged: bool
    beta: Floats
    gradient: Floats  # NaN of rows that have no part in it


@dataclass(frozen=True)
class Known:
    """Cells that are finished already, and where the paths go on that some of them are of."""

    cells: frozenset[Cell] = frozenset()
    states: Mapping[Cell, list[PairState]] = field(default_factory=dict)

    def of_fold(self, fold: int) -> Known:
        """Those of one fold, numbered as the only one."""
        return Known(
            frozenset(Cell(c.candidate, 0) for c in self.cells if c.fold == fold),
            {Cell(c.candidate, 0): state for c, state in self.states.items() if c.fold == fold},
        )


@dataclass
class Request:
    """All calls of a search, as data."""

    function: Callable[..., Outcome]
    estimator: Any
    X: Any
    y: Any
    options: dict[str, Any]  # of every call: scorer, parameters of fit and score, and so on
    candidates: list[dict[str, Any]]
    splits: list[Split]
    contexts: dict[Cell, Any] = field(default_factory=dict)  # of scikit-learn's callbacks

    @classmethod
    def of(
        cls,
        calls: Iterable[Call],
        candidates: list[dict[str, Any]],
        splits: Sequence[tuple[Any, Any]],
        estimator: Any,
    ) -> tuple[Request | None, Iterator[Call]]:
        """The request, or None where there is nothing to do; and the same calls again.

        Of the calls only the first is made, which clones the estimator.
        """
        calls = iter(calls)
        first = list(islice(calls, 1))
        watched = bool(first) and first[0][2].get("callback_ctx") is not None
        if watched:  # every call brings a context of its own
            first += calls
        again = chain(first, calls)
        if not first or not candidates:
            return None, again
        function, args, options = first[0]
        function = getattr(function, "function", function)  # as joblib is to call it
        folds = [(_numbers(train), _numbers(test)) for train, test in splits]
        request = cls(function, estimator, args[1], args[2], dict(options), candidates, folds)
        if watched:
            every = zip(request.cells, first, strict=True)
            request.contexts = {cell: o["callback_ctx"] for cell, (_, _, o) in every}
        return request, again

    @cached_property
    def cells(self) -> list[Cell]:
        """All of them, in scikit-learn's order."""
        return list(starmap(Cell, product(range(len(self.candidates)), range(len(self.splits)))))

    def option(self, name: str) -> Any:
        return self.options.get(name)

    @property
    def n_cells(self) -> int:
        return len(self.candidates) * len(self.splits)

    def call(self, cell: Cell, estimator: Any = None) -> Outcome:
        """scikit-learn's own call for a cell, with its estimator or one that stands for it."""
        arguments, options = self.arguments(cell, estimator)
        return self.function(*arguments, **options)

    def arguments(
        self, cell: Cell, estimator: Any = None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        train, test = self.splits[cell.fold]
        options = self.options | {
            "train": train,
            "test": test,
            "parameters": self.candidates[cell.candidate],
            "split_progress": (cell.fold, len(self.splits)),
            "candidate_progress": (cell.candidate, len(self.candidates)),
        }
        if "callback_ctx" in options:
            options["callback_ctx"] = self.contexts.get(cell)
        return (clone(self.estimator) if estimator is None else estimator, self.X, self.y), options

    def tell(self, cell: Cell) -> None:
        """Tells scikit-learn's callbacks of a cell that was done without its call."""
        context = self.contexts.get(cell)
        if context is None:
            return
        X, y = _safe_split(self.estimator, self.X, self.y, self.splits[cell.fold][0])
        about = {"estimator": self.options["caller"], "X": X, "y": y}
        weights = (self.options.get("fit_params") or {}).get("sample_weight")
        if weights is not None:
            weights = _safe_indexing(weights, self.splits[cell.fold][0])
        about["metadata"] = None if weights is None else {"sample_weight": weights}
        context.call_on_fit_task_begin(**about)
        context.call_on_fit_task_end(**about)


def _numbers(rows: Any) -> Any:
    """Of rows that are given by their numbers, or by a mask."""
    rows = np.asarray(rows)
    return np.flatnonzero(rows) if rows.dtype == bool else rows


class Folds:
    """A splitter that remembers what it has drawn, as another call may draw other folds."""

    def __init__(self, cv: Any) -> None:
        self.cv = cv
        self.drawn: Sequence[tuple[Any, Any]] = []

    def split(self, X: Any, y: Any = None, **routed: Any) -> Iterator[tuple[Any, Any]]:
        if type(self.cv) is StratifiedKFold and not any(v is not None for v in routed.values()):
            self.drawn = list(splits_of(self.cv, X, y, None, classifier=True))
        else:
            self.drawn = list(self.cv.split(X, y, **routed))
        return iter(self.drawn)


def splitter_of(search: Any, evaluate: Callable[..., Any]) -> Any:
    """The splitter of a search that is being fitted: an attribute, or a name in the closure of its
    ``evaluate_candidates`` before scikit-learn 1.7."""
    if hasattr(search, "_checked_cv_orig"):
        return search._checked_cv_orig
    return getclosurevars(evaluate).nonlocals["cv_orig"]


def with_runner(
    evaluate: Callable[..., Any], run: Callable[[Iterable[Call]], Sequence[Outcome]]
) -> Callable[..., Any]:
    """scikit-learn's ``evaluate_candidates`` with ``run`` in the place of ``joblib.Parallel``.

    It finds that under the name ``parallel`` in its closure. A copy of the function with another
    closure leaves the original as it is; without that name it is returned unchanged, and
    scikit-learn runs all cells itself.
    """
    if not isinstance(evaluate, FunctionType) or "parallel" not in evaluate.__code__.co_freevars:
        return evaluate
    names, cells = evaluate.__code__.co_freevars, evaluate.__closure__ or ()
    closure = tuple(
        CellType(run) if name == "parallel" else cell
        for name, cell in zip(names, cells, strict=True)
    )
    copy = FunctionType(
        evaluate.__code__, evaluate.__globals__, evaluate.__name__, evaluate.__defaults__, closure
    )
    copy.__kwdefaults__ = evaluate.__kwdefaults__
    return copy
