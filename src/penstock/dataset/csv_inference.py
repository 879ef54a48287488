"""What `make_csv_dataset` finds out about files before it reads them: names of columns, and their types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from penstock.block.spec import DType
from penstock.block.structure import flatten
from penstock.errors import InvalidArgumentError
from penstock.io.csv_columns import rows_of
from penstock.io.csv_format import CsvColumn
from penstock.io.csv_reader import CsvReader
from penstock.io.csv_values import plain_float, plain_int
from penstock.sources.csv import CsvSource

_LADDER: tuple[DType, ...] = (
    np.dtype(np.int32),
    np.dtype(np.int64),
    np.dtype(np.float32),
    np.dtype(np.float64),
    bytes,
)  # from the narrowest type to the one that holds anything


def column_names(source: CsvSource, encoding: str) -> list[str]:
    """The first row of the files, which has to be the same in all of them."""
    found: list[str] | None = None
    for name in source.files:
        row = _first_row(source, name)
        try:
            names = [field.decode(encoding) for field in row]
        except UnicodeDecodeError as error:
            message = f"The header row is no {encoding}: {error.reason} in {error.object!r:.60}."
            hint = "encoding= says how the names are written; column_names= gives others."
            raise InvalidArgumentError(message, hint=hint, file=name) from error
        if found is not None and names != found:
            message = f"The header rows of all files have to agree: {source.files[0]!r} has {found}, this one {names}."
            hint = "With column_names= all files are read under the same names."
            raise InvalidArgumentError(message, hint=hint, file=name)
        found = names
    return found or []


def _first_row(source: CsvSource, name: str) -> list[bytes]:
    layout = source.format
    reader = CsvReader(
        *(name, layout.delimiter, layout.quote),
        compression_type=source.compression_type,
        buffer_size=source.buffer_size,
    )
    try:
        chunk = reader.read(1)
    finally:
        reader.close()
    if chunk is None:
        message = "The file is empty, and its first row was to name the columns."
        raise InvalidArgumentError(message, hint="Leave the file out, or pass column_names=.", file=name)
    (row,) = rows_of(chunk, layout)
    if row.status:
        raise layout.row_error(row.status, 0, name, 0, int(chunk.offsets[1]))
    return row.fields


def inferred_columns(
    source: CsvSource,
    names: Sequence[str],
    select: Sequence[int] | None,
    rows: int | None,
    *,
    ignore_errors: bool,
) -> tuple[CsvColumn, ...]:
    """For each selected column the narrowest type that holds what the first rows have, and 0 or b"" as default."""
    chosen = range(len(names)) if select is None else select
    types: list[DType | None] = [None] * len(chosen)
    for row in _rows(source, len(names), rows, ignore_errors=ignore_errors):
        for i, place in enumerate(chosen):
            types[i] = widened(types[i], row[place], source.format.na_value)
    return tuple(CsvColumn(bytes, b"") if t is None or t is bytes else CsvColumn(t, t.type(0)) for t in types)


def _rows(source: CsvSource, width: int, most: int | None, *, ignore_errors: bool) -> Iterator[tuple[bytes, ...]]:
    """The first rows, every field as it stands there."""
    layout = replace(source.format, columns=(CsvColumn(bytes, b""),) * width, na_value=b"", select=None)
    _, structure = flatten(("",) * width)
    reader = replace(source, format=layout, structure=structure).open()
    given = 0
    try:
        while most is None or given < most:
            try:
                block = reader.read(4096 if most is None else most - given)
            except InvalidArgumentError:
                if not ignore_errors:
                    raise
                continue
            if block is None:
                return
            given += block.size
            yield from block.elements()
    finally:
        reader.close()


def widened(dtype: DType | None, field: bytes, na_value: bytes) -> DType | None:
    """The narrowest type that holds both what was seen so far and this field.

    >>> widened(None, b"7", b""), widened(np.dtype(np.int32), b"0.5", b""), widened(np.dtype(np.int64), b"", b"")
    (dtype('int32'), dtype('float32'), dtype('int64'))
    """
    if field in (b"", na_value):
        return dtype
    least = 0 if dtype is None else _LADDER.index(dtype)
    return next(step for step in _LADDER[least:] if _holds(step, field))


def _holds(dtype: Any, field: bytes) -> bool:
    """As tf.data decides it: a number that is infinite in float32 needs float64, and "inf" and "nan" are texts."""
    if dtype is bytes:
        return True
    if dtype.kind == "i":
        high = (1 << (8 * dtype.itemsize - 1)) - 1
        return plain_int(field, -high - 1, high) is not None
    number = plain_float(field, single=dtype == np.float32)
    return number is not None and number < np.inf
