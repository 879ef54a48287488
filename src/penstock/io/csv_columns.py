"""Conversion of rows of CSV text to columns of values.

Arrow's parser is used if its results equal those of the plain parser. Arrow accepts more than TensorFlow does, and
reports an error only for a whole chunk. So it gets only rows with valid quotes. Its numbers are used only if no field
can be one that the plain parser reads differently. Otherwise Arrow returns the fields as strings. It then converts
those with the usual spelling of numbers, and the plain parser converts the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from penstock.block.arrow_leaf import decode
from penstock.block.arrow_values import numbers_of
from penstock.block.column import BytesColumn, Column, DenseColumn, concat
from penstock.block.spec import TensorSpec
from penstock.io.csv_format import CsvColumn, CsvFormat
from penstock.io.csv_reader import FINE, CsvChunk, CsvRow, whole_row
from penstock.io.window import MARK

# Whitespace (also `\t\n\v\f\r`) around a number is allowed, and a plus sign too. Floats are decimal, or inf, infinity
# or nan in any case. These are the rules of absl's SimpleAtoi, SimpleAtof and SimpleAtod, which TensorFlow uses.

_SPACE = b" \t\n\v\f\r"
_INT = re.compile(rb"[+-]?[0-9]+")
_FLOAT_FIELD = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NAMED = re.compile(rb"[+-]?(inf|infinity|nan)", re.IGNORECASE)
_MOST_DIGITS = 4000  # below Python's limit for conversions; a longer valid integer begins with zeros


def plain_int(text: bytes, low: int, high: int) -> int | None:
    """Return the integer in `text`, or None if it is no integer from `low` to `high`.

    >>> plain_int(b" +7 ", -128, 127), plain_int(b"128", -128, 127), plain_int(b"7.0", -128, 127)
    (7, None, None)
    """
    text = text.strip(_SPACE)
    if not _INT.fullmatch(text):
        return None
    digits = text.lstrip(b"+-").lstrip(b"0") or b"0"
    if len(digits) > _MOST_DIGITS:
        return None
    value = -int(digits) if text[:1] == b"-" else int(digits)
    return value if low <= value <= high else None


def plain_float(text: bytes, *, single: bool) -> float | None:
    """Return the float64 nearest to `text`, or with `single` the nearest float32. Return None for other text.

    >>> plain_float(b"1e3", single=False), plain_float(b".5", single=True), plain_float(b"1_0", single=False)
    (1000.0, 0.5, None)
    """
    text = text.strip(_SPACE)
    if _NAMED.fullmatch(text):
        return float(text)
    if not _FLOAT_FIELD.fullmatch(text):
        return None
    return _nearest_single(text) if single else float(text)


def _nearest_single(text: bytes) -> float:
    """Return the nearest float32, rounded once. Rounding to float64 first may give the wrong neighbour."""
    double = float(text)
    with np.errstate(over="ignore", under="ignore"):
        if _is_between(double):  # move it towards the exact number, so that float32 rounds to the right neighbour
            exact, middle = Decimal(text.decode()), Decimal(double)
            if exact != middle:
                double = math.nextafter(double, math.inf if exact > middle else -math.inf)
        return float(np.float32(double))


def _is_between(double: float) -> bool:
    """Return True if `double` lies exactly between two neighbouring float32 numbers."""
    if abs(double) < 2.0**-126:  # float32 numbers are 2**-149 apart here
        return (double * 2.0**150) % 2 == 1
    return int(np.float64(double).view(np.uint64)) & 0x1FFFFFFF == 0x10000000


LEAST = 1 << 10  # bytes; Arrow is slower than the plain parser for fewer
_MARKS = {"i": (b"x", b"X"), "f": (b"(",)}  # marks of fields that only Arrow reads as numbers
_FLOAT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_USUAL = {  # spellings of numbers that Arrow and the plain parser read alike
    "int32": r"^[+-]?[01]?[0-9]{1,9}$",  # does not match all valid numbers, but only valid ones
    "int64": r"^[+-]?[0-8]?[0-9]{1,18}$",
    "float32": _FLOAT,
    "float64": _FLOAT,
}


class CsvColumns(NamedTuple):
    """The selected columns of valid rows, their row numbers, and for each column the rows with an invalid field.

    `unread` has the other rows: (number, status of the row, number of fields). `odd_numbers` is True if some numbers
    have a spelling that Arrow does not read.
    """

    rows: np.ndarray
    columns: list[Column]
    wrong: list[np.ndarray]
    unread: list[tuple[int, int, int]]
    odd_numbers: bool = False


def rows_of(chunk: CsvChunk, layout: CsvFormat, numbers: Iterable[int] | None = None) -> list[CsvRow]:
    """Return the rows of a chunk, or only those with these numbers, from the plain scanner."""
    content, begin = chunk.content.data, int(chunk.offsets[0])
    return [
        chunk.rows.get(i) or whole_row(content, int(chunk.offsets[i]) - begin, layout.delimiter, layout.quote)
        for i in (range(len(chunk)) if numbers is None else numbers)
    ]


def plain_columns(chunk: CsvChunk, layout: CsvFormat, numbers: np.ndarray | None = None) -> CsvColumns:
    """Return the columns, converted field by field. This is the reference. `numbers` selects rows."""
    numbers = np.arange(len(chunk)) if numbers is None else numbers
    rows = rows_of(chunk, layout, numbers.tolist())
    counts = np.array([len(row.fields) for row in rows])
    good = (np.array([row.status for row in rows]) == FINE) & layout.admits(counts)
    unread = [(int(numbers[i]), rows[i].status, len(rows[i].fields)) for i in np.flatnonzero(~good)]
    fine = np.flatnonzero(good).tolist()
    columns, wrong = [], []
    for column, place in zip(layout.columns, layout.places, strict=True):
        values, bad = _plain_column([rows[i].fields[place] for i in fine], column, layout.na_value)
        columns.append(values)
        wrong.append(bad)
    return CsvColumns(numbers[good], columns, wrong, unread)


def _plain_column(fields: list[bytes], column: CsvColumn, na_value: bytes) -> tuple[Column, np.ndarray]:
    missing = np.array([field in (b"", na_value) for field in fields], bool)
    if column.dtype is bytes:
        default = column.default or b""
        values = [default if none else field for field, none in zip(fields, missing, strict=True)]
        return BytesColumn.from_values(values), missing & (column.default is None)
    dtype = np.dtype(column.dtype)
    numbers = np.zeros(len(fields), dtype)
    bad = np.zeros(len(fields), bool)
    limits = np.iinfo(dtype.name) if dtype.kind == "i" else None
    for i, field in enumerate(fields):
        if missing[i]:
            found = column.default
        elif limits is not None:
            found = plain_int(field, int(limits.min), int(limits.max))
        else:
            found = plain_float(field, single=dtype == np.float32)
        bad[i] = found is None
        if found is not None:
            with np.errstate(over="ignore"):
                numbers[i] = found
    return DenseColumn(numbers), bad


def arrow_columns(chunk: CsvChunk, layout: CsvFormat, *, odd_numbers: bool = False) -> CsvColumns | None:
    """Return the result of `plain_columns`, or None if Arrow cannot compute it.

    Known `odd_numbers` save one attempt.
    """
    import pyarrow as pa

    if b'"' in layout.na_value:
        return None
    raw, sound = _sound(chunk)
    width = len(layout.columns) + len(layout.exclude)
    if layout.select is not None:  # the number of fields is not known
        width = len(whole_row(memoryview(raw), 0, layout.delimiter, layout.quote).fields)
    if width < layout.width or raw.startswith(MARK):
        return None
    try:
        table, others = _table(raw, width, layout, odd_numbers=odd_numbers)
    except (pa.ArrowException, UnicodeDecodeError):  # UnicodeDecodeError is raised for an na_value that is not UTF-8
        return None
    if table.num_rows + len(others) != len(sound):
        return None
    numbers = np.delete(sound, [row for row, _ in others])
    others = [(int(sound[row]), count) for row, count in others]
    if not layout.admits(np.array([1]))[0]:
        ends = chunk.buffer[chunk.offsets[:-1]]
        # a row with one empty field, which Arrow reads as a row of nulls
        empty = ((ends == 10) | (ends == 13))[numbers]
        others += [(row, 1) for row in numbers[empty].tolist()]
        if empty.any():
            numbers, table = numbers[~empty], table.filter(pa.array(~empty))
    columns, wrong, odd = [], [], False
    for column, chunks in zip(layout.columns, table.columns, strict=True):
        array = chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()
        values, bad, written_oddly = _arrow_column(array, column)
        columns.append(values)
        wrong.append(bad)
        odd |= written_oddly
    found = CsvColumns(numbers, columns, wrong, [(row, FINE, count) for row, count in others], odd)
    longer = [row for row, count in others if count >= layout.width] if layout.select is not None else []
    return _with_plain_rows(found, chunk, layout, sorted([*longer, *chunk.rows]))


def _sound(chunk: CsvChunk) -> tuple[bytes, np.ndarray]:
    """Return the text and the numbers of the rows that need no plain scanner."""
    begins, ends = [0, *(i + 1 for i in chunk.rows)], [*chunk.rows, len(chunk)]
    parts = [chunk.buffer[chunk.offsets[i] : chunk.offsets[j]].data for i, j in zip(begins, ends, strict=True)]
    return b"".join(parts), np.delete(np.arange(len(chunk)), list(chunk.rows))


def _with_plain_rows(found: CsvColumns, chunk: CsvChunk, layout: CsvFormat, numbers: list[int]) -> CsvColumns:
    """Return the columns with the rows of these numbers replaced by those of the plain parser."""
    if not numbers:
        return found
    plain = plain_columns(chunk, layout, np.array(numbers))
    apart = set(numbers)
    unread = [item for item in found.unread if item[0] not in apart] + plain.unread
    if not len(plain.rows):
        return found._replace(unread=unread)
    rows = np.concatenate([found.rows, plain.rows])
    order = np.argsort(rows)
    columns = [concat(pair).take(order) for pair in zip(found.columns, plain.columns, strict=True)]
    wrong = [np.concatenate(pair)[order] for pair in zip(found.wrong, plain.wrong, strict=True)]
    return CsvColumns(rows[order], columns, wrong, unread, found.odd_numbers)


def _table(raw: bytes, width: int, layout: CsvFormat, *, odd_numbers: bool) -> tuple[Any, list[tuple[int, int]]]:
    """Return the result of `_by_arrow`, with numbers converted by Arrow if the plain parser agrees on all."""
    import pyarrow as pa

    if not odd_numbers:
        try:
            table, others = _by_arrow(raw, width, layout, as_text=False)
            if not _may_hold_other_numbers(raw, table):
                return table, others
        except pa.ArrowInvalid:  # the error of one field does not concern the others
            pass
    return _by_arrow(raw, width, layout, as_text=True)


def _by_arrow(raw: bytes, width: int, layout: CsvFormat, *, as_text: bool) -> tuple[Any, list[tuple[int, int]]]:
    """Return the selected columns of rows with `width` fields, and (row number, number of fields) of other rows.

    With `as_text`, numbers stay strings, except missing ones.
    """
    import pyarrow as pa
    from pyarrow import csv

    others: list[tuple[int, int]] = []

    def pass_over(row: Any) -> str:
        others.append((row.number - 1, row.actual_columns))
        return "skip"

    is_utf8 = raw.isascii() or len(raw.decode(errors="ignore").encode()) == len(raw)
    names = [str(i) for i in range(width)]
    wanted = [names[place] for place in layout.places]
    dtypes = [bytes if as_text else column.dtype for column in layout.columns]
    types = [pa.binary() if dtype is bytes else pa.from_numpy_dtype(np.dtype(dtype)) for dtype in dtypes]
    table = csv.read_csv(
        pa.BufferReader(raw),
        csv.ReadOptions(use_threads=False, block_size=len(raw) + 1, column_names=names),
        csv.ParseOptions(
            delimiter=chr(layout.delimiter),
            quote_char=chr(layout.quote) if layout.quote >= 0 else False,
            newlines_in_values=not raw.endswith(b"\n"),  # else there is one block, which ends with a row
            ignore_empty_lines=False,
            # Arrow prints an undecodable row for the handler. Without a handler it raises, and the plain scanner reads
            # the row.
            invalid_row_handler=pass_over if is_utf8 else None,
        ),
        csv.ConvertOptions(
            column_types=dict(zip(wanted, types, strict=True)),
            include_columns=wanted,
            null_values=["", layout.na_value.decode()] if layout.na_value else [""],
            strings_can_be_null=as_text or any(_needs_nulls(column, layout) for column in layout.columns),
        ),
    )
    return table, others


def _needs_nulls(column: CsvColumn, layout: CsvFormat) -> bool:
    """Return True if an empty string may mean a missing value. Arrow's search for nulls costs as much as reading."""
    return column.dtype is bytes and (column.default != b"" or bool(layout.na_value))


