"""from_huggingface: a data set of the `datasets` library as it lies in memory or in its mapped files."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.block.arrow import from_arrow
from penstock.block.block import Block
from penstock.block.spec import TensorSpec
from penstock.dataset.base import of_source
from penstock.errors import Context, InvalidArgumentError, InvalidTypeError, as_failure
from penstock.image import decode_image
from penstock.io import storage
from penstock.plan.node import AUTOTUNE
from penstock.sources.arrow_pieces import Columns, as_columns
from penstock.sources.arrow_table import TableSource
from penstock.sources.generator import GeneratorSource
from penstock.sources.sequence import SequenceSource
from penstock.sources.source import Reader, Source

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

_CHANNELS = {None: 0, "L": 1, "RGB": 3, "RGBA": 4}
_PATIENCE = 0.002  # seconds: a slow stream hands over what it has


def from_huggingface(
    dataset: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any] | None, decode: bool
) -> Dataset:
    """What `Dataset.from_huggingface` says."""
    if isinstance(dataset, Mapping):
        splits = ", ".join(map(repr, dataset)) or "none"
        message = f"from_huggingface takes one split, got a {type(dataset).__name__} with the splits {splits}."
        raise InvalidTypeError(message, hint=f"For example dataset[{next(iter(dataset), 'train')!r}].")
    table = getattr(getattr(dataset, "data", None), "table", None)
    if table is not None and hasattr(dataset, "features"):
        if dataset.format["type"] == "custom":  # set_transform: only asking for a row runs it
            return of_source(SequenceSource(dataset, "from_huggingface"))
        return _of_table(dataset, table, columns, fill_null, decode)
    if hasattr(dataset, "with_format") and hasattr(dataset, "features") and isinstance(dataset, Iterable):
        return _of_stream(dataset, columns, fill_null, decode)
    message = f"from_huggingface takes a data set of the datasets library, got {type(dataset).__name__}."
    hint = "For other objects there are from_arrow, from_pandas, from_polars, from_sequence and from_generator."
    raise InvalidTypeError(message, hint=hint)


def _of_table(
    dataset: Any, table: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any] | None, decode: bool
) -> Dataset:
    wanted = as_columns(columns, fill_null)
    names = dataset.format["columns"] if wanted.names is None else wanted.names
    missing = [name for name in names if name not in table.column_names]
    if missing:
        message = f"There is no column {missing[0]!r}; the columns are {', '.join(table.column_names)}."
        raise InvalidArgumentError(message)
    table = _plain_columns(table.select(list(names)), dataset.features)
    indices = getattr(dataset, "_indices", None)  # after shuffle, select, filter, train_test_split
    numbers = None if indices is None else np.asarray(indices.column(0)).astype(np.int64)
    version = f"{getattr(dataset, '_fingerprint', '')}{list(names)}" if hasattr(dataset, "_fingerprint") else None
    made = of_source(TableSource(table, as_columns(None, fill_null), "from_huggingface", numbers, version))
    return _decoded(made, dataset.features, names, decode)


def _decoded(made: Dataset, features: Mapping[str, Any], names: Sequence[str], decode: bool) -> Dataset:
    images = {
        name: _CHANNELS.get(getattr(feature, "mode", None), 0)
        for name, feature in features.items()
        if name in names and _is(feature, "Image") and getattr(feature, "decode", True)
    }
    return made.map(_decoder(images), num_parallel_calls=AUTOTUNE) if images and decode else made


def _of_stream(
    dataset: Any, columns: Sequence[str] | None, fill_null: Mapping[str, Any] | None, decode: bool
) -> Dataset:
    wanted = as_columns(columns, fill_null)
    features = dataset.features
    if features is not None:
        names = list(features) if wanted.names is None else list(wanted.names)
        missing = [name for name in names if name not in features]
        if missing:
            message = f"There is no column {missing[0]!r}; the columns are {', '.join(features)}."
            raise InvalidArgumentError(message)
        stream = _Stream(dataset.select_columns(names), {name: features[name] for name in names}, fill_null)
        return _decoded(of_source(stream), features, names, decode)
    if fill_null is not None or not decode:
        message = "fill_null and decode=False need the features of a data set, which this stream does not tell."
        raise InvalidArgumentError(message, hint="Say them where it is made: dataset.map(function, features=...).")

    def rows() -> Any:
        found = dataset.with_format("numpy")
        return found if wanted.names is None else found.select_columns(list(wanted.names))

    return of_source(GeneratorSource(rows))


@dataclass(frozen=True, eq=False)
class _Stream(Source):
    """The rows of an IterableDataset whose features are known, as dicts: what a table of them would give."""

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
        return Columns(None, self.fill_null).spec(_plain_columns(empty, self.features, whole=True).schema)

    @property
    def cardinality(self) -> int:
        return -2

    def open(self, position: int | None = None) -> Reader:
        return _StreamReader(self, position or 0)


class _StreamReader(Reader):
    """Tables of a row or some, as the stream gives them, put together while it is fast."""

    def __init__(self, source: _Stream, skip: int) -> None:
        self._source, self._skip, self._given = source, skip, skip
        self._tables: Iterator[Any] | None = None
        self._made: deque[Block | Exception] = deque()
        self._done = False

    def read(self, max_elements: int) -> Block | None:
        if not self._made and not self._done:
            self._make(max_elements)
        if not self._made:
            return None
        piece = self._made.popleft()
        if isinstance(piece, Block):
            self._given += piece.size
            return piece
        self._given += 1
        raise piece

    def _make(self, most: int) -> None:
        """As many rows as come within a moment, and the failure of the stream behind them, which ends it."""
        tables: list[Any] = []
        deadline = time.perf_counter() + _PATIENCE
        failure: Exception | None = None
        if self._tables is None:
            self._tables = iter(_single_rows(self._source.dataset, self._skip))
        while len(tables) < most and (not tables or time.perf_counter() < deadline):
            try:
                tables.append(next(self._tables))
            except StopIteration:
                self._done = True
                break
            except Exception as raised:
                self._done, failure = True, as_failure(raised, Context())
                break
        if tables:
            self._convert(tables, self._given)
        if failure is not None:
            self._made.append(failure)

    def _convert(self, tables: list[Any], first: int) -> None:
        """Rows as a Block; where one of them fails, each by itself."""
        import pyarrow as pa

        try:
            plain = _plain_columns(pa.concat_tables(tables), self._source.features, whole=True)
            batch = plain.combine_chunks().to_batches()[0]
            self._made.append(from_arrow(batch, fill_null=self._source.fill_null, first_row=first))
        except Exception as raised:
            if len(tables) == 1:
                self._made.append(as_failure(raised, Context()))
                return
            for row, table in enumerate(tables, first):
                self._convert([table], row)

    def position(self) -> int:
        return self._given

    def close(self) -> None:
        tables, self._tables, self._done = self._tables, None, True
        self._made.clear()
        close = getattr(tables, "close", None)
        if close is not None:
            close()


def _single_rows(dataset: Any, skip: int) -> Iterator[Any]:
    for table in dataset.with_format("arrow"):
        for row in range(table.num_rows):
            if skip:
                skip -= 1
            else:
                yield table if table.num_rows == 1 else table.slice(row, 1)


def _decoder(images: Mapping[str, int]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def decode_images(row: dict[str, Any]) -> dict[str, Any]:
        found = dict(row)
        for name, channels in images.items():
            found[name] = decode_image(_contents(row[name], name), channels=channels, expand_animations=False)
        return found

    def spec(row: Any) -> Any:
        return row | {name: TensorSpec((None, None, channels or None), np.uint8) for name, channels in images.items()}

    decode_images.__penstock_spec__ = spec  # type: ignore[attr-defined]
    return decode_images


def _contents(value: Any, name: str) -> bytes:
    """The bytes of an image file, which lies in the table or at a path."""
    if not isinstance(value, dict):
        return bytes(value)
    if value["bytes"]:
        return bytes(value["bytes"])
    if value["path"]:
        with storage.open_read(value["path"].decode()) as file:
            return bytes(file.read())
    message = f"Column {name!r} has no image in this row."
    raise InvalidArgumentError(message, hint="Leave such rows out before: dataset.filter(...).")


def _is(feature: Any, name: str) -> bool:
    return type(feature).__name__ == name


def _plain_columns(table: Any, features: Mapping[str, Any], *, whole: bool = False) -> Any:
    """The table with columns of the library's own types as Arrow's: files as their bytes, arrays as tensors.

    `whole` reads files that lie at a path, so that a column is of one type whatever rows come.
    """
    import pyarrow as pa

    arrays = []
    for name in table.column_names:
        column, feature = table.column(name), features[name]
        if _is(feature, "Image") or _is(feature, "Audio"):
            column = _contents_of(column, name) if whole else _files(column)
        elif type(feature).__name__ in ("Array2D", "Array3D", "Array4D", "Array5D"):
            column = _tensors(column, tuple(feature.shape))
        elif _is(getattr(feature, "feature", None), "Image") or _is(getattr(feature, "feature", None), "Audio"):
            column = _lists_of_files(column)
        arrays.append(column)
    return pa.table(arrays, names=table.column_names)


def _files(column: Any) -> Any:
    """Files that are `struct<bytes, path>`: as their bytes, where all of them lie in the table."""
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
    """Files as their bytes, wherever they lie."""
    import pyarrow as pa

    found = _files(column)
    if not pa.types.is_struct(found.type):
        return found
    rows = (
        {key: value and value.encode() if key == "path" else value for key, value in row.items()}
        for row in found.to_pylist()
    )
    return pa.chunked_array([pa.array([_contents(row, name) for row in rows], pa.binary())])


def _lists_of_files(column: Any) -> Any:
    """Lists of files as lists of their bytes."""
    import pyarrow as pa

    chunks = column.chunks
    if not pa.types.is_list(column.type) or any(chunk.null_count for chunk in chunks):
        return column
    found = [pa.ListArray.from_arrays(chunk.offsets, chunk.values.field("bytes")) for chunk in chunks]
    return pa.chunked_array(found, pa.list_(pa.binary()))


def _tensors(column: Any, shape: tuple[int | None, ...]) -> Any:
    """Nested lists of one shape as `arrow.fixed_shape_tensor`; where an extent differs they stay lists."""
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
