"""Writers of one file each: TFRecord, Arrow, Parquet, WebDataset. The writers of text are in `texts`."""

from __future__ import annotations

import io
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.formats.suffixes import content_of, suffix_of

_GROUP = 1 << 25  # bytes of a row group, or of a record batch


class TableWriter(ABC):
    """Writes rows of one schema into one file. `close` completes the file."""

    @abstractmethod
    def write(self, batch: Any) -> None:
        """Write more rows."""

    @abstractmethod
    def close(self) -> None:
        """Complete the file."""


class _Gathering(TableWriter):
    """Joins batches, so that a file does not consist of many small parts."""

    def __init__(self, schema: Any) -> None:
        self._schema, self._waiting, self._size = schema, [], 0

    _waiting: list[Any]

    @abstractmethod
    def _put(self, table: Any) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...

    def write(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._size += batch.nbytes
        if self._size >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._put(pa.Table.from_batches(self._waiting, self._schema))
        self._waiting, self._size = [], 0

    def close(self) -> None:
        self._flush()
        self._end()


class ParquetFile(_Gathering):
    def __init__(self, path: Path, schema: Any, compression: str | None) -> None:
        import pyarrow.parquet as pq

        super().__init__(schema)
        self._file = pq.ParquetWriter(path, schema, compression=compression or "none", write_page_checksum=True)

    def _put(self, table: Any) -> None:
        self._file.write_table(table)

    def _end(self) -> None:
        self._file.close()


class ArrowFile(_Gathering):
    def __init__(self, path: Path, schema: Any, compression: str | None, *, stream: bool = False) -> None:
        import pyarrow as pa

        super().__init__(schema)
        new = pa.ipc.new_stream if stream else pa.ipc.new_file
        self._file = new(str(path), schema, options=pa.ipc.IpcWriteOptions(compression=compression))

    def _put(self, table: Any) -> None:
        self._file.write_table(table.combine_chunks())

    def _end(self) -> None:
        self._file.close()


class TFRecordFile(TableWriter):
    def __init__(self, path: Path, schema: Any, compression: str | None) -> None:
        from penstock.io.tfrecord.writer import TFRecordWriter

        self._plain = schema.names == ["record"] and schema.field(0).type == "binary"
        for field in flattened(schema.empty_table()).schema:
            _check_feature(field)
        self._file = TFRecordWriter(str(path), compression.upper() if compression else None)

    def write(self, batch: Any) -> None:
        from penstock.io import encode_example

        if self._plain:
            for record in batch.column(0).to_pylist():
                self._file.write(record)
            return
        flat = flattened(batch)
        check_whole_lists(flat)
        for column in flat.schema:
            _check_rounding(column.name, flat.column(column.name))
        for row in flat.to_pylist():
            features = {name: value for name, value in row.items() if value is not None}
            self._file.write(
                encode_example({name: _typed(value, flat.schema.field(name).type) for name, value in features.items()})
            )

    def close(self) -> None:
        self._file.close()


def _typed(value: Any, kind: Any) -> Any:
    """Give an empty list the kind of its column."""
    if isinstance(value, list) and not value and kind.value_type not in ("binary", "string"):
        return np.empty(0, kind.value_type.to_pandas_dtype())
    return value


def flattened(batch: Any) -> Any:
    """Return a table without structs: each field is a column, and an image of Hugging Face is its content.

    Raises:
        InvalidArgumentError: If an image has only a path and no content.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
    while any(pa.types.is_struct(field.type) for field in table.schema):
        for place, field in enumerate(table.schema):
            if pa.types.is_struct(field.type) and {part.name for part in field.type} == {"bytes", "path"}:
                column = table.column(place)
                content, path = pc.struct_field(column, "bytes"), pc.struct_field(column, "path")
                if pc.any(pc.and_(content.is_null(), path.is_valid())).as_py():
                    message = f"Column {field.name!r} has the paths of images in place of their contents."
                    raise InvalidArgumentError(
                        message, hint="save_to_disk and to_parquet of Hugging Face's datasets write the contents too."
                    )
                table = table.set_column(place, field.name, content)
        table = table.flatten()
    return table


def check_whole_lists(table: Any) -> None:
    """Raise InvalidArgumentError for a null in a list, which neither a feature nor an array can store."""
    for field in table.schema:
        values = table.column(field.name)
        while hasattr(values.type, "value_type") and hasattr(values, "flatten"):
            values = values.combine_chunks().flatten() if hasattr(values, "combine_chunks") else values.flatten()
            if values.null_count:
                message = f"Column {field.name!r} has a list with a null in it, which the target cannot hold."
                raise InvalidArgumentError(message, hint="Fill it first, or write parquet, arrow or jsonl.")


def is_text(kind: Any) -> bool:
    """Return True if a column of this type contains text."""
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_bytes(kind: Any) -> bool:
    """Return True if a column of this type contains bytes."""
    import pyarrow as pa

    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _check_feature(field: Any) -> None:
    import pyarrow as pa

    kind = field.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    holds = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_binary,
        pa.types.is_string,
        pa.types.is_large_binary,
        pa.types.is_large_string,
    )
    if not any(test(kind) for test in holds):
        message = f"Column {field.name!r} is {field.type}, and a feature of a tf.train.Example holds no such values."
        raise InvalidTypeError(message, hint="It holds integers, float32, text and bytes, or lists of one of these.")


def _check_rounding(name: str, column: Any) -> None:
    """Raise InvalidArgumentError for a float64 value that float32 would round."""
    for numbers in numbers_in(column.combine_chunks()):
        if numbers.dtype != np.float64:
            continue
        with np.errstate(over="ignore"):
            lost = numbers[(numbers.astype(np.float32) != numbers) & ~np.isnan(numbers)]
        if len(lost):
            value = float(lost[0])
            message = f"Column {name!r} is float64 and holds {value!r}, which the float32 of a tf.train.Example rounds."
            hint = "Say that this is meant, by float32=True (--float32), or write parquet or arrow, which keep float64."
            raise InvalidArgumentError(message, hint=hint)


def numbers_in(array: Any) -> Iterator[Any]:
    """Yield the floats in an Arrow array, including those in its lists and structs, without nulls."""
    import pyarrow as pa

    if pa.types.is_struct(array.type):
        for part in array.flatten():
            yield from numbers_in(part)
    elif hasattr(array.type, "value_type") and hasattr(array, "flatten"):
        yield from numbers_in(array.flatten())
    elif pa.types.is_floating(array.type):
        yield array.drop_null().to_numpy(zero_copy_only=False)


class WebDatasetFile(TableWriter):
    """Writes a sample for each row. Without a column `__key__`, the key is the number of the row.

    The first row determines the suffixes of the columns, for all archives that share `suffixes`. The writer refuses
    rows that a reader would read differently. These are a key with a dot after its last slash, two consecutive samples
    with the same key, and a row without a value in a column.
    """

    def __init__(
        self,
        path: Path,
        schema: Any,
        compression: str | None,
        first_number: int = 0,
        suffixes: dict[str, str] | None = None,
    ) -> None:
        self._number = first_number
        self._suffixes = {} if suffixes is None else suffixes
        self._last: str | None = None
        for name in flattened(schema.empty_table()).schema.names:
            if not name or "/" in name or "\0" in name:
                message = f"A column called {name!r} cannot be what the files of samples end in."
                raise InvalidArgumentError(message, hint="Rename it, or leave it out.")
        self._file = tarfile.open(path, "w:gz" if compression else "w", format=tarfile.PAX_FORMAT)  # noqa: SIM115

    def write(self, batch: Any) -> None:
        flat = flattened(batch)
        check_whole_lists(flat)
        kinds = {field.name: field.type for field in flat.schema}
        for row in flat.to_pylist():
            key = self._key(row)
            if not self._suffixes:
                self._suffixes |= {name: suffix_of(name, kinds[name], value) for name, value in row.items()}
                lowered = {suffix.lower() for suffix in self._suffixes.values()}
                if len(lowered) < len(self._suffixes):
                    message = f"The columns {', '.join(self._suffixes)} have one name without their capitals."
                    raise InvalidArgumentError(message, hint="Suffixes in WebDataset's layout have none; rename them.")
            for name, value in row.items():
                if value is None:
                    message = (
                        f"Column {name!r} has no value in row {self._number}, and all samples have the same files."
                    )
                    hint = "Fill it first, leave the column out, or write parquet, arrow or jsonl, which hold nulls."
                    raise InvalidArgumentError(message, hint=hint)
                suffix = self._suffixes[name]
                self._add(f"{key}.{suffix}", content_of(suffix, value, kinds[name]))
            self._number += 1

    def _key(self, row: dict[str, Any]) -> str:
        """Remove the key from a row and return it."""
        if "__key__" not in row:
            return f"{self._number:09d}"
        given = row.pop("__key__")
        try:
            key = given.decode() if isinstance(given, bytes) else given
        except UnicodeDecodeError:
            key = None
        if not isinstance(key, str):
            message = f"Column '__key__' must hold text, got {given!r:.80} in row {self._number}."
            raise InvalidTypeError(message, hint="Without that column the number of the row is the key.")
        name = key.rpartition("/")[2]
        if not name or "." in name or "\0" in key:
            message = f"The key {key!r:.200} of row {self._number} would be read back as another one."
            hint = "What stands behind its last slash needs a letter, and no dot: that is where its suffix begins."
            raise InvalidArgumentError(message, hint=hint)
        if key == self._last:
            message = (
                f"The key {key!r:.200} stands in two rows, one behind the other, of which one sample would be made."
            )
            raise InvalidArgumentError(message, hint="Make keys differ, or leave the column '__key__' out.")
        if not row:
            message = "There is no column beside '__key__', and a sample without files is none."
            raise InvalidArgumentError(message, hint="Choose columns too.")
        self._last = key
        return key

    def _add(self, name: str, content: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        self._file.addfile(member, io.BytesIO(content))

    def close(self) -> None:
        self._file.close()
