"""The command line: ``python -m benchmarks SUBJECT [options]``."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

# Read by OpenMP, OpenBLAS, MKL, Accelerate and BLIS when they are loaded, which numpy does.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)
RESULTS = Path(__file__).parent / "results"


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the options. Names are checked later: knowing them means importing numpy."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare onefit with other SVM libraries, in speed and in answers.",
    )
    parser.add_argument(
        "subject",
        help="what is compared: fit, cv, growth, loo, loo-paper, alo, grid, smooth, paper or "
        "objective",
    )
    parser.add_argument(
        "--machine",
        nargs="+",
        default=["c-svc"],
        metavar="NAME",
        help="what is fitted: c-svc (the default), svr, nu-svc, nu-svr; a report for each",
    )
    parser.add_argument("--rivals", nargs="+", metavar="NAME", help="only these libraries")
    parser.add_argument("--cases", nargs="+", metavar="GLOB", help="only cases such as 'a9a/*'")
    parser.add_argument("--group", nargs="+", metavar="NAME", help="only these groups of data sets")
    parser.add_argument("--repeats", type=_positive(int), help="runs of each rival on each case")
    parser.add_argument("--threads", type=_positive(int), default=1, help="threads for each rival")
    parser.add_argument("--quick", action="store_true", help="small data sets only, under a minute")
    parser.add_argument(
        "--memory",
        type=_positive(float),
        metavar="MB",
        help="cache_size for all that have one (default: onefit's own, 1000 for the others)",
    )
    parser.add_argument(
        "--folds", type=_positive(int), metavar="K", help="of cv and growth (default: 10)"
    )
    parser.add_argument(
        "--rows", type=_positive(int), metavar="N", help="of each data set of paper (default: 2000)"
    )
    parser.add_argument(
        "--realisations", type=_positive(int), metavar="N", help="of loo-paper (default: 5)"
    )
    parser.add_argument(
        "--shape",
        choices=("8x8", "10x10"),
        default="8x8",
        help="of grid: 10x10 refits, beside liquidSVM, and tries both on unseen rows",
    )
    parser.add_argument("--min-rows", type=_positive(int), default=1, metavar="N")
    parser.add_argument("--max-rows", type=_positive(int), metavar="N")
    parser.add_argument(
        "--time-limit",
        type=_positive(float),
        default=5.0,
        metavar="SECONDS",
        help="a rival that took longer on a case is not repeated there (default: %(default)g)",
    )
    parser.add_argument(
        "--patience",
        type=_positive(float),
        default=120.0,
        metavar="SECONDS",
        help="a rival expected to take longer on a case is not run there (default: %(default)g)",
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the results")
    return parser.parse_args(arguments)


def _positive(kind: type[int] | type[float]) -> Callable[[str], float]:
    """Return a reader of a number above 0."""

    def read(text: str) -> float:
        try:
            value: float = kind(text)
        except ValueError:
            value = 0
        if not value > 0:
            raise argparse.ArgumentTypeError(f"a positive number is needed, not {text!r}")
        return value

    return read


def main() -> None:
    arguments = sys.argv[1:]
    options = parse(arguments)
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(options.threads)
    from .command import run  # imports numpy, so only now

    run(options, shlex.join(arguments))


if __name__ == "__main__":
    main()
