"""Workers whose extension is built under sanitizers, by ``make campaign SANITIZE=…``."""

from __future__ import annotations

import subprocess
from pathlib import Path

from campaign import ROOT

# How much longer a case may take.
SLOWER = 10
LIBRARIES = {"address": "libasan.so", "thread": "libtsan.so"}


def package(sanitize: str) -> Path:
    """The folder with the package of this build."""
    return ROOT / "build" / f"campaign-{sanitize}" / "package"


def environment(sanitize: str) -> dict[str, str]:
    """Variables of the workers; none without sanitizers."""
    if not sanitize:
        return {}
    if not (package(sanitize) / "onefit").is_dir():
        raise SystemExit(f"There is no build: make campaign SANITIZE={sanitize} makes one.")
    first = sanitize.split(",")[0]
    # Python is not linked with the library of C++, whose exceptions the sanitizer follows.
    libraries = [_library(name) for name in (LIBRARIES[first], "libstdc++.so")]
    suppressions = ROOT / "campaign" / "thread.supp"
    return {
        "PYTHONPATH": str(package(sanitize)),
        "LD_PRELOAD": " ".join(libraries),
        # Python keeps memory until it ends, and takes its own segmentation faults.
        "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": f"suppressions={suppressions}:exitcode=66:halt_on_error=1",
    }


def _library(name: str) -> str:
    return subprocess.check_output(["gcc", f"-print-file-name={name}"], text=True).strip()
