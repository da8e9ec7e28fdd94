"""Left-out values against those of the fit on all rows: which rows a model leans on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onefit.kernels import Floats
from onefit.loo.checks import RULES, DecidedBy

if TYPE_CHECKING:
    from onefit.loo.result import LooResult

# The same colour in every picture, by rule; what needed most is drawn last.
COLOURS = dict(zip(RULES, ("0.6", "C4", "C2", "C8", "C0", "C9", "C3", "C5", "k"), strict=True))

# So many rows that move furthest are numbered.
NUMBERED = 5


def draw(result: LooResult, ax: Any) -> None:
    """Draws on axes of matplotlib."""
    full, left_out = _own(result, result.own_values.full), _own(result, result.own_values.left_out)
    known = np.isfinite(left_out)
    for rank, rule in enumerate(result.counts()):
        rows = (result.decided_by == rule) & known
        if not rows.any():
            continue
        doubtful = rule == DecidedBy.DOUBTFUL
        ax.scatter(
            full[rows],
            left_out[rows],
            s=24 if doubtful or rows.sum() < 20 else 12,
            marker="x" if doubtful else "o",
            color=COLOURS.get(rule, f"C{rank}"),
            alpha=0.7,
            linewidths=1 if doubtful else 0,
            label=f"{rule} ({rows.sum():,})",
            zorder=2 + rank,
        )
    ax.axline((0, 0), slope=1, color="0.7", linewidth=1, zorder=0)
    moved = np.where(known, np.abs(full - left_out), 0.0)
    for row in np.argsort(moved)[::-1][:NUMBERED]:
        if moved[row] > 0:
            ax.annotate(
                str(row),
                (full[row], left_out[row]),
                xytext=(4, -8),
                textcoords="offset points",
                fontsize="small",
            )
    what = "value" if not result.classifies else "value on the side of the row's own class"
    if result.classifies:
        limits = ax.get_ylim()
        ax.axhspan(min(0.0, limits[0]), 0.0, color="C3", alpha=0.08, zorder=0)
        ax.set_ylim(limits)
        several = result.decision_values.ndim > 1
        lost = "loses a pair of classes when left out" if several else "misclassified when left out"
        ax.text(0.99, 0.02, lost, color="C3", ha="right", transform=ax.transAxes)
    ax.set_xlabel(f"{what}, by the fit on all rows")
    estimated = " (estimated)" if result._kind() == "estimate" else ""
    ax.set_ylabel(f"{what}, by the fit without it{estimated}")
    missing = int((~known).sum())
    note = f"\n({missing:,} rows settled without a value are not drawn)" if missing else ""
    ax.legend(title=f"settled by{note}", loc="upper left")


def _own(result: LooResult, values: Floats) -> Floats:
    """Of two classes positive on the side of the row's own class, as of several already."""
    if not result.classifies or result.decision_values.ndim > 1:
        return values
    return np.where(result.y == np.unique(result.y)[-1], values, -values)
