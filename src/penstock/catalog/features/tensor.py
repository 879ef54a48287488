"""Tensor, Scalar and Text: numbers and strings of one shape."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from penstock.catalog.features.feature import (
    MOST_BYTES,
    Doc,
    Feature,
    Lengths,
    Stored,
    StoredNest,
    documentation,
    dtype_name,
    fits,
    shape_json,
    spec_in_sequences,
)
from penstock.errors import DataLossError, InvalidArgumentError, InvalidTypeError

# For each kind of dtype, the kinds of values that it represents without a change of meaning.
_TAKES = {"b": "b", "i": "biu", "u": "biu", "f": "biuf"}
_ENCODINGS = ("none", "bytes", "zlib")


class Tensor(Feature):
    """Feature for an array. Booleans and integers are stored as int64, floats as float32, strings as byte strings.

    Args:
        shape: Shape of the array. One dimension may be None; more of them need an encoding.
        dtype: Dtype of the array.
        encoding: `"bytes"`, or `"zlib"`, which compresses. They keep all bits of a float64. Default: `"none"`.
        optional: If True, the value may be None, which is read as the smallest number of the dtype, `b""` or False, as
            in tfds. Default: False.
        doc: A `Documentation`, or a string.

    Example:
        >>> box = Tensor(shape=(4,), dtype=np.float32)
        >>> box.encode_example([0, 0, 1, 0.5], "box").tolist()
        [0.0, 0.0, 1.0, 0.5]
    """

    tfds_class = "tensorflow_datasets.core.features.tensor_feature.Tensor"

    def __init__(
        self,
        *,
        shape: tuple[int | None, ...],
        dtype: Any,
        encoding: str = "none",
        optional: bool = False,
        doc: Doc = None,
    ) -> None:
        self.doc = documentation(doc)
        self.shape = tuple(shape)
        self.dtype = as_dtype(dtype)
        self.encoding = str(encoding).lower()
        self.optional = bool(optional)
        if any(size is not None and (not isinstance(size, int | np.integer) or size < 0) for size in self.shape):
            message = f"shape must be made of sizes of 0 or more, got {self.shape}."
            raise InvalidArgumentError(message, hint="None stands for a size that differs from example to example.")
        if self.encoding not in _ENCODINGS:
            message = f'encoding must be "none", "bytes" or "zlib", got {encoding!r}.'
            raise InvalidArgumentError(message, hint='"zlib" compresses; both keep the bits as they are.')
        if self.dtype is bytes and self.encoding != "none":
            message = f"strings are stored as they are, got encoding={encoding!r}."
            raise InvalidArgumentError(message, hint="Leave encoding out.")
        if self.shape.count(None) > 1 and self.encoding == "none":
            message = f"a shape with more than one unknown size needs an encoding, got {self.shape}."
            raise InvalidArgumentError(message, hint='Use encoding="zlib", or "bytes".')

    def repr_inside(self) -> str:
        return dtype_name(self.dtype) if type(self) is Tensor and not self.shape else repr(self)

    # -- storing ------------------------------------------------------------------------------------------------------

    def encode_example(self, value: Any, name: str) -> Any:
        if value is None and self.optional:
            return None
        array = self.checked(value, name, self.shape)
        if self.encoding == "none":
            return array
        content = np.ascontiguousarray(array).tobytes()
        content = zlib.compress(content) if self.encoding == "zlib" else content
        return {"shape": np.array(array.shape, np.int64), "value": content} if self._has_shape else content

    def checked(self, value: Any, name: str, shape: tuple[int | None, ...]) -> Any:
        """Return `value` as an array of the dtype, or as a nest of bytes. Raises an error if it does not fit."""
        if value is None:
            message = f"feature {name!r} must have a value, got None."
            raise InvalidTypeError(message, hint="Make it optional in _info(): Scalar(…, optional=True).")
        if self.dtype is bytes:
            return _strings(value, name, shape)
        array = np.asarray(value)
        if array.size == 0 and array.dtype == np.float64 and not isinstance(value, np.ndarray):
            array = array.astype(self.dtype)  # an empty list has no dtype
        if not fits(shape, array.shape):
            message = f"feature {name!r} must have shape {shape}, got {array.shape}."
            raise InvalidArgumentError(message, hint="Change the value, or the shape in _info().")
        if array.dtype.kind not in _TAKES[self.dtype.kind]:
            message = f"feature {name!r} must be of dtype {self.dtype}, got {array.dtype}."
            raise InvalidTypeError(message, hint="Convert the value in _generate_examples(), or change _info().")
        converted = array.astype(self.dtype)
        if self.dtype.kind in "iu" and not np.array_equal(converted, array):
            message = f"feature {name!r} holds values that {self.dtype} cannot hold."
            raise InvalidArgumentError(message, hint="Choose a wider dtype in _info().")
        return converted

    @property
    def _has_shape(self) -> bool:
        return self.shape.count(None) > 1

    def stored(self) -> StoredNest:
        if self.encoding != "none":
            value = Stored((), bytes, optional=self.optional, default=b"" if self.optional else None)
            if not self._has_shape:
                return value
            return {"shape": Stored((len(self.shape),), np.dtype(np.int32)), "value": value}
        return Stored(self.shape, self.dtype, optional=self.optional, default=self._default())

    def _default(self) -> Any:
        if not self.optional:
            return None
        if self.dtype is bytes:
            least: Any = b""
        elif self.dtype.kind in "bu":
            least = 0
        else:
            least = (np.finfo if self.dtype.kind == "f" else np.iinfo)(self.dtype).min
        if self.dtype is not bytes and self.dtype.kind == "f":
            least = max(float(least), float(np.finfo(np.float32).min))
        if not self.shape or None in self.shape:
            return least
        return [least] * math.prod(size or 0 for size in self.shape)

    # -- reading ------------------------------------------------------------------------------------------------------

    def decode_example(self, stored: Any) -> Any:
        if self.encoding == "none":
            return stored
        shape: tuple[int | None, ...] = self.shape
        if isinstance(stored, Mapping):
            shape, stored = tuple(int(size) for size in stored["shape"]), stored["value"]
        content = _inflated(bytes(stored)) if self.encoding == "zlib" else bytes(stored)
        try:
            return np.frombuffer(content, self.dtype).reshape([-1 if size is None else size for size in shape]).copy()
        except ValueError as error:
            message = f"{len(content)} bytes are no {self.dtype} array of shape {shape}."
            raise DataLossError(message, hint="Prepare the data set again.") from error

    def spec(self, lengths: Lengths = ()) -> Any:
        return spec_in_sequences(self.shape, self.dtype, lengths)

    def decode_batch(self, stored: Any) -> Any:
        return stored if self.encoding == "none" else super().decode_batch(stored)

    def empty_batch(self) -> Any:
        return np.empty((0, *(size or 0 for size in self.shape)), object if self.dtype is bytes else self.dtype)

    # -- features.json ------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        entry = {"shape": shape_json(self.shape), "dtype": dtype_name(self.dtype), "encoding": self.encoding}
        return {"tensor": entry | ({"optional": True} if self.optional else {})}


class Scalar(Tensor):
    """Feature for a single number or string.

    Args:
        dtype: Dtype of the value.
        optional: As in `Tensor`.
        doc: A `Documentation`, or a string.

    Example:
        >>> Scalar(dtype=np.int64).encode_example(3, "count").item()
        3
    """

    tfds_class = "tensorflow_datasets.core.features.scalar.Scalar"

    def __init__(self, dtype: Any, *, optional: bool = False, doc: Doc = None) -> None:
        super().__init__(shape=(), dtype=dtype, optional=optional, doc=doc)


class Text(Tensor):
    r"""Feature for a string, which is stored as UTF-8 and read as `bytes`.

    Args:
        optional: If True, the value may be None, which is read as `b""`. Default: False.
        doc: A `Documentation`, or a string.

    Example:
        >>> Text().encode_example("Käse", "title")
        b'K\xc3\xa4se'
    """

    tfds_class = "tensorflow_datasets.core.features.text_feature.Text"

    def __init__(self, *, optional: bool = False, doc: Doc = None) -> None:
        super().__init__(shape=(), dtype=bytes, optional=optional, doc=doc)
        if self.optional:  # tfds's entry of Text has no such flag, so tfds cannot read its own optional Text
            self.tfds_class = Scalar.tfds_class

    def to_json(self) -> dict[str, Any]:
        return super().to_json() if self.optional else {"text": {}}


def as_dtype(dtype: Any) -> Any:
    """Return `bytes`, or a numpy dtype of numbers that a record can store.

    >>> as_dtype("string"), as_dtype(np.int32)
    (<class 'bytes'>, dtype('int32'))
    """
    if dtype is None:  # numpy interprets None as float64
        raise InvalidTypeError("a feature must have a dtype, got None.", hint="For strings use features.Text().")
    if dtype in (bytes, str, "string", "object", np.object_, np.bytes_, np.str_):
        return bytes
    found = np.dtype(dtype)
    if found.kind in "OSU":
        return bytes
    if found.kind not in _TAKES or found.itemsize > 8:
        message = f"dtype must be a boolean, an integer or a float of at most 64 bits, or bytes, got {found}."
        raise InvalidTypeError(message, hint="For strings use features.Text().")
    return found


def _strings(value: Any, name: str, shape: tuple[int | None, ...]) -> Any:
    array = np.empty((), object)
    if isinstance(value, str | bytes | bytearray | memoryview):
        array[()] = value
    else:
        array = np.asarray(value, object)
    if not fits(shape, array.shape):
        message = f"feature {name!r} must have shape {shape}, got {array.shape}."
        raise InvalidArgumentError(message, hint="Change the value, or the shape in _info().")
    found = np.empty(array.shape, object)
    for place, item in np.ndenumerate(array):
        if not isinstance(item, str | bytes | bytearray | memoryview):
            message = f"feature {name!r} must be a str or bytes, got {type(item).__name__}."
            raise InvalidTypeError(message, hint="Convert the value in _generate_examples().")
        found[place] = item.encode(errors="surrogateescape") if isinstance(item, str) else bytes(item)
    return found[()] if not found.shape else found


def _inflated(content: bytes) -> bytes:
    inflate = zlib.decompressobj()
    try:
        found = inflate.decompress(content, MOST_BYTES)
    except zlib.error as error:
        message = f"a value that should be compressed by zlib is not ({error})."
        raise DataLossError(message, hint="Prepare the data set again.") from error
    if inflate.unconsumed_tail:
        message = f"a value unpacks to more than {MOST_BYTES} bytes."
        raise DataLossError(message, hint="No array of a data set is that large: the file is not what it claims to be.")
    return found
