"""A leaf as JSON and back, bit for bit: what a state that user code made needs to be part of a checkpoint."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidTypeError


def to_json(leaf: Any) -> dict[str, Any]:
    """A converted leaf (see `as_leaf`) as a dict of texts, numbers and lists.

    >>> to_json(np.int16(7))
    {'dtype': '<i2', 'shape': [], 'data': 'BwA='}

    Raises InvalidTypeError for a leaf that is no value: a data set, an array of records.
    """
    if type(leaf) is bytes:
        return {"bytes": _text(leaf)}
    if isinstance(leaf, (np.ndarray, np.generic)):
        return _array(np.asarray(leaf))
    if isinstance(leaf, SparseTensor):
        parts = (leaf.indices, leaf.values, leaf.dense_shape)
        return {"sparse": [to_json(part) for part in parts]}
    if isinstance(leaf, RaggedTensor):
        return {"ragged": [to_json(leaf.values), to_json(leaf.row_splits)]}
    message = f"A state is made of numbers, text and arrays, got {type(leaf).__name__}."
    raise InvalidTypeError(message, hint="It is written into checkpoints; keep other objects in a closure.")


def _array(array: np.ndarray) -> dict[str, Any]:
    if array.dtype == object:
        return {"shape": list(array.shape), "strings": [_text(item) for item in array.reshape(-1).tolist()]}
    if array.dtype.kind == "V":
        message = f"A state cannot hold an array of {array.dtype}."
        raise InvalidTypeError(message, hint="Use a numeric dtype, or a tuple of arrays.")
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"dtype": little.dtype.str, "shape": list(array.shape), "data": _text(little.tobytes())}


def from_json(data: dict[str, Any]) -> Any:
    """The leaf that `to_json` was given; arrays are the caller's own.

    >>> from_json(to_json(np.array([[0.5, 1.0]], np.float32)))
    array([[0.5, 1. ]], dtype=float32)
    """
    if "bytes" in data:
        return b64decode(data["bytes"])
    if "sparse" in data:
        return SparseTensor(*map(from_json, data["sparse"]))
    if "ragged" in data:
        return RaggedTensor(*map(from_json, data["ragged"]))
    if "strings" in data:
        strings = np.empty(len(data["strings"]), object)
        strings[:] = [b64decode(item) for item in data["strings"]]
        return strings.reshape(data["shape"])
    little = np.frombuffer(b64decode(data["data"]), np.dtype(data["dtype"]))
    array = little.astype(little.dtype.newbyteorder("=")).reshape(data["shape"])
    return array if array.ndim else array[()]


def _text(data: bytes) -> str:
    return b64encode(data).decode("ascii")
