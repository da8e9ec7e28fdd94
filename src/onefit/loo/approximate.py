r"""Approximate leave-one-out: left-out values of all rows from one fit.

A fit is the optimum of :math:`\tfrac12 \beta^\top K \beta - p^\top \beta + \epsilon \|\beta\|_1`
with :math:`l \le \beta \le u` and :math:`\sum \beta` fixed. Let a coefficient go to 0 while the
free rows V keep their values, and the others their coefficients. With
:math:`M = [0\ 1^\top;\ 1\ K_{VV}]` and :math:`\kappa_i = [1; K_{Vi}]` the value at row i moves by

.. math::

    -\beta_i S_{ii}, \qquad S_{ij} = K_{ij} - \kappa_i^\top M^{-1} \kappa_j,
    \qquad S_{ii} = 1 / (M^{-1})_{ii} \text{ for a free row,}

the coefficients of V by :math:`\beta_i M^{-1} \kappa_i`, and the value at row j by
:math:`-\beta_i S_{ij}`. This is the left-out value, exactly, as long as no other row changes its
status: no free coefficient meets a bound, no other row meets the edge where it would become free.

Rows that do are known from the same numbers, and so is what each does on its own from then on, with
the share :math:`t` of the step that was gone by: a row v that leaves V adds
:math:`(1-t)(M^{-1}\kappa_i)_v^2 / (M^{-1})_{vv}` to :math:`S_{ii}`, and a row j that joins it takes
the part :math:`(1-t) S_{ij}^2 / (S_{ii} S_{jj})` of it away. This corrects the estimate, and says
how far it can be trusted. Where the other free rows have no room for the coefficient at all they
end at bounds, every one, and the offset leaps until the next row becomes free.

ν-SVC and ν-SVR are taken for the C-SVC and the ε-SVR that they are equivalent to. The estimate is
for this C or ε, not for ν.

Zhou & Xu, "Approximate leave-one-out with kernel SVM", 2019, without an offset and without the
correction. On V it is the span rule of Vapnik & Chapelle, Neural Computation 12(9), 2000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onefit import _core
from onefit.kernels import Floats
from onefit.loo.fits import Fit, Indices
from onefit.loo.free_set import ROUNDING, FreeSet, Reals, Singles, blocks
from onefit.memory import ALWAYS

# What rows that change their status do is put together as if each were the only one. Taken once,
# the range misses the values of 6.4 % of the support vectors (mean of 24 cases; 23 % at most), and
# taken twice of 1.6 % (13 %).
CAUTION = 2.0

# Where signs are enough, and many rows may become free, this part of them is looked at first, those
# of the least slack, and the others for rows only whose side is not certain yet.
FIRST = 0.25
MANY = 1000

# A value of a regression is in doubt if its range is wider than this share of the typical error:
# the error of others was at most 0.23 of it on 12 cases, and 0.52 with a share of 0.5.
WIDE = 0.25


@dataclass(frozen=True)
class Estimates:
    """What is known of the value of each row without it, of shape (n_rows, n_problems).

    Problems that a row is no part of give the fit's own value.
    """

    values: Floats
    low: Floats  # where the value is likely to lie
    high: Floats
    is_known: NDArray[np.bool_]  # of each row; others have to be settled exactly
    share: Floats  # of the step at which the first row changes its status; 1: the value is exact
    changes: NDArray[np.intp]  # rows that change their status until the end of the step

    @property
    def has_both_signs(self) -> NDArray[np.bool_]:
        """Values that may be on either side, of shape (n_rows, n_problems)."""
        both: NDArray[np.bool_] = (self.low <= 0) & (self.high >= 0) & (self.low < self.high)
        return both

    @property
    def sign_in_doubt(self) -> NDArray[np.bool_]:
        """Rows of which some sign may be wrong."""
        return self.has_both_signs.any(axis=1) | ~self.is_known

    def value_in_doubt(self, y: Floats) -> NDArray[np.bool_]:
        """Rows whose value may be wrong by as much as values usually differ from the targets."""
        known = self.is_known
        errors = y[known] - self.values[known, 0]
        typical = np.sqrt(np.mean(errors**2)) if known.any() else 0.0
        wide: NDArray[np.bool_] = (self.high - self.low)[:, 0] > WIDE * typical
        return wide | ~known


def left_out(
    store: _core.KernelStore,
    diagonal: Floats,
    fits: Sequence[Fit],
    values: Floats | None = None,
    *,
    signs_only: bool = False,
    budget_bytes: int = ALWAYS,
) -> Estimates:
    """Left-out values of every row of the store, and how far to trust them.

    ``diagonal`` has the kernel entries k(x, x) of the rows, and ``values`` the values of every row
    in each of the ``fits``; they may be left out if there is one fit. With ``signs_only``, values
    whose sign is certain without it are not corrected, and their share is 0. What is computed
    besides the inverse of M is computed in blocks of about ``budget_bytes``.
    """
    n = len(store)
    if values is None:
        [fit] = fits
        values = np.full((n, 1), np.nan)
        values[fit.rows, 0] = fit.values
    found = Estimates(
        values.copy(),
        values.copy(),
        values.copy(),
        np.ones(n, dtype=bool),
        np.ones(n),
        np.zeros(n, dtype=np.intp),
    )
    for number, fit in enumerate(fits):
        if fit.is_determined and fit.is_free.any():
            support = _Support(
                store, diagonal, fit, signs_only=signs_only, budget_bytes=budget_bytes
            )
            _estimate(support, fit, number, found)
            found.is_known[fit.rows[support.is_lost]] = False
        else:  # the offset is not unique
            found.is_known[fit.rows[fit.takes_part]] = False
    return found


class _Support:
    """The rows of a fit whose coefficient is not 0, or which are free, on their way out."""

    def __init__(
        self,
        store: _core.KernelStore,
        diagonal: Floats,
        fit: Fit,
        *,
        signs_only: bool,
        budget_bytes: int,
    ) -> None:
        is_free = fit.is_free
        self.free = np.flatnonzero(is_free)
        self.others = np.flatnonzero((fit.beta != 0) & ~is_free)
        self.numbers = np.concatenate((self.free, self.others))
        self.beta = fit.beta[self.numbers]
        n = len(self.numbers)
        self.span = np.empty(n)  # S of each row with itself
        self.added = np.zeros(n)  # to the span, by rows that leave the free ones
        self.kept = np.zeros(n)  # the logarithm of what rows that join them leave of it
        self.share = np.ones(n)
        self.changes = np.zeros(n, dtype=np.intp)
        self._store, self._fit, self._rows = store, fit, fit.rows
        self._diagonal, self._budget_bytes = diagonal[fit.rows], budget_bytes
        self._all_values = not signs_only
        self._members = FreeSet(self._entries(self.free, self.free))
        own = self._members.inverse.diagonal().astype(np.float64)
        self._own = np.where(own > 0, own, np.inf)  # or nothing can take the place of the row
        self._follow_free()
        self._follow_others()
        left = len(self.free) - self.changes - (np.arange(n) < len(self.free))
        # Without a free row there is no step; nor with a kernel that is not positive semidefinite.
        lost = (left <= 0) | (self.span < -10 * self._members.noise * self._diagonal[self.numbers])
        lost[: len(self.free)] |= np.isinf(self._own)
        self.is_lost = self.numbers[lost]
        self.leap = CAUTION * self._leaps()
        self.is_met = self.beta != 0  # by rows that become free, as far as it is known
        if signs_only:
            values = fit.values[self.numbers]
            farthest = self.farthest(values, np.maximum(self.span, 0.0))
            self.is_met &= values * farthest <= 0
            self.share[~self.is_met] = 0.0
        self._meet_rows(np.flatnonzero(self.is_met))

    def farthest(self, values: Floats, span: Floats) -> Floats:
        """Where values end at most."""
        steps: Floats = self.beta * (span + CAUTION * self.added) + np.sign(self.beta) * self.leap
        return values - steps

    def _leaps(self) -> Floats:
        """How far the offset leaps where the other free rows have no room for a coefficient.

        They all end at bounds then, and values move until the next row becomes free.
        """
        n_free = len(self.free)
        room = self._fit.room(self.free)
        with np.errstate(invalid="ignore"):  # room without end, less its own
            fall, rise = (np.full(len(self.numbers), way.sum()) for way in room)
            fall[:n_free] -= room[0]
            rise[:n_free] -= room[1]
        has_room = np.where(self.beta > 0, rise, fall) > np.abs(self.beta) * (1 + ROUNDING)
        if has_room.all():
            return np.zeros(len(self.numbers))
        rest = np.flatnonzero(self._fit.takes_part & ~self._fit.is_free)
        down, up = (slack.min(initial=np.inf) for slack in self._fit.slack(rest))
        return np.where(has_room | (self.beta == 0), 0.0, np.where(self.beta > 0, down, up))

    def _entries(self, rows: Indices, columns: Indices) -> Singles:
        return self._store.block(self._rows[rows], self._rows[columns])

    def _at_a_time(self, columns: int) -> int:
        """Rows of which a few arrays with so many columns are kept at a time."""
        return max(16, self._budget_bytes // (64 * columns))

    def _follow_free(self) -> None:
        """How the other free rows follow one of them."""
        inverse, own = self._members.inverse, self._own
        self.span[: len(own)] = 1.0 / own
        for places in _numbers(len(own), self._at_a_time(len(own))):
            per_unit = (-self.beta[places] / own[places])[:, None].astype(self._members.precision)
            step = inverse[places] * per_unit
            step[np.arange(len(places)), places] = 0.0  # the row itself is gone
            self._meet_bounds(places, step)

    def _follow_others(self) -> None:
        """How the free rows follow one that is at a bound."""
        members, first = self._members, len(self.free)
        for some in _numbers(len(self.others), self._at_a_time(first)):
            rows = self.others[some]
            kernel = self._entries(rows, self.free).astype(members.precision, copy=False)
            per_unit = kernel @ members.inverse
            per_unit += members.border.astype(members.precision)
            explained = np.einsum("ij,ij->i", kernel, per_unit)
            shift = kernel @ members.border + members.corner
            self.span[first + some] = self._diagonal[rows] - explained - shift
            per_unit *= self.beta[first + some, None].astype(members.precision)
            self._meet_bounds(first + some, per_unit)

    def _meet_bounds(self, places: Indices, step: Reals) -> None:
        """Note which coefficients of free rows meet a bound in the steps of these rows."""
        fall, rise = self._fit.room(self.free)
        almost = 1.0 - ROUNDING  # of two free rows the other ends at its bound, up to rounding
        most, least = ((almost * way).astype(step.dtype) for way in (rise, -fall))
        who, which = np.nonzero((step > most) | (step < least))
        moved = step[who, which].astype(np.float64)
        share = np.minimum(np.where(moved > 0, rise[which], fall[which]) / np.abs(moved), 1.0)
        per_unit, width = moved / self.beta[places[who]], self._own[which]
        if len(places) and places[0] < len(self.free):  # which are not among the free any more
            width = width - per_unit**2 * self._own[places[who]]
        width = np.where(width > 0, width, np.inf)  # of the last that is left
        self._note(places, who, share, self.added, (1.0 - share) * per_unit**2 / width)

    def _meet_rows(self, places: Indices) -> None:
        """Note which rows that are not free would become so as some of these rows leave."""
        rest = np.flatnonzero(self._fit.takes_part & ~self._fit.is_free)
        # S_ij² is at most S_ii S_jj, and S_jj the squared distance to any free row, of which one
        # may be leaving: a row moves others no further than its reach times that distance.
        reach = np.abs(self.beta) * np.sqrt(np.maximum(self.span, 0.0))
        lengths = np.sqrt(np.maximum(self._diagonal, 0.0))
        to_free = np.sort(lengths[self.free])[:2].max()
        slack = np.minimum(*self._fit.slack(rest)) / np.maximum(lengths[rest] + to_free, ROUNDING)
        near = slack < reach[places].max(initial=0.0)
        rest, slack = rest[near], slack[near]
        if self._all_values or len(rest) < MANY:
            self._meet_some(places, rest)
            return
        first = slack <= np.quantile(slack, FIRST)
        self._meet_some(places, rest[first])
        places = self._not_lost_yet(places)
        near = slack < reach[places].max(initial=0.0)
        self._meet_some(places, rest[~first & near])

    def _meet_some(self, places: Indices, rest: Indices) -> None:
        """Note which of these rows would become free."""
        most = max(64, self._budget_bytes // (8 * len(self.free)))
        for columns in (rest[block] for block in blocks(len(rest), most)):
            if len(places) == 0:
                return
            kernel = self._entries(self.free, columns)
            widths = np.full(len(columns), np.nan)  # S of each column, when it is needed
            for block in blocks(len(places), self._at_a_time(len(columns))):
                some = places[block]
                self._meet(some, columns, kernel, self._between(some, columns, kernel), widths)

    def _not_lost_yet(self, places: Indices) -> Indices:
        """Those that rows of larger slack may keep on their side.

        The others would fall to the other side even if these did as much as what has been seen, and
        need not be followed any further.
        """
        values = self._fit.values[self.numbers[places]]
        kept = np.exp(2 * CAUTION * self.kept[places])
        undecided = values * (values - self.beta[places] * self.span[places] * kept) > 0
        self.share[places[~undecided]] = 0.0
        return places[undecided]

    def _between(self, places: Indices, columns: Indices, kernel: Singles) -> Singles:
        """S of rows with columns, whose entries with the free rows are given.

        There are most of these, and what counts as a change need not be exact: single precision.
        """
        members = self._members
        free = places[places < len(self.free)]
        others = self.numbers[places[len(free) :]]
        own = self._own[free, None]
        entries = self._entries(others, self.free).astype(members.precision, copy=False)
        shift = entries @ members.border + members.corner
        per_unit = np.empty((len(places), len(self.free)), dtype=np.float32)
        np.divide(members.inverse[free], own, out=per_unit[: len(free)], casting="same_kind")
        per_unit[len(free) :] = -(entries @ members.inverse) - members.border
        between: Singles = per_unit @ kernel
        between[: len(free)] += (members.border[free, None] / own).astype(np.float32)
        between[len(free) :] += self._entries(others, columns)
        between[len(free) :] -= shift[:, None].astype(np.float32)
        return between

    def _meet(
        self,
        places: Indices,
        columns: Indices,
        kernel: Singles,
        between: Singles,
        widths: Floats,
    ) -> None:
        """Note which of the columns become free as these rows leave; S of both is ``between``."""
        fall, rise = (slack.astype(np.float32) for slack in self._fit.slack(columns))
        beta = self.beta[places]
        falls = between * beta[:, None].astype(np.float32)
        who, which = np.nonzero((falls > fall) | (falls < -rise))
        fallen = falls[who, which].astype(np.float64)
        room = np.where(fallen > 0, fall[which], rise[which])
        noise = self._members.noise * np.abs(beta[who]) * self._diagonal[columns[which]]
        is_other = self.numbers[places][who] != columns[which]
        real = is_other & (np.abs(fallen) > room + noise)
        who, which, share = who[real], which[real], room[real] / np.abs(fallen[real])
        self._find_widths(columns, np.unique(which), kernel, widths)
        squares = between[who, which].astype(np.float64) ** 2
        free = places[places < len(self.free)]
        own = np.zeros(len(places))
        own[: len(free)] = self._own[free]  # the leaving of a free row makes the others wider
        # No more than all of the span: S_ij² is at most S_ii S_jj.
        whole = self.span[places][who] * (widths[which] + squares * own[who])
        part = np.divide(squares, whole, out=np.ones_like(whole), where=squares < whole)
        kept = np.log(np.maximum(1.0 - (1.0 - share) * part, ROUNDING))
        self._note(places, who, share, self.kept, kept)

    def _find_widths(
        self, columns: Indices, which: Indices, kernel: Singles, widths: Floats
    ) -> None:
        """Find S of some of the columns with themselves, unless they are there already."""
        which = which[np.isnan(widths[which])]
        members = self._members
        entries = kernel[:, which].astype(members.precision, copy=False)
        per_unit = members.inverse @ entries
        explained = np.einsum("ij,ij->j", entries, per_unit)
        # Border and corner: twice the part of the offset, as it is in both.
        shift = 2.0 * (members.border @ entries) + members.corner
        widths[which] = self._diagonal[columns[which]] - explained - shift

    def _note(
        self, places: Indices, who: Indices, share: Floats, effects: Floats, effect: Floats
    ) -> None:
        """Note changes of status at these shares of the steps of rows, and what they do."""
        np.minimum.at(self.share, places[who], share)
        self.changes[places] += np.bincount(who, minlength=len(places))
        effects[places] += np.bincount(who, effect, minlength=len(places))


def _estimate(support: _Support, fit: Fit, number: int, found: Estimates) -> None:
    """Write down what the rows of a fit find on their way out."""
    rows, beta, values = fit.rows[support.numbers], support.beta, fit.values[support.numbers]
    span, added, kept = np.maximum(support.span, 0.0), support.added, support.kept
    # Rows that leave, one after another, add less than the sum of what each would.
    likely = np.where(support.is_met, (span + np.minimum(added, span)) * np.exp(kept), span)
    # Until the first change the span is what it is, and afterwards it is never negative.
    least = np.maximum(support.share * span, support.is_met * span * np.exp(CAUTION * kept))
    ends = values - beta * least, support.farthest(values, span)
    found.values[rows, number] = values - beta * likely
    found.low[rows, number], found.high[rows, number] = np.minimum(*ends), np.maximum(*ends)
    found.share[rows] = np.minimum(found.share[rows], support.share)
    found.changes[rows] += support.changes


def _numbers(n: int, size: int) -> Iterator[Indices]:
    """The numbers below n, so many at a time."""
    return (np.arange(block.start, block.stop) for block in blocks(n, size))
