"""The experiments of the alpha seeding paper: every way to start a fold, on its data sets.

Wen et al., "Improving Efficiency of SVM k-fold Cross-validation by Alpha Seeding", AAAI 2017. Its
Table 1 has all methods with 10 folds, its Table 3 one of them with 3, 10 and 100. Scores are
compared as in ``cv``: seeds may not change them.
"""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from ..case import Case, Settings
from ..datasets.base import GAMMA_RULE
from ..datasets.published import ALL_METHODS, PAPER, Published, published
from ..record import OURS, CaseRecord, Entry
from ..report.words import NONE, PART_MARK, PART_MARK_MEANS, ratio, time
from ..rivals.base import Rival, SklearnFaced
from ..rivals.onefit import Onefit
from .base import Subject, Table
from .cv import YARDSTICK, Answer, CrossValidation

ROWS = 2_000
SEEDINGS = ("none", "ato", "mir", "sir", "avg", "top")
COLD = f"{OURS}, none"
# With other folds than 10: the method of the paper's Table 3, and what it is compared with.
FEW = (f"{OURS}, sir", COLD, OURS, YARDSTICK)

# The paper's Table 1: iterations, and seconds with those for the seeds, with 10 folds.
LIBSVM = "libsvm"
PAPER_ITERATIONS: dict[str, dict[str, float]] = {
    "adult": {LIBSVM: 397_565, "ato": 361_914, "mir": 318_169, "sir": 317_110},
    "heart": {LIBSVM: 6_988, "ato": 4_882, "mir": 1_443, "sir": 3_968},
    "madelon": {LIBSVM: 9_000, "ato": 5_408, "mir": 1_800, "sir": 1_800},
    "mnist": {LIBSVM: 1_291_068, "ato": 575_250, "mir": 280_820, "sir": 258_500},
    "webdata": {LIBSVM: 783_208, "ato": 245_385, "mir": 230_357, "sir": 356_528},
}
PAPER_SECONDS: dict[str, dict[str, float]] = {
    "adult": {LIBSVM: 6_783, "ato": 3_824 + 5_738, "mir": 2_034 + 3_717, "sir": 57 + 3_705},
    "heart": {LIBSVM: 0.36, "ato": 0.016 + 0.19, "mir": 0.058 + 0.083, "sir": 0.003 + 0.24},
    "madelon": {LIBSVM: 54.5, "ato": 2.0 + 24.6, "mir": 1.7 + 12.8, "sir": 1.2 + 13.5},
    "mnist": {
        LIBSVM: 172_816,
        "ato": 35_410 + 69_435,
        "mir": 30_897 + 38_696,
        "sir": 1_416 + 36_406,
    },
    "webdata": {LIBSVM: 24_689, "ato": 11_166 + 9_394, "mir": 6_172 + 7_574, "sir": 133 + 11_901},
}
PAPER_ACCURACY = {
    "adult": "82.36 %",
    "heart": "55.56 %",
    "madelon": "50.0 %",
    "mnist": "50.85 %",
    "webdata": "97.70 %",
}
# The paper's Table 3: seconds of LIBSVM and of SIR by folds.
PAPER_BY_FOLDS: dict[str, dict[int, tuple[float, float]]] = {
    "adult": {3: (733, 683), 10: (6_783, 3_762), 100: (41_288, 33_877)},
    "heart": {3: (0.09, 0.08), 10: (0.36, 0.25), 100: (3.39, 1.17)},
    "madelon": {3: (8.8, 7.8), 10: (54.5, 14.7), 100: (620, 19.5)},
    "mnist": {3: (29_692, 22_296), 10: (172_816, 37_822), 100: (2_508_684, 61_016)},
    "webdata": {3: (3_941, 2_342), 10: (24_689, 12_034), 100: (190_817, 31_918)},
}


class Seeded(Onefit):
    """onefit with folds that start in one way."""

    def __init__(self, seeding: str) -> None:
        self.seeding = seeding
        self.name = f"{OURS}, {seeding}"


