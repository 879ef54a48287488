"""Bucket: elements of like length as batches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.block.block import Block
from penstock.errors import Context, PenstockError, annotate
from penstock.physical.stage import Stage, State
from penstock.physical.stages.keyed_windows import KeyedWindows

Stack = Callable[[Block, int], Block]  # so many elements as one


class Bucket(Stage):
    """Each window as one element, made by the function of its key; the keys are the numbers of the buckets."""

    def __init__(
        self,
        upstream: Stage,
        windows: KeyedWindows,
        sizes: Sequence[int],
        stacks: Sequence[Stack],
        label: str,
        where: str | None,
        *,
        drop_remainder: bool,
    ) -> None:
        super().__init__(label, (upstream,), where)
        self._windows = windows
        self._sizes = sizes
        self._stacks = stacks
        self._drop_remainder = drop_remainder

    def next(self, want: int) -> Block | None:
        self._windows.singly = self.acts
        while (window := self._windows.next(want)) is not None:
            size = window.elements.size
            if size < self._sizes[window.key] and self._drop_remainder:
                continue
            try:
                return self._stacks[window.key](window.elements, size)
            except PenstockError as error:
                annotate(error, Context(stage=self.label, where=self.where, element=window.number))
                raise
        return None

    def state(self) -> State:
        return self._windows.state()

    def restore(self, state: State) -> None:
        self._windows.restore(state)

    def close(self) -> None:
        self._windows.close()
