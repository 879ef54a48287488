"""`tf.io`: records, files, and encoded bytes."""

from __future__ import annotations

import base64
import functools
import gzip
import inspect
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.column import BytesColumn, Column
from penstock.block.spec import SparseTensorSpec
from penstock.compat.dtypes import DType, as_dtype, plain
from penstock.compat.op import known, named, op, texts_of, through
from penstock.compat.teaching import missing_in
from penstock.compat.tf.io import gfile
from penstock.compat.tf.strings import by_column
from penstock.compat.values import array_of, lowered, raised, whole
from penstock.errors import InvalidArgumentError
from penstock.image.checks import format_of
from penstock.io.csv_columns import LEAST, arrow_columns, plain_columns, rows_of
from penstock.io.csv_format import CsvColumn, CsvFormat
from penstock.io.csv_reader import FINE, CsvChunk, sound_rows, whole_row
from penstock.io.storage import as_path

TFRecordOptions = ps.io.TFRecordOptions


_STILL = ("JPEG", "PNG", "GIF")


def _decoder(name: str) -> Any:
    """Return penstock's decoder for tensors. Like TensorFlow's, it also reads the formats of the other decoders."""
    decode, own = getattr(ps.io, name), name.removeprefix("decode_").upper()
    parameters = inspect.signature(decode)

    @functools.wraps(decode)
    def decoded(contents: Any, *args: Any, **kwargs: Any) -> Any:
        kind = format_of(contents) if isinstance(contents, bytes) else own
        if kind == own or kind not in _STILL:
            return decode(contents, *args, **kwargs)
        given = parameters.bind(contents, *args, **kwargs).arguments
        if own == "GIF":
            return ps.io.decode_image(contents, 3)[None]
        image = ps.io.decode_image(contents, given.get("channels", 0), given.get("dtype", np.uint8))
        if image.ndim == 4 and len(image) > 1:
            message = f"{name} decodes a GIF of one frame, this GIF has {len(image)}."
            raise InvalidArgumentError(message, hint="Write tf.io.decode_gif, or tf.io.decode_image.")
        return image.reshape(image.shape[-3:])

    return through(decoded)


decode_gif, decode_jpeg, decode_png = map(_decoder, ("decode_gif", "decode_jpeg", "decode_png"))
for _name in (
    *("decode_bmp", "decode_image", "decode_webp"),
    *("encode_jpeg", "encode_png", "extract_jpeg_shape", "is_jpeg"),
):
    globals()[_name] = through(getattr(ps.io, _name))
decode_and_crop_jpeg = through(ps.image.decode_and_crop_jpeg)


class TFRecordWriter(ps.io.TFRecordWriter):
    """Writes records to a file."""

    def write(self, record: Any) -> Any:
        return super().write(lowered(record))


def _feature(kind: Any) -> Any:
    def made(*args: Any, **kwargs: Any) -> Any:
        given = [_described(arg) for arg in args]
        return kind(*given, **{name: _described(item) for name, item in kwargs.items()})

    return known(named(made, kind.__name__, kind.__doc__))


def _described(value: Any) -> Any:
    return plain(value) if isinstance(value, DType) else lowered(value)


FixedLenFeature = _feature(ps.io.FixedLenFeature)
FixedLenSequenceFeature = _feature(ps.io.FixedLenSequenceFeature)
VarLenFeature = _feature(ps.io.VarLenFeature)


