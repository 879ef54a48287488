"""from_huggingface: a data set of the `datasets` library as it lies in memory or in its mapped files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.dataset.base import of_source
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image import decode_image
from penstock.io import storage
from penstock.plan.node import AUTOTUNE
from penstock.sources.arrow_pieces import as_columns
from penstock.sources.arrow_table import TableSource
from penstock.sources.generator import GeneratorSource
from penstock.sources.sequence import SequenceSource

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset

_CHANNELS = {None: 0, "L": 1, "RGB": 3, "RGBA": 4}


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
        return _of_stream(dataset, columns)
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
    images = {
        name: _CHANNELS.get(getattr(feature, "mode", None), 0)
        for name, feature in dataset.features.items()
        if name in names and _is(feature, "Image") and getattr(feature, "decode", True)
    }
    return made.map(_decoder(images), num_parallel_calls=AUTOTUNE) if images and decode else made


def _of_stream(dataset: Any, columns: Sequence[str] | None) -> Dataset:
    wanted = as_columns(columns, None).names

    def rows() -> Any:
        found = dataset.with_format("numpy")
        return found if wanted is None else found.select_columns(list(wanted))

    return of_source(GeneratorSource(rows))


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


def _plain_columns(table: Any, features: Mapping[str, Any]) -> Any:
    """The table with columns of the library's own types as Arrow's: files as their bytes, arrays as tensors."""
    import pyarrow as pa

    arrays = []
    for name in table.column_names:
        column, feature = table.column(name), features[name]
        if _is(feature, "Image") or _is(feature, "Audio"):
            column = _files(column)
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
