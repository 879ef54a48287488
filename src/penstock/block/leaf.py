"""From whatever a user's function returns to a leaf value: numpy scalar, numpy array, bytes, sparse or ragged tensor.

Python literals become bool, int64, float32 and bytes (text as UTF-8); numpy values keep their dtype.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError

NESTED = "__penstock_dataset__"  # marks a data set, which may itself be a leaf (window, flat_map)

_INT64 = np.iinfo(np.int64)


def as_leaf(value: Any) -> Any:
    """Convert one leaf; raises InvalidTypeError for what no tensor can hold.

    >>> as_leaf(3), as_leaf(0.5), as_leaf("text")
    (np.int64(3), np.float32(0.5), b'text')
    """
    kind = type(value)
    if kind is np.ndarray:
        return _array(value)
    if isinstance(value, np.generic):
        return _array(np.asarray(value)) if value.dtype.kind in "SUO" else value
    if kind is bytes:
        return value
    if kind is int:
        if not _INT64.min <= value <= _INT64.max:
            message = f"The integer {value} does not fit int64."
            raise InvalidArgumentError(message, hint="Return np.uint64(value), a float, or bytes.")
        return np.int64(value)
    if kind is float:
        return np.float32(value)
    if kind is bool:
        return np.bool_(value)
    if kind is str:
        return value.encode()
    if kind is list:
        return _list(value)
    return _other(value)


def _other(value: Any) -> Any:
    if isinstance(value, (SparseTensor, RaggedTensor)) or hasattr(type(value), NESTED):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, complex):
        return np.complex64(value)
    if isinstance(value, (int, float, str, list)):  # subclasses, such as an enum's members
        base: Any = next(t for t in (bool, int, float, str, list) if isinstance(value, t))
        return as_leaf(base(value))
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        return _array(np.asarray(value))
    message = f"A value of type {type(value).__name__} cannot be part of an element."
    if isinstance(value, (tuple, dict)):
        hint = "Elements before it had a single value in this place: every element has the same nest."
    elif value is None:
        hint = "Does the function return its result on every path?"
    else:
        hint = "Return numbers, bytes, text, numpy arrays, or tuples and dicts of them; np.asarray(value) may help."
    raise InvalidTypeError(message, hint=hint)


def settle(leaves: list[Any]) -> list[Any]:
    """Convert the leaves a user's call returned, in place, and copy every array that somebody else still holds.

    A function may fill and return the same array again and again; by the time its Block is complete the earlier
    values would be gone. A fresh array, held by nobody but `leaves`, is kept without a copy.
    """
    for i in range(len(leaves)):
        value = leaves[i]
        if type(value) is np.ndarray:
            if value.base is not None or sys.getrefcount(value) > _FRESH:
                value = value.copy()
            leaves[i] = as_leaf(value)
        else:
            leaves[i] = _apart(as_leaf(value))
    return leaves


def _apart(leaf: Any) -> Any:
    """A converted leaf, not over memory of what it was made of: a memory map, another library's tensor."""
    if type(leaf) is np.ndarray:
        return leaf if leaf.base is None else leaf.copy()
    return leaf.with_arrays(np.copy) if isinstance(leaf, (SparseTensor, RaggedTensor)) else leaf


def _references_of_a_fresh_array() -> int:
    """The count `settle` sees for an array only its list holds; interpreters differ in what they count."""
    leaves = [np.empty(1)]
    for i in range(len(leaves)):
        value = leaves[i]
        return sys.getrefcount(value)
    raise AssertionError


_FRESH = _references_of_a_fresh_array()


def _array(array: np.ndarray) -> Any:
    if array.dtype.kind in "SUO":
        array = _byte_strings(array)
    elif not array.dtype.isnative:  # numpy's scalars are always native, and so are the batches made of them
        array = array.astype(array.dtype.newbyteorder("="))
    return array if array.ndim else array[()]


def _byte_strings(array: np.ndarray) -> np.ndarray:
    """An object array of `bytes`: fixed-width numpy strings lose trailing zero bytes, so they never travel."""
    found = np.empty(array.shape, object)
    flat = found.reshape(-1)
    for i, item in enumerate(array.reshape(-1).tolist()):
        if isinstance(item, bytes):
            flat[i] = item
        elif isinstance(item, str):
            flat[i] = item.encode()
        else:
            message = f"An object array may hold only byte strings and text, got {type(item).__name__}."
            raise InvalidTypeError(message, hint="Use a numeric dtype, or a tuple of arrays.")
    return found


def _list(values: list[Any]) -> Any:
    literals = _only_literals(values)
    try:
        array = np.asarray(values if literals else [as_leaf(item) for item in values])
    except ValueError as error:
        message = f"A list becomes one array, and its {len(values)} items differ in shape."
        raise InvalidArgumentError(message, hint="Return a tuple to keep them apart, or pad them.") from error
    except OverflowError as error:
        message = "A list holds an integer that does not fit int64."
        raise InvalidArgumentError(message) from error
    if array.dtype == object and literals:
        message = "A list holds an integer that does not fit int64, or mixes text with numbers."
        raise InvalidArgumentError(message)
    if literals and array.dtype == np.float64:
        array = array.astype(np.float32)
    return _array(array)


def _only_literals(values: list[Any]) -> bool:
    return all(
        _only_literals(item) if type(item) is list else type(item) in (bool, int, float, complex) for item in values
    )
