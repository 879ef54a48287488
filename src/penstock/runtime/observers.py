"""Instrument: an observer of what workers do; Recorder, which keeps it for a timeline.

Watching and Placing: what an iterator knows of whoever puts caches into its plan (`Options.autocache`).
"""

from __future__ import annotations

import threading
from typing import Protocol

from penstock.errors import InvalidArgumentError
from penstock.physical.lower import StageObserver
from penstock.plan.node import Node

Span = tuple[str, str, float, float]  # thread, stage, start and stop in seconds of time.perf_counter


class Instrument(Protocol):
    """Called by workers, from any thread; must be quick and must not raise: an error in it ends the pass."""

    def span(self, stage: str, start: float, stop: float) -> None:
        """The calling thread has worked for a stage from `start` to `stop` (seconds of `time.perf_counter`)."""


def tell(instrument: Instrument, stage: str, start: float, stop: float) -> None:
    """Tell an instrument of a span. Raises InvalidArgumentError where it raises."""
    try:
        instrument.span(stage, start, stop)
    except Exception as raised:
        message = f"The instrument of this pass raised {type(raised).__name__}: {raised}".rstrip(": ")
        hint = "The pass ends here. `span` of what iterator(instrument=...) was given has to take its errors itself."
        raise InvalidArgumentError(message, hint=hint) from raised


class Recorder:
    """An instrument for `Dataset.iterator` that keeps the spans of all workers: what each did, and when.

    Example:
        >>> import penstock as ps
        >>> recorder = Recorder()
        >>> ds = ps.Dataset.range(100).map(lambda x: x + 1, num_parallel_calls=2)
        >>> total = sum(ds.iterator(instrument=recorder))
        >>> len(recorder.spans) > 0
        True
    """

    def __init__(self) -> None:
        self.spans: list[Span] = []  # appending is atomic

    def span(self, stage: str, start: float, stop: float) -> None:
        self.spans.append((threading.current_thread().name, stage, start, stop))


class Silent:
    """Observes nothing."""

    def span(self, stage: str, start: float, stop: float) -> None:
        """Nothing is kept."""


class Watching(Protocol):
    """One pass, from its first element: `meter` is shown its stages."""

    meter: StageObserver | None

    def ended(self) -> None:
        """Its last element was given."""


class Placing(Protocol):
    """Says where a cache stands in a plan; elements and their order are the same wherever it does."""

    @property
    def place(self) -> str | None:
        """Where it is to stand in passes that begin now."""

    def placed(self, place: str | None) -> Node:
        """The plan with a cache at that place, as written where there is none or nobody knows the place."""

    def watch(self, running: Node, place: str | None) -> Watching:
        """A pass over `running`, in which a cache stands at that place, begins."""
