"""CsvFormat: the rules that cut CSV text into fields, and the columns that fields become."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from penstock.block.spec import DType, dtype_name
from penstock.errors import InvalidArgumentError, PenstockError
from penstock.io.csv_reader import FINE, NO_QUOTE, QUOTE_INSIDE, TEXT_BEHIND

COMMA_HINT = "If the comma is the decimal point, read the column as bytes and map it: float(x.replace(b',', b'.'))."
_COMMA = re.compile(rb"[+-]?([0-9]+,[0-9]+|[0-9]{1,3}(,[0-9]{3})+\.[0-9]*|[0-9]{1,3}(\.[0-9]{3})+,[0-9]*)")


def with_comma(field: bytes) -> bool:
    """Return True for a number with a decimal comma, or with commas between thousands.

    >>> with_comma(b"31,5"), with_comma(b"1,031.5"), with_comma(b"31.5"), with_comma(b"1,2,3")
    (True, True, False, False)
    """
    return _COMMA.fullmatch(field) is not None


@dataclass(frozen=True)
class CsvColumn:
    """A column that is read from one field of every row. Without a default it is required. `name` is for errors."""

    dtype: DType
    default: Any = None  # bytes, or a numpy scalar of `dtype`
    name: str | None = None


@dataclass(frozen=True)
class CsvFormat:
    """The selected `columns` of a row: all fields, the fields numbered `select`, or all except `exclude`."""

    columns: tuple[CsvColumn, ...]
    delimiter: int = ord(",")
    quote: int = ord('"')
    na_value: bytes = b""
    select: tuple[int, ...] | None = None
    exclude: tuple[int, ...] = ()

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The field number of each selected column."""
        if self.select is not None:
            return self.select
        most = len(self.columns) + len(self.exclude)
        return tuple(i for i in range(most) if i not in self.exclude)[: len(self.columns)]

    @cached_property
    def width(self) -> int:
        """The number of fields to read in each row."""
        return max(self.places, default=-1) + 1

    def admits(self, counts: np.ndarray) -> np.ndarray:
        """Return True for each count of fields with which a row is valid."""
        if self.select is not None:
            return np.asarray(counts >= self.width)
        wanted = counts - np.searchsorted(np.array(self.exclude, np.int64), counts)
        return np.asarray(wanted == len(self.columns))

    def row_error(self, fields: list[bytes], status: int, file: str | None, offset: int, stop: int) -> PenstockError:
        """Return the error for a row that cannot be read."""
        if status == FINE:
            return self._count_error(fields, file, offset)
        hint = 'A field with quotes in it is written "like ""this""". use_quote_delim=False reads quotes as they are.'
        if status == QUOTE_INSIDE:
            message = "A field that does not begin with a quote has one inside."
        elif status == TEXT_BEHIND:
            message = "A field continues after the quote that closes it."
        else:
            message = f"A quoted field is never closed: bytes {offset} to {stop}, the end, are lost."
        return InvalidArgumentError(message, hint=hint, file=file, offset=offset)

    def delimiter_hint(self, fields: list[bytes]) -> str | None:
        """Return a hint for a row with one field that contains another delimiter, or None."""
        found = [mark for mark in (";", "\t") if len(fields) == 1 and mark.encode() in fields[0]]
        return f"If {found[0]!r} separates the fields, pass field_delim={found[0]!r}." if found else None

    def _count_error(self, fields: list[bytes], file: str | None, offset: int) -> InvalidArgumentError:
        if self.select is not None:
            wanted = f"at least {self.width} fields, as column {self.width - 1} is read"
        else:
            number = len(self.columns) + len(self.exclude)
            wanted = f"{number} fields, one for each column{' and each of exclude_cols' if self.exclude else ''}"
        message = f"A row has {wanted}; this one has {len(fields)}."
        hint = "A field that holds the delimiter or a line end is put in quotes; an empty line is a row of one field."
        hint = self.delimiter_hint(fields) or hint
        return InvalidArgumentError(message, hint=hint, file=file, offset=offset)

    def field_error(self, number: int, field: bytes, file: str | None, offset: int) -> InvalidArgumentError:
        """Return the error for the field of selected column `number`."""
        column = self.columns[number]
        named = f"Column {self.places[number]}" + (f" ({column.name!r})" if column.name else "")
        if not field or field == self.na_value:
            message = f"{named} is required, and this row has {f'{field!r}' if field else 'nothing'} in it."
            hint = "A column that may be empty has a default instead of a dtype, such as np.float32(0)."
        else:
            message = f"{named} is {dtype_name(column.dtype)}, and this row has {field!r:.60} in it."
            hint = "Read it as bytes to convert it in a map; na_value= names a text that means nothing is there."
            hint = COMMA_HINT if with_comma(field) else hint
        return InvalidArgumentError(message, hint=hint, file=file, offset=offset)

    @staticmethod
    def quote_of(use_quote_delim: bool) -> int:
        return ord('"') if use_quote_delim else NO_QUOTE
