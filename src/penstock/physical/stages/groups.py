"""Groups of elements by key: windows passed to a function that returns a data set, or groups reduced to one value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.leaf import settle
from penstock.block.same_kind import SameKind
from penstock.block.scan_state import ScanState
from penstock.block.structure import components, flatten, refuse_none
from penstock.errors import Context, annotate, as_failure
from penstock.physical.chained import Begun, Growing
from penstock.physical.inner_inputs import OpeningStage
from penstock.physical.key_function import KeyFunction
from penstock.physical.stage import Cursor, Stage, State
from penstock.physical.stages.keyed_windows import KeyedWindow, KeyedWindows
from penstock.physical.stretch import Stretch, failed
from penstock.plan.grouping import GroupByReducer, GroupByWindow


class GroupByWindowStage(OpeningStage):
    """Yields the elements of the data sets that a function creates from windows, one data set after another.

    The state is that of the windows. While a data set is open, it is the state that yields its window again, and the
    state of the data set.
    """

    def __init__(
        self, upstream: Stage, windows: KeyedWindows, open_window: Callable[[KeyedWindow], Stage], node: GroupByWindow
    ) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._windows = windows
        self._open_window = open_window
        self._open: Stage | None = None
        # like `seen` and `seen_below`, for the data sets created from windows
        self._looked: object = None  # value of `Stage.latest_look` at the last check
        self._resume: list[State] = []  # state of the data set that an earlier run had open
        self._begun = Begun({})

    def next(self, want: int) -> Block | None:
        while True:
            if self._open is None:
                self._windows.singly = self.acts
                window = self._windows.next(want)
                if window is None:
                    return None
                self._open = self._opened(window)
                self._looked = None
            block = self._open.next(1 if self._open.seen else want)
            if self._looked is not Stage.latest_look:  # the data set is new, or has opened other data sets itself
                self._looked = Stage.latest_look
                self.look_at(self._open)
            if block is not None:
                return block
            self._open.close()
            self._open = None

    def _opened(self, window: KeyedWindow) -> Stage:
        resume, self._resume = self._resume, []
        try:
            found = self._open_window(window)
        except Exception as raised:
            annotate(raised, Context(self.label, self.where, window.number))
            raise
        if not self._begun.resume(window.number, found) and resume:  # a state that grew replaces the saved one
            found.restore(*resume)
        self._begun.note(window.number, found, found)
        return found

    def state(self) -> State:
        if self._open is not None:
            parts = [self._windows.state_of_last(), [self._open.state()]]
        else:
            parts = [self._windows.state(), list(self._resume)]
        return Growing(parts, self._begun.since())

    def restore(self, state: State) -> None:
        windows, self._resume, *later = state
        self._begun = Begun(dict(later[0]) if later else {})
        self._windows.restore(windows)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
        self._windows.close()


_READ_AHEAD = 1024  # elements requested at once: no result is possible before the last element


class GroupByReducerStage(Stage):
    """Yields one element per key in ascending order of the keys, after the end of the input, and before them failures.

    The state is that of the input at its start, and the number of failures and elements yielded: a resumed iteration
    reduces all groups again.
    """

    def __init__(self, upstream: Stage, keys: KeyFunction, node: GroupByReducer) -> None:
        super().__init__(node.label, (upstream,), node.where)
        self._cursor = Cursor(upstream)
        self._keys = keys
        self._reducer = node.reducer
        self._groups: dict[int, ScanState] = {}
        self._same_kind = SameKind("The result of finalize_func")
        self._pieces: Iterator[Block | Exception] | None = None
        self._start: State = None
        self._given = 0
        self._skip = 0  # number of results that an earlier run had yielded
        self._want = 1

    def next(self, want: int) -> Block | None:
        self._want = want
        if self._pieces is None:
            self._start = self._cursor.state()
            self._pieces = self._made()
        for piece in self._pieces:
            size = piece.size if isinstance(piece, Block) else 1
            if size <= self._skip:
                self._skip -= size
                continue
            self._given += size - self._skip
            at, self._skip = self._skip, 0
            if isinstance(piece, Block):
                return piece.slice(at, size)
            raise piece
        return None

    def _made(self) -> Iterator[Block | Exception]:
        yield from self._reduced()
        keys = sorted(self._groups)
        while keys:
            some, keys = keys[: self._want], keys[self._want :]
            yield from self._finalized(some)

    def _reduced(self) -> Iterator[Exception]:
        """Reduce the whole input; yield its failures."""
        first = 0
        while True:
            try:
                if not self._cursor.fill(_READ_AHEAD):
                    return
                block = self._cursor.take_available(_READ_AHEAD)
            except Exception as error:
                first += 1
                yield failed(error)
                continue
            yield from self._add(block, first)
            first += block.size

    def _add(self, block: Block, first: int) -> Iterator[Exception]:
        keys, errors = self._keys(block, first)
        groups, init, reduce = self._groups, self._reducer.init_func, self._reducer.reduce_func
        for row, (key, element) in enumerate(zip(keys.tolist(), block.elements(), strict=True)):
            if row in errors:
                yield errors[row]
                continue
            try:
                group = groups.get(key) or _begun([init(np.int64(key))])
                group.replace([reduce(group.nest(), element)])
            except Exception as raised:
                yield as_failure(raised, Context(self.label, self.where, first + row, *block.origin_at(row)))
            else:
                groups[key] = group

    def _finalized(self, keys: list[int]) -> Iterator[Block | Exception]:
        function = self._reducer.finalize_func
        builder = BlockBuilder()
        rows: list[int] = []  # the rows of keys with a result
        failures: list[tuple[int, Exception]] = []
        for row, key in enumerate(keys):
            value = self._groups[key].nest()
            try:
                builder.add(components(function(*value) if type(value) is tuple else function(value)))
            except Exception as raised:
                failures.append((row, as_failure(raised, Context(self.label, self.where))))
            else:
                rows.append(row)
        block: Block | None = None
        if rows:
            block, mixed = self._same_kind.build(builder, None)
            for at, error in mixed:
                error.context = Context(self.label, self.where)
                failures.append((rows[at], error))
        return Stretch(block, tuple(sorted(failures, key=lambda failed: failed[0]))).pieces()

    def state(self) -> State:
        return [self._cursor.state() if self._pieces is None else self._start, self._given]

    def restore(self, state: State) -> None:
        below, self._given = state
        self._skip = self._given
        self._cursor.restore(below)

    def close(self) -> None:
        self._groups.clear()
        self._cursor.close()


def _begun(held: list[Any]) -> ScanState:
    """Return a state that begins with `held.pop()`. Only the list refers to that value."""
    leaves, structure = flatten(components(held.pop()))
    refuse_none(structure)
    return ScanState(structure, settle(leaves))
