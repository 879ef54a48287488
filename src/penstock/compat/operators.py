"""The operators of a tensor, which this module adds to `Value`.

The operators work on numpy values, and on the tracers of `penstock.trace`. Operations on tracers in a function of `map`
become a graph over whole Blocks.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor, SparseTensor
from penstock.compat.op import applied
from penstock.compat.operands import KINDS, TAKEN, _reading, check, converted, kind_of, matched
from penstock.compat.values import TEXT, Value, dtype_of, one_text, over_flat, raised
from penstock.errors import InvalidArgumentError
from penstock.trace.graph import NotTraceable
from penstock.trace.tracer import Tracer

_NUMPYS = (np.ndarray, np.generic)
_SMALL = frozenset(map(np.dtype, ("int8", "uint8", "int16", "uint16")))


def _row_by_row(name: str, function: Callable[..., Any], left: Any, right: Any, *, exact: bool = False) -> Any:
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
            raise InvalidArgumentError("Integer division by zero.", hint="tf.where(y == 0, 1, y) is never 0.")
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


@functools.cache
def _quick(name: str, dtype: np.dtype, kind: type) -> Callable[[Any, Any], Any] | None:
    """Return the function of two values of this dtype, or None if a value of type `kind` needs `converted`."""
    function, kinds = OPERATORS[name]
    taken = issubclass(kind, Value) or KINDS[kind] in TAKEN[kind_of(dtype)]
    return function if taken and dtype != TEXT and kind_of(dtype) in kinds else None


def _binary(name: str, *, reflected: bool = False) -> Callable[[Any, Any], Any]:
    function, kinds = OPERATORS[name]
    calculate = _of(function) if isinstance(function, np.ufunc) else function

    def operate(self: Value, other: Any) -> Any:
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

    def operate(self: Value) -> Any:
        check(f"__{name}__", dtype_of(self._value), kinds)
        return self.of(function(self._value))

    return operate


def calculated(name: str, x: Any, y: Any, *, first: bool = False) -> Any:
    """Call the function of this name with two operands, which may be tensors or ragged tensors."""
    function, kinds = OPERATORS.get(name) or FUNCTIONS[name]
    left, right = matched([x, y], first=first or _reading.mapped)
    check(f"tf.{name}", dtype_of(left), kinds)
    function = _of(function) if isinstance(function, np.ufunc) else function
    if isinstance(left, RaggedTensor) or isinstance(right, RaggedTensor):
        return raised(over_flat(function, [left, right]))
    return raised(function(left, right))


for _operation in OPERATORS:
    setattr(Value, f"__{_operation}__", _binary(_operation))
    if _operation not in _COMPARISONS:
        setattr(Value, f"__r{_operation}__", _binary(_operation, reflected=True))
for _operation in _ALONE:
    setattr(Value, f"__{_operation}__", _unary(_operation))
