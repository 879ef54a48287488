"""The operands of a tensor: the values that it takes, and their conversion to its dtype.

TensorFlow casts an operand of numpy to the tensor's dtype, converts Python's numbers and lists, and refuses a tensor of
another dtype.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.compat.values import TEXT, Value, array_of, dtype_of, whole
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.trace.graph import GraphBuilder
from penstock.trace.tracer import Tracer

KINDS: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c", str: "O", bytes: "O"}

# A tensor of each kind of dtype takes Python's values of these kinds. In eager code, only tensors of the dtypes in
# _TAKING_BOOL take a bool; in `map`, all integers do.
TAKEN = {"f": "fib", "c": "cfi", "i": "i", "u": "i", "b": "b", "O": "O"}
_TAKEN_IN_MAP = {**TAKEN, "c": "cfib", "i": "ib", "u": "ib"}
_TAKING_BOOL = frozenset(map(np.dtype, ("int32", "int64", "uint64")))


class _Reading(threading.local):
    """The place that code runs in: `mapped` in a function of a data set, `builder` while the function is traced."""

    builder: GraphBuilder | None = None
    mapped = False
    losses: list[str] | None = None  # casts of numpy operands that changed their values, while lint asks for them


_reading = _Reading()


class reading:
    """A context in which a function of a data set runs. Random functions add their equations to `builder`."""

    __slots__ = ("_before", "_now")

    def __init__(self, builder: GraphBuilder | None, *, mapped: bool = True) -> None:
        self._now = builder, mapped

    def __enter__(self) -> None:
        self._before = _reading.builder, _reading.mapped
        _reading.builder, _reading.mapped = self._now

    def __exit__(self, *error: object) -> None:
        _reading.builder, _reading.mapped = self._before


def kind_of(dtype: np.dtype) -> str:
    """Return the kind of a dtype. The kind of bfloat16 is "f", although numpy does not know this dtype."""
    return "f" if dtype.kind == "V" else dtype.kind


def converted(value: Any, dtype: np.dtype) -> Any:
    """Return the other operand of a tensor of `dtype`, as a numpy value or a tracer.

    >>> converted(2, np.dtype("float32")), converted(np.float64(2.7), np.dtype("int32")), converted("a", TEXT)
    (np.float32(2.0), np.int32(2), b'a')

    Raises:
        InvalidTypeError: If the tensor does not take the value.
        InvalidArgumentError: If the value is None.
    """
    python = KINDS.get(type(value))
    if python is None:
        if isinstance(value, (Value, RaggedTensor, SparseTensor)):
            found = value._value if isinstance(value, Value) else value
            if dtype_of(found) != dtype:
                raise _refused(dtype, "a tensor of", _name(dtype_of(found)))
            return found
        if type(value) is Tracer:
            return value if dtype_of(value) == dtype else value.astype(dtype)
        if value is None:
            raise InvalidArgumentError("None is no operand of a tensor.")
        listed = isinstance(value, (list, tuple))
        array = whole(value)
        python = {"u": "i", "V": "f"}.get(array.dtype.kind, array.dtype.kind)
        if (python == "O") != (dtype == TEXT) or (listed and array.size and not _takes(dtype, python)):
            raise _refused(dtype, type(value).__name__, repr(value))
        cast = array if array.dtype == dtype else array.astype(dtype)
        if _reading.losses is not None and dtype.kind in "iu" and (cast != array).any():
            _reading.losses.append(f"numbers of {array.dtype} to {dtype}")
        return cast if cast.ndim else cast[()]
    if not _takes(dtype, python):
        raise _refused(dtype, type(value).__name__, repr(value))
    if python == "O":
        return value.encode() if isinstance(value, str) else value
    try:
        return dtype.type(value)
    except OverflowError:  # an integer loses its upper bits, as in TensorFlow
        return np.asarray(value & 0xFFFFFFFFFFFFFFFF, np.uint64).astype(dtype)[()]


def _takes(dtype: np.dtype, python: str) -> bool:
    taken = (_TAKEN_IN_MAP if _reading.mapped else TAKEN)[kind_of(dtype)]
    return python in taken or (python == "b" and dtype in _TAKING_BOOL)


def _refused(dtype: np.dtype, kind: str, value: str) -> InvalidTypeError:
    message = f"A tensor of {_name(dtype)} takes no such operand: {kind} {value:.40}."
    return InvalidTypeError(message, hint="tf.cast(x, dtype) casts a tensor, and makes one of a list.")


def _name(dtype: np.dtype) -> str:
    return "string" if dtype == TEXT else dtype.name


def matched(values: Sequence[Any], *, first: bool) -> list[Any]:
    """Convert the operands of a function to one dtype: that of the `first` operand, or of the first tensor.

    In TensorFlow, the first operand decides in `map`. In eager code and in a list, the first tensor decides.
    """
    head = values[0]
    if not first:
        head = next((value for value in values if isinstance(value, (Value, RaggedTensor, SparseTensor))), head)
    free = array_of(head)
    dtype = dtype_of(free)
    return [free if value is head else converted(value, dtype) for value in values]


def check(name: str, dtype: np.dtype, kinds: str) -> None:
    """Raise InvalidTypeError if the operation does not take a tensor of this dtype."""
    if kind_of(dtype) not in kinds:
        message = f"{name} takes no tensor of {_name(dtype)}."
        raise InvalidTypeError(message, hint="tf.cast(x, dtype) casts numbers; text has tf.strings.")
