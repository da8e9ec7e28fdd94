"""How much memory kernel rows may take."""

import os
import sys
from pathlib import Path

# Of what is free when a fit begins: enough for the whole kernel of most data, and room for the
# user's own arrays and a second fit beside it.
SHARE = 0.5

MEGABYTE = 1 << 20

# More than any machine has, and what the core can count.
MOST_BYTES = 1 << 62

# What every machine can spare: asking for the free memory takes longer than small fits do.
ALWAYS = 64 * MEGABYTE


def budget_bytes(cache_size: str | float, n_rows: int) -> int:
    """Bytes for the kernel of `n_rows` rows: of a number of megabytes, or of "auto"."""
    # Twice the size of the kernel leaves room for a solver's own copies of it.
    return budget_for(cache_size, 8 * n_rows**2)


def budget_for(cache_size: str | float, needed: int) -> int:
    """Bytes for what `needed` bytes would be enough for."""
    if not isinstance(cache_size, str):
        # As a float: a number of NumPy's may overflow. Nobody has more than can be addressed.
        return int(min(float(cache_size) * MEGABYTE, float(MOST_BYTES)))
    return ALWAYS if needed <= ALWAYS else int(SHARE * available_bytes())


def keeps_matrix(cache_size: str | float, n_rows: int) -> bool:
    """Whether a kernel of doubles may be kept, beside its rows as float32."""
    if isinstance(cache_size, str) and 8 * n_rows**2 <= ALWAYS:
        return True
    return 12 * n_rows**2 <= budget_bytes(cache_size, n_rows)


def available_bytes() -> int:
    """Memory that can be used without swapping, as far as this process may know."""
    free = _system_available()
    limit = _control_group_available()
    return free if limit is None else min(free, limit)


def _system_available() -> int:
    meminfo = Path("/proc/meminfo")
    if meminfo.exists():
        for line in meminfo.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        return _windows_available()
    # macOS keeps most memory in use as cache; three quarters of all of it is a fair guess.
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4


def _control_group_available() -> int | None:
    """What a container's memory limit leaves, or None without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        limit = (folder / "memory.max").read_text().strip()
        if limit == "max":
            return None
        used = int((folder / "memory.current").read_text())
        for line in (folder / "memory.stat").read_text().splitlines():
            if line.startswith("inactive_file "):  # a cache that is given up when memory is asked
                used -= int(line.split()[1])
        return max(0, int(limit) - used)
    except (OSError, ValueError):
        return None


def _windows_available() -> int:
    import ctypes

    class MemoryStatus(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            ("total_physical", ctypes.c_ulonglong),
            ("available_physical", ctypes.c_ulonglong),
            ("rest", ctypes.c_ulonglong * 5),
        )

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.available_physical)
