"""Progress: what preparing shows while it runs; bars on a terminal, one line per split elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class Progress:
    """Follows the steps of one preparation; writes to stderr.

    On a terminal each step is a bar; elsewhere (a log, a pipe) nothing is written until `say`.
    """

    def __init__(self) -> None:
        self.is_terminal = sys.stderr.isatty()
        self._bars: object | None = None

    @contextmanager
    def follow(self, items: Iterable[T], title: str, total: int | None) -> Iterator[Iterator[T]]:
        """The same `items`, counted as they pass."""
        if not self.is_terminal:
            yield iter(items)
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description:<34}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
        with Bars(*columns, console=Console(stderr=True)) as bars:
            yield iter(bars.track(items, total=total, description=title))

    def say(self, line: str) -> None:
        """Write one line, where no bar has shown the same."""
        if not self.is_terminal:
            print(line, file=sys.stderr, flush=True)  # noqa: T201 - the point of this file


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start
