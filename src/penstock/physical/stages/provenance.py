"""Provenanced: every element with where it was read."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.block.provenance import with_provenance
from penstock.physical.stage import Stage, State


class Provenanced(Stage):
    """`(element, Provenance)`, from the origins that Blocks carry."""

    def __init__(self, upstream: Stage, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream

    def next(self, want: int) -> Block | None:
        block = self._upstream.next(want)
        return None if block is None else with_provenance(block)

    def can_skip(self) -> bool:
        return self._upstream.can_skip()

    def skip(self, count: int) -> int:
        return self._upstream.skip(count)

    def state(self) -> State:
        return self._upstream.state()

    def restore(self, state: State) -> None:
        self._upstream.restore(state)
