"""Writers of TFRecord, Arrow, Parquet and WebDataset files, and of folders of MDS and LitData shards."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.formats.suffixes import content_of, is_number, item_type, suffix_of
from penstock.sources.shards import NUMPY

_GROUP = 1 << 25  # bytes of a row group, or of a record batch
_SHARD = 1 << 26  # bytes of a shard of samples, as MosaicML Streaming writes them


class TableWriter(ABC):
    """Writes rows of one schema into one file. `close` completes the file."""

    @abstractmethod
    def write(self, batch: Any) -> None:
        """Write more rows."""

    @abstractmethod
    def close(self) -> None:
        """Complete the file."""


class _TableFile(TableWriter):
    """Joins batches, so that a file does not consist of many small parts. With `combine`, a part has no chunks."""

    def __init__(self, file: Any, schema: Any, *, combine: bool = False) -> None:
        self._file, self._schema, self._combine = file, schema, combine
        self._waiting, self._size = list[Any](), 0

    def write(self, batch: Any) -> None:
        self._waiting.append(batch)
        self._size += batch.nbytes
        if self._size >= _GROUP:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._waiting:
            table = pa.Table.from_batches(self._waiting, self._schema)
            self._file.write_table(table.combine_chunks() if self._combine else table)
        self._waiting, self._size = [], 0

    def close(self) -> None:
        self._flush()
        self._file.close()


def parquet_file(path: Path, schema: Any, compression: str | None) -> TableWriter:
    import pyarrow.parquet as pq

    file = pq.ParquetWriter(path, schema, compression=compression or "none", write_page_checksum=True)
    return _TableFile(file, schema)


def arrow_file(path: Path, schema: Any, compression: str | None, *, stream: bool = False) -> TableWriter:
    import pyarrow as pa

    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    file = new(str(path), schema, options=pa.ipc.IpcWriteOptions(compression=compression))
    return _TableFile(file, schema, combine=True)


class TFRecordFile(TableWriter):
    def __init__(self, path: Path, schema: Any, compression: str | None) -> None:
        from penstock.io.tfrecord.writer import TFRecordWriter

        self._plain = schema.names == ["record"] and schema.field(0).type == "binary"
        for field in flattened(schema.empty_table()).schema:
            if not any(test(item_type(field.type)) for test in (is_number, is_text, is_bytes)):
                message = (
                    f"Column {field.name!r} is {field.type}, and a feature of a tf.train.Example holds no such values."
                )
                hint = "It holds integers, float32, text and bytes, or lists of one of these."
                raise InvalidTypeError(message, hint=hint)
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
                    hint = "save_to_disk and to_parquet of Hugging Face's datasets write the contents too."
                    raise InvalidArgumentError(message, hint=hint)
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

    def __init__(self, path: Path, schema: Any, compression: str | None, number: int, suffixes: dict[str, str]) -> None:
        self._number, self._suffixes = number, suffixes
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
            _check_values(row, self._number)
            for name, value in row.items():
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
            raise InvalidTypeError(message, hint="Without this column, the row number is the key.")
        name = key.rpartition("/")[2]
        if not name or "." in name or "\0" in key:
            message = f"The key {key!r:.200} of row {self._number} would be read back as a different key."
            hint = "The part after the last slash must not be empty or contain a dot: the suffix starts at the dot."
            raise InvalidArgumentError(message, hint=hint)
        if key == self._last:
            message = f"Two consecutive rows have the key {key!r:.200}: they would be read back as one sample."
            raise InvalidArgumentError(message, hint="Use different keys, or leave the column '__key__' out.")
        if not row:
            message = "The only column is '__key__', but a sample needs at least one file."
            raise InvalidArgumentError(message, hint="Select other columns as well.")
        self._last = key
        return key

    def _add(self, name: str, content: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        self._file.addfile(member, io.BytesIO(content))

    def close(self) -> None:
        self._file.close()


def _check_values(row: Mapping[str, Any], number: int) -> None:
    missing = [name for name, value in row.items() if value is None]
    if missing:
        message = f"Column {missing[0]!r} has no value in row {number}, and each sample needs a value in every column."
        hint = "Fill it first, leave the column out, or write parquet, arrow or jsonl, which hold nulls."
        raise InvalidArgumentError(message, hint=hint)


class ShardFolder(TableWriter):
    """Writes samples into shards for MosaicML Streaming (MDS) or LitData, and the index of the shards at the end.

    A shard has at most 64 MiB, unless one sample is larger. If there are `starts`, shards start at these rows only.
    """

    def __init__(self, folder: Path, schema: Any, kind: str, compression: str | None, starts: Container[int]) -> None:
        fields = flattened(schema.empty_table()).schema
        self._folder, self._mds, self._compression, self._starts = folder, kind == "mds", compression, starts
        self._names, self._columns = fields.names, [_encoding(field, mds=kind == "mds") for field in fields]
        if not 0 < len(set(self._names)) == len(self._names):
            message = f"A sample needs values with different names, got the columns {self._names}."
            raise InvalidArgumentError(message, hint="Rename columns, or choose others.")
        self._samples, self._shards, self._size, self._rows = list[bytes](), list[dict[str, Any]](), 0, 0
        self._name = "shard.{:05d}.mds{}" if self._mds else "chunk-0-{}{}.bin"
        folder.mkdir()

    def write(self, batch: Any) -> None:
        table = flattened(batch)
        check_whole_lists(table)
        for row in table.to_pylist():
            _check_values(row, self._rows)
            values = [_encoded(value, *column[2:]) for value, column in zip(row.values(), self._columns, strict=True)]
            sizes = [len(value) for value, column in zip(values, self._columns, strict=True) if column[1] is None]
            sample = b"".join((np.array(sizes, "<u4").tobytes(), *values))
            if self._samples and (self._rows in self._starts if self._starts else self._size + len(sample) > _SHARD):
                self._flush()
            self._samples.append(sample)
            self._size += len(sample) + 4
            self._rows += 1

    def _flush(self) -> None:
        import pyarrow as pa

        count, places = len(self._samples), np.cumsum([4 * len(self._samples) + 8, *map(len, self._samples)])
        if places[-1] >= 1 << 32:
            message = f"The shard before row {self._rows} would have {places[-1]} bytes, and the most is 4 GiB."
            raise InvalidArgumentError(message, hint="Write more shards.")
        raw = b"".join((np.array([count, *places], "<u4").tobytes(), *self._samples))
        content = pa.compress(raw, self._compression, asbytes=True) if self._compression else raw
        endings = "", f".{self._compression}" if self._compression else ""
        plain, name = (self._name.format(len(self._shards), ending) for ending in endings)
        (self._folder / name).write_bytes(content)
        if self._mds:
            packed = _described(name, content) if self._compression else None
            self._shards.append({"samples": count, "raw_data": _described(plain, raw), "zip_data": packed})
        else:
            self._shards.append({"filename": name, "chunk_size": count, "chunk_bytes": len(raw), "dim": None})
        self._samples, self._size = [], 0

    def close(self) -> None:
        if self._samples or not self._shards:
            self._flush()
        codes, sizes, *_ = zip(*self._columns, strict=True)
        if self._mds:
            config = {"version": 2, "format": "mds", "hashes": ["sha1"], "size_limit": _SHARD}
            config |= {"column_names": self._names, "column_encodings": codes, "column_sizes": sizes}
            shards = [{**config, "compression": self._compression, **shard} for shard in self._shards]
            index: dict[str, Any] = {"version": 2, "shards": shards}
        else:
            leaves: list[Any] = [{"type": None, "context": None, "children_spec": []}] * len(codes)
            nest = {"type": "builtins.dict", "context": json.dumps(self._names), "children_spec": leaves}
            config = {"data_format": codes, "data_spec": json.dumps([1, nest]), "item_loader": "PyTreeLoader"}
            config |= {"compression": self._compression, "chunk_bytes": _SHARD, "chunk_size": None, "encryption": None}
            index = {"chunks": self._shards, "config": config}
        (self._folder / "index.json").write_text(json.dumps(index), encoding="utf-8")


def _described(name: str, content: bytes) -> dict[str, Any]:
    return {"basename": name, "bytes": len(content), "hashes": {"sha1": hashlib.sha1(content).hexdigest()}}


def _encoding(field: Any, *, mds: bool) -> tuple[str, int | None, Any, tuple[int, ...], bytes]:
    """Return the encoding of a column and its bytes for the index, and arguments of `_encoded`.

    The bytes are None if they vary. The arguments are the dtype of numbers, or None for text and bytes; the shape, with
    -1 for lists of any length; and the bytes before the shape of each value, or b"" if values have no shape.
    """
    import pyarrow as pa

    kind, shape = field.type, tuple[int, ...]()
    while pa.types.is_fixed_size_list(kind) or (not shape and (pa.types.is_list(kind) or pa.types.is_large_list(kind))):
        kind, shape = kind.value_type, (*shape, getattr(kind, "list_size", -1))
    if not shape and (is_text(kind) or is_bytes(kind)):
        return "str" if is_text(kind) else "bytes", None, None, shape, b""
    if not is_number(kind) or 0 in shape or (kind == pa.uint64() and not shape and not mds):
        message = f"Column {field.name!r} is {field.type}, and {'MDS' if mds else 'LitData'} holds no such values."
        hint = "It holds text, bytes, numbers (LitData: no uint64), and arrays of numbers. Inner lists have one length."
        raise InvalidTypeError(message, hint=hint)
    dtype = np.dtype(kind.to_pandas_dtype())
    if not mds and not shape:
        code, wide = {"b": ("bool", "?"), "f": ("float", "f8")}.get(dtype.kind, ("int", "i8"))
        return code, None, np.dtype(wide), shape, b""
    if not mds:
        number = [*map(np.dtype, NUMPY.split())].index(dtype)
        head = b"" if len(shape) == 1 else np.array([number, len(shape)], "<u4").tobytes()
        return "numpy" if head else f"no_header_numpy:{number}", None, dtype, shape, head
    dtype = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    if -1 in shape:
        return f"ndarray:{dtype}", None, dtype, shape, bytes([len(shape) << 2 | 2])  # 2: extents of 32 bits
    code = f"ndarray:{dtype}:{','.join(map(str, shape))}" if shape else str(dtype)
    return code, dtype.itemsize * int(np.prod(shape)), dtype, shape, b""


def _encoded(value: Any, dtype: Any, shape: tuple[int, ...], head: bytes) -> bytes:
    if dtype is None:
        return value.encode() if isinstance(value, str) else bytes(value)
    array = np.array(value, dtype).reshape(shape)
    return (head + np.array(array.shape, "<u4").tobytes() if head else b"") + array.tobytes()
