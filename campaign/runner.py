"""Run cases on several workers until the time is over, and reduce what fails."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from campaign.case import Case
from campaign.process import Process
from campaign.reduce import reduced
from campaign.report import Report
from campaign.snippet import snippet
from campaign.worker import Outcome, drawn

# Failures of one class and kind that are reduced; more of the same are only counted.
REDUCED = 2


@dataclass
class Runner:
    """``limit`` is the time of one case in seconds, ``reduce`` that of reducing one failure."""

    seed: int
    kinds: Sequence[str]
    folder: Path
    jobs: int = 1
    limit: float = 60.0
    reduce: float = 90.0
    sanitize: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    say: Callable[[str], None] = print
    cases: int | None = None  # of each class; None: until the time is over

    def __post_init__(self) -> None:
        self.report = Report(seeds=[self.seed], sanitize=self.sanitize)
        self.lock = threading.Lock()
        self.numbers = Counter(dict.fromkeys(self.kinds, 0))
        self.spent = dict.fromkeys(self.kinds, 0.0)
        self.seen: Counter[tuple[str, str]] = Counter()

    def run(self, seconds: float) -> Report:
        self.end = time.monotonic() + seconds
        threads = [threading.Thread(target=self._work, args=(k,)) for k in range(self.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.report

    def run_one(self, name: str) -> Outcome:
        process = Process(0, self.folder, self.environment)
        try:
            return self._run_case(name, process)
        finally:
            process.close()

    def _work(self, number: int) -> None:
        process = Process(number, self.folder, self.environment)
        try:
            while time.monotonic() < self.end and (name := self._next()) is not None:
                self._run_case(name, process)
        finally:
            process.close()

    def _next(self) -> str | None:
        """Of the class that has had the least time."""
        with self.lock:
            left = [k for k in self.kinds if self.cases is None or self.numbers[k] < self.cases]
            if not left:
                return None
            kind = min(left, key=lambda kind: (self.spent[kind], self.numbers[kind]))
            number = self.numbers[kind]
            self.numbers[kind] += 1
            # An estimate until the case is done, so that workers do not all choose this class.
            self.spent[kind] += self.spent[kind] / max(1, number)
            return f"{kind}:{self.seed}:{number}"

    def _run_case(self, name: str, process: Process) -> Outcome:
        kind = name.split(":")[0]
        outcome = process.check(name, self.limit)
        if outcome.status == "crash":
            outcome = self._again(name, outcome, process)
        elif outcome.failed and "hang" in outcome.status + outcome.kind:
            outcome = self._confirmed(name, outcome, process)
        with self.lock:
            self.report.add(kind, outcome)
            self.spent[kind] = self.report.counts[kind].seconds
            self.seen[kind, outcome.kind] += 1
            again = self.seen[kind, outcome.kind] > REDUCED
        if outcome.failed and not again:
            self._reduce(name, outcome, process)
        elif outcome.failed:
            self.say(f"{name}: {outcome.status} again, {outcome.kind}")
        return outcome

    def _again(self, name: str, outcome: Outcome, process: Process) -> Outcome:
        """A crash that does not happen again in a fresh process is of an earlier case."""
        again = process.check(name, self.limit)
        if again.status == "crash":
            return again
        return replace(outcome, kind=f"{outcome.kind}, only after earlier cases")

    def _confirmed(self, name: str, outcome: Outcome, process: Process) -> Outcome:
        """A hang is told by the clock, and a busy machine is slow: it is looked at twice."""
        again = process.check(name, self.limit)
        if not again.failed:
            self.say(f"{name}: {outcome.status}, {outcome.kind}; not seen again")
        return again

    def _reduce(self, name: str, outcome: Outcome, process: Process) -> None:
        # A hang is shorter than its limit allows: what takes a tenth of it is no hang.
        limit = max(5.0, self.limit / 6) if outcome.status == "hang" else self.limit
        self.say(f"{name}: {outcome.status}, {outcome.kind}; reducing")

        def run(case: Case) -> Outcome:
            return process.check(case, limit)

        case = drawn(name)
        case, tried = reduced(case, outcome.kind, run, self.reduce)
        last = run(case)
        message = last.message if last.kind == outcome.kind else outcome.message
        lines = snippet(case)
        text = f"# {name}: {outcome.status}, {outcome.kind} ({tried} smaller cases tried)\n"
        text += "".join(f"# {line}\n" for line in message.splitlines())
        path = self.folder / f"{name.replace(':', '-')}.py"
        path.write_text(text + lines)
        with self.lock:
            self.report.failures.append(
                {"case": name, "status": outcome.status, "kind": outcome.kind, "message": message}
                | {"snippet": lines}
            )
        self.say(f"{text}{lines}(in {path})")
