"""Tensor: an immutable value with TensorFlow's methods, and the conversions to and from numpy values.

>>> x = raised(np.float32(2.5))
>>> x * 2, x.shape, x.get_shape().as_list()
(<tf.Tensor: shape=(), dtype=float32, numpy=5.0>, TensorShape([]), [])
>>> raised(b"cats/1.jpg").numpy()
b'cats/1.jpg'
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.compat.dtypes import DType, as_dtype
from penstock.compat.stand_ins import item
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.trace.graph import Const, NotTraceable
from penstock.trace.tracer import Tracer, holds_stand_ins, looked_up

TEXT = np.dtype(object)  # the dtype of byte strings
CONVERSIONS: dict[type, Any] = {}  # to the classes of this package, by class of penstock


def dtype_of(value: Any) -> np.dtype:
    """Return the dtype of a numpy value or of a tracer. Byte strings have `TEXT`."""
    if type(value) is Tracer:
        spec: Any = value.spec
        return TEXT if spec.dtype is bytes else value.dtype
    if isinstance(value, (RaggedTensor, SparseTensor)):
        value = value.values
    return getattr(value, "dtype", TEXT)


def one_text(text: Any) -> Any:
    """Return a byte string as an array without dimensions. `np.array(text)` would drop zeros at its end."""
    if not isinstance(text, bytes):
        return text
    found = np.empty((), object)
    found[()] = text
    return found


class TensorShape(tuple[Any, ...]):
    """A shape with the methods of TensorShape: a tuple of extents, of which unknown ones are None."""

    __slots__ = ()

    def as_list(self) -> list[Any]:
        return list(self)

    @property
    def rank(self) -> int:
        return len(self)

    ndims = rank

    dims = property(as_list)

    def num_elements(self) -> int | None:
        return None if None in self else int(np.prod(self, dtype=np.int64))

    def is_fully_defined(self) -> bool:
        return None not in self

    def is_compatible_with(self, other: Any) -> bool:
        if other is None:
            return True
        return len(self) == len(other) and all(
            None in (mine, its) or mine == its for mine, its in zip(self, other, strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        if not self.is_compatible_with(other):
            raise InvalidArgumentError(f"The shapes {list(self)} and {list(other)} are not compatible.")

    def concatenate(self, other: Any) -> TensorShape:
        return TensorShape((*self, *other))

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, (tuple, list)) else False

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return tuple.__repr__(self)


class Value:
    """A value that can be read: a tensor or a variable. `penstock.compat.operators` adds the operators."""

    __slots__ = ("_value",)
    __array_priority__ = 100  # numpy calls the tensor's operator for `array + tensor`
    __penstock_leaf__ = True
    _value: Any

    @staticmethod
    def of(value: Any) -> Tensor:
        found = _NEW(Tensor)
        _HOLD(found, value)
        return found

    def numpy(self) -> Any:
        """Return the value as an array, a number or bytes, in memory of its own."""
        value = self._value
        if type(value) is Tracer:
            raise NotTraceable("it asks a tensor for its value")
        return value.copy() if isinstance(value, np.ndarray) else value

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        if type(self._value) is Tracer:
            self.numpy()
        array = one_text(self._value)
        if copy or (dtype is not None and np.dtype(dtype) != array.dtype):
            return np.array(array, dtype)
        found: np.ndarray = np.asarray(array).view()
        found.flags.writeable = False
        return found

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.__array__())  # type: ignore[arg-type]

    @property
    def shape(self) -> TensorShape:
        return TensorShape(getattr(self._value, "shape", ()))

    @property
    def dtype(self) -> DType:
        return as_dtype(dtype_of(self._value))

    @property
    def ndim(self) -> int:
        return getattr(self._value, "ndim", 0)

    def get_shape(self) -> TensorShape:
        return self.shape

    def ref(self) -> Reference:
        """Return a key for dicts and sets. A tensor itself has no hash."""
        return Reference(self)

    def __hash__(self) -> int:
        message = "A tensor is unhashable."
        raise InvalidTypeError(message, hint="x.ref() is a key for the tensor; x.numpy() is its value.")

    def __getitem__(self, key: Any) -> Any:
        index = tuple(map(_lowered, key if isinstance(key, tuple) else (key,)))
        if type(self._value) is Tracer:
            return raised(item(self._value, index))
        if holds_stand_ins(index):
            return raised(looked_up(Const(self._value), index if len(index) > 1 else index[0]))
        try:
            return raised(one_text(self._value)[tuple(map(_indexing, index))])
        except IndexError as error:
            raise InvalidArgumentError(f"x[{key!r:.60}] of a tensor of shape {list(self.shape)}: {error}.") from None

    def __setitem__(self, key: Any, value: Any) -> None:
        message = "A tensor does not support item assignment."
        raise InvalidTypeError(message, hint="tf.tensor_scatter_nd_update(x, indices, updates) gives a changed copy.")

    def __len__(self) -> int:
        if not self.ndim:
            raise InvalidTypeError("A tensor without dimensions has no len().")
        return len(self._value)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise InvalidTypeError("Cannot iterate over a tensor without dimensions.")
        return map(raised, self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        return int(self._value)

    def __float__(self) -> float:
        return float(self._value)

    def __index__(self) -> int:
        return operator.index(self._value)

    def __getattr__(self, name: str) -> Any:
        from penstock.compat.teaching import unknown

        raise unknown("tf.Tensor", name, NUMPYS, dir(Tensor))

    def __str__(self) -> str:
        return f"tf.Tensor({self._value}, shape={self.shape}, dtype={self.dtype.name})"

    def __format__(self, spec: str) -> str:
        return format(self._value, spec)


@dataclass(frozen=True, eq=False, repr=False, init=False)  # frozen: a captured tensor is a constant
class Tensor(Value):
    """An immutable value: an array, a number or a byte string; a tracer while a function is traced."""

    __slots__ = ()

    _value: Any  # a numpy value, bytes or a Tracer

    def __reduce__(self) -> Any:
        return Tensor.of, (self._value,)

    def __repr__(self) -> str:
        shown = str(self._value) if isinstance(self._value, np.generic) else repr(self._value)
        line = "\n" if "\n" in shown else ""
        return f"<tf.Tensor: shape={self.shape}, dtype={self.dtype.name}, numpy={line}{shown}>"


_NEW, _HOLD = object.__new__, vars(Value)["_value"].__set__
NUMPYS = {  # methods that only arrays have, and what to write
    name: f"Write {written.format(name)}."
    for names, written in {
        "mean sum max min prod std any all": "tf.reduce_{}(x)",
        "reshape transpose squeeze round argmax argmin argsort sort cumsum repeat size": "tf.{}(x, …)",
        "tolist item tobytes data flat": "x.numpy(), which gives numpy's value",
        "flatten ravel": "tf.reshape(x, [-1])",
        "T swapaxes": "tf.transpose(x, perm)",
        "astype": "tf.cast(x, dtype)",
        "var": "tf.math.reduce_variance(x)",
        "cumprod": "tf.math.cumprod(x)",
        "clip": "tf.clip_by_value(x, low, high)",
        "dot": "tf.tensordot(x, y, 1)",
        "take": "tf.gather(x, indices)",
        "copy": "tf.identity(x)",
        "decode": "x.numpy().decode()",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True, eq=False)
class Reference:
    """A tensor as a key of a dict: two are equal if they hold the same object."""

    _tensor: Any

    def deref(self) -> Any:
        """Return the tensor."""
        return self._tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._tensor is other._tensor

    def __hash__(self) -> int:
        return id(self._tensor)


def _lowered(part: Any) -> Any:
    """Return one part of an index with numpy values or tracers in place of tensors."""
    return slice(*map(lowered, (part.start, part.stop, part.step))) if isinstance(part, slice) else lowered(part)


def _indexing(value: Any) -> Any:
    """Check one part of an index, and return it. TensorFlow takes integers, slices, `...`, None and a mask."""
    if value is None or value is Ellipsis or isinstance(value, (slice, int, np.integer)):
        return value
    if isinstance(value, np.ndarray) and (value.dtype.kind == "b" or not value.ndim):
        return value
    message = f"{value!r:.60} is no index of a tensor."
    raise InvalidTypeError(message, hint="Write integers and slices; tf.gather(x, indices) takes several rows.")


def raised(value: Any) -> Any:
    """Return a numpy value or a tracer as a tensor, and anything else unchanged."""
    kind = type(value)
    if kind is np.ndarray:
        return Tensor.of(value if value.ndim else value[()])
    if kind is bytes or kind is Tracer or isinstance(value, np.generic):
        return Tensor.of(bytes(value) if isinstance(value, np.bytes_) else value)
    return CONVERSIONS[kind](value) if kind in CONVERSIONS else value


def lowered(value: Any) -> Any:
    """Return the numpy value or the tracer of a tensor, and anything else unchanged."""
    if isinstance(value, Value):
        return value._value
    if isinstance(value, (SparseTensor, RaggedTensor, TensorSpec)) and hasattr(value, "_plain"):
        return value._plain()
    return value


def array_of(value: Any, dtype: Any = None) -> Any:
    """Return a value as a numpy value with the dtype of `tf.convert_to_tensor`.

    Python's integers become int32, or int64 if they do not fit. Floats become float32, and strings bytes.

    >>> array_of([1, 2]).dtype, array_of(0.5), array_of("text"), array_of([1.0, 2.0], np.float64).dtype
    (dtype('int32'), np.float32(0.5), b'text', dtype('float64'))

    Raises:
        InvalidTypeError: If no tensor can have the value.
        InvalidArgumentError: If rows differ in length.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    found = lowered(value)
    if isinstance(found, (SparseTensor, RaggedTensor, Tracer)) or (dtype is None and isinstance(value, Value)):
        return found
    array = found
    if not isinstance(found, np.ndarray):
        array = _array(_plain_list(found) if isinstance(found, (list, tuple)) else found)
    python = not _has_numpy(found)
    if array.dtype.kind in "SUO":
        array = _as_bytes(array, value)
    elif wanted is not None:
        if wanted.name == "string" and array.size:
            raise InvalidTypeError(f"{value!r:.60} is no text.")
        array = array.astype(wanted.dtype, copy=False)
    elif python and array.dtype == np.float64:
        array = array.astype(np.float32)
    elif python and array.dtype.kind == "i" and (not array.size or (array.min() >= -(2**31) and array.max() < 2**31)):
        array = array.astype(np.int32)
    return array if array.ndim else array[()]


