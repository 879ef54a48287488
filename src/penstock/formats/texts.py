"""Writers of CSV and JSON Lines, which contain text. Bytes must be UTF-8."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.formats.suffixes import is_number
from penstock.formats.writers import TableWriter, flattened, is_bytes, is_text

_OTHERS = "Leave the column out (columns), or write parquet, arrow, tfrecord or webdataset."


class CsvFile(TableWriter):
    """Writes a line of names, then a line for each row. Text is in quotes, and a missing number is empty."""

    def __init__(self, path: Path, schema: Any, compression: str | None) -> None:
        import pyarrow as pa
        import pyarrow.csv

        empty = flattened(schema.empty_table())
        holds = (is_number, is_text, is_bytes, pa.types.is_date, pa.types.is_timestamp)
        for field in empty.schema:
            if not any(test(field.type) for test in holds):
                message = f"Column {field.name!r} is {field.type}, and a line of CSV holds no such values."
                raise InvalidTypeError(
                    message, hint="Leave the column out (columns), or write jsonl, parquet or arrow."
                )
        kinds = [(field.name, pa.string() if is_bytes(field.type) else field.type) for field in empty.schema]
        self._schema = pa.schema(kinds)
        self._file = pa.output_stream(str(path), compression=compression or None)
        self._writer = pyarrow.csv.CSVWriter(self._file, self._schema)

    def write(self, batch: Any) -> None:
        import pyarrow as pa

        table = flattened(batch)
        parts = []
        for field, column in zip(self._schema, table.columns, strict=True):
            parts.append(_decoded(field.name, column, "CSV") if is_bytes(column.type) else column)
            if column.null_count and (is_text(field.type) or len(self._schema) == 1):
                why = "no other sign for missing text than for empty text" if is_text(field.type) else "no empty lines"
                message = f"Column {field.name!r} has missing values, and CSV has {why}."
                raise InvalidArgumentError(message, hint="Fill them first, or write jsonl or parquet.")
        self._writer.write_table(pa.table(parts, self._schema))

    def close(self) -> None:
        self._writer.close()
        self._file.close()


def _decoded(name: str, column: Any, kind: str) -> Any:
    """Decode a column of bytes as text."""
    import pyarrow as pa

    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise _no_text(name, kind) from error


def _no_text(name: str, kind: str) -> InvalidArgumentError:
    message = f"Column {name!r} holds bytes that are no UTF-8 text, and {kind} holds text only."
    return InvalidArgumentError(message, hint=_OTHERS)


class JsonLinesFile(TableWriter):
    """Writes an object for each row, with JSON lists and structs, `null` for missing values, and times as ISO text."""

    def __init__(self, path: Path, schema: Any, compression: str | None) -> None:
        if len(set(schema.names)) < len(schema.names):
            message = f"The columns {', '.join(schema.names)} are not all called differently, as keys of JSON must be."
            raise InvalidArgumentError(message, hint="Rename one of them.")
        self._file: Any = gzip.GzipFile(str(path), "wb", mtime=0) if compression else path.open("wb")

    def write(self, batch: Any) -> None:
        self._file.write("".join(f"{_line(row)}\n" for row in batch.to_pylist()).encode())

    def close(self) -> None:
        self._file.close()


def _line(row: Mapping[str, Any]) -> str:
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False, default=_value)
    except (UnicodeDecodeError, TypeError, ValueError) as error:
        raise _why(row, error) from error


def _value(value: Any) -> Any:
    """Convert a value that has no JSON type."""
    if isinstance(value, bytes):
        return value.decode()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError


def _why(row: Mapping[str, Any], error: Exception) -> Exception:
    """Return an error that names the column and the problem."""
    for name, value in row.items():
        with contextlib.suppress(UnicodeDecodeError, TypeError, ValueError):
            json.dumps(value, allow_nan=False, default=_value)
            continue
        if isinstance(error, UnicodeDecodeError):
            return _no_text(name, "JSON")
        if isinstance(error, TypeError):
            message = f"Column {name!r} holds {value!r:.60}, and JSON has no such values."
            return InvalidTypeError(message, hint=_OTHERS)
        message = f"Column {name!r} holds {value!r:.60}, and JSON has no number for nan and inf."
        return InvalidArgumentError(message, hint=_OTHERS)
    return error
