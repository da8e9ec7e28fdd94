"""Finds the plug-ins: every module of a folder that defines the agreed name.

Adding a rival, a group of data sets or a subject is therefore adding one file, and nothing else.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType
from typing import Any


def collect(package: ModuleType, attribute: str) -> dict[str, Any]:
    """Return ``{plugin.name: plugin}`` for the modules of ``package`` that define ``attribute``.

    They are ordered by ``plugin.rank``, then by name.
    """
    found = []
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        if hasattr(module, attribute):
            found.append(getattr(module, attribute))
    return {plugin.name: plugin for plugin in sorted(found, key=lambda p: (p.rank, p.name))}


def choose(available: dict[str, Any], wanted: list[str] | None, what: str) -> list[Any]:
    """Return the plug-ins called ``wanted`` (all of them if None), or say which names exist."""
    if wanted is None:
        return list(available.values())
    unknown = [name for name in wanted if name not in available]
    if unknown:
        raise SystemExit(f"unknown {what} {', '.join(unknown)}; there are: {', '.join(available)}")
    return [available[name] for name in wanted]
