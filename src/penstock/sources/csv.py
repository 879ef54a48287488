"""The rows of CSV files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from penstock.block.block import Block
from penstock.block.origin import Origin
from penstock.block.spec import TensorSpec
from penstock.block.structure import Structure
from penstock.errors import Context, InvalidArgumentError, annotate
from penstock.io.csv_columns import LEAST, arrow_columns, plain_columns, rows_of
from penstock.io.csv_format import CsvFormat
from penstock.io.csv_reader import CsvChunk, CsvReader
from penstock.sources.files import FileReader, FilesSource, Place
from penstock.sources.row_files import ReadRows, RowQueue


@dataclass(frozen=True, kw_only=True)
class CsvSource(FilesSource):
    """The selected columns of every row as a nest of scalars, each row with its file and offset.

    `order` maps leaves of `structure` to columns, if their orders differ.
    """

    format: CsvFormat
    structure: Structure
    header: bool = False
    order: tuple[int, ...] | None = None

    kind: ClassVar[str] = "CsvDataset"

    @property
    def spec(self) -> Any:
        return self.structure.build([TensorSpec((), self.format.columns[i].dtype) for i in self.leaves])

    @property
    def leaves(self) -> Sequence[int]:
        """Return the column number of each leaf."""
        return range(len(self.format.columns)) if self.order is None else self.order

    def open_file(self, name: str, place: Place) -> FileReader:
        layout = self.format
        reader = CsvReader(
            *(name, layout.delimiter, layout.quote),
            compression_type=self.compression_type,
            buffer_size=self.buffer_size,
            offset=place,
        )
        if self.header and not place and reader.read(1) is None:
            message = "The file is empty, and header=True asks for a first row with names."
            raise InvalidArgumentError(message, hint="Leave the file out, or pass header=False.", file=name)
        return _CsvFile(self, name, reader)


class _CsvFile(FileReader):
    def __init__(self, source: CsvSource, name: str, reader: CsvReader) -> None:
        super().__init__(name, reader)
        self._source = source
        self._rows = RowQueue(name)
        self._odd_numbers = False  # True if the last rows had odd numbers, because the next rows may have some too

    def read(self, max_elements: int) -> Block | None:
        while not self._rows:
            chunk = self._reader.read()
            if chunk is None:
                return None
            self._rows.put(chunk.offsets + chunk.base, partial(self._parsed, chunk))
        return self._rows.take(max_elements)

    def _parsed(self, whole: CsvChunk, start: int, stop: int) -> ReadRows:
        chunk = whole.part(start, stop)
        layout = self._source.format
        found = None
        if chunk.content.size >= LEAST and len(chunk.rows) < len(chunk):
            found = arrow_columns(chunk, layout, odd_numbers=self._odd_numbers)
            if found is None and len(chunk) > 1:
                message = "a part of the rows is to be asked for"
                raise ValueError(message)
        if found is None:
            found = plain_columns(chunk, layout)
        self._odd_numbers = found.odd_numbers
        offsets = chunk.offsets + chunk.base

        def fields_of(row: int) -> list[bytes]:
            return rows_of(chunk, layout, [row])[0].fields

        failures: list[tuple[int, Exception]] = [
            (row, layout.row_error(fields_of(row), status, self._name, int(offsets[row]), int(offsets[row + 1])))
            for row, status, _ in found.unread
        ]
        wrong = np.zeros(len(found.rows), bool)
        for number, (place, bad) in enumerate(zip(layout.places, found.wrong, strict=True)):
            if not bad.any():
                continue
            for i in np.flatnonzero(bad & ~wrong).tolist():
                row = int(found.rows[i])
                failures.append((row, layout.field_error(number, fields_of(row)[place], self._name, int(offsets[row]))))
            wrong |= bad
        failures.sort(key=lambda failure: failure[0])
        for row, error in failures:
            annotate(error, Context(file=self._name, line=self._reader.line_at(int(offsets[row]))))
        block = None
        if len(found.rows):
            origin = Origin.of_file(self._name, offsets[found.rows])
            leaves = [found.columns[i] for i in self._source.leaves]
            block = Block(self._source.structure, leaves, len(found.rows), origin)
            if wrong.any():
                kept = np.flatnonzero(~wrong)
                block = block.take(kept) if len(kept) else None
        return ReadRows(block, failures, offsets)

    def place(self) -> Place:
        return self._rows.place() if self._rows else self._reader.tell()

    @property
    def over(self) -> bool:
        return self._reader.over and not self._rows
