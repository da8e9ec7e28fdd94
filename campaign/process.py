"""The other side of a worker: starts it, sends it cases, and sees crashes and hangs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from campaign import ROOT
from campaign.worker import Outcome

# One thread each: the campaign runs as many workers as there are cores.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

PACKAGES = r"\b(?:onefit|sklearn|scipy|tests|campaign)"
START = "from campaign.worker import main; main()"


class Process:
    """A worker; started again after a crash or a hang."""

    def __init__(self, number: int, folder: Path, environment: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / f"worker-{number}.log"
        self.environment = {**os.environ, **dict.fromkeys(THREADS, "1"), **environment}
        given = [one.get("PYTHONPATH", "") for one in (environment, os.environ)]
        folders = [os.path.abspath(one) for one in os.pathsep.join(given).split(os.pathsep) if one]
        self.environment["PYTHONPATH"] = os.pathsep.join([*folders, str(ROOT)])
        self.process: subprocess.Popen[bytes] | None = None

    def check(self, request: Any, limit: float) -> Outcome:
        """The outcome of a case, given or named, that has ``limit`` seconds."""
        if self.process is None or self.process.poll() is not None:
            self._start()
        assert self.process is not None
        self.log.write_bytes(b"")
        start = time.perf_counter()
        try:
            self.requests.send(request)
            # A machine that others use as well takes longer.
            crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
            if not self.answers.poll(limit * crowd):
                return self._hang(time.perf_counter() - start)
            outcome: Outcome = self.answers.recv()
            return outcome
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return self._crash(time.perf_counter() - start)

    def close(self) -> None:
        if self.process is not None:
            self.requests.close()
            self.answers.close()
            self.process.kill()
            self.process.wait()
            self.process = None

    def _start(self) -> None:
        if self.process is not None:
            self.close()
        to_read, requests = os.pipe()
        answers, to_write = os.pipe()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, str(to_read), str(to_write)],
                pass_fds=(to_read, to_write),
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=ROOT,
                start_new_session=True,  # a hang is ended with all processes that it has started
            )
        os.close(to_read)
        os.close(to_write)
        self.requests = Connection(requests, readable=False)
        self.answers = Connection(answers, writable=False)
        self.log = self.log.resolve()

    def _crash(self, seconds: float) -> Outcome:
        assert self.process is not None
        code = self.process.wait()
        self.close()
        text = self.log.read_text(errors="replace")
        name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        summary = re.search(r"SUMMARY: (\w+): ([\w-]+)[^\n]* in ([\w:~<>]+)", text)
        kind = " ".join(summary.groups()) if summary else f"{name} in {_innermost(text)}"
        return Outcome("crash", kind=kind, message=text[-6000:], seconds=seconds)

    def _hang(self, seconds: float) -> Outcome:
        """SIGABRT has faulthandler print where every thread is."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGABRT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.close()
        text = self.log.read_text(errors="replace")
        place = _innermost(text)
        if re.match(r"(sklearn|scipy|tests)/", place):  # theirs, not ours
            return Outcome("skipped", message=f"no end in {place}", seconds=seconds)
        return Outcome("hang", kind=f"hang in {place}", message=text[-6000:], seconds=seconds)


def _innermost(text: str) -> str:
    """The innermost Python frame of what faulthandler calls the current thread.

    Of a case in a forked child the log has two; that of the worker only waits.
    """
    places = []
    for current in text.split("Current thread")[1:]:
        found = re.search(rf'File "[^"]*({PACKAGES}/[^"]*)", line \d+ in (\S+)', current)
        if found and found[2] != "in_child":
            places.append(f"{found[1]}, {found[2]}")
    return places[-1] if places else "unknown code"
