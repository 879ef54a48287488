"""Located: a source's elements with their numbers; only where somebody asked for provenance."""

from __future__ import annotations

import numpy as np

from penstock.block.block import Block
from penstock.block.origin import Origin
from penstock.errors import PenstockError
from penstock.physical.located import located
from penstock.physical.stage import Stage, State
from penstock.sources.indexed import IndexedSource
from penstock.sources.source import Source


class Located(Stage):
    """Counts what a Scan gives: over the whole source, or in each file where a source without an index has files."""

    def __init__(self, upstream: Stage, source: Source) -> None:
        super().__init__(upstream.label, (upstream,), upstream.where)
        self._upstream = upstream
        self._source = source
        self._by_file = not isinstance(source, IndexedSource)
        self._count = 0  # the number of the next element
        self._file: str | None = None  # of the last one
        self._offset = -1  # of the last one in it

    def next(self, want: int) -> Block | None:
        try:
            block = self._upstream.next(want)
        except PenstockError as error:
            if self._by_file and error.context.file not in (None, self._file):
                self._file, self._offset, self._count = error.context.file, -1, 0
            self._count += 1
            raise
        except Exception:
            self._count += 1
            raise
        if block is None:
            return None
        if self._by_file and block.origin is not None:
            return located(block, self._source, self._in_files(block.origin))
        numbers = np.arange(self._count, self._count + block.size, dtype=np.int64)
        self._count += block.size
        return located(block, self._source, numbers)

    def _in_files(self, origin: Origin) -> np.ndarray:
        """The number of each element in its file; where offsets do not rise a file begins, be it the same again."""
        offsets, files = origin.offset, origin.file
        begins = np.empty(len(offsets), bool)
        begins[1:] = (files[1:] != files[:-1]) | ((offsets[1:] <= offsets[:-1]) & (offsets[1:] >= 0))
        begins[0] = origin.files[int(files[0])] != self._file or 0 <= int(offsets[0]) <= self._offset
        rows = np.arange(len(offsets), dtype=np.int64)
        numbers = rows - np.maximum.accumulate(np.where(begins, rows, 0))
        numbers[: int(np.argmax(begins)) if begins.any() else len(rows)] += self._count
        self._count = int(numbers[-1]) + 1
        self._file, self._offset = origin.files[int(files[-1])], int(offsets[-1])
        return numbers

    def can_skip(self) -> bool:
        return not self._by_file and self._upstream.can_skip()

    def skip(self, count: int) -> int:
        passed = self._upstream.skip(count)
        self._count += passed
        return passed

    def state(self) -> State:
        return [self._upstream.state(), self._count, self._file, self._offset]

    def restore(self, state: State) -> None:
        below, self._count, self._file, self._offset = state
        self._upstream.restore(below)
