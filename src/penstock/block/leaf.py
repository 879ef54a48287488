"""Conversion of a value returned by a user's function to a leaf: numpy scalars and arrays, bytes, tensors.

Leaves can also be written as JSON and read back without loss, so that the state of user code can be part of a
checkpoint.

Python literals become bool, int64, float32 and bytes (strings as UTF-8); numpy values keep their dtype.
"""

from __future__ import annotations

import sys
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.arena import ARENA, SMALLEST
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError

if TYPE_CHECKING:
    from penstock.block.call_arguments import CallArguments

NESTED = "__penstock_dataset__"  # marks a data set, which may itself be a leaf (window, flat_map)

_LEAST, _MOST = -(2**63), 2**63 - 1  # limits of int64


def as_leaf(value: Any) -> Any:
    """Convert one leaf. Raise InvalidTypeError for a value that cannot be a tensor.

    >>> as_leaf(3), as_leaf(0.5), as_leaf("text")
    (np.int64(3), np.float32(0.5), b'text')
    >>> as_leaf(range(3)), as_leaf([b"a", "b"])
    (array([0, 1, 2]), array([b'a', b'b'], dtype=object))
    """
    kind = type(value)
    if kind is np.ndarray:
        return _array(value)
    if kind is bytes:
        return value
    if kind is int:
        if not _LEAST <= value <= _MOST:
            message = f"The integer {value} does not fit int64."
            raise InvalidArgumentError(message, hint="Return np.uint64(value), a float, or bytes.")
        return np.int64(value)
    if kind is float:
        return np.float32(value)
    if kind is bool:
        return np.bool_(value)
    if kind is str:
        return utf8(value)
    if kind is list:
        return list_leaf(value)
    if isinstance(value, np.generic):
        return _text(value) if isinstance(value, (bytes, str)) else value
    return _other(value)


def _on_cpu(value: Any) -> Any:
    """Return a torch tensor in a form that numpy reads: without gradient, on the CPU, bfloat16 as float32."""
    if not hasattr(value, "detach"):
        return value
    found = value.detach().cpu()
    return found.float() if str(found.dtype) == "torch.bfloat16" else found


def _other(value: Any) -> Any:
    if isinstance(value, (SparseTensor, RaggedTensor)) or hasattr(type(value), NESTED):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, complex):
        return np.complex64(value)
    if isinstance(value, range):
        return _range(value)
    if isinstance(value, (int, float, str, list)):  # subclasses, such as the members of an enum
        base: Any = next(t for t in (bool, int, float, str, list) if isinstance(value, t))
        return as_leaf(base(value))
    if isinstance(value, np.ndarray) or hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        if isinstance(value, np.ndarray) and hasattr(value, "filled") and np.ma.is_masked(value):
            message = "A masked array would lose its mask: what lies under it would become data."
            raise InvalidTypeError(message, hint="Give array.filled(value), and the mask as another component.")
        return _array(np.asarray(_on_cpu(value)))
    message = f"A value of type {type(value).__name__} cannot be part of an element."
    if value is None:
        message = "None is no value."
    if isinstance(value, (tuple, dict)):
        hint = "Elements before it had a single value in this place: every element has the same nest."
    elif value is None:
        hint = "Does the function return its result on every path? A component is None in all elements or in none."
    else:
        hint = "Return numbers, bytes, text, numpy arrays, or tuples and dicts of them; np.asarray(value) may help."
    raise InvalidTypeError(message, hint=hint)


def _text(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes) else utf8(str(value))


