"""One thin file for each library that is compared; each defines ``RIVAL``."""

from __future__ import annotations

import sys

from ..plugins import collect
from .base import Rival


def all_rivals() -> dict[str, Rival]:
    """Return every rival by name, whether it can run on this machine or not."""
    return collect(sys.modules[__name__], "RIVAL")
