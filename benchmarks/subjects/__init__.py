"""One file for each question the benchmarks answer; each defines ``SUBJECT``."""

from __future__ import annotations

import sys

from ..plugins import collect
from .base import Subject


def all_subjects() -> dict[str, Subject]:
    """Return every subject by name."""
    return collect(sys.modules[__name__], "SUBJECT")
