"""What code gets for a tensor: numpy's array, and bytes, with the few methods of a tensor.

>>> x = raised(np.float32(2.5))
>>> x.numpy(), (x * 2).numpy(), x.shape, x.get_shape().as_list()
(np.float32(2.5), np.float32(5.0), TensorShape([]), [])
>>> raised(b"cats/1.jpg").numpy()
b'cats/1.jpg'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.compat.dtypes import DTYPES, DType, as_dtype
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.trace.tracer import Tracer

COMPOSITES: dict[type, Any] = {}  # penstock's sparse and ragged tensors, and what makes those of `composites` of them
_SMALL = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16), np.dtype(np.uint16))


class TensorShape(tuple[Any, ...]):
    """A shape: a tuple of extents, None where one is unknown, with TensorShape's names."""

    __slots__ = ()

    def as_list(self) -> list[Any]:
        return list(self)

    @property
    def rank(self) -> int:
        return len(self)

    @property
    def ndims(self) -> int:
        return len(self)

    @property
    def dims(self) -> list[Any]:
        return list(self)

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
            message = f"The shapes {list(self)} and {list(other)} are not compatible."
            raise InvalidArgumentError(message)

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


def shape_fits(shape: tuple[int, ...], wanted: Any) -> None:
    """Raise InvalidArgumentError where a value has not the shape that `set_shape` tells of it."""
    if not TensorShape(shape).is_compatible_with(wanted):
        message = f"set_shape({list(wanted)}) of a value of shape {list(shape)}."
        raise InvalidArgumentError(message, hint="set_shape only says what is known of a shape; tf.reshape changes it.")


class Tensor(np.ndarray):
    """A numpy array with the methods that code written for TensorFlow calls on a tensor.

    Everything numpy does with an array it does with this. Text is an array of `bytes`, a single text a `Text`.
    """

    def numpy(self) -> Any:
        """The value as numpy has it: an array, or a scalar."""
        found = self.view(np.ndarray)
        return found if found.ndim else found[()]

    @property
    def shape(self) -> TensorShape:
        return TensorShape(np.ndarray.shape.__get__(self))

    @shape.setter
    def shape(self, shape: Any) -> None:
        np.ndarray.shape.__set__(self, shape)  # type: ignore[attr-defined]

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """Check what is said of the shape: it is known, as the value is there."""
        shape_fits(self.shape, shape)

    def __getitem__(self, key: Any) -> Any:
        return raised(super().__getitem__(key))

    def __iter__(self) -> Iterator[Any]:
        return map(raised, self.view(np.ndarray))

    def __truediv__(self, other: Any) -> Any:
        return raised(true_divide(self, other))

    def __rtruediv__(self, other: Any) -> Any:
        return raised(true_divide(other, self))

    def __add__(self, other: Any) -> Any:
        if not self.dtype.hasobject or isinstance(other, Tracer):
            return super().__add__(other)
        return raised(np.add(*same_text(self, other)))

    def __radd__(self, other: Any) -> Any:
        if not self.dtype.hasobject or isinstance(other, Tracer):
            return super().__radd__(other)
        return raised(np.add(*same_text(other, self)))

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Tracer):  # which knows what it is compared with
            return NotImplemented
        return raised(np.equal(*same_text(self, other)))

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Tracer):
            return NotImplemented
        return raised(np.not_equal(*same_text(self, other)))

    __hash__ = None

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array.view(Tensor)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape={self.shape}, dtype={as_dtype(self.dtype).name}, numpy={self.numpy()!r}>"

    def __str__(self) -> str:
        return f"tf.Tensor({self.numpy()}, shape={self.shape}, dtype={as_dtype(self.dtype).name})"

    def __format__(self, spec: str) -> str:
        return format(self.numpy(), spec) if spec else str(self)


