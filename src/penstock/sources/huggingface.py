"""Rows of Hugging Face's `datasets`: streams of rows, and conversion of its column types to Arrow's."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from penstock.block.arrow import from_arrow
from penstock.errors import Context, InvalidArgumentError, as_failure
from penstock.io import storage
from penstock.sources.arrow_pieces import Columns
from penstock.sources.generator import IteratedReader
from penstock.sources.source import Reader, Source


@dataclass(frozen=True, eq=False)
class StreamSource(Source):
    """The rows of an IterableDataset with known features, as dicts. The elements are those of an equal table."""

    calls: ClassVar[bool] = True
    holds_spec: ClassVar[bool] = True
    dataset: Any = field(repr=False)
    features: Mapping[str, Any] = field(repr=False)
    fill_null: Mapping[str, Any] | None = None

    @property
    def label(self) -> str:
        return "from_huggingface"

    @cached_property
    def spec(self) -> Any:
        import pyarrow as pa

        known = self.dataset.features.arrow_schema
        empty = pa.schema([known.field(name) for name in self.features]).empty_table()
        return Columns(None, self.fill_null).spec(plain_columns(empty, self.features, whole=True).schema)

    @property
    def cardinality(self) -> int:
        return -2

    def open(self, position: int | None = None) -> Reader:
        return _StreamReader(self, position or 0)


class _StreamReader(IteratedReader):
    """Reads tables of one row, and concatenates the rows that arrive within a moment."""

    def __init__(self, source: StreamSource, position: int) -> None:
        super().__init__(position)
        self._source = source
        self._tables: list[Any] = []

    def _begin(self) -> None:
        self._iterator = _single_rows(self._source.dataset, self._skip)

    def _taking(self) -> Callable[[Any], object]:
        self._tables = []
        return self._tables.append

    def _hand_on(self, first: int) -> None:
        if self._tables:
            self._convert(self._tables, first)

    def _convert(self, tables: list[Any], first: int) -> None:
        """Convert rows to a Block. If one of them fails, convert each row by itself."""
        import pyarrow as pa

        try:
            plain = plain_columns(pa.concat_tables(tables), self._source.features, whole=True)
            batch = plain.combine_chunks().to_batches()[0]
            self._made.append(from_arrow(batch, fill_null=self._source.fill_null, first_row=first))
        except Exception as raised:
            if len(tables) == 1:
                self._made.append(as_failure(raised, Context()))
                return
            for row, table in enumerate(tables, first):
                self._convert([table], row)


def in_format(dataset: Any, kind: str) -> Any:
    """Return an IterableDataset for one iteration, in a format of `datasets`.

    The iterations of a data set store their positions in shared objects, and read them when they begin. Of two
    iterations in two threads, one may begin at the other's end and yield nothing. So each iteration gets its own copies
    of these objects.
    """
    found = copy(dataset.with_format(kind))
    examples = getattr(found, "_ex_iterable", None)
    if examples is not None:
        found._ex_iterable = _apart(examples)
    return found


def _apart(examples: Any) -> Any:
    """Return a copy of a stream's examples, and of the objects that they read from."""
    made = copy(examples)
    for name, value in vars(examples).items():
        if name == "_state_dict":
            setattr(made, name, None)
        elif hasattr(value, "_init_state_dict"):
            setattr(made, name, _apart(value))
        elif isinstance(value, list) and value and all(hasattr(one, "_init_state_dict") for one in value):
            setattr(made, name, [_apart(one) for one in value])
    return made


def _single_rows(dataset: Any, skip: int) -> Iterator[Any]:
    for table in in_format(dataset, "arrow"):
        for row in range(table.num_rows):
            if skip:
                skip -= 1
            else:
                yield table if table.num_rows == 1 else table.slice(row, 1)


def contents(value: Any, name: str) -> bytes:
    """Return the bytes of an image file, which lies in the table or at a path."""
    if not isinstance(value, dict):
        return bytes(value)
    if value["bytes"]:
        return bytes(value["bytes"])
    if value["path"]:
        with storage.open_read(value["path"].decode()) as file:
            return bytes(file.read())
    message = f"Column {name!r} has no image in this row."
    raise InvalidArgumentError(message, hint="Leave such rows out before: dataset.filter(...).")


def is_feature(feature: Any, *names: str) -> bool:
    return type(feature).__name__ in names


def plain_columns(table: Any, features: Mapping[str, Any], *, whole: bool = False) -> Any:
    """Return the table with columns of the library's types converted to Arrow types: files as bytes, arrays as tensors.

    `whole` also reads files at a path, so that a column has one type for all rows.
    """
    import pyarrow as pa

    arrays = []
    for name in table.column_names:
        column, feature = table.column(name), features[name]
        if is_feature(feature, "Image", "Audio"):
            column = _contents_of(column, name) if whole else _files(column)
        elif is_feature(feature, "Array2D", "Array3D", "Array4D", "Array5D"):
            column = _tensors(column, tuple(feature.shape))
        elif is_feature(getattr(feature, "feature", None), "Image", "Audio"):
            column = _lists_of_files(column)
        arrays.append(column)
    return pa.table(arrays, names=table.column_names)


def _files(column: Any) -> Any:
    """Return files of type `struct<bytes, path>` as bytes, if the table contains all of them."""
    import pyarrow as pa
    import pyarrow.compute

    if not pa.types.is_struct(column.type):
        return column
    files = pyarrow.compute.struct_field(column, "bytes")
    if not files.null_count:
        return files
    parts = [
        pyarrow.compute.fill_null(files, pa.scalar(b"", files.type)).combine_chunks(),
        pyarrow.compute.fill_null(pyarrow.compute.struct_field(column, "path"), "").combine_chunks(),
    ]
    return pa.StructArray.from_arrays(parts, ["bytes", "path"])


def _contents_of(column: Any, name: str) -> Any:
    """Return files as bytes, from the table or from their paths."""
    import pyarrow as pa

    found = _files(column)
    if not pa.types.is_struct(found.type):
        return found
    rows = (
        {key: value and value.encode() if key == "path" else value for key, value in row.items()}
        for row in found.to_pylist()
    )
    return pa.chunked_array([pa.array([contents(row, name) for row in rows], pa.binary())])


def _lists_of_files(column: Any) -> Any:
    """Return lists of files as lists of bytes."""
    import pyarrow as pa

    chunks = column.chunks
    if not pa.types.is_list(column.type) or any(chunk.null_count for chunk in chunks):
        return column
    found = [pa.ListArray.from_arrays(chunk.offsets, chunk.values.field("bytes")) for chunk in chunks]
    return pa.chunked_array(found, pa.list_(pa.binary()))


def _tensors(column: Any, shape: tuple[int | None, ...]) -> Any:
    """Return nested lists of one shape as `arrow.fixed_shape_tensor`. Lists of variable length stay lists."""
    import pyarrow as pa

    storage_of = [chunk.storage for chunk in column.chunks]
    if None in shape or any(chunk.null_count for chunk in storage_of):
        return pa.chunked_array(storage_of, column.type.storage_type)
    size = math.prod(extent or 0 for extent in shape)
    value_type = column.type.storage_type
    while pa.types.is_list(value_type) or pa.types.is_large_list(value_type):
        value_type = value_type.value_type
    kind = pa.fixed_shape_tensor(value_type, shape)
    chunks = []
    for values in storage_of:
        while pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
            values = values.flatten()
        chunks.append(pa.ExtensionArray.from_storage(kind, pa.FixedSizeListArray.from_arrays(values, size)))
    return pa.chunked_array(chunks, kind)
