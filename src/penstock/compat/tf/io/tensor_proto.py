"""TensorProto, the message of a tensor, with the exact bytes of `tf.io.serialize_tensor`.

TensorProto { DataType dtype = 1, TensorShapeProto tensor_shape = 2, bytes tensor_content = 4, bytes string_val = 8 }
TensorShapeProto { Dim { int64 size = 1 } dim = 2 }
"""

from __future__ import annotations

import numpy as np

from penstock.compat.dtypes import DType, as_dtype
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.io.wire import MalformedError, delimited, encode_varint, skip, span, varint

_NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9,
    "bool": 10, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


def encoded(array: np.ndarray) -> bytes:
    """Return the message of an array."""
    name = as_dtype(array.dtype).name
    dims = b"".join(delimited(0x12, b"\x08" + encode_varint(extent) if extent else b"") for extent in array.shape)
    head = b"\x08" + encode_varint(_NUMBERS[name]) + delimited(0x12, dims)
    if name == "string":
        return head + b"".join(delimited(0x42, text) for text in array.reshape(-1).tolist())
    return head + (delimited(0x22, array.tobytes()) if array.size else b"")


def decoded(message: bytes, wanted: DType) -> np.ndarray:
    """Return the array of a message. Its dtype must be `wanted`."""
    try:
        number, shape, content, texts = _read(message)
    except MalformedError:
        raise DataLossError("parse_tensor was given bytes that are no TensorProto.") from None
    name = next((name for name, known in _NUMBERS.items() if known == number), f"number {number}")
    if name != wanted.name:
        raise InvalidArgumentError(f"Type mismatch between parsed tensor ({name}) and dtype ({wanted.name})")
    if name == "string":
        found = np.empty(len(texts), object)
        found[:] = texts
        return found.reshape(shape)
    return np.frombuffer(content, wanted.dtype).reshape(shape).copy()


def _read(message: bytes) -> tuple[int, list[int], bytes, list[bytes]]:
    number, shape, content, texts, at = 0, [], b"", [], 0
    while at < len(message):
        tag, at = varint(message, at, len(message))
        if tag == 0x08:
            number, at = varint(message, at, len(message))
        elif tag in (0x12, 0x22, 0x42):
            start, at = span(message, at, len(message))
            part = message[start:at]
            if tag == 0x12:
                shape = _extents(part)
            elif tag == 0x22:
                content = part
            else:
                texts.append(part)
        else:
            at = skip(message, at, len(message), tag)
    return number, shape, content, texts


def _extents(message: bytes) -> list[int]:
    found, at = [], 0
    while at < len(message):
        tag, at = varint(message, at, len(message))
        if tag != 0x12:
            at = skip(message, at, len(message), tag)
            continue
        start, at = span(message, at, len(message))
        found.append(varint(message, start + 1, at)[0] if at > start else 0)
    return found