class Paper(CrossValidation):
    name = "paper"
    rank = 4

    def __init__(self, rows: int = ROWS) -> None:
        super().__init__(ALL_METHODS)
        self._rows = rows
        self.title = "Ways to start a fold, on the data sets of Wen et al. (2017): {machine}"
        self.groups = [published(rows)]
        self.parameters_rule = (
            "paper: C and gamma of the paper and nothing scaled; scaled: its C, scaled features and"
            f" {GAMMA_RULE}; at most {rows:,} rows of a data set, the first after one shuffle where"
            " there are more; the number of folds is at the end of the name of a case, where the"
            f" following says {self._folds}"
        )

    @property
    def label(self) -> str:
        return self.name if self._rows == ROWS else f"{self.name}-{self._rows}rows"

    def asked(self, options: argparse.Namespace) -> Subject:
        return Paper(options.rows or ROWS)

    def contenders(self, rivals: list[Rival]) -> list[Rival]:
        ours = [Seeded(name) for name in SEEDINGS if any(r.name == OURS for r in rivals)]
        return [*ours, *rivals]

    def takes_part(self, rival: Rival, case: Case) -> bool:
        return case.folds == ALL_METHODS or rival.name in FEW

    def run(self, rival: Rival, case: Case, settings: Settings) -> Any:
        cv = self._splitter(case) if self._done is None else self._splits(case)
        if isinstance(rival, Onefit):
            return *_ours(rival, case, settings, cv), settings
        if not isinstance(rival, SklearnFaced):
            raise TypeError(f"{rival.name} cannot be given folds")
        return *_theirs(rival, case, settings, cv), settings

    def answer(self, rival: Rival, result: Any, case: Case) -> Answer:
        scores, iterations, settings = result
        targets = [case.y[test] for _, test in self._splits(case)]
        again = partial(rival.held_out, case, settings, self._splitter(case))
        return Answer(scores, targets, again, iterations)

    def sentences(self, records: list[CaseRecord]) -> list[str]:
        return []

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        done = [record for record in records if not record.skipped]
        sets = [
            d for group in self.groups or [] for d in group.datasets if isinstance(d, Published)
        ]
        return [_stand_ins(sets, done), _all_methods(done), _by_folds(done)]

    def _counted(self, iterations: dict[str, int]) -> str:
        return f"{sum(iterations.values()):,} iterations"


def _ours(rival: Onefit, case: Case, settings: Settings, cv: Any) -> tuple[Any, dict[str, int]]:
    """Return the scores, and the iterations of the folds and of the fit that they start from."""
    import onefit

    estimator = rival.estimator(case, settings)
    run = onefit.cross_validate(estimator, case.X, case.y, cv=cv, seeding=rival.seeding)
    of_folds = sum(work.n_iter for work in run.ledger.folds)
    return run["test_score"], {"folds": of_folds, "all_rows": run.ledger.n_iter - of_folds}


def _theirs(
    rival: SklearnFaced, case: Case, settings: Settings, cv: Any
) -> tuple[Any, dict[str, int]]:
    """Return the scores and the iterations, by what ``cross_val_score`` does."""
    from sklearn.model_selection import cross_validate

    n_jobs = settings.threads // rival.threads(settings)
    estimator = rival.estimator(case, settings)
    run = cross_validate(estimator, case.X, case.y, cv=cv, n_jobs=n_jobs, return_estimator=True)
    of_folds = sum(int(fitted.n_iter_.sum()) for fitted in run["estimator"])
    return run["test_score"], {"folds": of_folds, "all_rows": 0}


def _stand_ins(sets: list[Published], records: list[CaseRecord]) -> Table:
    """Which of our files is used for which data set of the paper."""
    rows = []
    for found in sets:
        facts = next((r.facts for r in records if r.facts["dataset"] == found.name), None)
        if facts is None:
            continue
        used = f"{facts['rows']:,} x {facts['features']}"
        accuracy = PAPER_ACCURACY[found.name]
        figures = (f"{found.paper_rows:,}", used, f"{found.C:g}", f"{found.gamma:g}", accuracy)
        rows.append((found.title, f"{found.file}.npz", *figures))
    return Table(
        "Data sets",
        "C, gamma and accuracy (10 folds) are those of the paper's Tables 2 and 1. The classes of"
        " MNIST are odd and even digits.",
        ("paper", "file", "its rows", "used here", "C", "gamma", "its accuracy"),
        rows,
    )


