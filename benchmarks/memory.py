"""How much memory the machine has."""

from __future__ import annotations

import os


def memory_gb() -> float | None:
    """Return the physical memory in GB, or None where the system does not tell."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
