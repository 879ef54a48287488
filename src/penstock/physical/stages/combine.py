"""Zip, concatenate, enumerate and repeat: streams put beside or behind each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.block.block import Block
from penstock.block.column import Column, DenseColumn
from penstock.block.structure import LEAF, Structure, nest
from penstock.physical.stage import Cursor, Stage, State


class Zip(Stage):
    """One element of each input in a nest; ends with the shortest."""

    def __init__(self, inputs: tuple[Stage, ...], structure: Structure, label: str, where: str | None) -> None:
        super().__init__(label, inputs, where)
        self._cursors = [Cursor(stage) for stage in inputs]
        self._structure = structure

    def next(self, want: int) -> Block | None:
        if not all(cursor.fill(want) for cursor in self._cursors):
            return None
        count = min(cursor.available() for cursor in self._cursors)
        blocks = [cursor.take_available(count) for cursor in self._cursors]
        columns: list[Column] = [column for block in blocks for column in block.columns]
        structure = nest(self._structure, [block.structure for block in blocks])
        origin = next((block.origin for block in blocks if block.origin is not None), None)
        return Block(structure, columns, count, origin)

    def state(self) -> State:
        return [cursor.state() for cursor in self._cursors]

    def restore(self, state: State) -> None:
        for cursor, part in zip(self._cursors, state, strict=True):
            cursor.restore(part)

    def close(self) -> None:
        for cursor in self._cursors:
            cursor.close()


class Enumerate(Stage):
    """`(number, element)`, counted from `start`."""

    def __init__(self, upstream: Stage, start: int, label: str, where: str | None) -> None:
        super().__init__(label, (upstream,), where)
        self._upstream = upstream
        self._number = start

    def next(self, want: int) -> Block | None:
        block = self._upstream.next(want)
        if block is None:
            return None
        numbers = np.arange(self._number, self._number + block.size, dtype=np.int64)
        self._number += block.size
        structure = nest(_PAIR, [LEAF, block.structure])
        return Block(structure, [DenseColumn(numbers), *block.columns], block.size, block.origin)

    def state(self) -> State:
        return [self._upstream.state(), self._number]

    def restore(self, state: State) -> None:
        below, self._number = state
        self._upstream.restore(below)


_PAIR = Structure(tuple, (), (LEAF, LEAF), 2)


class Sequence(Stage):
    """Streams one behind the other, each built when its turn comes: concatenate, and repeat over epochs.

    `build(i)` gives stream number i; `count` is their number, negative for without end. A stream without elements
    ends an endless repetition, which would otherwise turn for ever without giving anything.
    """

    def __init__(self, build: Callable[[int], Stage], count: int, label: str, where: str | None) -> None:
        super().__init__(label, (), where)
        self._build = build
        self._count = count
        self._index = 0
        self._gave = False  # whether the current stream has given an element
        self._stage: Stage | None = None
        self._state: State = None

    def next(self, want: int) -> Block | None:
        while self._count < 0 or self._index < self._count:
            block = self._current().next(want)
            if block is not None:
                self._gave = True
                return block
            empty = not self._gave
            self._advance()
            if empty and self._count < 0:
                self._count = 0
        return None

    def _current(self) -> Stage:
        if self._stage is None:
            self._stage = self._build(self._index)
            if self._state is not None:
                self._stage.restore(self._state)
                self._state = None
        return self._stage

    def _advance(self) -> None:
        if self._stage is not None:
            self._stage.close()
        self._stage, self._gave = None, False
        self._index += 1

    def state(self) -> State:
        below = self._state if self._stage is None else self._stage.state()
        return [self._index, below, self._gave, self._count]

    def restore(self, state: State) -> None:
        self._index, self._state, self._gave, self._count = state

    def close(self) -> None:
        if self._stage is not None:
            self._stage.close()
