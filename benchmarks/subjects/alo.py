"""Approximate leave-one-out: what it costs once a fit is there, and how far it is from exact.

Timed is what ``leave_one_out`` does after its fit on all rows, which is made anew just before: the
estimates of every row (``onefit``; with all values corrected; with ``refine()``), and exact
leave-one-out. Beside them are one fit of
scikit-learn, as a unit, and at 10,000 rows SciPy's Cholesky factor of the whole kernel matrix, with
which the paper begins. Compared are error rates with those of exact leave-one-out, whose values are
all computed, outside the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

from ..case import WARM_UP, Case, Matrix, Settings
from ..datasets import multiclass, regression
from ..datasets.left_out import FOR_THE_FACTOR, LEFT_OUT, ROWS
from ..record import OURS, CaseRecord, Entry
from ..report.words import NONE, megabytes, ratio, seconds
from ..rivals.base import Rival
from ..rivals.onefit import Onefit
from .base import Outcome, Subject, Table, Verdict
from .cv import YARDSTICK, OneFit

ALL_VALUES, REFINED, EXACT = (f"{OURS}, {what}" for what in ("all values", "refined", "exact"))
CHOLESKY = "scipy, n x n Cholesky"
# What the sentences call the groups.
GROUPS = {
    LEFT_OUT.name: "of two classes",
    multiclass.GROUP.name: "of more classes",
    FOR_THE_FACTOR.name: f"of {ROWS:,} rows",
    regression.GROUP.name: "of regression",
}
# By how much errors may differ from those of exact leave-one-out: error rates, and shares of a mean
# squared error. What is aimed at in the mean is a quarter of the first, and the second.
ESTIMATE_ALLOWED, REFINED_ALLOWED = 0.02, 0.001
ESTIMATE_ALLOWED_OF_SQUARES, REFINED_ALLOWED_OF_SQUARES = 0.15, 0.02


class Fits:
    """The fit of onefit on all rows of a case, and what exact leave-one-out says of it."""

    def __init__(self) -> None:
        self._case: Case | None = None

    def make(self, case: Case, settings: Settings) -> None:
        from onefit.loo.exact import LeaveOneOutFit

        machine = Onefit().estimator(case, settings)
        self.last = LeaveOneOutFit(machine, case.X, case.y, None, "auto", None, False)
        if self._case is not case:
            self._case, self._exact = case, None

    def exact(self, case: Case) -> Any:
        """Return the result with all values."""
        from onefit.loo.answers import exact_result
        from onefit.loo.left_out import Proofs

        assert self._case is case
        if self._exact is None:
            self._exact = exact_result(self.last, Proofs.NONE)
        return self._exact


class AfterTheFit(Onefit):
    """A kind of leave-one-out, from the fit on all rows on."""

    def __init__(self, name: str, fits: Fits) -> None:
        self.name, self.fits = name, fits

    def left_out(self, fit: Any) -> Any:
        from onefit.loo.answers import approximate_result, exact_result
        from onefit.loo.left_out import Proofs

        if self.name == EXACT:
            return exact_result(fit, Proofs.WHERE_THEY_PAY)
        result = approximate_result(fit, all_values=self.name == ALL_VALUES)
        return result.refine() if self.name == REFINED else result


class Cholesky(Rival):
    """SciPy's factor of the kernel matrix of all rows, which is there before the time begins."""

    name = CHOLESKY
    module = "scipy.linalg"
    packages = ("scipy",)
    max_threads = None
    yardstick = "the Cholesky factor of the whole kernel matrix; its memory is that of the factor"

    def __init__(self) -> None:
        self._case: Case | None = None

    def refuses(self, case: Case, settings: Settings) -> str | None:
        if case.rows != ROWS or case.sparse:
            return f"only of {ROWS:,} rows"
        if self._case is not case:
            matrix = rbf_kernel(case.X, gamma=case.gamma)
            matrix[np.diag_indices(case.rows)] += 1e-6  # rows may be the same
            self._case, self._matrix = case, matrix
        return None

    def fit(self, case: Case, settings: Settings) -> Any:
        return scipy.linalg.cholesky(self._matrix, lower=True, check_finite=False)

    def predictions(self, model: Any, case: Case, X: Matrix) -> NDArray[Any]:
        raise NotImplementedError("a factor predicts nothing")


@dataclass(frozen=True)
class Answer:
    """What is said of every row, what exact leave-one-out says, and how many rows are what."""

    result: Any
    exact: Any
    support: NDArray[np.bool_]  # of any problem
    n_free: int  # of all problems together


