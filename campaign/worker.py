"""A process that checks cases one after the other, so that a crash or a hang ends only itself.

``main`` reads cases from one pipe and writes outcomes to another, both given by number.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from campaign.case import Case, Difference, NothingToCompareError, generator


@dataclass(frozen=True)
class Outcome:
    """What became of a case. ``kind`` says in which way it failed: shrinking keeps to it."""

    status: str  # "fine", "skipped", "difference", "crash" or "hang"
    ties: int = 0
    kind: str = ""
    message: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.status in ("difference", "crash", "hang")


def module_of(kind: str) -> Any:
    """A file of ``campaign/classes``, or, for tests, another module of that name."""
    own = (Path(__file__).parent / "classes" / f"{kind}.py").exists()
    return importlib.import_module(f"campaign.classes.{kind}" if own else kind)


def drawn(name: str) -> Case:
    """The case of this name."""
    case: Case = module_of(name.split(":")[0]).draw(name, generator(name))
    return case


def checked(case: Case) -> Outcome:
    """The outcome of one case, in this process."""
    from onefit import _core

    start = time.perf_counter()
    module = module_of(case.kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = _core.instruction_sets()
        wanted = case.options.get("isa")
        _core.use_instruction_set(wanted if wanted in known else known[0])
        try:
            outcome = Outcome("fine", ties=int(module.check(case) or 0))
        except NothingToCompareError as reason:
            outcome = Outcome("skipped", message=str(reason))
        except Difference as difference:
            outcome = Outcome("difference", kind=difference.kind, message=str(difference))
        except Exception as error:
            outcome = Outcome("difference", kind=_place(error), message=traceback.format_exc())
    return Outcome(
        outcome.status, outcome.ties, outcome.kind, outcome.message, time.perf_counter() - start
    )


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}, {frame.name}: {frame.line}"


def main() -> None:
    faulthandler.enable()
    requests, answers = (Connection(int(fd)) for fd in sys.argv[1:])
    # Files of cases lie in a folder of this process, which goes when it ends.
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder:
        os.chdir(folder)
        while True:
            try:
                request = requests.recv()
            except EOFError:
                return
            try:
                case = drawn(request) if isinstance(request, str) else request
            except Exception:
                answers.send(Outcome("difference", kind="draw", message=traceback.format_exc()))
                continue
            if getattr(module_of(case.kind), "ALONE", False):
                in_child(case, answers)
            else:
                answers.send(checked(case))


def in_child(case: Case, answers: Connection) -> None:
    """Check a case in a forked child; memory that it overwrites is no fault of later cases."""
    import onefit  # noqa: F401 - once, not in every child

    child = os.fork()
    if child == 0:
        answers.send(checked(case))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):  # end as the child did
        faulthandler.disable()
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    if os.WEXITSTATUS(status):
        os._exit(os.WEXITSTATUS(status))