def utf8(text: str) -> bytes:
    """Return the string as UTF-8.

    A lone surrogate, which `json.loads` may return, raises InvalidArgumentError.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        half = f"the text holds {text[error.start]!a} at position {error.start}"
        message = f"Strings are stored as UTF-8, but {half}, a surrogate without its other half."
        hint = "Give bytes: os.fsencode(name) for the name of a file, text.encode(errors='replace') for anything else."
        raise InvalidArgumentError(message, hint=hint) from None


def _range(value: range) -> np.ndarray:
    if value and not _LEAST <= min(value[0], value[-1]) <= max(value[0], value[-1]) <= _MOST:
        raise InvalidArgumentError(f"{value} holds an integer that does not fit int64.")
    try:
        return np.arange(value.start, value.stop, value.step, dtype=np.int64)
    except OverflowError:  # the end or the step of the range does not fit int64, although all its values do
        return np.fromiter(value, np.int64, len(value))


def settle(leaves: list[Any], given: CallArguments | None = None) -> list[Any]:
    """Convert the leaves that a user's function returned, in place, and copy every array that has other references.

    A function may fill and return the same array again and again. Without a copy, the earlier values would be
    overwritten before the Block is complete. An array without other references is used without a copy, and so is a row
    of a column that the function was `given`. All arrays are put into C order, like arrays from another process or from
    a batch: the memory order determines in which order numpy adds, and so the last bits of sums and products.
    """
    for i in range(len(leaves)):
        value = leaves[i]
        if type(value) is np.ndarray and not value.dtype.hasobject:  # `as_leaf` copies arrays of objects
            if not value.flags.c_contiguous:
                value = _copied(value)
            elif value.base is not None or sys.getrefcount(value) > _FRESH:
                if given is not None and given.holds(value):
                    continue
                value = _copied(value)
            leaves[i] = as_leaf(value)
        else:
            leaves[i] = _apart(as_leaf(value))
    return leaves


def _copied(array: np.ndarray) -> np.ndarray:
    """Return a copy.

    Large copies use pooled memory, because fresh pages cost several times as much as the copy itself.
    """
    if array.nbytes < SMALLEST or array.dtype.hasobject:
        return array.copy()
    copy = ARENA.empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def _apart(leaf: Any) -> Any:
    """Return a converted leaf that shares no memory with its input, such as a memory map or a torch tensor."""
    if type(leaf) is np.ndarray:
        return leaf if leaf.base is None and leaf.flags.c_contiguous else _copied(leaf)
    return leaf.with_arrays(np.copy) if isinstance(leaf, (SparseTensor, RaggedTensor)) else leaf


def _references_of_a_fresh_array() -> int:
    """Return the reference count that `settle` sees for an array without other references.

    The count depends on the interpreter.
    """
    leaves = [np.empty(1)]
    for i in range(len(leaves)):
        value = leaves[i]
        return sys.getrefcount(value)
    raise AssertionError


_FRESH = _references_of_a_fresh_array()


def _array(array: np.ndarray) -> Any:
    if array.dtype.kind in "SUOT":
        array = _byte_strings(array)
    elif not array.dtype.isnative:  # numpy scalars and batches always have native byte order
        array = array.astype(array.dtype.newbyteorder("="))
    return array if array.ndim else array[()]


def _byte_strings(array: np.ndarray) -> np.ndarray:
    """Return an object array of `bytes`.

    Fixed-width numpy strings lose trailing zero bytes, so they are not used.
    """
    texts = array.reshape(-1).tolist()
    if array.dtype == object and set(map(type, texts)) <= {bytes}:
        return array.copy()
    found = np.empty(array.shape, object)
    for i, item in enumerate(texts):
        if not isinstance(item, (bytes, str)):
            message = f"An object array may hold only byte strings and text, got {type(item).__name__}."
            raise InvalidTypeError(message, hint="Use a numeric dtype, or a tuple of arrays.")
        found.flat[i] = _text(item)
    return found


_NUMBERS = frozenset((bool, int, float, complex))
_TEXTS = frozenset((bytes, str))
_LISTS = frozenset((list, tuple, range))


def list_leaf(values: Sequence[Any]) -> Any:
    r"""Return one array for a list, or for a tuple where one array is expected.

    Nested lists and tuples become its axes.

    Literals become the widest of bool, int64, float32 and complex64. numpy values in the list take part in numpy's
    promotion with their own dtype. Byte strings keep trailing zero bytes.

    >>> list_leaf([1, 2.5]), list_leaf((bytes([97, 0]), "text"))
    (array([1. , 2.5], dtype=float32), array([b'a\x00', b'text'], dtype=object))

    Raises:
        InvalidTypeError: If strings and numbers are mixed, or a value cannot be part of an array.
        InvalidArgumentError: If shapes differ, or an integer does not fit int64.
    """
    types = set(map(type, values))
    if types <= _TEXTS and values:
        texts = np.empty(len(values), object)
        texts[:] = [utf8(value) if type(value) is str else value for value in values]
        return texts
    if _only_numbers(values, types):
        return _numbers(values)
    if len(types) == 1 and isinstance(values[0], (np.number, np.bool_)):
        return np.asarray(values)
    parts = [list_leaf(value) if isinstance(value, (list, tuple)) else _part(value) for value in values]
    kinds = {"O" if type(part) is bytes else part.dtype.kind for part in parts}
    if "O" not in kinds:
        return _stacked(values, parts)
    if len(kinds) > 1:
        raise _mixed(values)
    if len({np.shape(part) for part in parts}) > 1:
        raise _ragged(values)
    found = np.empty((len(parts), *np.shape(parts[0])), object)
    for row, part in enumerate(parts):
        found[row] = part
    return found


def _stacked(values: Sequence[Any], parts: list[Any]) -> np.ndarray:
    try:
        array = np.asarray(parts)
    except ValueError as error:
        raise _ragged(values) from error
    except TypeError:  # numbers and dates have no common dtype
        array = np.empty(0, object)
    if array.dtype == object or (array.dtype.kind == "f" and all(part.dtype.kind in "bui" for part in parts)):
        dtypes = sorted({str(part.dtype) for part in parts})
        raise InvalidTypeError(f"A list becomes one array, and no dtype holds {' and '.join(dtypes)}.", hint=_APART)
    return array


def _only_numbers(values: Sequence[Any], types: set[type]) -> bool:
    """Return True if a list and its nested lists contain only Python numbers."""
    if types <= _NUMBERS:
        return True
    if not types <= _NUMBERS | _LISTS:
        return False
    return all(_only_numbers(value, set(map(type, value))) for value in values if type(value) in (list, tuple))


def _numbers(values: Sequence[Any]) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise _ragged(values) from error
    except OverflowError as error:
        raise _too_large() from error
    if array.dtype in (np.object_, np.uint64) or rounded(array, values):
        raise _too_large()
    return array.astype(_NARROW.get(array.dtype, array.dtype), copy=False)


def rounded(array: np.ndarray, values: Any) -> bool:
    """Return True if numpy converted integers to floats, as it does for a mix of integers below and above 2⁶³."""
    if array.dtype != np.float64 or not array.size or array.max() < _MOST:
        return False
    return not any(map(_holds_float, values))


def _holds_float(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_holds_float, value))
    return isinstance(value, (float, np.floating))


_NARROW = {np.dtype(np.float64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.complex64)}


def _part(value: Any) -> Any:
    """Return an item of a list in the form that `np.asarray` combines."""
    if type(value) is np.ndarray:
        return _array(value)
    if hasattr(type(value), NESTED):
        message = "A list becomes one array, and data sets are no part of an array."
        hint = "from_tensor_slices([a, b]) makes one element of each; as components, (a, b), they stay apart."
        raise InvalidTypeError(message, hint=hint)
    if value is None or isinstance(value, (Mapping, SparseTensor, RaggedTensor)):
        name = "None" if value is None else f"a {type(value).__name__}"
        raise InvalidTypeError(f"A list becomes one array, and {name} is no part of an array.", hint=_APART)
    return as_leaf(value)


_APART = (
    "A tuple keeps its parts apart; from_list(list) makes one element of each item, and from_tensor_slices takes a "
    "tuple or dict of lists, one for each component."
)


def _mixed(values: Sequence[Any]) -> InvalidTypeError:
    shown = repr(values)
    message = (
        f"A list becomes one array, and {shown if len(shown) <= 60 else shown[:57] + '...'} mixes text with numbers."
    )
    return InvalidTypeError(message, hint=_APART)


def _ragged(values: Sequence[Any]) -> InvalidArgumentError:
    message = f"A list becomes one array, and its {len(values)} items differ in shape."
    return InvalidArgumentError(message, hint="Return a tuple to keep them apart, or pad them.")


def _too_large() -> InvalidArgumentError:
    message = "A list holds an integer that does not fit int64."
    return InvalidArgumentError(message, hint="Make the array yourself: np.array(list, np.uint64), or of floats.")


def to_json(leaf: Any) -> dict[str, Any]:
    """Return a converted leaf (see `as_leaf`) as a dict of strings, numbers and lists.

    >>> to_json(np.int16(7))
    {'dtype': '<i2', 'shape': [], 'data': 'BwA='}

    Raises:
        InvalidTypeError: If the leaf is a data set or an array of records.
    """
    if type(leaf) is bytes:
        return {"bytes": _base64(leaf)}
    if isinstance(leaf, (np.ndarray, np.generic)):
        return _array_json(np.asarray(leaf))
    if isinstance(leaf, SparseTensor):
        parts = (leaf.indices, leaf.values, leaf.dense_shape)
        return {"sparse": [to_json(part) for part in parts]}
    if isinstance(leaf, RaggedTensor):
        return {"ragged": [to_json(leaf.values), to_json(leaf.row_splits)]}
    message = f"A state is made of numbers, text and arrays, got {type(leaf).__name__}."
    raise InvalidTypeError(message, hint="It is written into checkpoints; keep other objects in a closure.")


def _array_json(array: np.ndarray) -> dict[str, Any]:
    if array.dtype == object:
        return {"shape": list(array.shape), "strings": [_base64(item) for item in array.reshape(-1).tolist()]}
    if array.dtype.kind == "V":
        message = f"A state cannot hold an array of {array.dtype}."
        raise InvalidTypeError(message, hint="Use a numeric dtype, or a tuple of arrays.")
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"dtype": little.dtype.str, "shape": list(array.shape), "data": _base64(little.tobytes())}


def from_json(data: dict[str, Any]) -> Any:
    """Return the leaf that was passed to `to_json`. The caller owns its arrays.

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


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