class ApproximateLeaveOneOut(Subject):
    name = "alo"
    title = "Approximate leave-one-out of {machine} with a Gaussian kernel, after the fit"
    rank = 5
    default_rivals = [OURS, YARDSTICK]  # noqa: RUF012
    groups = [LEFT_OUT, multiclass.GROUP, FOR_THE_FACTOR, regression.GROUP]  # noqa: RUF012
    rule = (
        "times are those after the fit on all rows, which is made just before;"
        f" {OURS}: the estimate with its defaults, {ALL_VALUES}: with"
        " certify=False; errors are compared with those of exact leave-one-out:"
        f" rates of an estimate may differ by {ESTIMATE_ALLOWED:g}, with refine() by one row in"
        f" {1 / REFINED_ALLOWED:,.0f}, rounded up; mean squared errors by"
        f" {ESTIMATE_ALLOWED_OF_SQUARES:.0%} and {REFINED_ALLOWED_OF_SQUARES:.0%}"
    )

    def contenders(self, rivals: list[Rival]) -> list[Rival]:
        found: list[Rival] = []
        for rival in rivals:
            if rival.name == OURS:
                fits = Fits()
                found += [AfterTheFit(n, fits) for n in (OURS, ALL_VALUES, REFINED, EXACT)]
            else:
                found += [OneFit(rival), Cholesky()]
        return found

    def trial_from_rows(self, case: Case) -> int:
        return case.rows + 1  # nothing here takes hours

    def before(self, rival: Rival, case: Case, settings: Settings) -> None:
        if isinstance(rival, AfterTheFit):
            rival.fits.make(case, settings)

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        if isinstance(rival, AfterTheFit):
            return rival.left_out(rival.fits.last)
        return rival.fit(case, settings)

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer | None:
        if not isinstance(rival, AfterTheFit) or case.group == WARM_UP:
            return None
        from onefit.loo.fits import Fit

        fit, n_free = rival.fits.last, 0
        support = np.zeros(case.rows, dtype=bool)
        for problem, solution in zip(fit.whole.problems, fit.solutions, strict=True):
            found = Fit.of(problem, solution, fit.tol)
            support[fit.whole.order[found.rows[found.beta != 0]]] = True
            n_free += int(found.is_free.sum())
        return Answer(result, rival.fits.exact(case), support, n_free)

    def judge(self, rival: Rival, answer: Answer, reference: Answer, case: Case) -> Verdict:
        result, exact = answer.result, answer.exact
        squares = case.machine.regression
        apart = abs(result.error - exact.error) / (exact.error if squares else 1.0)
        if rival.name in (REFINED, EXACT):
            rows = math.ceil(REFINED_ALLOWED * case.rows) / case.rows
            allowed = REFINED_ALLOWED_OF_SQUARES if squares else rows
        else:
            allowed = ESTIMATE_ALLOWED_OF_SQUARES if squares else ESTIMATE_ALLOWED
        figures = {"error": result.error, "exact_error": exact.error, "difference": apart}
        if rival.name in (OURS, ALL_VALUES):
            figures |= _figures(answer, squares)
        text = f"error {result.error:.4g}, exactly {exact.error:.4g}"
        right = apart <= allowed + 1e-12
        return Verdict(Outcome.AGREES if right else Outcome.DISAGREES, text, figures)

    # ---- what the report says -------------------------------------------------------------------

    def sentences(self, records: list[CaseRecord]) -> list[str]:
        done = [record for record in records if not record.skipped]
        of_groups = {r.facts["group"]: GROUPS[r.facts["group"]] for r in done}
        found = []
        for group, kind in of_groups.items() if len(of_groups) > 1 else [("", "")]:
            for setting in ("", *dict.fromkeys(record.facts["setting"] for record in done)):
                some = [
                    r
                    for r in done
                    if group in ("", r.facts["group"]) and setting in ("", r.facts["setting"])
                ]
                words = filter(None, (str(len(some)), setting, "cases", kind))
                found += _costs_and_errors(some, " ".join(words))
        for record in done:
            cost = _cost(record, OURS, CHOLESKY)
            if cost:
                ours, factor = (_entry(record, name) for name in (OURS, CHOLESKY))
                assert ours
                assert factor
                found.append(
                    f"{record.facts['name']}: the estimate takes {cost:.3f} of the time of"
                    f" SciPy's {ROWS:,} x {ROWS:,} Cholesky factor ({seconds(factor.seconds)}), and"
                    f" {megabytes(ours.peak_mb)} where that takes {megabytes(factor.peak_mb)}, and"
                    f" its matrix {8 * ROWS**2 / 2**20:.0f} MB"
                )
        return found

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        done = [record for record in records if not record.skipped]
        return [_costs(done), _errors(done), _doubts(done)]


def _costs_and_errors(records: list[CaseRecord], of: str) -> list[str]:
    """Return what some cases come to."""
    found = []
    for name in (OURS, ALL_VALUES, REFINED, EXACT):
        costs = [c for r in records if (c := _cost(r, name, f"{YARDSTICK}, one fit"))]
        if costs:
            found.append(
                f"{name}: {ratio(_mean(costs))} fits of {YARDSTICK} beyond onefit's own fit"
                f" (geometric mean of {of}; {ratio(min(costs))} to {ratio(max(costs))})"
            )
    for name in (OURS, ALL_VALUES, REFINED):
        apart = [e.verdict.figures["difference"] for r in records if (e := _judged(r, name))]
        if apart:
            found.append(
                f"{name}: error off by {np.mean(apart):.4f} (mean of {of};"
                f" at most {max(apart):.4f})"
            )
    return found


