"""Scale: how many workers there are to be, by what consumers say of their waiting.

A machine without a clock. It grows only: workers of one consumer end with its pass, and those of a service that nobody
uses are let go of (`rest`). No element depends on the number.
"""

from __future__ import annotations

_MUCH = 0.1  # of a consumer's time: a further worker may shorten it


class Scale:
    """`wanted` workers, from half of `most` to `most`; always `most` unless it is `auto`."""

    def __init__(self, most: int, *, auto: bool) -> None:
        self.most = most
        self._least = max(most // 2, 1) if auto else most
        self.wanted = self._least

    def told(self, waiting: float, there: int) -> None:
        """A consumer has waited this share of its time, while so many workers were ready."""
        if waiting > _MUCH and there >= self.wanted:
            self.wanted = min(self.wanted + max(self.wanted // 2, 1), self.most)

    def rest(self) -> None:
        """Nobody needs them now."""
        self.wanted = self._least
