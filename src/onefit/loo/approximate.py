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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

from onefit import _core
from onefit.kernels import Floats
from onefit.loo.fits import Fit
from onefit.memory import ALWAYS

# SciPy carries BLAS and LAPACK; the core takes what it needs from there.
_core.use_blas(cython_blas.__pyx_capi__, cython_lapack.__pyx_capi__)

# So many free rows are inverted in single precision, where they are far enough apart.
SINGLE_FROM = 64

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
    is_open: NDArray[np.bool_]  # values that may be on either side, are too small, or not known
    is_known: NDArray[np.bool_]  # of each row; others have to be settled exactly
    is_support: NDArray[np.bool_]  # without the row a fit that is determined may be another
    share: Floats  # of the step at which the first row changes its status; 1: the value is exact
    changes: NDArray[np.int64]  # rows that change their status until the end of the step

    @property
    def sign_in_doubt(self) -> NDArray[np.bool_]:
        """Rows of which some sign may be wrong."""
        return self.is_open.any(axis=1) | ~self.is_known

    def value_in_doubt(self, y: Floats) -> NDArray[np.bool_]:
        """Rows whose value may be wrong by as much as values usually differ from the targets."""
        known = self.is_known
        errors = y[known] - self.values[known, 0]
        typical = np.sqrt(np.mean(errors**2)) if known.any() else 0.0
        wide: NDArray[np.bool_] = (self.high - self.low)[:, 0] > WIDE * typical
        return wide | ~known


def left_out(
    store: _core.KernelStore,
    fits: Sequence[Fit],
    values: Floats | None = None,
    *,
    undecided_below: Sequence[float] | None = None,
    signs_only: bool = False,
    budget_bytes: int = ALWAYS,
) -> Estimates:
    """Left-out values of every row of the store, and how far to trust them.

    ``values`` are those of every row in each of the ``fits``; they may be left out if there is one
    fit. Values smaller than ``undecided_below``, a number for each fit, are open. With
    ``signs_only``, values whose sign is certain without it are not corrected, and their share is 0.
    What is computed besides the inverse of M is computed in blocks of about ``budget_bytes``.
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
        np.zeros(values.shape, dtype=bool),
        np.ones(n, dtype=bool),
        np.zeros(n, dtype=bool),
        np.ones(n),
        np.zeros(n, dtype=np.int64),
    )
    smallest = [0.0] * len(fits) if undecided_below is None else undecided_below
    for number, (fit, least) in enumerate(zip(fits, smallest, strict=True)):
        known = fit.is_determined
        if known:
            known = _core.estimate_left_out(
                store,
                fit.rows,
                fit.values,
                fit.above,
                fit.beta,
                fit.lower,
                fit.upper,
                fit.kink,
                number,
                found.values,
                found.low,
                found.high,
                found.is_open,
                found.is_known,
                found.is_support,
                found.share,
                found.changes,
                undecided_below=least,
                signs_only=signs_only,
                budget_bytes=budget_bytes,
                single_from=SINGLE_FROM,
            )
        if not known:  # the offset is not unique
            rows = fit.rows[fit.takes_part]
            found.is_open[:, number] = np.abs(values[:, number]) < least
            found.is_known[rows], found.is_open[rows, number] = False, True
    return found
