"""The operators of a tensor, and the table of the operands that a tensor takes.

TensorFlow casts an operand of numpy to the tensor's dtype, converts Python's numbers and lists, and refuses a tensor of
another dtype. The operators work on numpy values, and on the tracers of `penstock.trace`. Operations on tracers in a
function of `map` become a graph over whole Blocks.
"""

from __future__ import annotations

import functools
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.trace.graph import GraphBuilder, NotTraceable
from penstock.trace.tracer import Tracer

TEXT = np.dtype(object)  # the dtype of byte strings
_NUMPYS = (np.ndarray, np.generic)
_SMALL = frozenset(map(np.dtype, ("int8", "uint8", "int16", "uint16")))
_KINDS: dict[type, str] = {bool: "b", int: "i", float: "f", complex: "c", str: "O", bytes: "O"}

# A tensor of each kind of dtype takes Python's values of these kinds. In eager code, only tensors of the dtypes in
# _TAKING_BOOL take a bool; in `map`, all integers do.
_TAKEN = {"f": "fib", "c": "cfi", "i": "i", "u": "i", "b": "b", "O": "O"}
_TAKEN_IN_MAP = {**_TAKEN, "c": "cfib", "i": "ib", "u": "ib"}
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


def dtype_of(value: Any) -> np.dtype:
    """Return the dtype of a numpy value or of a tracer. Byte strings have `TEXT`."""
    if type(value) is Tracer:
        spec: Any = value.spec
        return TEXT if spec.dtype is bytes else value.dtype
    if isinstance(value, (RaggedTensor, SparseTensor)):
        value = value.values
    found: np.dtype = getattr(value, "dtype", TEXT)
    return found


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
    python = _KINDS.get(type(value))
    if python is None:
        if isinstance(value, (Operators, RaggedTensor, SparseTensor)):
            found = value._value if isinstance(value, Operators) else value
            if dtype_of(found) != dtype:
                raise _refused(dtype, "a tensor of", _name(dtype_of(found)))
            return found
        if type(value) is Tracer:
            return value if dtype_of(value) == dtype else value.astype(dtype)
        if value is None:
            message = "None is no operand of a tensor."
            raise InvalidArgumentError(message)
        from penstock.compat.values import whole

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
    taken = (_TAKEN_IN_MAP if _reading.mapped else _TAKEN)[kind_of(dtype)]
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
    from penstock.compat.values import array_of

    head = values[0]
    if not first:
        head = next((value for value in values if isinstance(value, (Operators, RaggedTensor, SparseTensor))), head)
    free = array_of(head)
    dtype = dtype_of(free)
    return [free if value is head else converted(value, dtype) for value in values]


def one_text(text: Any) -> Any:
    """Return a byte string as an array without dimensions. `np.array(text)` would drop zeros at its end."""
    if not isinstance(text, bytes):
        return text
    found = np.empty((), object)
    found[()] = text
    return found


def _row_by_row(name: str, function: Callable[..., Any], left: Any, right: Any, *, exact: bool = False) -> Any:
    from penstock.compat.op import applied

    return applied(name, function, (left, right), {}, exact=exact)._value


