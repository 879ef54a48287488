"""Scan: a source's elements."""

from __future__ import annotations

from penstock.block.block import Block
from penstock.errors import Context, raise_as_failure
from penstock.physical.stage import Stage, State
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.sources.indexed import IndexedSource
from penstock.sources.source import Reader, Source


class Scan(Stage):
    """Reads a source from its start, or from a stored position; opens it when the first element is wanted."""

    def __init__(self, source: Source, label: str, where: str | None) -> None:
        super().__init__(label, (), where)
        self._source = source
        self._reader: Reader | None = None
        self._position: State = None
        self._unreadable = False  # opening it failed: nothing comes behind that failure

    def next(self, want: int) -> Block | None:
        if self._unreadable:
            return None
        try:
            if self._reader is None:
                self._unreadable = True
                self._reader = self._source.open(self._position)
                self._unreadable = False
            return self._reader.read(want)
        except Exception as error:
            raise_as_failure(error, Context(stage=self.label, where=self.where))

    def whole(self, most: int) -> Block | None:
        """All its elements, where they are in memory and not more than that, before it is asked for any; else None."""
        source = self._source
        if not isinstance(source, (RangeSource, ArraysSource)) or not 0 < (size := source.cardinality) <= most:
            return None
        return source.rows(0, size)

    def state(self) -> State:
        return self._position if self._reader is None else self._reader.position()

    def restore(self, state: State) -> None:
        self._position = state

    def can_skip(self) -> bool:
        source = self._source
        return isinstance(source, IndexedSource) and type(source).open is IndexedSource.open

    def skip(self, count: int) -> int:
        assert isinstance(self._source, IndexedSource)
        before = self._position or 0
        self._position = min(before + count, self._source.cardinality)
        return int(self._position) - before

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
