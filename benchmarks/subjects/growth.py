"""How the time of a cross-validation grows with the rows: 10 folds at ever larger sizes.

What is run, compared and extrapolated is as in ``cv``, and so is the yardstick.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import groupby

import numpy as np

from ..datasets.growing import GROWING, SIZES
from ..record import CaseRecord, Entry
from ..report.words import NONE, PART_MARK_MEANS, parameters, ratio, time
from .base import Subject, Table
from .cv import FOLDS, CrossValidation, asked_folds

NOTE = (
    "Time, and time over that of half the rows. The exponent e is that of the power rows^e through"
    f" all sizes, by least squares in logarithms. {PART_MARK_MEANS}"
)


class Growth(CrossValidation):
    name = "growth"
    rank = 3

    def __init__(self, folds: int = FOLDS) -> None:
        super().__init__(folds)
        self.title = f"Growth of the time of {self.title[0].lower()}{self.title[1:]}"
        self.groups = [GROWING]
        self.rule = (
            f"the first {', '.join(f'{n:,}' for n in SIZES)} rows of each data set after one"
            f" shuffle, with the scaling and the gamma of all its rows; {self.rule}"
        )

    @property
    def label(self) -> str:
        return self.name if self._folds == FOLDS else f"{self.name}-{self._folds}fold"

    def asked(self, options: argparse.Namespace) -> Subject:
        return Growth(asked_folds(options))

    def sentences(self, records: list[CaseRecord]) -> list[str]:
        return []  # a mean over sizes of the same data would say nothing

    def tables(self, records: list[CaseRecord]) -> list[Table]:
        done = [record for record in records if not record.skipped]
        same = groupby(done, key=lambda record: (record.facts["group"], record.facts["setting"]))
        tables = [_table(name, setting, list(sizes)) for (name, setting), sizes in same]
        return [replace(tables[0], note=NOTE), *tables[1:]] if tables else []


def _table(name: str, setting: str, records: list[CaseRecord]) -> Table:
    """A line for each size; for each rival its time, and that over the time at half the size."""
    rivals = [entry.rival for entry in records[0].entries]
    times = {
        rival: {record.facts["rows"]: _counted(record, rival) for record in records}
        for rival in rivals
    }
    rows = []
    for n in times[rivals[0]]:
        cells = [f"{n:,}"]
        for rival in rivals:
            entry, half = times[rival][n], times[rival].get(n // 2)
            cells.append(NONE if entry is None else time(entry))
            cells.append(_factor(entry, half))
        rows.append(tuple(cells))
    last = ["exponent"]
    for rival in rivals:
        last += [_exponent(times[rival]), ""]
    return Table(
        title=f"{name}, {setting}{parameters(records[0])}",
        note="",
        headings=("rows", *[text for rival in rivals for text in (rival, "growth")]),
        rows=[*rows, tuple(last)],
    )


def _counted(record: CaseRecord, rival: str) -> Entry | None:
    return next((e for e in record.entries if e.rival == rival and e.counts), None)


def _factor(entry: Entry | None, half: Entry | None) -> str:
    if entry is None or half is None or entry.seconds is None or half.seconds is None:
        return NONE
    return ratio(entry.seconds / half.seconds)


def _exponent(times: dict[int, Entry | None]) -> str:
    known = [(n, e.seconds) for n, e in times.items() if e is not None and e.seconds is not None]
    if len(known) < 2:
        return NONE
    rows, seconds = np.log(np.array(known)).T
    return f"{np.polyfit(rows, seconds, 1)[0]:.2f}"


SUBJECT = Growth()
