"""The function `read_table` reads a file or folder as a stream of Arrow record batches of some megabytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePath
from typing import Any

import numpy as np

from penstock.block.arrow import too_little_memory, with_types
from penstock.block.arrow_nest import column_names
from penstock.block.structure import flatten
from penstock.dataset.dataset import Dataset
from penstock.dataset.files import TFRecordDataset
from penstock.dataset.make_datasets import lines_before_header
from penstock.dataset.record_files import ArrayRecordDataset, LmdbDataset, TextLineDataset
from penstock.dataset.sample_files import ImageFolderDataset, LitDataset, MDSDataset, WebDataset
from penstock.errors import (
    DataLossError,
    InvalidArgumentError,
    InvalidTypeError,
    MissingDependencyError,
    NotFoundError,
    PenstockError,
)
from penstock.formats.noted import features_of, noted, seen_in
from penstock.formats.recognise import Found
from penstock.formats.suffixes import columns_of, value_of
from penstock.formats.writers import numbers_in
from penstock.io import decode_example, storage
from penstock.sources.row_files import RowsReader
from penstock.sources.shards import TEXTS

_BYTES, _ROWS = 1 << 23, 1 << 14  # of a batch
_AGAIN = "Write or copy the file again."
_TEXT_BYTES = 1 << 24  # bytes of CSV and JSON Lines that are read at a time; the first ones determine the types
_BY_THE_FIRST = (
    "The first 16 MiB tell the columns and their types; a line is no longer than that. Where later lines hold another "
    "kind, put one of them first, or repair the line."
)
# Signs for a missing number in CSV, as in pandas and Arrow. nan is a number.
_MISSING = ["", "#N/A", "#N/A N/A", "#NA", "N/A", "NA", "NULL", "n/a", "null"]
_Open = Callable[[str], tuple[Any, Iterator[Any]]]


@dataclass(frozen=True)
class BatchTable:
    """A table whose `batches` starts a new iteration. `count` is the number of rows, or None if it is not known yet."""

    schema: Any
    batches: Callable[[], Iterator[Any]]
    count: int | None = None

    def counted(self) -> int:
        """Return the number of rows. If the number is not known, this reads all rows."""
        return sum(batch.num_rows for batch in self.batches()) if self.count is None else self.count

    def of(self, columns: Sequence[str]) -> BatchTable:
        """Return these columns only, in this order. Raises InvalidArgumentError for an unknown column."""
        import pyarrow as pa

        wanted = [columns] if isinstance(columns, str) else list(columns)
        names = self.schema.names
        if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(names):
            message = f"columns are names of columns, each once; got {', '.join(map(str, wanted)) or 'none'}."
            raise InvalidArgumentError(message, hint=f"There are {', '.join(names)}.")
        schema = pa.schema([self.schema.field(name) for name in wanted], self.schema.metadata)
        features = features_of(schema)
        if features:
            schema = noted(schema, {name: features[name] for name in wanted if name in features})

        def batches() -> Iterator[Any]:
            for batch in self.batches():
                yield pa.record_batch([batch.column(name) for name in wanted], schema=schema)

        return BatchTable(schema, batches, self.count)

    def in_float32(self) -> BatchTable:
        """Return the same rows with float64 rounded to float32.

        Raises InvalidArgumentError for a value beyond its range.
        """
        import pyarrow as pa

        fields = [field.with_type(_in_float32(field.type)) for field in self.schema]
        schema = pa.schema(fields, self.schema.metadata)
        features = features_of(schema)
        if features:
            schema = noted(schema, json.loads(json.dumps(features).replace('"float64"', '"float32"')))

        def batches() -> Iterator[Any]:
            for batch in self.batches():
                columns = [
                    column if column.type == field.type else _rounded(column, field)
                    for column, field in zip(batch.columns, schema, strict=True)
                ]
                yield pa.record_batch(columns, schema=schema)

        return BatchTable(schema, batches, self.count)


def _in_float32(kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_float64(kind):
        return pa.float32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_in_float32(field.type)) for field in kind])
    for test, make in (
        (pa.types.is_list, pa.list_),
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_fixed_size_list, lambda value: pa.list_(value, kind.list_size)),
    ):
        if test(kind):
            return make(kind.value_field.with_type(_in_float32(kind.value_type)))
    return kind


def _rounded(column: Any, field: Any) -> Any:
    made = column.cast(field.type)
    for before, after in zip(numbers_in(column), numbers_in(made), strict=True):
        over = before[np.isinf(after) & ~np.isinf(before)]
        if len(over):
            message = f"Column {field.name!r} holds {float(over[0])!r}, which is beyond the range of float32."
            raise InvalidArgumentError(message, hint="Write parquet or arrow, which keep float64, without float32.")
    return made


def read_table(found: Found) -> BatchTable:
    """Return a recognised file or folder as a table.

    Raises:
        InvalidArgumentError: If `convert` does not read the format.
        InvalidTypeError: If the columns of the files differ.
        DataLossError: If a file is damaged.
    """
    if found.format not in _TABLES:
        message = f"convert does not read {found.format}, which {found.path!r} is."
        hint = f"It reads {', '.join(_TABLES)}. Others open as a Dataset: penstock.formats.open_dataset(path)."
        raise InvalidArgumentError(message, hint=hint)
    return _TABLES[found.format](found)


@contextmanager
def _reading(name: str, hint: str = _AGAIN) -> Iterator[None]:
    """Raise an error that names the file if pyarrow raises an error."""
    import pyarrow as pa

    try:
        yield
    except PenstockError:
        raise
    except FileNotFoundError as error:
        message = f"There is no file {name!r}."
        raise NotFoundError(message, file=name) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        if too_little_memory(error):
            raise
        message = f"The file cannot be read: {error}"
        raise DataLossError(message, hint=hint, file=name) from error


def _in_files(files: Sequence[str], open_file: _Open, hint: str = _AGAIN) -> BatchTable:
    """Return the batches of files with the same schema. Each file is opened when the iteration reaches it."""
    with _reading(files[0], hint):
        schema = open_file(files[0])[0]

    def batches() -> Iterator[Any]:
        for name in files:
            with _reading(name, hint):
                found, parts = open_file(name)
                if not found.equals(schema):
                    message = f"The columns of this file differ from those of the first: {_columns(found)} here."
                    raise InvalidTypeError(message, hint=f"The first has {_columns(schema)}.", file=name)
                for part in parts:
                    yield from _pieces(part.replace_schema_metadata(schema.metadata))

    return BatchTable(schema, batches)


def _columns(schema: Any) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)


def _pieces(batch: Any) -> Iterator[Any]:
    """Split a batch into parts that are no larger than a read."""
    step = max(min(_ROWS, int(_BYTES / max(batch.nbytes / max(batch.num_rows, 1), 1e-9))), 1)
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _parquet(found: Found) -> BatchTable:
    import pyarrow.parquet as pq

    def open_file(name: str) -> tuple[Any, Iterator[Any]]:
        # pre_buffer=True would keep all data in memory
        file = pq.ParquetFile(name, page_checksum_verification=True, pre_buffer=False)
        meta = file.metadata
        size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups)) // max(meta.num_rows, 1)
        return file.schema_arrow, file.iter_batches(max(min(_ROWS, _BYTES // max(size, 1)), 1))

    table = _in_files(found.files, open_file)
    count = 0
    for name in found.files:
        with _reading(name):
            count += pq.read_metadata(name).num_rows
    return BatchTable(table.schema, table.batches, count)


def _arrow(found: Found) -> BatchTable:
    import pyarrow as pa

    def open_file(name: str) -> tuple[Any, Iterator[Any]]:
        source = pa.BufferReader(pa.py_buffer(storage.bytes_of(name)))
        if source.read(6) == b"ARROW1":
            source.seek(0)
            file = pa.ipc.open_file(source)
            return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema, iter(stream)

    return _in_files(found.files, open_file)


def _csv(found: Found) -> BatchTable:
    import pyarrow.csv

    types: dict[str, Any] = {}

    def open_file(name: str) -> tuple[Any, Iterator[Any]]:
        reader = pyarrow.csv.open_csv(
            _unpacked(name, found),
            read_options=pyarrow.csv.ReadOptions(
                block_size=_TEXT_BYTES, skip_rows=lines_before_header(name, found.compression)
            ),
            parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert_options=pyarrow.csv.ConvertOptions(column_types=types or None, null_values=_MISSING),
        )
        return reader.schema, iter(reader)

    for field in _told(found.files, open_file):
        types[field.name] = field.type
    return _in_files(found.files, open_file, _BY_THE_FIRST)


def _told(files: Sequence[str], open_file: _Open) -> Any:
    """Return the columns that the beginnings of text files have. int64 in one and double in another give double.

    Strings that look like times stay text, and an empty column is text.
    """
    import pyarrow as pa

    schema = pa.schema([])
    for name in files:
        with _reading(name, _BY_THE_FIRST):
            found = open_file(name)[0]
            kinds = [(field.name, with_types(field.type, pa.types.is_temporal, pa.string())) for field in found]
            schema = pa.unify_schemas([schema, pa.schema(kinds)], promote_options="permissive")
    return pa.schema([(field.name, with_types(field.type, pa.types.is_null, pa.string())) for field in schema])


def _jsonl(found: Found) -> BatchTable:
    import pyarrow as pa
    import pyarrow.json

    if not hasattr(pyarrow.json, "open_json"):
        message = "Reading JSON Lines in parts needs a newer pyarrow."
        raise MissingDependencyError(message, hint="pip install -U pyarrow")

    schema: Any = None

    def open_file(name: str) -> tuple[Any, Iterator[Any]]:
        if not _unpacked(name, found).read(1):
            return schema or pa.schema([]), iter(())
        reader = pyarrow.json.open_json(
            _unpacked(name, found),
            read_options=pyarrow.json.ReadOptions(block_size=_TEXT_BYTES),
            parse_options=pyarrow.json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "error"
            ),
        )
        return reader.schema, iter(reader)

    schema = _told(found.files, open_file)
    return _in_files(found.files, open_file, _BY_THE_FIRST)


def _unpacked(name: str, found: Found) -> Any:
    import pyarrow as pa

    return pa.input_stream(name, compression="gzip" if found.compression else None)


def _of_rows(schema: Any, rows: Callable[[], Iterable[Mapping[str, Any]]], count: int | None = None) -> BatchTable:
    """Return a table of rows that Python code yields, grouped into batches."""
    import pyarrow as pa

    def batches() -> Iterator[Any]:
        waiting: list[Mapping[str, Any]] = []
        size = 0
        for row in rows():
            waiting.append(row)
            size += sum(len(value) for value in row.values() if isinstance(value, bytes | str | list)) + 8 * len(row)
            if size >= _BYTES or len(waiting) >= _ROWS:
                yield pa.RecordBatch.from_pylist(waiting, schema)
                waiting, size = [], 0
        if waiting:
            yield pa.RecordBatch.from_pylist(waiting, schema)

    return BatchTable(schema, batches, count)


def _lmdb(found: Found) -> BatchTable:
    import pyarrow as pa

    pairs = LmdbDataset(list(found.files))
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary())])
    return _of_rows(schema, lambda: ({"key": key, "value": value} for key, value in pairs), len(pairs))


def _records(records: Dataset) -> BatchTable:
    """Return a table of records. A first iteration finds the features and their numbers of values."""
    import pyarrow as pa

    seen = seen_in(records)
    if seen is None:
        schema = pa.schema([("record", pa.binary())])
        return _of_rows(schema, lambda: ({"record": record} for record in records))
    kinds = {"bytes": pa.binary(), "int64": pa.int64(), "float32": pa.float32(), None: pa.binary()}
    features = sorted(seen.features.items())
    single = {name for name, feature in features if feature.least == feature.most == 1}
    fields = []
    for name, feature in features:
        kind = kinds[feature.kind]
        many = pa.list_(kind, feature.most) if feature.least == feature.most > 1 else pa.list_(kind)
        fields.append(pa.field(name, kind if name in single else many))

    def rows() -> Iterator[Mapping[str, Any]]:
        for record in records:
            lists = {
                name: values.tolist() if isinstance(values, np.ndarray) else list(values)
                for name, values in decode_example(record).items()
            }
            yield {name: values[0] if name in single else values for name, values in lists.items()}

    return _of_rows(pa.schema(fields), rows, seen.records)


def _webdataset(found: Found) -> BatchTable:
    import pyarrow as pa

    samples = WebDataset(list(found.files))
    with samples.iterator() as elements:
        first = next(iter(elements), None)
    if first is None:
        message = f"There are no samples in {found.path!r}."
        raise NotFoundError(message, file=found.path)
    columns = columns_of([suffix for suffix in first if suffix != "__key__"])
    arrays = [pa.array([value_of(suffix, first[suffix], suffix)], from_pandas=False) for suffix in columns]
    fields = [pa.field(name, array.type) for name, array in zip(columns.values(), arrays, strict=True)]

    def rows() -> Iterator[Mapping[str, Any]]:
        for sample in samples:
            key = sample["__key__"].decode()
            values = {column: value_of(suffix, sample[suffix], key) for suffix, column in columns.items()}
            yield {"__key__": key, **values}

    return _of_rows(pa.schema([("__key__", pa.string()), *fields]), rows)


def _sample_shards(found: Found) -> BatchTable:
    import pyarrow as pa

    samples = MDSDataset(found.path) if found.format == "mds" else LitDataset(found.path)
    source: Any = samples._plan.source  # type: ignore[attr-defined]
    files = [name for name, rows in zip(source.files, source.stated(), strict=True) if rows] or source.files

    def open_file(name: str) -> tuple[Any, Iterator[Any]]:
        file = source.open_rows(name)
        if file.arrow is not None:
            return file.arrow.batch.schema, iter([file.arrow.batch])
        leaves, structure = flatten(file.spec)
        kinds = [_column_type(leaf, code) for leaf, code in zip(leaves, source.encodings, strict=True)]
        schema = pa.schema(list(zip(column_names(structure), kinds, strict=True)))
        step = max(min(_ROWS, _BYTES * file.size // max(source.shards[name][2], 1)), 1)

        def batches() -> Iterator[Any]:
            for block in iter(partial(RowsReader(file, 0).read, step), None):
                values = [
                    [value.tolist() if getattr(value, "ndim", 0) > 1 else value for value in column.values()]
                    for column in block.columns
                ]
                yield pa.record_batch(list(map(pa.array, values, schema.types)), schema=schema)

        return schema, batches()

    return replace(_in_files(files, open_file), count=len(source))


def _column_type(leaf: Any, encoding: str) -> Any:
    """Return the Arrow type for values of a spec. A dimension of unknown size is a list of any length."""
    import pyarrow as pa

    if leaf.dtype is bytes:
        kind = pa.string() if encoding in TEXTS.split() else pa.binary()
    elif leaf.dtype.kind in "biuf":
        kind = pa.from_numpy_dtype(leaf.dtype)
    else:
        message = f"Values of {leaf.dtype} have no type in Arrow."
        raise InvalidTypeError(message, hint="Read the folder with ps.LitDataset, and convert the values with map().")
    for extent in reversed(leaf.shape):
        kind = pa.list_(kind, -1 if extent is None else extent)
    return kind


def _image_folder(found: Found) -> BatchTable:
    import pyarrow as pa

    fields = [pa.field("image", pa.binary()), pa.field("path", pa.string())]
    if all(len(PurePath(file).relative_to(found.path).parts) == 1 for file in found.files):
        flat = ImageFolderDataset(found.path, labels=None)
        files: Any = flat._plan.source.files  # type: ignore[attr-defined]

        def contents() -> Iterator[Mapping[str, Any]]:
            for image, name in zip(flat, files, strict=True):
                yield {"image": image, "path": _below(found, name)}

        return _of_rows(pa.schema(fields), contents, len(flat))
    folder = ImageFolderDataset(found.path)
    source: Any = folder._plan.source  # type: ignore[attr-defined]
    classes = folder.class_names or []
    fields += [pa.field("label", pa.int64()), pa.field("class_name", pa.string())]
    text = {"dtype": "string", "_type": "Value"}
    features = {"image": {"_type": "Image"}, "path": text, "label": {"names": classes, "_type": "ClassLabel"}}
    schema = noted(pa.schema(fields), {**features, "class_name": text})

    def rows() -> Iterator[Mapping[str, Any]]:
        for (image, label), name in zip(folder, source.files, strict=True):
            yield {"image": image, "path": _below(found, name), "label": int(label), "class_name": classes[int(label)]}

    return _of_rows(schema, rows, len(folder))


def _below(found: Found, name: str) -> str:
    return PurePath(name).relative_to(found.path).as_posix()


def _text(found: Found) -> BatchTable:
    import pyarrow as pa

    lines = TextLineDataset(list(found.files), compression_type=found.compression)
    return _of_rows(pa.schema([("line", pa.binary())]), lambda: ({"line": line} for line in lines))


_TABLES: dict[str, Callable[[Found], BatchTable]] = {
    "array_record": lambda found: _records(ArrayRecordDataset(list(found.files))),
    "lmdb": _lmdb,
    "arrow": _arrow,
    "csv": _csv,
    "huggingface": _arrow,
    "image_folder": _image_folder,
    "jsonl": _jsonl,
    "litdata": _sample_shards,
    "mds": _sample_shards,
    "parquet": _parquet,
    "text": _text,
    "tfrecord": lambda found: _records(TFRecordDataset(list(found.files), compression_type=found.compression)),
    "webdataset": _webdataset,
}
