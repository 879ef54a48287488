"""TakeWhile: the elements in front of the first one that a predicate refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.block.block import Block
from penstock.errors import Context, as_failure
from penstock.physical.predicate import truth, verdicts
from penstock.physical.stage import Stage, State, StretchStage
from penstock.physical.stretch import Stretch
from penstock.physical.vectorise import Vectoriser
from penstock.trace.kinds.warn_of_text import warn_of_text


class TakeWhile(StretchStage):
    """Ends at the first False. Nothing is asked of upstream behind the Block that holds it."""

    def __init__(
        self, upstream: Stage, predicate: Callable[..., Any], label: str, where: str | None, *, vectorise: bool
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._predicate = predicate
        self._vectoriser = Vectoriser(predicate) if vectorise else None
        self._looked = False  # whether the predicate was looked at with its first Block
        self._count = 0
        self._ended = False

    def make(self, want: int) -> Stretch | None:
        if self._ended:
            return None
        first = self._count
        try:
            block = self._upstream.next(want)
        except Exception:
            self._count += 1
            raise
        if block is None:
            return None
        if not self._looked:
            self._looked = True
            warn_of_text(self._predicate, block)
        mask = None if self._vectoriser is None else verdicts(self._vectoriser, block)
        if mask is None:
            return self._per_element(block, first)
        return self._front(block, len(mask) if mask.all() else int(mask.argmin()), ())

    def _per_element(self, block: Block, first: int) -> Stretch:
        predicate, unpacks = self._predicate, block.structure.unpacks
        failures: list[tuple[int, Exception]] = []
        count = 0
        for element in block.elements():
            try:
                if not truth(predicate(*element) if unpacks else predicate(element)):
                    break
            except Exception as raised:
                file, offset = (None, None) if block.origin is None else block.origin.at(count)
                context = Context(self.label, self.where, first + count, file, offset)
                failures.append((count, as_failure(raised, context, element)))
            count += 1
        return self._front(block, count, tuple(failures))

    def _front(self, block: Block, count: int, failures: tuple[tuple[int, Exception], ...]) -> Stretch:
        """The first `count` positions of a Block; fewer than all are the last."""
        self._count += count
        self._ended = count < block.size
        if failures:
            rows = np.delete(np.arange(count), [row for row, _ in failures])
            return Stretch(block.take(rows) if len(rows) else None, failures)
        return Stretch(block.slice(0, count) if count else None)

    def place(self) -> State:
        return [self._upstream.state(), self._count, self._ended]

    def go_to(self, place: State) -> None:
        below, self._count, self._ended = place
        self._upstream.restore(below)
