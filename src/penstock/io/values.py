"""Conversion of Python and numpy values to the three kinds of tf.train.Feature: bytes, float32 and int64."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.block.leaf import rounded
from penstock.errors import InvalidArgumentError, InvalidTypeError

# The field numbers in tf.train.Feature. NO_KIND is a Feature without a field.
NO_KIND, BYTES, FLOAT, INT64 = 0, 1, 2, 3

KIND_NAMES = {NO_KIND: "nothing", BYTES: "bytes", FLOAT: "float32", INT64: "int64"}

_EMPTY = np.empty(0, np.int64)


class ByteStrings(list[bytes]):
    """The decoded values of a feature of byte strings. The class marks an empty list as one of byte strings."""

    __slots__ = ()


_INT64 = np.iinfo(np.int64)


def as_values(value: Any, name: str) -> tuple[int, np.ndarray]:
    r"""Return (kind, values in C order) of a user's value: int64, float32 or object arrays of `bytes`.

    >>> as_values([1, True], "label")
    (3, array([1, 1]))
    >>> as_values("é", "text")
    (1, array([b'\xc3\xa9'], dtype=object))

    An empty list has no kind, unless it is a decoded ByteStrings. An empty array has the kind of its dtype. Raises
    InvalidTypeError for unsupported values, and InvalidArgumentError for integers beyond int64 and lists of mixed
    kinds. `name` is the feature's name for errors.
    """
    if isinstance(value, (bytes, str, bytearray, memoryview)):
        return BYTES, byte_strings([value], name)
    if isinstance(value, (list, tuple)):
        if not value:
            return (BYTES if isinstance(value, ByteStrings) else NO_KIND), _EMPTY
        if isinstance(value[0], (bytes, str, bytearray, memoryview)):
            return BYTES, byte_strings(list(value), name)
    array = _as_array(value, name)
    kind = array.dtype.kind
    flat = array.reshape(-1)
    if kind in "bi" or (kind == "u" and array.dtype.itemsize < 8):
        return INT64, flat.astype(np.int64)
    if kind == "u":
        if len(flat) and int(flat.max()) > _INT64.max:
            raise _overflow(name, int(flat.max()))
        return INT64, flat.astype(np.int64)
    if kind == "f" and isinstance(value, (list, tuple)) and rounded(array, value):
        raise _overflow(name, max(np.array(value, object).reshape(-1).tolist()))
    if kind == "f":
        with np.errstate(over="ignore"):  # values beyond float32 become inf, as in protobuf
            return FLOAT, flat.astype(np.float32)
    if kind in "SUO" and isinstance(value, (np.ndarray, np.generic)):
        return BYTES, byte_strings(flat.tolist(), name)
    if kind == "O" and all(isinstance(item, int) for item in flat.tolist()):
        raise _overflow(name, max(flat.tolist(), key=abs))
    raise _wrong_kind(name, value)


def byte_strings(values: list[Any], name: str) -> np.ndarray:
    """Return an object array of `bytes`. Strings become UTF-8. Raises InvalidTypeError for other values."""
    found = np.empty(len(values), object)
    for i, item in enumerate(values):
        if isinstance(item, bytes):
            found[i] = item
        elif isinstance(item, str):
            found[i] = item.encode()
        elif isinstance(item, (bytearray, memoryview)):
            found[i] = bytes(item)
        else:
            message = f"Feature {name!r} mixes byte strings with {type(item).__name__}."
            raise InvalidTypeError(message, hint="All values of a feature are of one kind: bytes, floats or integers.")
    return found


def _as_array(value: Any, name: str) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError as error:
        message = f"The values of feature {name!r} are nested lists of differing length."
        raise InvalidArgumentError(message, hint="A feature is one flat list; store the lengths as another.") from error


def _overflow(name: str, value: int) -> InvalidArgumentError:
    message = f"The integer {value} of feature {name!r} does not fit int64."
    return InvalidArgumentError(message, hint="Store it as a byte string, or as a float.")


def _wrong_kind(name: str, value: Any) -> InvalidTypeError:
    what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"{type(value).__name__} ({value!r:.40})"
    message = f"Feature {name!r} must hold bytes, text, integers, booleans or floats, got {what}."
    return InvalidTypeError(message)
