"""FillingLog: says in the log that a step fills before it gives its first element, where that takes long."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_LOG = logging.getLogger("penstock.physical")
_FIRST = 5.0  # seconds until something is said, ...
_AGAIN = 20.0  # ... and until it is said again


class FillingLog:
    """Told how far a step is; a line after five seconds, one every twenty, and one when it is full.

    `most` is how many elements there will be; negative where nobody knows.
    """

    def __init__(self, label: str, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._label = label
        self._most = most
        self._clock = clock
        self._begun = clock()
        self._next = self._begun + _FIRST
        self._said = False

    def at(self, count: int) -> None:
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _AGAIN
        self._said = True
        of = f"{count:,} of {self._most:,}" if self._most >= 0 else f"{count:,}"
        text = "%s fills: %s elements after %.0f seconds; the first one comes when it is full"
        _LOG.warning(text, self._label, of, now - self._begun)

    def full(self, count: int) -> None:
        if self._said:
            seconds = self._clock() - self._begun
            _LOG.warning("%s is full: %s elements after %.0f seconds", self._label, f"{count:,}", seconds)
            self._said = False
