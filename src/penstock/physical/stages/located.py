"""Stages that add the origin of elements.

`LocatedStage` numbers the elements of a source, if provenance was requested. `ProvenanceStage` adds the origins.
`NumbersStage` yields 0, 1, 2, … for a plan that is read by index. `drain` runs a stage to its end, to fill caches
on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.block.origin import Origin
from penstock.errors import PenstockError
from penstock.physical.memory import FillingLog
from penstock.physical.stage import Stage, State, UnaryStage
from penstock.physical.stretch import failed, fatal
from penstock.plan.indexing import with_provenance
from penstock.plan.node import NamedStep
from penstock.sources.source import IndexedSource, SlicedSource, Source

_AT_ONCE = 1024  # elements requested from a cache at a time while it fills, at most


def drain(stage: Stage, label: str, count: int = -1, pieces: list[Block | Exception] | None = None) -> Exception | None:
    """Run a stage to its end; return its first failure. `pieces` receives its Blocks and failures. Progress is logged.

    `count` is the expected number of elements, negative if unknown.
    """
    log = FillingLog(label, count, at_once=_AT_ONCE)
    done = 0
    first: Exception | None = None
    while True:
        piece: Block | Exception | None
        try:
            piece = stage.next(log.ask())
        except Exception as error:
            piece = failed(error)
        if piece is None:
            log.full(done)
            return first
        if first is None and isinstance(piece, Exception):
            first = piece
        done += piece.size if isinstance(piece, Block) else 1
        log.at(done)
        if pieces is not None:
            pieces.append(piece)


def located(block: Block, source: Source, numbers: np.ndarray) -> Block:
    """Return a Block of a source's elements with these indices, with an origin that contains them."""
    if isinstance(source, IndexedSource):
        source, numbers = _whole(source, numbers)
    origin = block.origin
    if origin is None:
        origin = Origin.of_source(source.label, numbers)
    elif origin.position is None:
        origin = Origin(origin.files, origin.file, origin.offset, numbers)
    return Block(block.structure, block.columns, block.size, origin)


def _whole(source: IndexedSource, numbers: np.ndarray) -> tuple[IndexedSource, np.ndarray]:
    """Return the whole source of a slice, and the indices in it: slices that rewrites create must not be observable."""
    while isinstance(source, SlicedSource):
        numbers = source.start + numbers * source.step
        source = source.inner
    return source, numbers


class LocatedStage(UnaryStage):
    """Numbers the elements of a Scan: over the whole source, or per file if the source has files and no index."""

    moving = ("_count", "_file", "_offset")

    def __init__(self, upstream: Stage, source: Source) -> None:
        super().__init__(upstream, upstream)
        self._source = source
        self._by_file = not isinstance(source, IndexedSource)
        self._count = 0  # number of the next element
        self._file: str | None = None  # file of the last element
        self._offset = -1  # offset of the last element in its file

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
        """Return the number of each element in its file.

        A file begins where offsets stop rising, even if the name is the same.
        """
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


class ProvenanceStage(UnaryStage):
    """Yields `(element, Provenance)` from the origins of Blocks."""

    def next(self, want: int) -> Block | None:
        block = self._upstream.next(want)
        return None if block is None else with_provenance(block)

    def can_skip(self) -> bool:
        return self._upstream.can_skip()

    def skip(self, count: int) -> int:
        return self._upstream.skip(count)


class NumbersStage(Stage):
    """Yields the numbers below `size()`, which is called for the first number.

    Before that, each stream of `fill` is run completely: caches, which store whole iterations only. If the size is
    unknown because a file cannot be counted, elements have no positions, and the run ends.
    """

    def __init__(self, size: Callable[[], int], fill: Sequence[Callable[[], Stage]], step: NamedStep) -> None:
        super().__init__(step.label, (), step.where)
        self._size_of = size
        self._fill = list(fill)
        self._size = -1
        self._at = 0

    def next(self, want: int) -> Block | None:
        if self._size < 0:
            self._prepare()
        stop = min(self._at + want, self._size)
        if stop <= self._at:
            return None
        numbers = np.arange(self._at, stop, dtype=np.int64)
        self._at = stop
        return Block.single(DenseColumn(numbers))

    def _prepare(self) -> None:
        while self._fill:
            stream = self._fill.pop()()
            try:
                drain(stream, stream.label)
            finally:
                stream.close()
        try:
            self._size = self._size_of()
        except Exception as error:
            raise fatal(error, self.label, self.where) from error

    def can_skip(self) -> bool:
        return True

    def skip(self, count: int) -> int:
        if self._size < 0:
            self._prepare()
        at = self._at
        self._at = max(min(at + count, self._size), at)
        return self._at - at

    def state(self) -> State:
        return self._at

    def restore(self, state: State) -> None:
        self._at = state
