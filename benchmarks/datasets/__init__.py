"""One file for each group of data sets; each defines ``GROUP``."""

from __future__ import annotations

import sys

from ..plugins import collect
from .base import Group


def all_groups() -> dict[str, Group]:
    """Return every group of data sets by name."""
    return collect(sys.modules[__name__], "GROUP")
