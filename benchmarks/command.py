"""Puts a run together: options in, cases through the runner, reports out."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

from .case import Case, Settings
from .computer import facts
from .datasets import all_groups
from .datasets.base import GAMMA_RULE, Group, MissingDataError
from .machines import all_machines
from .machines.base import Machine
from .plugins import choose
from .record import CaseRecord
from .report.files import save
from .report.screen import Screen
from .rivals import all_rivals
from .runner import Plan, run_cases
from .subjects import all_subjects
from .summary import Findings, summarise, worst_figures

QUICK_ROWS = 1_000
DEFAULT = "c-svc"  # the machine whose files are not called after it


def run(options: argparse.Namespace, command: str) -> None:
    """Do what the options ask for, for one machine after the other."""
    [subject] = choose(all_subjects(), [options.subject], "subject")
    subject = subject.asked(options)
    machines = choose(all_machines(), options.machine, "machine")
    available = {group.name: group for group in subject.groups or all_groups().values()}
    groups = choose(available, options.group, "group")
    rivals = choose(all_rivals(), options.rivals or subject.default_rivals, "rival")
    computer = facts(rivals)
    runnable = [rival for rival in rivals if computer["rivals"][rival.name]["runnable"]]
    if not runnable:
        raise SystemExit("none of the rivals asked for can run here: " + _reasons(computer))
    for machine in machines:
        plan = Plan(
            subject=subject,
            machine=machine,
            rivals=subject.contenders(runnable),
            settings=Settings(options.threads, subject.tol, options.memory),
            repeats=options.repeats or subject.repeats,
            time_limit=options.time_limit,
            patience=options.patience,
        )
        _run_machine(plan, groups, options, command, computer)


def _run_machine(
    plan: Plan,
    groups: list[Group],
    options: argparse.Namespace,
    command: str,
    computer: dict[str, Any],
) -> None:
    """Run all cases of one machine, show them and save them."""
    subject, machine = plan.subject, plan.machine
    title = subject.title.format(machine=machine.title)
    title += f", {_threads(options.threads)}, tolerance {subject.tol:g}"
    screen = Screen()
    screen.opening(title, computer)
    records = []
    with screen.console.status("warming up") as status:
        cases = _cases(options, groups, plan)
        for record in run_cases(plan, cases, lambda case: status.update(case.name)):
            records.append(record)
            screen.case(record)
    if not any(record.entries for record in records):
        raise SystemExit("no case was run: " + _why_none(records, machine))

    timed = subject.repeats > 1
    sentences = subject.sentences(records)
    sentences += worst_figures(records, subject.headline) if subject.headline else []
    findings = Findings(summarise(records), sentences, subject.tables(records), timed)
    screen.closing(findings, records)
    parameters = subject.parameters_rule or f"{machine.rule}; {GAMMA_RULE}"
    about = {
        "title": title,
        "rule": "; ".join(filter(None, (parameters, subject.rule))),
        "command": command,
        "options": _plain(options),
        "computer": computer,
    }
    paths = save(options.out, _file_name(options, plan), about, records, findings)
    screen.console.print("saved: " + ", ".join(map(str, paths)), highlight=False)


def _cases(
    options: argparse.Namespace, groups: list[Group], plan: Plan
) -> Iterator[Case | CaseRecord]:
    """Yield the cases asked for; a data set that is not there yields its reason once.

    Data are loaded one set at a time: a case holds them no longer than it runs.
    """
    machine = plan.machine
    limits = [options.max_rows or machine.max_rows, plan.subject.max_rows]
    limits.append(QUICK_ROWS if options.quick else None)
    most = min((limit for limit in limits if limit is not None), default=None)
    for group in groups:
        for dataset in group.datasets if group.regression == machine.regression else ():
            if not any(_wanted(name, options.cases) for name in dataset.names(machine)):
                continue
            try:
                for case in dataset.cases(group.name, machine):
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


def _file_name(options: argparse.Namespace, plan: Plan) -> str:
    """Return e.g. fit-1thread for a C-SVC and fit-svr-1thread for another machine.

    A part gets a name of its own and overwrites no whole run.
    """
    name = plan.subject.label
    name += f"-{plan.machine.name}" if plan.machine.name != DEFAULT else ""
    name += f"-{_threads(options.threads).replace(' ', '')}"
    part = options.rivals or options.cases or options.group or options.max_rows
    if options.quick:
        name += "-quick"
    return name + ("-part" if part or options.min_rows > 1 else "")


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options as JSON can hold them, without where the files went."""
    return {name: value for name, value in vars(options).items() if name != "out"}


def _reasons(computer: dict[str, Any]) -> str:
    return "; ".join(f"{name}: {fact['reason']}" for name, fact in computer["rivals"].items())


def _why_none(records: list[CaseRecord], machine: Machine) -> str:
    skipped = [f"{record.facts['name']}: {record.skipped}" for record in records if record.skipped]
    return "; ".join(skipped) or (
        f"no case for {machine.name} fits --cases, --group, --min-rows and --max-rows"
    )