class RaggedFeature(ps.io.RaggedFeature):
    """A feature whose rows differ in length."""

    def __new__(cls, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        return ps.io.RaggedFeature(plain(dtype), *args, **kwargs)


@dataclass(frozen=True)
class SparseFeature:
    """A sparse tensor whose indices and values are separate features.

    `index_key` is the name of the feature with the indices, or a list of names, one for each dimension.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False

    def _keys(self) -> list[str]:
        return [self.index_key] if isinstance(self.index_key, str) else list(self.index_key)

    def _shape(self) -> list[int]:
        return [int(extent) for extent in np.asarray(self.size).reshape(-1)]


def _sparse_of(values: Any, indices: Any, shape: Any, ordered: bool) -> Any:
    """Return the sparse tensor of one feature's values at the indices of others, for each example of a batch."""
    if any(not np.array_equal(at.indices, values.indices) for at in indices):
        raise InvalidArgumentError("A SparseFeature needs as many places as values in each example.")
    rows = values.indices[:, :-1]
    at = np.column_stack([rows, *(part.values for part in indices)]).astype(np.int64)
    if len(at) and ((at[:, rows.shape[1] :] < 0) | (at[:, rows.shape[1] :] >= shape)).any():
        raise InvalidArgumentError(f"A SparseFeature has a place outside of its size {list(shape)}.")
    order = np.arange(len(at)) if ordered else np.lexsort(at.T[::-1])
    return ps.SparseTensor(at[order], values.values[order], np.array([*values.dense_shape[:-1], *shape]))


_sparse = op("io.SparseFeature", rule=lambda values, *args: SparseTensorSpec(None, values.dtype), ragged=True)(
    _sparse_of
)


def _parsing(name: str, description: str) -> Any:
    """Return a parser of `ps.io` that also knows SparseFeature: it reads the indices and values, and joins them."""
    parse = through(getattr(ps.io, name))

    def parsed(serialized: Any, features: Any, example_names: Any = None, name: Any = None) -> Any:
        sparse = {name: item for name, item in features.items() if isinstance(item, SparseFeature)}
        if not sparse:
            return parse(serialized, features)
        asked = {name: item for name, item in features.items() if name not in sparse}
        for item in sparse.values():
            keys = {**dict.fromkeys(item._keys(), "int64"), item.value_key: item.dtype}
            asked.update({key: VarLenFeature(as_dtype(kind)) for key, kind in keys.items()})
        found = parse(serialized, asked)
        made = {
            name: _sparse(
                found[item.value_key], [found[key] for key in item._keys()], item._shape(), item.already_sorted
            )
            for name, item in sparse.items()
        }
        return {**{name: found[name] for name in features if name not in sparse}, **made}

    return known(named(parsed, name, description))


parse_single_example = _parsing("parse_single_example", "Parse one serialized `tf.train.Example`.")
parse_example = _parsing("parse_example", "Parse a batch of serialized `tf.train.Example`s.")
_parse_sequence = through(ps.io.parse_single_sequence_example)


@known
def parse_single_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_name: Any = None,
    name: Any = None,
) -> Any:
    """Parse the context and the steps of one serialized `tf.train.SequenceExample`."""
    return _parse_sequence(serialized, context_features, sequence_features)


def _batched(values: list[Any]) -> Any:
    """Return the values of one feature as a batch. Steps are padded with zeros to the longest sequence."""
    if isinstance(values[0], ps.SparseTensor):
        return ps.SparseTensor.stack(values)
    if isinstance(values[0], ps.RaggedTensor):
        return ps.RaggedTensor.stack(values, values[0].row_splits.dtype)
    arrays = [whole(value) for value in values]
    if not arrays[0].ndim or len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    return ps.RaggedTensor.stack(arrays).to_dense()


@op("io.parse_sequence_example")
def parse_sequence_example(
    serialized: Any, context_features: Any = None, sequence_features: Any = None, example_names: Any = None
) -> Any:
    """Parse a batch of serialized `tf.train.SequenceExample`s: contexts, steps, and numbers of steps.

    Steps of one shape are padded with zeros to the longest sequence. The third dict has the numbers of steps.
    """
    texts = whole(serialized).reshape(-1).tolist()
    parsed = [ps.io.parse_single_sequence_example(text, context_features, sequence_features) for text in texts]
    if not parsed:
        raise InvalidArgumentError("parse_sequence_example of no examples.")
    context, steps = (
        {name: _batched([one[part][name] for one in parsed]) for name in parsed[0][part]} for part in (0, 1)
    )
    lengths = {
        name: np.array([len(one[1][name]) for one in parsed], np.int64)
        for name, item in (sequence_features or {}).items()
        if isinstance(item, ps.io.FixedLenSequenceFeature)
    }
    return context, steps, lengths


def _one_text(*args: Any, **kwargs: Any) -> Any:
    return ps.TensorSpec((), bytes)


@op("io.read_file", rule=_one_text)
def read_file(filename: Any) -> Any:
    """Return the bytes of a file, which may be a URL."""
    return gfile.read_bytes(as_path(filename))


def write_file(filename: Any, contents: Any, name: Any = None) -> None:
    """Write `contents` to a file. Missing folders are made."""
    gfile.write_bytes(as_path(lowered(filename)), array_of(contents))


@op("io.matching_files")
def matching_files(pattern: Any) -> Any:
    found = sorted(gfile.glob(pattern))
    return np.asarray([name.encode() for name in found] or [b""], object)[: len(found)]


def _raw_rule(input_bytes: Any, out_type: Any, little_endian: Any = True, fixed_length: Any = None) -> Any:
    return ps.TensorSpec((*input_bytes.shape, None), as_dtype(out_type).dtype)


