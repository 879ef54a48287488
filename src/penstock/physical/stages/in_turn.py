"""Rounds: an element of each source in turn."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from penstock.physical.stage import State
from penstock.physical.stages.mix import Choices, Chooser


class Rounds(Chooser):
    """Goes round the sources that have not run dry."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._turn = 0  # the source whose turn is next, or the one behind it that has not run dry

    def next(self, want: int, dry: Collection[int]) -> Choices | None:
        if len(dry) == self._count:
            return None
        return _Round(self, self._turn, want, dry)

    def picks(self, turn: int, want: int, dry: Collection[int]) -> np.ndarray:
        """The next sources, from this turn on."""
        there = [source for source in range(self._count) if source not in dry]
        order = [source for source in there if source >= turn] + [source for source in there if source < turn]
        found = np.resize(np.array(order, np.int64), want)
        self._turn = (int(found[-1]) + 1) % self._count
        return found

    def state(self) -> State:
        return self._turn

    def restore(self, state: State) -> None:
        self._turn = state


class _Round(Choices):
    """Steps from the turn of one source on."""

    def __init__(self, rounds: Rounds, turn: int, want: int, dry: Collection[int]) -> None:
        self._rounds = rounds
        self._dry = set(dry)
        self.picks = rounds.picks(turn, want, dry)
        self.errors = {}

    def ran_dry(self, source: int, at: int) -> None:
        self._dry.add(source)
        self.picks[at:] = self._rounds.picks(source, len(self.picks) - at, self._dry)
