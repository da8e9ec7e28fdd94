"""Puts a run together: options in, cases through the runner, reports out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from .case import Case, Settings
from .datasets import all_groups
from .datasets.base import SETTINGS, Group, MissingDataError
from .machine import facts
from .plugins import choose
from .record import CaseRecord
from .report.files import save
from .report.screen import Screen
from .rivals import all_rivals
from .runner import Plan, run_cases
from .subjects import all_subjects
from .subjects.base import Subject
from .summary import summarise, worst_figures

QUICK_ROWS = 1_000


def run(options: argparse.Namespace, command: str) -> None:
    """Do what the options ask for, show it and save it."""
    [subject] = choose(all_subjects(), [options.subject], "subject")
    groups = choose(all_groups(), options.group, "group")
    rivals = choose(all_rivals(), options.rivals, "rival")
    machine = facts(rivals)
    runnable = [rival for rival in rivals if machine["rivals"][rival.name]["runnable"]]
    if not runnable:
        raise SystemExit("none of the rivals asked for can run here: " + _reasons(machine))

    plan = Plan(
        subject=subject,
        rivals=runnable,
        settings=Settings(options.threads, subject.tol, options.memory),
        repeats=options.repeats or subject.repeats,
        time_limit=options.time_limit,
        patience=options.patience,
    )
    title = f"{subject.title}, {_threads(options.threads)}, tolerance {subject.tol:g}"
    screen = Screen()
    screen.opening(title, machine)
    records = []
    with screen.console.status("warming up") as status:
        cases = _cases(options, groups, subject)
        for record in run_cases(plan, cases, lambda case: status.update(case.name)):
            records.append(record)
            screen.case(record)
    if not any(record.entries for record in records):
        raise SystemExit("no case was run: " + _why_none(records))

    timed = subject.repeats > 1
    lines = summarise(records)
    extra = worst_figures(records, subject.headline) if subject.headline else []
    screen.closing(lines, records, extra, timed)
    about = {"title": title, "command": command, "options": _plain(options), "machine": machine}
    paths = save(options.out, _file_name(options), about, records, lines, extra, timed)
    screen.console.print("saved: " + ", ".join(map(str, paths)), highlight=False)


def _cases(
    options: argparse.Namespace, groups: list[Group], subject: Subject
) -> Iterator[Case | CaseRecord]:
    """Yield the cases asked for; a data set that is not there yields its reason once.

    Data are loaded one set at a time: a case holds them no longer than it runs.
    """
    limits = [options.max_rows, subject.max_rows, QUICK_ROWS if options.quick else None]
    most = min((limit for limit in limits if limit is not None), default=None)
    for group in groups:
        for dataset in group.datasets:
            names = [f"{dataset.name}/{setting}" for setting in SETTINGS]
            if not any(_wanted(name, options.cases) for name in names):
                continue
            try:
                for case in dataset.cases(group.name):
                    fits = options.min_rows <= case.rows and (most is None or case.rows <= most)
                    if fits and _wanted(case.name, options.cases):
                        yield case
            except MissingDataError as reason:
                yield CaseRecord({"name": dataset.name, "group": group.name}, skipped=str(reason))


def _wanted(name: str, patterns: list[str] | None) -> bool:
    """Return whether a case is asked for; a pattern without "/" means all its settings."""
    if patterns is None:
        return True
    return any(fnmatch(name, p if "/" in p else f"{p}/*") for p in patterns)


def _file_name(options: argparse.Namespace) -> str:
    """Return e.g. fit-1thread; a part gets a name of its own and overwrites no whole run."""
    name = f"{options.subject}-{_threads(options.threads).replace(' ', '')}"
    part = options.rivals or options.cases or options.group or options.max_rows
    if options.quick:
        name += "-quick"
    return name + ("-part" if part or options.min_rows > 1 else "")


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options as JSON can hold them, without where the files went."""
    return {name: value for name, value in vars(options).items() if name != "out"}


def _reasons(machine: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {fact['reason']}" for name, fact in machine["rivals"].items())


def _why_none(records: list[CaseRecord]) -> str:
    skipped = [f"{record.facts['name']}: {record.skipped}" for record in records if record.skipped]
    return "; ".join(skipped) or "no case fits --cases, --group, --min-rows and --max-rows"
