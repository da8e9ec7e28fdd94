"""What scikit-learn asks of a search: every candidate fitted and scored on every fold.

Its ``fit`` hands a list of calls to ``joblib.Parallel``, one for each candidate and fold. Read as
data they say everything: the rows, the folds, the scorer, what to do about errors. A call that
nobody here understands can be made all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onefit.estimators.given import Split

# What scikit-learn's ``_fit_and_score`` returns: scores, times, and the error if there was one.
Outcome = dict[str, Any]
Call = tuple[Callable[..., Outcome], tuple[Any, ...], dict[str, Any]]


class Cell(NamedTuple):
    """A candidate on a fold."""

    candidate: int
    fold: int


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

    @classmethod
    def of(
        cls, calls: Iterable[Call], candidates: list[dict[str, Any]], n_folds: int, estimator: Any
    ) -> tuple[Request | None, Iterator[Call]]:
        """The request, or None where the calls are of another kind; and the same calls again."""
        calls = iter(calls)
        first = list(islice(calls, n_folds))
        again = chain(first, calls)
        if len(first) < n_folds or not candidates:
            return None, again
        function, args, options = first[0]
        function = getattr(function, "function", function)  # as joblib is to call it
        splits = [(np.asarray(o["train"]), np.asarray(o["test"])) for _, _, o in first]
        request = cls(function, estimator, args[1], args[2], dict(options), candidates, splits)
        return request, again

    @property
    def cells(self) -> Iterator[Cell]:
        """All of them, in scikit-learn's order."""
        folds = range(len(self.splits))
        return (Cell(k, fold) for k in range(len(self.candidates)) for fold in folds)

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
        return (clone(self.estimator) if estimator is None else estimator, self.X, self.y), options


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