def _figures(answer: Answer, squares: bool) -> dict[str, float]:
    """Return how far values are off, and what is in doubt."""
    result, exact, support = answer.result, answer.exact, answer.support
    # Of more than two classes the values of classes: their errors are those of the worst.
    off = np.abs(result.decision_values - exact.decision_values)
    off = off.reshape(len(off), -1).max(axis=1)
    doubt = ~result.reliable
    if squares:
        wrong = off > 0.25 * math.sqrt(exact.error)
    else:
        wrong = result.predictions != exact.predictions
    others = support & ~doubt
    values = result.decision_values[support].ravel(), exact.decision_values[support].ravel()
    return {
        "support_vectors": int(support.sum()),
        "free": answer.n_free,
        "in_doubt": float(doubt.mean()),
        "wrong": int(wrong.sum()),
        "wrong_and_not_in_doubt": int((wrong & ~doubt).sum()),
        "correlation": float(np.corrcoef(*values)[0, 1]),
        "mean_off_in_doubt": float(off[doubt].mean()) if doubt.any() else math.nan,
        "mean_off_others": float(off[others].mean()) if others.any() else math.nan,
    }


def _entry(record: CaseRecord, rival: str) -> Entry | None:
    return next((e for e in record.entries if e.rival == rival), None)


def _judged(record: CaseRecord, rival: str) -> Any:
    entry = _entry(record, rival)
    return entry if entry and entry.verdict and entry.verdict.figures else None


def _cost(record: CaseRecord, rival: str, unit: str) -> float | None:
    """Return the time of a rival in units of another's."""
    one, other = _entry(record, rival), _entry(record, unit)
    if one is None or other is None or not one.seconds or not other.seconds:
        return None
    return one.seconds / other.seconds


def _mean(values: list[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _costs(records: list[CaseRecord]) -> Table:
    unit, rows = f"{YARDSTICK}, one fit", []
    names = (OURS, ALL_VALUES, REFINED, EXACT)
    for record in records:
        entry, entries = _entry(record, unit), [_entry(record, name) for name in names]
        cells = [seconds(e.seconds) if e else NONE for e in (entry, *entries)]
        costs = [ratio(_cost(record, name, unit)) for name in names]
        memory = megabytes(entries[0].peak_mb) if entries[0] else NONE
        rows.append((record.facts["name"], f"{record.facts['rows']:,}", *cells, *costs, memory))
    return Table(
        "What comes after the fit",
        f"Times, and times in units of one fit of {YARDSTICK}; memory of the estimate.",
        (
            "case",
            "rows",
            f"{YARDSTICK}, one fit",
            "estimate",
            "all values",
            "refined",
            "exact",
            "estimate in fits",
            "all values",
            "refined",
            "exact",
            "memory",
        ),
        rows,
    )


def _errors(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        found = [_judged(record, name) for name in (OURS, ALL_VALUES, REFINED)]
        if not all(found):
            continue
        first, second, third = (entry.verdict.figures for entry in found)
        rows.append(
            (
                record.facts["name"],
                f"{first['support_vectors']:,}",
                f"{first['free']:,}",
                f"{first['exact_error']:.4g}",
                f"{first['error']:.4g}",
                f"{third['error']:.4g}",
                f"{first['difference']:.4f}",
                f"{third['difference']:.4f}",
                f"{first['correlation']:.3f}",
                f"{second['correlation']:.3f}",
            )
        )
    return Table(
        "Errors beside those of exact leave-one-out",
        "Error rates, or mean squared errors and shares of them. Correlations are of the left-out"
        " values of support vectors with the exact ones.",
        (
            "case",
            "support vectors",
            "free",
            "exact",
            "estimate",
            "refined",
            "off by",
            "refined",
            "correlation",
            "all values",
        ),
        rows,
    )


def _doubts(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        entry = _judged(record, ALL_VALUES)
        if entry is None:
            continue
        figures = entry.verdict.figures
        rows.append(
            (
                record.facts["name"],
                f"{figures['in_doubt']:.1%}",
                f"{figures['wrong']}",
                f"{figures['wrong_and_not_in_doubt']}",
                _number(figures["mean_off_in_doubt"]),
                _number(figures["mean_off_others"]),
            )
        )
    return Table(
        "What the flag separates",
        "Rows in doubt; wrong rows (another class than exactly, or a value that is off by more than"
        " a quarter of the typical error), and those of them that are not in doubt; mean errors of"
        " left-out values, all corrected, of rows in doubt and of the other support vectors.",
        ("case", "in doubt", "wrong", "not in doubt", "off by, in doubt", "others"),
        rows,
    )


def _number(value: float) -> str:
    return NONE if math.isnan(value) else f"{value:.3f}"


SUBJECT = ApproximateLeaveOneOut()
