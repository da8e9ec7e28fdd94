"""One file for each kind of support vector machine that is fitted; each defines ``MACHINE``."""

from __future__ import annotations

import sys

from ..plugins import collect
from .base import Machine


def all_machines() -> dict[str, Machine]:
    """Return every machine by name."""
    return collect(sys.modules[__name__], "MACHINE")
