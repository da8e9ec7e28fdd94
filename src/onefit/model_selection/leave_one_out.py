"""``leave_one_out``: every row predicted by a fit to all others."""

from __future__ import annotations

from typing import Any

from onefit.estimators.base import KernelMachine
from onefit.estimators.smooth import SmoothMachine
from onefit.loo.answers import approximate_result, bound_result, exact_result, needs_values
from onefit.loo.exact import LeaveOneOutFit
from onefit.loo.left_out import Proofs
from onefit.loo.result import LooResult
from onefit.model_selection.smooth_left_out import smooth_leave_one_out

METHODS = ("exact", "approximate", "bound")
PROOFS = {"auto": Proofs.WHERE_THEY_PAY, True: Proofs.ALL, False: Proofs.NONE}
SEEDINGS = ("auto", "none", "avg", "top")


def leave_one_out(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    method: str = "exact",
    seeding: str = "auto",
    certify: bool | str = "auto",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> LooResult:
    """Predict every row by a fit to all others, without n fits.

    Most rows are settled by the fit on all rows: without a row that is no support vector it stays
    what it is, and of many others it proves on which side they fall (:mod:`onefit.loo.checks`). The
    rest are solved from that fit, on the same kernel rows. Predictions are those of n fits.

    Rows are settled without a solver where leaving one out changes nothing but that row: with
    ``SVC`` and ``SVR``. With ``NuSVC`` and ``NuSVR``, and with ``class_weight="balanced"``, every
    left-out problem is another one, solved from the full fit on the same kernel rows. With
    ``gamma="scale"`` each has a kernel of its own, too: n times the entries of its support vectors,
    from shared distances ("rbf") or from the data. A number for ``gamma``, or "auto", is far
    faster.

    ``method="approximate"`` estimates every value from the fit on all rows, in a fraction of its
    time, and says of which rows the estimate is in doubt; ``refine()`` of its result settles these
    exactly (:mod:`onefit.loo.approximate` has the derivation). The estimate leaves all but the row
    as it is: with ``gamma="scale"`` the kernel, with ``class_weight="balanced"`` the weights, and
    with ν the equivalent C or ε are those of the fit on all rows.

    Values that are asked (``certify=False``, and always in regression) are those of the optimum,
    not of some point within ``tol`` of it: what a solver leaves undone leans to a side that depends
    on the label of the row that is left out, and ROC curves of such values are biased. They are
    right to about 1e-7 with up to 2,896 rows (1,448 with ``NuSVR``), whose kernel is evaluated in
    double precision, and beyond to what float32 entries of the kernel allow; digits that are not
    known are rounded away, so that rows of equal value have equal numbers. A value of 0 is a tie,
    and a prediction of the second class of its pair, as in LIBSVM.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, SmoothSVC or SmoothSVR
        One of ours. It is not changed. Of a smooth machine rows are left out by updates of the fit
        to all rows, exactly (``method="exact"``), or by one Newton step from it, which is exact for
        rows without which no other becomes or ceases to be a support vector (``"approximate"``);
        ``seeding`` and ``certify`` are not used.
    X, y
        As in its ``fit``.
    method : {"exact", "approximate", "bound"}, default="exact"
        "approximate" gives an estimate for every row, from one fit. "bound" takes that fit alone,
        too: rows that it does not settle count as errors, so that the error is at least the exact
        one. For ``SVC`` with a number, or "auto", for ``gamma`` and without
        ``class_weight="balanced"``.
    seeding : {"auto", "none", "avg", "top"}, default="auto"
        Where left-out problems start, also those of ``refine()``: from nothing, or from the fit on
        all rows with what leaves spread over the free rows ("avg") or given to the most similar one
        ("top"). "auto" follows the optimum from that fit, where leaving a row out changes nothing
        else (:mod:`onefit.loo.paths`), and is "avg" elsewhere. It never changes the answer.
    certify : {"auto", True, False}, default="auto"
        Whether a proof of the side that a row falls on is enough. "auto": rows are settled by what
        the fit on all rows proves, and solves end early where a proof is found, if ten rows have
        shown that this saves time. True: it is looked for in every row that is not settled yet,
        and those without one are solved on until they have it; such predictions hold whatever
        ``tol`` is (with more than two classes, those of the pairs with the row's class). False: the
        values of all rows are computed, whatever ``tol`` is to those of the optimum (see below).
        Where a side is proven there is no value, but NaN. Proofs are of ``SVC`` with a linear,
        polynomial (``coef0`` not negative) or RBF kernel. With ``method="approximate"`` every row
        has a value; False takes more care for those of classifiers whose side is certain anyway.
    sample_weight : array-like of shape (n_samples,), default=None
        As in ``fit``. The errors are not weighted.
    n_jobs : int or None, default=None
        Threads, which share one store of kernel rows.
    progress : bool or None, default=None
        Whether to show a progress bar. None shows it in a terminal or notebook when the work is
        long.

    Returns
    -------
    result : LooResult

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from onefit import SVC, leave_one_out
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> result = leave_one_out(SVC(C=10, gamma="auto"), StandardScaler().fit_transform(X), y)
    >>> round(result.error, 4)
    0.0246
    """
    if isinstance(estimator, SmoothMachine):
        return smooth_leave_one_out(estimator, X, y, method, sample_weight, progress)
    _check_choice("method", method, METHODS)
    _check_choice("seeding", seeding, SEEDINGS)
    if certify not in PROOFS:
        raise ValueError(f"certify must be 'auto', True or False; got {certify!r}.")
    if not isinstance(estimator, KernelMachine):
        raise TypeError(
            "leave_one_out is for SVC, NuSVC, SVR and NuSVR of onefit; got "
            f"{type(estimator).__name__}. For others see cross_val_predict(cv=LeaveOneOut())."
        )
    estimator._validate_params()
    values = method == "exact" and (certify is False or needs_values(estimator))
    fit = LeaveOneOutFit(estimator, X, y, sample_weight, seeding, n_jobs, progress, values=values)
    if method == "exact":
        return exact_result(fit, PROOFS[certify])
    if method == "approximate":
        return approximate_result(fit, all_values=certify is False)
    if not fit.has_rules_for_signs or (estimator.break_ties and fit.n_classes > 2):
        raise ValueError(
            "method='bound' is for SVC with a number, or 'auto', for gamma, without "
            "class_weight='balanced' and without break_ties: elsewhere leaving a row out changes "
            "more than that row, and one fit proves nothing. Use method='exact'."
        )
    return bound_result(fit)


def _check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        names = ", ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} must be one of {names}; got {value!r}.")