def _all_methods(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        if record.facts["folds"] != ALL_METHODS:
            continue
        name = record.facts["dataset"]
        as_published = record.facts["setting"].startswith(PAPER)
        cold = _entry(record, COLD)
        for entry in record.entries:
            method = entry.rival.removeprefix(f"{OURS}, ")
            rows.append(
                (
                    record.facts["name"],
                    "auto" if method == OURS else method,
                    _count(entry),
                    f"{_figure(entry, 'iterations_all_rows') or 0:,.0f}",
                    time(entry) if entry.counts else NONE,
                    _over(_iterations(entry), _iterations(cold)),
                    _cited(PAPER_ITERATIONS[name], method) if as_published else NONE,
                    _over(_seconds(entry), _seconds(cold)),
                    _cited(PAPER_SECONDS[name], method) if as_published else NONE,
                    _accuracy(entry),
                    entry.verdict.outcome.value if entry.verdict else f"not run: {entry.not_run}",
                )
            )
    return Table(
        f"All ways to start, {ALL_METHODS} folds",
        "Iterations include those of the fit on all rows. Over cold: over onefit without seeds."
        " Paper: its Table 1, over LIBSVM without seeds, on all rows of the data set."
        f" {PART_MARK_MEANS}",
        (
            "case",
            "start",
            "iterations",
            "of these on all rows",
            "time",
            "iterations over cold",
            "paper",
            "time over cold",
            "paper",
            "accuracy",
            "scores",
        ),
        rows,
    )


def _by_folds(records: list[CaseRecord]) -> Table:
    rows = []
    for record in records:
        name, folds = record.facts["dataset"], record.facts["folds"]
        cold, sir = _entry(record, COLD), _entry(record, f"{OURS}, sir")
        auto, libsvm = _entry(record, OURS), _entry(record, YARDSTICK)
        as_published = record.facts["setting"].startswith(PAPER)
        their_libsvm, their_sir = PAPER_BY_FOLDS[name][folds]
        rows.append(
            (
                record.facts["name"],
                *[_count(entry) for entry in (libsvm, cold, sir)],
                _over(_iterations(sir), _iterations(cold)),
                *[time(e) if e and e.counts else NONE for e in (libsvm, cold, sir, auto)],
                _over(_seconds(sir), _seconds(cold)),
                _over(_seconds(sir), _seconds(libsvm)),
                ratio(their_sir / their_libsvm) if as_published else NONE,
            )
        )
    return Table(
        "More or fewer folds",
        "Paper: the time of SIR over that of LIBSVM in its Table 3, on all rows of the data set."
        f" {PART_MARK_MEANS}",
        (
            "case",
            "iterations: scikit-learn",
            "none",
            "sir",
            "sir / none",
            "time: scikit-learn",
            "none",
            "sir",
            "auto",
            "sir / none",
            "sir / scikit-learn",
            "paper",
        ),
        rows,
    )


def _entry(record: CaseRecord, rival: str) -> Entry | None:
    return next((entry for entry in record.entries if entry.rival == rival), None)


def _figure(entry: Entry | None, name: str) -> float | None:
    return entry.verdict.figures.get(name) if entry and entry.verdict else None


def _iterations(entry: Entry | None) -> float | None:
    """Return all iterations, those of folds that were not done like the others."""
    folds, before = (_figure(entry, f"iterations_{name}") for name in ("folds", "all_rows"))
    if entry is None or folds is None or before is None:
        return None
    return folds / entry.share + before


def _count(entry: Entry | None) -> str:
    found = _iterations(entry)
    mark = PART_MARK if entry is not None and entry.share < 1 else ""
    return NONE if found is None else f"{mark}{found:,.0f}"


def _seconds(entry: Entry | None) -> float | None:
    return entry.seconds if entry is not None and entry.counts else None


def _accuracy(entry: Entry) -> str:
    found = _figure(entry, "mean_score")
    return NONE if found is None else f"{found:.2%}"


def _over(value: float | None, other: float | None) -> str:
    return ratio(value / other) if value is not None and other else NONE


def _cited(figures: dict[str, float], method: str) -> str:
    """Return what the paper has for a method over LIBSVM."""
    return ratio(figures[method] / figures[LIBSVM]) if method in figures else NONE


SUBJECT = Paper()
