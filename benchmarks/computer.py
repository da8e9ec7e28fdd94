"""Facts about the machine and the libraries, so that a result can be understood later."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from .memory import memory_gb
from .rivals.base import Rival

BASICS = ("numpy", "scipy", "scikit-learn", "threadpoolctl")


def facts(rivals: list[Rival]) -> dict[str, Any]:
    """Return CPU, memory, versions and date; rivals that cannot run keep their reason."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu_name(),
        "cores": _cores(),
        "memory_gb": memory_gb(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "libraries": {name: metadata.version(name) for name in BASICS},
        "blas": _blas(),
        "rivals": {rival.name: _rival(rival) for rival in rivals},
    }


def _rival(rival: Rival) -> dict[str, Any]:
    runnable, text = rival.available()
    return {"runnable": runnable, "version" if runnable else "reason": text}


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _blas() -> list[str]:
    from threadpoolctl import threadpool_info

    return sorted(
        {
            f"{pool['internal_api']} {pool.get('version') or ''}".strip()
            + (f" ({pool['architecture']})" if pool.get("architecture") else "")
            for pool in threadpool_info()
        }
    )
