"""The command line of the campaign."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from pathlib import Path

from campaign import ROOT
from campaign.report import Report, total_of
from campaign.runner import Runner
from campaign.sanitizers import SLOWER, environment

CLASSES = sorted(path.stem for path in (ROOT / "campaign" / "classes").glob("[a-z]*.py"))


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    if options.sum:
        report = total_of(Report.read(path) for path in options.sum)
        print(report.table())
        return int(report.n_failures > 0)
    seed = secrets.randbelow(2**31) if options.seed is None else options.seed
    runner = Runner(
        seed=seed,
        kinds=options.classes or CLASSES,
        folder=options.folder,
        jobs=options.jobs,
        limit=options.limit * (SLOWER if options.sanitize else 1),
        reduce=options.reduce,
        sanitize=options.sanitize,
        environment=environment(options.sanitize),
        say=lambda text: print(text, flush=True),
        cases=options.cases,
    )
    if options.case:
        outcome = runner.run_one(options.case)
        print(f"{options.case}: {outcome.status}, {outcome.ties} ties {outcome.message}")
        return int(outcome.failed)
    how = f"--seed {seed}" + (f" --sanitize {options.sanitize}" if options.sanitize else "")
    print(f"campaign: {how}, {options.jobs} processes, {options.minutes:g} minutes", flush=True)
    report = runner.run(60 * options.minutes)
    print(report.table())
    print(f"seed {seed}; a case again: python -m campaign --case CLASS:{seed}:NUMBER")
    if options.json:
        report.write(options.json)
    n_fatal = report.n_crashes if options.fatal == "crashes" else report.n_failures
    return int(n_fatal > 0)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="default: a fresh one")
    parser.add_argument("--class", dest="classes", action="append", choices=CLASSES)
    parser.add_argument("--cases", type=int, help="at most so many of each class")
    parser.add_argument("--case", help="run one case again: class:seed:number")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of one case")
    parser.add_argument("--reduce", type=float, default=90.0, help="seconds to reduce a failure")
    parser.add_argument(
        "--fatal",
        choices=["differences", "crashes"],
        default="differences",
        help="what ends in exit code 1: any failure, or crashes alone",
    )
    parser.add_argument("--sanitize", default="", help="as built: address,undefined or thread")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "campaign")
    parser.add_argument("--json", type=Path, help="write the counts and failures here")
    parser.add_argument("--sum", type=Path, nargs="+", help="add up JSON files of earlier runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
