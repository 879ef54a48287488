"""Instrument: an observer of workers. Recorder: an instrument that stores spans for a timeline.

`Watching` and `CachePlacing` are the interface of `Options.autocache`, which adds caches to the plan of an iteration.
"""

from __future__ import annotations

import threading
from typing import Protocol

from penstock.errors import InvalidArgumentError
from penstock.physical.lower import StageObserver
from penstock.plan.node import Node

Span = tuple[str, str, float, float]  # thread, stage, start and stop in seconds of time.perf_counter


class Instrument(Protocol):
    """An observer that workers call, from any thread.

    It must be fast and must not raise: an error ends the iteration.
    """

    def span(self, stage: str, start: float, stop: float) -> None:
        """Record that the calling thread worked for a stage from `start` to `stop` (seconds of `time.perf_counter`)."""


def tell(instrument: Instrument, stage: str, start: float, stop: float) -> None:
    """Report a span to an instrument. Raises InvalidArgumentError if the instrument raises."""
    try:
        instrument.span(stage, start, stop)
    except Exception as raised:
        message = f"The instrument of this iteration raised {type(raised).__name__}: {raised}".rstrip(": ")
        hint = "The iteration ends here. `span` of the instrument must handle its own errors."
        raise InvalidArgumentError(message, hint=hint) from raised


class Recorder:
    """An instrument for `Dataset.iterator` that stores the spans of all workers: thread, stage, start and stop.

    Example:
        >>> import penstock as ps
        >>> recorder = Recorder()
        >>> ds = ps.Dataset.range(100).map(lambda x: x + 1, num_parallel_calls=2)
        >>> total = sum(ds.iterator(instrument=recorder))
        >>> len(recorder.spans) > 0
        True
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []  # append() is atomic

    def span(self, stage: str, start: float, stop: float) -> None:
        self.spans.append((threading.current_thread().name, stage, start, stop))


class Silent:
    """An instrument that ignores all spans."""

    def span(self, stage: str, start: float, stop: float) -> None:
        """Ignore the span."""


class Watching(Protocol):
    """The observer of one iteration, from its first element. `meter` observes its stages."""

    meter: StageObserver | None

    def ended(self) -> None:
        """Note that the last element was returned."""


class CachePlacing(Protocol):
    """Chooses the place of a cache in a plan. The elements and their order are the same for every place."""

    @property
    def place(self) -> str | None:
        """The place of the cache in iterations that begin now."""

    def placed(self, place: str | None) -> Node:
        """Return the plan with a cache at that place, or the original plan if the place is None or unknown."""

    def watch(self, running: Node, place: str | None) -> Watching:
        """Observe an iteration over `running`, which has a cache at `place`."""
