"""Pictures of a search, as scikit-learn's displays are: made from a fitted search, then plotted."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# A picture of cells of which fewer than this share were tried is mostly empty.
SPARSE = 0.25
# Values that go over more than this factor are drawn on a logarithmic scale.
LOG_FROM = 20
SQUARE = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
LONGEST_LABEL = 24


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
        """Draw it, on ``ax`` or in a new figure.

        Values that hardly ever come together, as those of a random search, are points.
        """
        pyplot = _pyplot("GridDisplay.plot()")
        if np.isnan(self.scores).all():
            raise ValueError("There is nothing to draw: no candidate has a score.")
        points = self._are_points()
        if ax is None:
            columns, rows = (10, 9) if points else map(len, self.values)
            # Room for the legend at least, and not more than a screen.
            size = (min(max(5.4, 2.6 + 0.62 * columns), 14.0), min(1.9 + 0.5 * rows, 9.0))
            _, ax = pyplot.subplots(figsize=size, layout="constrained")
        least, most = self._colours()
        how = {"cmap": cmap, "vmin": least, "vmax": most}
        image = self._draw_points(ax, how) if points else self._draw_cells(ax, how)
        below = "min" if np.nanmin(self.scores) < least else "neither"
        ax.figure.colorbar(image, ax=ax, label=f"mean test {self.metric}", extend=below)
        handles = self._mark(ax, points)
        if self.dropped.any():
            patch = pyplot.Rectangle((0, 0), 1, 1, fill=False, hatch="///", edgecolor="0.6")
            patch.set_label("dropped: could not win")
            handles.append(patch)
        if handles:
            above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.3}
            ax.legend(handles=handles, ncols=3, fontsize="small", frameon=False, **above)
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _are_points(self) -> bool:
        """Whether all values are numbers, and most pairs of them are no candidates."""
        numbers = all(isinstance(v, Real) for values in self.values for v in values)
        tried = np.count_nonzero(~np.isnan(self.scores) | self.dropped)
        return numbers and bool(tried < SPARSE * self.scores.size)

    def _draw_cells(self, ax: Any, how: dict[str, Any]) -> Any:
        image = ax.imshow(self.scores, origin="lower", aspect="auto", **how)
        for row, column in np.argwhere(self.dropped):
            corners = [(column + a, row + b) for a, b in SQUARE]
            ax.fill(*zip(*corners, strict=True), fill=False, hatch="///", edgecolor="0.75", lw=0)
        columns, rows = ([_label(v) for v in values] for values in self.values)
        slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(columns)), columns, **slanted)
        ax.set_yticks(range(len(rows)), rows)
        return image

    def _draw_points(self, ax: Any, how: dict[str, Any]) -> Any:
        rows, columns = np.nonzero(~np.isnan(self.scores))
        order = np.argsort(self.scores[rows, columns])  # the best on top
        rows, columns = rows[order], columns[order]
        for scale, values in ((ax.set_xscale, self.values[0]), (ax.set_yscale, self.values[1])):
            scale("log" if min(values) > 0 and max(values) > LOG_FROM * min(values) else "linear")
        for row, column in np.argwhere(self.dropped):
            ax.plot(*self._place((row, column), True), marker="x", color="0.6", linestyle="none")
        x, y = (np.array([float(v) for v in values]) for values in self.values)
        marks = {"s": 70, "edgecolors": "black", "linewidths": 0.4}
        return ax.scatter(x[columns], y[rows], c=self.scores[rows, columns], **marks, **how)

    def _place(self, place: tuple[int, int], points: bool) -> tuple[float, float]:
        """Where a cell is drawn."""
        row, column = place
        return (self.values[0][column], self.values[1][row]) if points else (column, row)

    def _mark(self, ax: Any, points: bool) -> list[Any]:
        """The two choices; what the legend is to show."""
        handles = []
        outlined = {"markeredgecolor": "black", "markeredgewidth": 1.2, "linestyle": "none"}
        if self.best is not None:
            star = {"marker": "*", "markersize": 13, "markerfacecolor": "white", "zorder": 4}
            handles += ax.plot(*self._place(self.best, points), label="best", **star, **outlined)
        if self.best_1se is not None:
            place = self._place(self.best_1se, points)
            ring = {"marker": "o", "markersize": 17, "markerfacecolor": "none", "zorder": 3}
            words = "simplest within one standard error"
            handles += ax.plot(*place, label=words, **ring, **outlined)
            ax.plot(*place, marker="o", markersize=14, markerfacecolor="none", color="white")
        return handles

    def _colours(self) -> tuple[float, float]:
        """Scores of the ends: they tell the better half apart, what is far below looks the same."""
        best, middle = float(np.nanmax(self.scores)), float(np.nanmedian(self.scores))
        least = float(np.nanmin(self.scores))
        if middle < best:
            least = max(least, best - 2.0 * (best - middle))
        return (least, best) if least < best else (best - 0.01, best + 0.01)


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
            inside = share > 0.6
            ax.text(
                share - 0.015 if inside else share + 0.015,
                place,
                f"{paid:,} of {alone:,}",
                va="center",
                ha="right" if inside else "left",
                color="white" if inside else "0.1",
            )
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
    if isinstance(value, Real) and not isinstance(value, bool | np.bool_):
        return f"{float(f'{value:.3g}'):g}"
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