@op("io.decode_raw", rule=_raw_rule)
def decode_raw(input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: Any = None) -> Any:
    """Interpret bytes as numbers."""
    dtype = as_dtype(out_type).dtype
    order = dtype.newbyteorder("<" if little_endian else ">")
    texts = array_of(input_bytes)

    def numbers(text: bytes) -> np.ndarray:
        if fixed_length is not None:
            text = text[: int(fixed_length)].ljust(int(fixed_length), b"\0")
        if len(text) % dtype.itemsize:
            message = f"decode_raw of {len(text)} bytes, which are no multiple of the {dtype.itemsize} of {dtype}."
            raise InvalidArgumentError(message)
        return np.frombuffer(text, order).astype(dtype)

    if isinstance(texts, bytes):
        return numbers(texts)
    return np.stack([numbers(text) for text in texts.reshape(-1).tolist()]).reshape(*texts.shape, -1)


@known
def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    name: Any = None,
) -> Any:
    """Parse lines of CSV to one tensor per column, with the dtypes of `record_defaults`."""
    columns = []
    for default in record_defaults:
        required = isinstance(default, (type, DType))
        held = whole([], default) if required else whole(default).reshape(-1)
        dtype = bytes if held.dtype.hasobject else held.dtype
        columns.append(CsvColumn(dtype, held[0] if held.size else None))
    chosen = None if select_cols is None else tuple(select_cols)
    quote = CsvFormat.quote_of(use_quote_delim)
    layout = CsvFormat(tuple(columns), ord(field_delim), quote, na_value.encode(), chosen)
    return list(_decode_csv(records, layout))


def _csv_rule(records: Any, layout: CsvFormat) -> Any:
    return tuple(ps.TensorSpec(records.shape, column.dtype) for column in layout.columns)


@by_column("io.decode_csv", _csv_rule)
def _decode_csv(records: BytesColumn, layout: CsvFormat) -> tuple[Column, ...]:
    texts = texts_of(records).reshape(-1).tolist()
    content = np.frombuffer(b"\n".join([*texts, b""]), np.uint8)
    offsets = np.append(0, np.cumsum(records.lengths + 1))
    chunk, marks, found = CsvChunk(content, 0, offsets), (layout.delimiter, layout.quote), None
    if content.size >= LEAST and np.array_equal(sound_rows(content, *marks, final=True), offsets):
        found = arrow_columns(chunk, layout)
    if found is None:
        rows = [whole_row(memoryview(text), 0, *marks) for text in texts]
        if any(row.ended for row in rows):
            message = "decode_csv takes one row from each text; this one has a line end that is not in quotes."
            raise InvalidArgumentError(message, hint="Split the text first, or read the file with TextLineDataset.")
        chunk = CsvChunk(content, 0, offsets, dict(enumerate(rows)))
        found = plain_columns(chunk, layout)
    for row, status, count in found.unread or [(row, FINE, 0) for row, text in enumerate(texts) if not text]:
        fields = rows_of(chunk, layout, [row])[0].fields[:count]
        raise layout.row_error(fields, status, None, int(offsets[row]), int(offsets[row + 1]))
    for number, wrong in enumerate(found.wrong):
        for row in np.flatnonzero(wrong).tolist():
            fields = rows_of(chunk, layout, [row])[0].fields
            raise layout.field_error(number, fields[layout.places[number]], None, int(offsets[row]))
    return tuple(found.columns)


@op("io.decode_base64", rule=_one_text)
def decode_base64(input: Any) -> Any:
    text = array_of(input)
    return base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


@op("io.encode_base64", rule=_one_text)
def encode_base64(input: Any, pad: bool = False) -> Any:
    found = base64.urlsafe_b64encode(array_of(input))
    return found if pad else found.rstrip(b"=")


_UNPACK: dict[str, Any] = {"": lambda data: data, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}


@op("io.decode_compressed")
def decode_compressed(bytes: Any, compression_type: str = "") -> Any:
    """Decompress bytes, or each text of an array."""
    found = whole(bytes)
    flat = [_UNPACK[compression_type](text) for text in found.reshape(-1).tolist()]
    return np.array([*flat, None], object)[:-1].reshape(found.shape)[()]


@op("io.serialize_tensor", rule=_one_text)
def serialize_tensor(tensor: Any) -> Any:
    """Serialize a value as a TensorProto, as TensorFlow does."""
    from penstock.compat.tf.io.tensor_proto import encoded

    return encoded(whole(tensor))


def parse_tensor(serialized: Any, out_type: Any, name: Any = None) -> Any:
    """Return the value of a serialized TensorProto."""
    from penstock.compat.tf.io.tensor_proto import decoded

    return raised(decoded(array_of(serialized), as_dtype(out_type)))


MISSING = {
    "decode_json_example": "Write json.loads(line) in a function, or ps.JsonLinesDataset(file).",
    "decode_proto": "Use the class that protoc makes, in a function.",
    "deserialize_many_sparse": "ds.sparse_batch makes batches of sparse tensors.",
    "serialize_sparse": "Elements may be sparse tensors.",
    "match_filenames_once": "Write tf.io.matching_files(pattern).",
}
__getattr__ = missing_in("tf.io", globals(), MISSING)
