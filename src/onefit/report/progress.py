"""A progress bar for long work, where a person is watching."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import monotonic
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")

# Work that is done sooner shows nothing.
DELAY = 1.0  # seconds


def shown(items: Iterable[T], total: int, name: str, show: bool | None = None) -> Iterator[T]:
    """The items, with a bar that advances as they come.

    Shown always, never, or (None) in a terminal or notebook once the work has taken a second. It
    goes to standard error, and is gone when the work ends, is stopped or fails.
    """
    bar: Progress | None = None
    began = monotonic()
    try:
        for number, item in enumerate(items, start=1):
            if bar is None and (show or (show is None and monotonic() - began > DELAY)):
                bar = _bar(name, total, even_if_nobody_watches=bool(show))
                show = show if bar is not None else False
            if bar is not None:
                bar.update(bar.task_ids[0], completed=number)
            yield item
    finally:
        if bar is not None:
            bar.stop()


class Meter:
    """The same for work that tells when a part of it is done."""

    def __init__(self, total: int, name: str, show: bool | None = None) -> None:
        self._total, self._name, self._show = total, name, show
        self._began = monotonic()
        self._done = 0
        self._bar: Progress | None = None

    def advance(self, parts: int = 1) -> None:
        self._done += parts
        if self._show is False:
            return
        waited = self._show is None and monotonic() - self._began > DELAY
        if self._bar is None and (self._show or waited):
            self._bar = _bar(self._name, self._total, even_if_nobody_watches=bool(self._show))
            self._show = self._show if self._bar is not None else False
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def is_shown(show: bool | None) -> bool:
    """Whether a bar of work that is long would be seen."""
    console = Console(stderr=True)
    return bool(show or (show is None and (console.is_terminal or console.is_jupyter)))


def _bar(name: str, total: int, even_if_nobody_watches: bool) -> Progress | None:
    """A bar that has started, if there is somebody to see it."""
    console = Console(stderr=True)
    if not (even_if_nobody_watches or console.is_terminal or console.is_jupyter):
        return None
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # Where lines cannot be taken back there is one, at the end.
    bar = Progress(*columns, console=console, transient=console.is_terminal)
    bar.add_task(name, total=total)
    bar.start()
    return bar