def _of(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """Return a function of numpy for numpy values and tracers. It gets byte strings as arrays of objects."""

    def call(left: Any, right: Any) -> Any:
        if Tracer not in (type(left), type(right)):
            return ufunc(left, right)
        try:
            return ufunc(left, right)
        except NotTraceable:
            return _row_by_row(ufunc.__name__, ufunc, left, right)

    def of_text(left: Any, right: Any) -> Any:
        return ufunc(one_text(left), one_text(right))

    def calculate(left: Any, right: Any) -> Any:
        if dtype_of(left) != TEXT:
            return call(left, right)
        if Tracer in (type(left), type(right)):
            return _row_by_row(f"strings.{ufunc.__name__}", of_text, left, right, exact=True)
        return of_text(left, right)

    return calculate


def _comparing(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """Return the function of `==` or `!=`. Values whose shapes do not fit are not equal."""
    compare = _of(ufunc)

    def call(left: Any, right: Any) -> Any:
        try:
            return compare(left, right)
        except ValueError:
            return np.bool_(ufunc is np.not_equal)

    return call


def _whole(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """Return the function of `//` or `%`, which refuses to divide an integer by 0."""
    divide = _of(ufunc)

    def checked(left: Any, right: Any) -> Any:
        if not right.all():
            message = "Integer division by zero."
            raise InvalidArgumentError(message, hint="tf.where(y == 0, 1, y) is never 0.")
        return ufunc(left, right)

    def call(left: Any, right: Any) -> Any:
        if dtype_of(right).kind not in "iu":
            return divide(left, right)
        if type(right) is Tracer:
            return _row_by_row(ufunc.__name__, checked, left, right, exact=True)
        return divide(left, right) if right.all() else checked(left, right)

    return call


_divide = _of(np.true_divide)


def quotient(left: Any, right: Any) -> Any:
    """Return `left / right`: float32 for integers of up to 16 bits, float64 for longer integers."""
    if dtype_of(left) in _SMALL:
        left, right = left.astype(np.float32), right.astype(np.float32)
    return _divide(left, right)


def power(left: Any, right: Any) -> Any:
    """Return `left ** right`. numpy computes a square if the exponent is Python's 2."""
    return operator.pow(left, right.item() if isinstance(right, np.generic) else right)


def _product(left: Any, right: Any) -> Any:
    if any(value.ndim < 2 for value in (left, right)):
        message = "x @ y needs values of at least two dimensions."
        raise InvalidArgumentError(message, hint="tf.tensordot(x, y, 1) takes vectors.")
    return _MATMUL(left, right)


_MATMUL = _of(np.matmul)

# The functions of the operators, and the kinds of dtypes that have the operator.
OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add": (np.add, "iufcO"),
    "sub": (np.subtract, "iufc"),
    "mul": (np.multiply, "iufcb"),
    "truediv": (quotient, "iufc"),
    "floordiv": (_whole(np.floor_divide), "iuf"),
    "mod": (_whole(np.remainder), "iuf"),
    "pow": (power, "ifc"),
    "matmul": (_product, "ifc"),
    "and": (np.bitwise_and, "iub"),
    "or": (np.bitwise_or, "iub"),
    "xor": (np.bitwise_xor, "iub"),
    "lt": (np.less, "iuf"),
    "le": (np.less_equal, "iuf"),
    "gt": (np.greater, "iuf"),
    "ge": (np.greater_equal, "iuf"),
    "eq": (_comparing(np.equal), "iufcbO"),
    "ne": (_comparing(np.not_equal), "iufcbO"),
}
FUNCTIONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {  # and of functions without an operator
    "maximum": (np.maximum, "iuf"),
    "minimum": (np.minimum, "iuf"),
    "atan2": (np.arctan2, "f"),
    "logical_and": (np.logical_and, "b"),
    "logical_or": (np.logical_or, "b"),
    "logical_xor": (np.logical_xor, "b"),
    "equal": (np.equal, "iufcbO"),
    "not_equal": (np.not_equal, "iufcbO"),
    "truncatemod": (np.fmod, "iuf"),
    "bitwise_and": (np.bitwise_and, "iu"),
    "bitwise_or": (np.bitwise_or, "iu"),
    "bitwise_xor": (np.bitwise_xor, "iu"),
    "left_shift": (np.left_shift, "iu"),
    "right_shift": (np.right_shift, "iu"),
}
_ALONE = {"neg": (np.negative, "ifc"), "abs": (np.abs, "ifc"), "invert": (np.invert, "iub")}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Operators:
    """A value with TensorFlow's operators, which return new tensors."""

    __slots__ = ("_value",)
    __array_priority__ = 100  # numpy calls the tensor's operator for `array + tensor`
    _value: Any

    of: Callable[[Any], Any]  # makes a tensor of a numpy value or of a tracer

    def __setitem__(self, key: Any, value: Any) -> None:
        message = "A tensor does not support item assignment."
        raise InvalidTypeError(message, hint="tf.tensor_scatter_nd_update(x, indices, updates) gives a changed copy.")


def check(name: str, dtype: np.dtype, kinds: str) -> None:
    """Raise InvalidTypeError if the operation does not take a tensor of this dtype."""
    if kind_of(dtype) not in kinds:
        message = f"{name} takes no tensor of {_name(dtype)}."
        raise InvalidTypeError(message, hint="tf.cast(x, dtype) casts numbers; text has tf.strings.")


@functools.cache
def _quick(name: str, dtype: np.dtype, kind: type) -> Callable[[Any, Any], Any] | None:
    """Return the function of two values of this dtype, or None if a value of type `kind` needs `converted`."""
    function, kinds = OPERATORS[name]
    taken = issubclass(kind, Operators) or _KINDS[kind] in _TAKEN[kind_of(dtype)]
    return function if taken and dtype != TEXT and kind_of(dtype) in kinds else None


def _binary(name: str, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    function, kinds = OPERATORS[name]
    calculate = _of(function) if isinstance(function, np.ufunc) else function

    def operate(self: Operators, other: Any) -> Any:
        value = self._value
        kind: Any = type(other)
        if isinstance(value, _NUMPYS) and (kind is int or kind is float or kind is type(self)):
            quick = _quick(name, value.dtype, kind)  # type: ignore[arg-type]
            if quick is not None:
                try:
                    given = other._value if kind is type(self) else value.dtype.type(other)
                except OverflowError:
                    given = None
                if isinstance(given, _NUMPYS) and given.dtype == value.dtype:
                    return self.of(quick(given, value) if reflected else quick(value, given))
        if isinstance(other, (RaggedTensor, SparseTensor)):
            return NotImplemented
        if other is None and name in ("eq", "ne"):
            return name == "ne"
        dtype = dtype_of(value)
        given = converted(other, dtype)
        check(f"__{name}__", dtype, kinds)
        return self.of(calculate(given, value) if reflected else calculate(value, given))

    return operate


def _unary(name: str) -> Callable[[Any], Any]:
    function, kinds = _ALONE[name]

    def operate(self: Operators) -> Any:
        check(f"__{name}__", dtype_of(self._value), kinds)
        return self.of(function(self._value))

    return operate


def calculated(name: str, x: Any, y: Any, *, first: bool = False) -> Any:
    """Call the function of this name with two operands, which may be tensors or ragged tensors."""
    from penstock.compat.values import over_flat, raised

    function, kinds = OPERATORS.get(name) or FUNCTIONS[name]
    left, right = matched([x, y], first=first or _reading.mapped)
    check(f"tf.{name}", dtype_of(left), kinds)
    function = _of(function) if isinstance(function, np.ufunc) else function
    if isinstance(left, RaggedTensor) or isinstance(right, RaggedTensor):
        return raised(over_flat(function, [left, right]))
    return raised(function(left, right))


for _operation in OPERATORS:
    setattr(Operators, f"__{_operation}__", _binary(_operation))
    if _operation not in _COMPARISONS:
        setattr(Operators, f"__r{_operation}__", _binary(_operation, reflected=True))
for _operation in _ALONE:
    setattr(Operators, f"__{_operation}__", _unary(_operation))