class Text(bytes):
    """A single text: bytes with the methods of a tensor. It equals the same text as `str`, as a tensor does."""

    def numpy(self) -> bytes:
        return bytes(self)

    @property
    def shape(self) -> TensorShape:
        return TensorShape()

    @property
    def dtype(self) -> DType:
        return DTYPES["string"]

    def get_shape(self) -> TensorShape:
        return self.shape

    def set_shape(self, shape: Any) -> None:
        shape_fits((), shape)

    @property
    def ndim(self) -> int:
        return 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        found = one_text(bytes(self))
        return found if dtype is None or np.dtype(dtype).kind == "O" else found.astype(dtype)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, (bytes, str)):
            return bytes(self) == (other.encode() if isinstance(other, str) else bytes(other))
        if isinstance(other, np.ndarray):
            return raised(np.equal(*same_text(bytes(self), other)))
        return NotImplemented

    def __ne__(self, other: object) -> Any:
        found = self.__eq__(other)
        if found is NotImplemented:
            return found
        return ~found if isinstance(found, np.ndarray) else not found

    def __add__(self, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return raised(np.add(*same_text(bytes(self), other)))
        return Text(bytes(self) + (other.encode() if isinstance(other, str) else bytes(other)))

    def __radd__(self, other: Any) -> Any:
        return Text((other.encode() if isinstance(other, str) else bytes(other)) + bytes(self))

    def __hash__(self) -> int:
        return bytes.__hash__(self)

    def __repr__(self) -> str:
        return f"<tf.Tensor: shape=(), dtype=string, numpy={bytes(self)!r}>"

    def __str__(self) -> str:
        return f"tf.Tensor({bytes(self)!r}, shape=(), dtype=string)"


def true_divide(left: Any, right: Any) -> Any:
    """`left / right` with TensorFlow's dtype: of integers of up to 16 bits it is float32."""
    x, y = lowered(left), lowered(right)
    if any(getattr(part, "dtype", None) in _SMALL for part in (x, y)):
        small = [part.dtype for part in (x, y) if isinstance(part, (np.ndarray, np.generic))]
        if all(dtype in _SMALL for dtype in small):
            x, y = (np.asarray(part, np.float32)[()] for part in (x, y))
    return np.true_divide(x, y)


def same_text(left: Any, right: Any) -> tuple[Any, Any]:
    """Two sides of a comparison as numpy compares them: text as bytes on either side."""
    x, y = lowered(left), lowered(right)
    if any(isinstance(part, (str, bytes)) or getattr(part, "dtype", np.dtype(int)).kind in "SUO" for part in (x, y)):
        return _as_bytes(x), _as_bytes(y)
    return x, y


def _as_bytes(value: Any) -> Any:
    if isinstance(value, (bytes, str)):
        return one_text(value.encode() if isinstance(value, str) else bytes(value))
    array = np.asarray(value)
    if array.dtype.kind not in "SUO":
        return array
    found = np.empty(array.shape, object)
    found.reshape(-1)[:] = [x.encode() if isinstance(x, str) else x for x in array.reshape(-1).tolist()]
    return found


def raised(value: Any) -> Any:
    """A numpy value as a tensor; anything else as it is."""
    kind = type(value)
    if kind is np.ndarray:
        if not value.ndim and value.dtype.hasobject:
            return raised(value[()])
        return value.view(Tensor)
    if kind is bytes:
        return Text(value)
    if isinstance(value, np.generic):
        return Text(value) if isinstance(value, bytes) else np.asarray(value).view(Tensor)
    return COMPOSITES[kind](value) if kind in COMPOSITES else value


def lowered(value: Any) -> Any:
    """A tensor as numpy has it; anything else as it is."""
    if isinstance(value, Tensor):
        return value.numpy()
    if type(value) is Text:
        return bytes(value)
    if isinstance(value, (SparseTensor, RaggedTensor)) and hasattr(value, "_plain"):
        return value._plain()
    return value


def array_of(value: Any, dtype: Any = None) -> Any:
    """A value as numpy has it, with the dtype that `tf.convert_to_tensor` gives it.

    Python's integers become int32 (int64 where they do not fit), floats float32, text bytes.

    >>> array_of([1, 2]).dtype, array_of(0.5), array_of("text"), array_of([1.0, 2.0], np.float64).dtype
    (dtype('int32'), np.float32(0.5), b'text', dtype('float64'))

    Raises InvalidTypeError for what no tensor holds, InvalidArgumentError for rows of differing length.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    found = lowered(value)
    if isinstance(found, (SparseTensor, RaggedTensor)):
        return found
    if isinstance(found, np.ndarray):
        array = found
    elif isinstance(found, np.generic) or not isinstance(found, (list, tuple)):
        array = _array(found)
    else:
        array = _array(_plain_list(found))
    python = not _has_numpy(found)
    if array.dtype.kind in "SUO":
        array = _as_bytes(array)
        if array.dtype.hasobject and any(not isinstance(item, bytes) for item in array.reshape(-1).tolist()):
            message = f"{value!r:.60} cannot be a tensor."
            raise InvalidTypeError(message, hint="A tensor holds numbers of one kind, or text.")
    elif wanted is not None:
        if wanted.name == "string" and array.size:
            message = f"{value!r:.60} is no text."
            raise InvalidTypeError(message)
        array = array.astype(wanted.dtype, copy=False)
    elif python and array.dtype == np.float64:
        array = array.astype(np.float32)
    elif python and array.dtype.kind == "i" and (not array.size or (array.min() >= -(2**31) and array.max() < 2**31)):
        array = array.astype(np.int32)
    elif python and array.dtype == np.complex128 and wanted is None:
        array = array.astype(np.complex128)
    return array if array.ndim else array[()]


def _plain_list(value: Any) -> Any:
    return [_plain_list(item) if isinstance(item, (list, tuple)) else _plain_item(lowered(item)) for item in value]


def _plain_item(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def whole(value: Any, dtype: Any = None) -> np.ndarray:
    """`array_of`, and always an array: numpy's own of a single text would drop zeros at its end."""
    found = array_of(value, dtype)
    return one_text(found) if isinstance(found, bytes) else np.asarray(found)


def one_text(text: bytes) -> np.ndarray:
    """A text as an array without dimensions."""
    found = np.empty((), object)
    found[()] = text
    return found


def _array(value: Any) -> np.ndarray:
    if isinstance(value, bytes):
        return one_text(value)
    try:
        found = np.asarray(value)
    except ValueError:
        message = f"{value!r:.60} has rows of differing length."
        raise InvalidArgumentError(message, hint="tf.ragged.constant holds such rows.") from None
    if found.dtype.kind == "S":  # numpy drops zeros at the end of such text
        kept = np.empty(found.shape, object)
        flat = list(_leaves(value))
        kept.reshape(-1)[:] = flat
        return kept
    return found


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, np.ndarray):
        yield from value.reshape(-1).tolist()
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _has_numpy(value: Any) -> bool:
    """Whether anything in a list says its dtype by itself."""
    if isinstance(value, (list, tuple)):
        return any(map(_has_numpy, value))
    return hasattr(value, "dtype")


def over_flat(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """`function` of the numbers of ragged tensors that have the same rows, and of what stands beside them."""
    ragged = [value for value in values if isinstance(value, RaggedTensor)]
    if any(not _same_rows(ragged[0], other) for other in ragged[1:]):
        message = "The rows of two ragged tensors differ in length."
        raise InvalidArgumentError(message, hint="Operations number by number need the same rows on both sides.")
    flat = function(*(value.flat_values if isinstance(value, RaggedTensor) else value for value in values))
    return with_flat(ragged[0], flat)


def _same_rows(one: RaggedTensor, other: RaggedTensor) -> bool:
    if not np.array_equal(one.row_splits, other.row_splits):
        return False
    nested = [isinstance(side.values, RaggedTensor) for side in (one, other)]
    return nested[0] == nested[1] and (not nested[0] or _same_rows(one.values, other.values))  # type: ignore[arg-type]


def with_flat(ragged: RaggedTensor, flat: Any) -> RaggedTensor:
    inner = ragged.values
    return RaggedTensor(
        with_flat(inner, flat) if isinstance(inner, RaggedTensor) else np.asarray(flat), ragged.row_splits
    )
