"""FillingLog: a step that fills before it gives its first element, how much it asks for at a time, and what it says.

Where an element takes long, few are asked for: nobody can stop a pass, or say how far it is, in the middle of a Block.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_LOG = logging.getLogger("penstock.physical")
_FIRST = 5.0  # seconds until something is said, ...
_AGAIN = 20.0  # ... and until it is said again
_SHORT, _LONG = 0.02, 0.1  # seconds that a Block may take, until more or fewer are asked for


class FillingLog:
    """Told how far a step is; a line after five seconds, one every twenty, and one when it is full.

    The first time it asks for `ask` elements, and never for more than `at_once`. `most` is how many there will be;
    negative where nobody knows.
    """

    def __init__(
        self,
        label: str,
        most: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        ask: int = 1,
        at_once: int = 4096,
    ) -> None:
        self._at_once = at_once
        self._ask = ask
        self._label = label
        self._most = most
        self._clock = clock
        self._begun = clock()
        self._next = self._begun + _FIRST
        self._said = False
        self._last = self._begun

    def ask(self) -> int:
        """How many elements to ask for next."""
        return self._ask

    def at(self, count: int) -> None:
        """Note that `count` elements are there, the last of them those that were asked for."""
        now = self._clock()
        taken, self._last = now - self._last, now
        if taken < _SHORT:
            self._ask = min(4 * self._ask, self._at_once)
        elif taken > _LONG:
            self._ask = max(self._ask // 4, 1)
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
