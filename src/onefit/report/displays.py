"""Pictures of a search, as scikit-learn's displays are: made from a fitted search, then plotted."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


@dataclass
class GridDisplay:
    """Mean scores over two parameters, with the best and the one-standard-error choice marked.

    Made by :meth:`from_search`. Where a search has more parameters a cell shows the best score over
    the others. Candidates that were dropped before all of their folds were done are hatched.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    names: tuple[str, str]  # of the parameters: along x, along y
    values: tuple[list[Any], list[Any]]
    scores: NDArray[
        np.float64
    ]  # of shape (values along y, values along x); NaN where there is none
    dropped: NDArray[np.bool_]
    best: tuple[int, int] | None  # row and column
    best_1se: tuple[int, int] | None
    metric: str

    @classmethod
    def from_search(
        cls, search: Any, *, x: str | None = None, y: str | None = None, metric: str | None = None
    ) -> Self:
        """The display of a fitted search.

        Parameters
        ----------
        search : GridSearchCV or RandomizedSearchCV
            Fitted; scikit-learn's, too.
        x, y : str, default=None
            Parameters of the candidates; by default the two with most numbers to choose from.
        metric : str, default=None
            With several scorers the name of one; by default the one of ``refit``.
        """
        results = search.cv_results_
        if metric is None:
            metric = search.refit if isinstance(search.refit, str) else "score"
        if f"mean_test_{metric}" not in results:
            allowed = ", ".join(repr(key[10:]) for key in results if key.startswith("mean_test_"))
            raise ValueError(f"metric must be one of {allowed}; got {metric!r}.")
        names = _two_names(results["params"], x, y)
        columns, rows = (_values(results["params"], name) for name in names)
        means = results[f"mean_test_{metric}"]
        scores = np.full((len(rows), len(columns)), np.nan)
        dropped = np.zeros(scores.shape, dtype=bool)
        places = [
            (_place(rows, params.get(names[1])), _place(columns, params.get(names[0])))
            for params in results["params"]
        ]
        marks = results.get("dropped", np.zeros(len(means), dtype=bool))
        for place, mean, mark in zip(places, means, marks, strict=True):
            scores[place] = np.fmax(scores[place], mean)
            dropped[place] |= bool(mark)
        best, simple = (getattr(search, f"best_index_{kind}", None) for kind in ("", "1se_"))
        return cls(
            names,
            (columns, rows),
            scores,
            dropped & np.isnan(scores),
            None if best is None else places[best],
            None if simple is None else places[simple],
            metric,
        )

    def plot(self, ax: Any = None, *, cmap: str = "viridis") -> Self:
        """Draw it, on ``ax`` or in a new figure."""
        pyplot = _pyplot("GridDisplay.plot()")
        if ax is None:
            columns, rows = map(len, self.values)
            size = (2.6 + 0.62 * columns, 1.8 + 0.5 * rows)
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        least = self._least_colour()
        image = ax.imshow(self.scores, origin="lower", aspect="auto", cmap=cmap, vmin=least)
        below = "min" if np.nanmin(self.scores) < least else "neither"
        ax.figure.colorbar(image, ax=ax, label=f"mean test {self.metric}", extend=below)
        for row, column in np.argwhere(self.dropped):
            cell = pyplot.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, linewidth=0)
            cell.set(hatch="///", edgecolor="0.75")
            ax.add_patch(cell)
        outlined = {"markeredgecolor": "black", "markeredgewidth": 1.2, "linestyle": "none"}
        if self.best_1se is not None:
            row, column = self.best_1se
            ring = {"marker": "o", "markersize": 17, "markerfacecolor": "none"}
            ax.plot(column, row, label="within one standard error, simplest", **ring, **outlined)
            ax.plot(column, row, marker="o", markersize=14, markerfacecolor="none", color="white")
        if self.best is not None:
            row, column = self.best
            star = {"marker": "*", "markersize": 13, "markerfacecolor": "white"}
            ax.plot(column, row, label="best", **star, **outlined)
        if self.dropped.any():
            patch = pyplot.Rectangle((0, 0), 1, 1, fill=False, hatch="///", edgecolor="0.6")
            patch.set_label("dropped: could not win")
            handles, _ = ax.get_legend_handles_labels()
            ax.legend(handles=[*handles, patch], loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        elif self.best is not None:
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        ax.set_xticks(range(len(self.values[0])), [_label(v) for v in self.values[0]], rotation=45)
        ax.set_yticks(range(len(self.values[1])), [_label(v) for v in self.values[1]])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _least_colour(self) -> float:
        """Colours tell the better half apart: what is far below it looks the same."""
        best, middle = np.nanmax(self.scores), np.nanmedian(self.scores)
        return float(max(np.nanmin(self.scores), best - 2.0 * (best - middle)))


@dataclass
class LedgerDisplay:
    """What each kind of reuse of a search saved: what was paid, beside what it would have been.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    """

    paid: dict[str, tuple[int, int]]  # by kind: paid, and without reuse

    @classmethod
    def from_search(cls, search: Any) -> Self:
        """The display of a fitted search of onefit."""
        if not hasattr(search, "ledger_"):
            raise ValueError("Only a fitted search of onefit, of its own estimators, has a ledger.")
        return cls({name: pair for name, pair in search.ledger_.saved().items() if pair[1] > 0})

    def plot(self, ax: Any = None) -> Self:
        """Draw it, on ``ax`` or in a new figure."""
        pyplot = _pyplot("LedgerDisplay.plot()")
        if ax is None:
            size = (7.0, 1.2 + 0.55 * len(self.paid))
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        for place, (paid, alone) in enumerate(self.paid.values()):
            share = paid / alone
            ax.barh(place, 1.0, color="0.9", height=0.6)
            ax.barh(place, share, color="C0", height=0.6)
            text = f"{paid:,} of {alone:,}"
            ax.text(min(share, 0.6) + 0.015, place, text, va="center", color="0.1")
        ax.set_yticks(range(len(self.paid)), list(self.paid))
        ax.invert_yaxis()
        ax.set(xlim=(0, 1), xlabel="share that was paid (grey: saved)")
        for side in ("top", "right", "left"):
            ax.spines[side].set_visible(False)
        ax.tick_params(left=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _pyplot(who: str) -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(f"{who} needs matplotlib: pip install 'onefit[plot]'") from error
    return pyplot


def _two_names(params: list[dict[str, Any]], x: str | None, y: str | None) -> tuple[str, str]:
    """The parameters along x and y."""
    names = list(dict.fromkeys(name for candidate in params for name in candidate))
    for given in (x, y):
        if given is not None and given not in names:
            allowed = ", ".join(map(repr, names))
            raise ValueError(f"x and y must be parameters of the search: {allowed}; got {given!r}.")

    def numbers(name: str) -> int:
        return sum(isinstance(value, Real) for value in _values(params, name))

    free = sorted((name for name in names if name not in (x, y)), key=numbers, reverse=True)
    if len(free) < (x is None) + (y is None):
        raise ValueError(f"A picture of a grid needs two parameters; the search has {names}.")
    x = free.pop(0) if x is None else x
    return x, free.pop(0) if y is None else y


def _values(params: list[dict[str, Any]], name: str) -> list[Any]:
    """What a parameter was, numbers first and in their order; None where it was not set."""
    found: list[Any] = []
    for candidate in params:
        value = candidate.get(name)
        if not any(value is other or value == other for other in found):
            found.append(value)
    return sorted(found, key=lambda v: (not isinstance(v, Real), v if isinstance(v, Real) else 0.0))


def _place(values: list[Any], value: Any) -> int:
    return next(k for k, other in enumerate(values) if value is other or value == other)


def _label(value: Any) -> str:
    return f"{float(f'{value:.3g}'):g}" if isinstance(value, Real) else str(value)