def _arrow_column(array: Any, column: CsvColumn) -> tuple[Column, np.ndarray, bool]:
    """Return the values of a column, and the rows that lack a required value.

    The third result is True if some numbers have an odd spelling.
    """
    import pyarrow as pa

    kind = None if column.dtype is bytes else np.dtype(column.dtype)
    missing = np.asarray(array.is_null()) if array.null_count else np.zeros(len(array), bool)
    wrong = missing & (column.default is None)
    fields, strange = array, None
    if kind is not None and pa.types.is_binary(array.type):
        array, strange = _numbers(array, kind)
    if array.null_count:
        empty = b"" if kind is None else kind.type(0)
        array = array.fill_null(pa.scalar(empty if column.default is None else column.default, array.type))
    if kind is None:
        return decode(array, TensorSpec((), bytes)), wrong, False
    values = numbers_of(array)
    if strange is not None and len(strange):
        plain, wrong[strange] = _plain_column(fields.take(pa.array(strange)).to_pylist(), column, b"")
        values = values.copy()
        assert isinstance(plain, DenseColumn)
        values[strange] = plain.array
    return DenseColumn(values), wrong, strange is not None


def _numbers(fields: Any, dtype: np.dtype[Any]) -> tuple[Any, np.ndarray | None]:
    """Return the fields as numbers, and a mask of fields with an unusual spelling, which are null.

    The mask is None if Arrow reads all fields.
    """
    import pyarrow as pa
    from pyarrow import compute

    text, kind = compute.ascii_trim_whitespace(fields.view(pa.string())), pa.from_numpy_dtype(dtype)
    valid, offsets, buffer = text.buffers()
    content = b"" if buffer is None else buffer.to_pybytes()
    signs = dtype.kind == "i" and b"+" in content  # a plus sign, which Arrow does not accept in integers
    if not signs and not any(mark in content for mark in _MARKS[dtype.kind]):
        try:
            return compute.cast(text, kind), None
        except pa.ArrowInvalid:
            pass
    usual = compute.match_substring_regex(text.view(pa.binary()), _USUAL[dtype.name])
    if signs:
        buffers = [valid, offsets, pa.py_buffer(content.replace(b"+", b"0"))]
        text = pa.Array.from_buffers(text.type, len(text), buffers, text.null_count, text.offset)
    strange = np.flatnonzero(~np.asarray(usual.fill_null(True)))
    return compute.cast(compute.if_else(usual, text, None), kind), strange


def _may_hold_other_numbers(raw: bytes, table: Any) -> bool:
    """Return True if only Arrow may read a field as a number: a hexadecimal integer, or a float like "nan(…)"."""
    import pyarrow as pa

    if any(mark in raw for mark in _MARKS["i"]) and any(pa.types.is_integer(kind) for kind in table.schema.types):
        content = np.frombuffer(raw, np.uint8)
        if (content[np.flatnonzero(content[1:] & 0xDF == ord("X"))] == ord("0")).any():
            return True
    if not any(mark in raw for mark in _MARKS["f"]):
        return False
    floats = [column for column in table.columns if pa.types.is_floating(column.type)]
    return any(np.isnan(numbers_of(chunk.drop_null())).any() for column in floats for chunk in column.chunks)