def _as_bytes(array: np.ndarray, value: Any) -> np.ndarray:
    """Return an array of strings or objects as an array of byte strings; the same array if it has only such."""
    flat = array.reshape(-1).tolist()
    if array.dtype.hasobject and set(map(type, flat)) <= {bytes}:
        return array
    found = np.empty(array.shape, object)
    found.reshape(-1)[:] = flat = list(map(_plain_item, flat))
    if not all(isinstance(item, bytes) for item in flat):
        message = f"{value!r:.60} cannot be a tensor."
        raise InvalidTypeError(message, hint="A tensor holds numbers of one kind, or text.")
    return found


def _plain_list(value: Any) -> Any:
    return [_plain_list(item) if isinstance(item, (list, tuple)) else _plain_item(lowered(item)) for item in value]


def _plain_item(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def whole(value: Any, dtype: Any = None) -> np.ndarray:
    """Return `array_of(value)` as an array, also of a single value."""
    return np.asarray(one_text(array_of(value, dtype)))


def _array(value: Any) -> np.ndarray:
    try:
        found = np.asarray(one_text(value))
    except ValueError:
        message = f"{value!r:.60} has rows of differing length."
        raise InvalidArgumentError(message, hint="tf.ragged.constant holds such rows.") from None
    return np.asarray(value, object) if found.dtype.kind == "S" else found  # "S" drops zeros at the end of text


def _has_numpy(value: Any) -> bool:
    """Return True if a value, or an item of nested lists, has a dtype."""
    if isinstance(value, (list, tuple)):
        return any(map(_has_numpy, value))
    return hasattr(value, "dtype")


def over_flat(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """Call `function` with the flat values of ragged tensors that have equal rows, and with the other arguments.

    Arrays beside the ragged tensors are broadcast, as `x / tf.reduce_sum(x, axis=1, keepdims=True)` needs it.
    """
    ragged = [value for value in values if isinstance(value, RaggedTensor)]
    if any(not _same_rows(ragged[0], other) for other in ragged[1:]):
        message = "The rows of two ragged tensors differ in length."
        raise InvalidArgumentError(message, hint="Operations number by number need the same rows on both sides.")
    flat = function(
        *(value.flat_values if isinstance(value, RaggedTensor) else _along(value, ragged[0]) for value in values)
    )
    return with_flat(ragged[0], flat)


def _along(value: Any, ragged: RaggedTensor) -> Any:
    """Broadcast an array to one item for each flat value of a ragged tensor; a scalar stays."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    inner: Any = ragged
    found = value.reshape((1,) * (len(ragged.shape) - value.ndim) + value.shape)
    while is_ragged(inner):
        lengths = inner.row_lengths
        if found.shape[0] not in (1, len(inner)) or (found.shape[1] != 1 and (lengths != found.shape[1]).any()):
            message = f"Shapes {value.shape} and {ragged.shape} cannot be broadcast."
            raise InvalidArgumentError(message, hint="Each axis has the extent of the rows, or 1.")
        found = np.broadcast_to(found, (len(inner), *found.shape[1:]))
        found = np.repeat(found[:, 0], lengths, 0) if found.shape[1] == 1 else found.reshape(-1, *found.shape[2:])
        inner = inner.values
    return found


def is_ragged(*values: Any) -> bool:
    """Return True if one of the values is a ragged tensor."""
    return any(isinstance(value, RaggedTensor) for value in values)


def stacked(rows: Sequence[Any], like: RaggedTensor) -> RaggedTensor:
    """Stack rows to a ragged tensor. If there are none, the dtypes are those of `like`."""
    if rows:
        return RaggedTensor.stack(rows, like.row_splits.dtype)
    inner: Any = like.values
    none = stacked([], inner) if is_ragged(inner) else inner[:0]
    return RaggedTensor(none, np.zeros(1, like.row_splits.dtype))


def _same_rows(one: RaggedTensor, other: RaggedTensor) -> bool:
    if not np.array_equal(one.row_splits, other.row_splits):
        return False
    nested = [isinstance(side.values, RaggedTensor) for side in (one, other)]
    return nested[0] == nested[1] and (not nested[0] or _same_rows(one.values, other.values))  # type: ignore[arg-type]


def with_flat(ragged: RaggedTensor, flat: Any) -> RaggedTensor:
    """Return a ragged tensor with the same rows and other flat values."""
    inner = ragged.values
    return RaggedTensor(
        with_flat(inner, flat) if isinstance(inner, RaggedTensor) else np.asarray(flat), ragged.row_splits
    )
