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
    console = Console(stderr=True)
    if show is False or (show is None and not (console.is_terminal or console.is_jupyter)):
        yield from items
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # Where lines cannot be taken back there is one, at the end.
    bar = Progress(*columns, console=console, transient=console.is_terminal)
    task = bar.add_task(name, total=total)
    began, started = monotonic(), False
    try:
        for item in items:
            bar.advance(task)
            if not started and (show or monotonic() - began > DELAY):
                bar.start()
                started = True
            yield item
    finally:
        if started:
            bar.stop()
