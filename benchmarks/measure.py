"""One measurement: wall time, CPU time and peak memory of one call.

Linux keeps a high-water mark of the resident memory that can be set back, so the peak costs
nothing while the call runs. Elsewhere a thread samples the resident memory (psutil is needed).
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SAMPLE_EVERY_S = 0.01
IDLE_CHECK_S = 0.005
IDLE_SHARE = 0.2
LONGEST_WAIT_S = 1.0
RESET_HIGH_WATER_MARK = "5"  # man 5 proc, /proc/pid/clear_refs


@dataclass(frozen=True)
class Sample:
    """``peak_mb`` is the increase over the resident memory before the call; None if unknown."""

    seconds: float
    cpu_seconds: float
    peak_mb: float | None


def measure(
    call: Callable[[], Any], before: Callable[[], None] | None = None
) -> tuple[Any, Sample]:
    """Run ``call`` once, in a process that earlier calls have left clean and idle.

    ``before`` runs just before it, outside the time: what ``call`` follows wherever it is used.
    """
    gc.collect()
    _give_memory_back()
    _wait_until_idle()
    if before is not None:
        before()
    with _peak_memory() as peak:
        cpu = time.process_time()
        wall = time.perf_counter()
        result = call()
        wall = time.perf_counter() - wall
        cpu = time.process_time() - cpu
    return result, Sample(wall, cpu, peak[0])


def _give_memory_back() -> None:
    """Return freed memory to the system, or a rival would seem to need none of its own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # not glibc
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def _wait_until_idle() -> None:
    """Wait for the worker threads of earlier calls (OpenMP, BLAS, TBB) to stop spinning.

    They wait busily for more work for some milliseconds, at the expense of whoever comes next.
    """
    end = time.perf_counter() + LONGEST_WAIT_S
    while time.perf_counter() < end:
        cpu = time.process_time()
        time.sleep(IDLE_CHECK_S)
        if time.process_time() - cpu < IDLE_SHARE * IDLE_CHECK_S:
            return


@contextlib.contextmanager
def _peak_memory() -> Iterator[list[float | None]]:
    """Yield a list whose only entry is, after the block, the peak increase in MB."""
    peak: list[float | None] = [None]
    if sys.platform == "linux" and _reset_high_water_mark():
        before = _status_kb("VmRSS")
        yield peak
        peak[0] = max(0, _status_kb("VmHWM") - before) / 1024
        return
    try:
        import psutil
    except ImportError:
        yield peak
        return
    with _sampled_peak(psutil.Process()) as highest:
        yield peak
    peak[0] = highest[0]


def _reset_high_water_mark() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text(RESET_HIGH_WATER_MARK)
    except OSError:
        return False
    return True


def _status_kb(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/self/status has no field {field}")


@contextlib.contextmanager
def _sampled_peak(process: Any) -> Iterator[list[float]]:
    before = process.memory_info().rss
    highest = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE_EVERY_S):
            highest[0] = max(highest[0], (process.memory_info().rss - before) / 2**20)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield highest
    finally:
        done.set()
        watcher.join()
