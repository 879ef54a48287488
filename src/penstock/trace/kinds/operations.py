"""What operations give for values of known kinds, and which of them are surely not meant."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from types import ModuleType
from typing import Any

import numpy as np

from penstock.functions.code import words
from penstock.functions.effects.objects import fields
from penstock.trace.kinds.values import (
    Byte,
    Constant,
    Kind,
    Method,
    Mismatch,
    Nest,
    Number,
    Slice,
    Spelled,
    Text,
    Widened,
)
from penstock.trace.lift import nature_of

_SAME_TEXT = words(
    """strip lstrip rstrip lower upper replace title capitalize center ljust rjust zfill removeprefix removesuffix
    translate expandtabs swapcase"""
)
_PARTS_OF_TEXT = frozenset(("split", "rsplit", "splitlines"))
_SAME_NUMBERS = words("reshape transpose copy ravel flatten squeeze swapaxes clip repeat round")
_CONTAINERS = (tuple, list, set, frozenset, dict, np.ndarray)
_HOLDERS: dict[str, Any] = {"in": _CONTAINERS, "get": dict, "count": (tuple, list), "[]": defaultdict}
_MOST_LOOKED_AT = 1000
_UFUNCS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
    "//": np.floor_divide,
    "%": np.remainder,
}
_FLOAT64 = np.dtype(np.float64)


def compared(left: Kind, right: Kind, how: str, where: str) -> Mismatch | None:
    """`text == "a"` and `text == np.array(["a", "b"])`, in either order."""
    for value, other in ((left, right), (right, left)):
        if isinstance(value, (Text, Byte)):
            if isinstance(other, Constant) and type(other.value) is str:
                return Mismatch(where, how if isinstance(value, Text) else "byte", other.value)
            texts = _strs(other)
            if texts:
                return Mismatch(where, "among", texts[0])
    return None


def contained(value: Kind, container: Kind, how: str, where: str) -> Mismatch | None:
    """`text in ("a", "b")`, `{"a": 0}.get(text)`, `["a"].count(text)`, and `[]` where it raises nothing."""
    if value != Text():
        return None
    if isinstance(container, Nest):
        known = how == "in" or (how == "get" and not container.in_order)
        container = container if container.in_order else Constant(container.keys)
    else:
        known = isinstance(container, Constant) and isinstance(container.value, _HOLDERS.get(how, ()))
    texts = _strs(container) if known else []
    return Mismatch(where, how, texts[0]) if texts else None


def _strs(value: Kind) -> list[str]:
    """Return the strings that a container holds; an empty list if it holds anything else."""
    if isinstance(value, Nest):
        held: Any = [getattr(kind, "value", None) for kind in value.kinds]
    else:
        held = getattr(value, "value", None)
    if isinstance(held, np.ndarray):
        held = held.ravel()[:_MOST_LOOKED_AT].tolist()
    found = list(islice(held, _MOST_LOOKED_AT)) if isinstance(held, _CONTAINERS) else []
    if not all(type(one) is str for one in found):
        return []
    return sorted(found) if isinstance(held, (set, frozenset)) else found


def spelled(value: Kind) -> Kind:
    """What a value becomes in an f-string."""
    return Spelled() if isinstance(value, (Text, Spelled)) else None


def items(value: Kind) -> Kind:
    """What comes of going through a value."""
    if isinstance(value, Text):
        return Text() if value.many else Byte()
    return None


def item(owner: Kind, key: Kind) -> Kind:
    """`owner[key]`."""
    if isinstance(owner, Nest):
        return owner.at(key.value) if isinstance(key, Constant) else None
    if isinstance(owner, Text):
        if isinstance(key, Slice):
            return owner
        whole = isinstance(key, Constant) and type(key.value) is int
        return (Text() if owner.many else Byte()) if whole else None
    if isinstance(owner, Number):
        return owner if isinstance(key, Slice) else None
    if isinstance(owner, Constant) and isinstance(key, Constant) and type(owner.value) in (dict, list, tuple):
        try:
            return Constant(owner.value[key.value])
        except (LookupError, TypeError):
            return None
    return None


def attribute(owner: Kind, name: str) -> Kind:
    """`owner.name`, where asking runs nobody's code."""
    if isinstance(owner, Constant) and isinstance(owner.value, (ModuleType, type)):
        found = vars(owner.value).get(name) if isinstance(owner.value, ModuleType) else None
        return Method(owner, name) if found is None else Constant(found)
    if isinstance(owner, Constant):
        held = fields(owner.value)
        if name in held:
            return Constant(held[name])
    if isinstance(owner, Nest) and owner.in_order and name in owner.keys:  # of a named tuple
        return owner.kinds[owner.keys.index(name)]
    if isinstance(owner, Number) and name == "T":
        return owner
    return Method(owner, name)


def binary(left: Kind, right: Kind, sign: str, where: str) -> Kind:
    """An operator with two operands."""
    if isinstance(left, Number) or isinstance(right, Number):
        return _arithmetic(left, right, sign, where)
    if isinstance(left, Spelled) or (isinstance(right, Spelled) and sign == "+"):
        return Spelled()
    if sign == "%" and isinstance(left, Constant) and type(left.value) is str:
        given = right.kinds if isinstance(right, Nest) else (right,)
        return Spelled() if "%s" in left.value and any(kind == Text() for kind in given) else None
    if sign == "+" and Text() in (left, right):
        other = right if left == Text() else left
        if other == Text() or (isinstance(other, Constant) and type(other.value) is bytes):
            return Text()
    return None


def _arithmetic(left: Kind, right: Kind, sign: str, where: str) -> Kind:
    ufunc = _UFUNCS.get(sign)
    kinds = _dtype(left), _dtype(right)
    if ufunc is None or any(kind is None for kind in kinds):  # `None in` asks numpy, for which it is float64
        return None
    try:
        dtype = ufunc.resolve_dtypes((*kinds, None))[-1]
    except TypeError:
        return None
    array = any((isinstance(one, Number) and one.array) or _is_array(one) for one in (left, right))
    came = next((one.widened for one in (left, right) if isinstance(one, Number) and one.widened), None)
    if dtype != _FLOAT64:
        return Number(dtype, array)
    elements = [one for one in (left, right) if isinstance(one, Number)]
    wide = any(one.dtype == _FLOAT64 and one.widened is None for one in elements)
    first, other = (left, right) if isinstance(left, Number) else (right, left)
    if came is None and not wide and array and first.array and first.dtype.itemsize < _FLOAT64.itemsize:
        came = Widened(where, str(first.dtype), sign, _operand(other), _number(other), first is right)
    return Number(dtype, array, came)


def _dtype(value: Kind) -> Any:
    """As numpy's `resolve_dtypes` takes it: of Python's numbers the class."""
    if isinstance(value, Number):
        return value.dtype
    if isinstance(value, Constant):
        if type(value.value) in (int, float):
            return type(value.value)
        if isinstance(value.value, (np.ndarray, np.generic)) and value.value.dtype.kind in "biuf":
            return value.value.dtype
    return None


def _is_array(value: Kind) -> bool:
    return isinstance(value, Constant) and isinstance(value.value, np.ndarray) and value.value.ndim > 0


def _operand(value: Kind) -> str:
    if isinstance(value, Constant):
        held = value.value
        if isinstance(held, (np.ndarray, np.generic)):
            what = "an array" if isinstance(held, np.ndarray) and held.ndim else "a number"
            return f"{what} of {held.dtype}"
        return "a Python float" if isinstance(held, float) else "an int"
    return f"{value.dtype}" if isinstance(value, Number) else "?"


def _number(value: Kind) -> float | None:
    return value.value if isinstance(value, Constant) and type(value.value) in (int, float) else None


def called_method(method: Method, arguments: list[Kind], named: list[Kind]) -> Kind:
    owner, name = method.owner, method.name
    if isinstance(owner, Text) and not owner.many:
        if name in _SAME_TEXT:
            return Text()
        if name in _PARTS_OF_TEXT:
            return Text(many=True)
        if name in ("partition", "rpartition"):
            return Nest((), (Text(), Text(), Text()), in_order=True)
    elif isinstance(owner, Spelled):
        return owner
    elif isinstance(owner, Constant) and type(owner.value) is str:
        if name == "format":
            return Spelled() if any(isinstance(one, (Text, Spelled)) for one in (*arguments, *named)) else None
        if name == "join" and Spelled() in arguments:
            return Spelled()
    elif isinstance(owner, Nest) and not owner.in_order and name == "get" and arguments:
        return owner.at(arguments[0].value) if isinstance(arguments[0], Constant) else None
    elif isinstance(owner, Number):
        if name == "astype" and len(arguments) == 1:
            return _of_dtype(arguments[0], owner)
        if name in _SAME_NUMBERS:
            return owner
    return None


def _of_dtype(asked: Kind, owner: Number) -> Kind:
    if not isinstance(asked, Constant):
        return None
    try:
        return Number(np.dtype(asked.value), owner.array)
    except TypeError:
        return None


def called_library(function: Any, arguments: list[Kind], named: list[Kind]) -> Kind:
    first = arguments[0] if len(arguments) == 1 and not named else None
    if function in (str, format) and isinstance(first, (Text, Spelled)):
        return Spelled()
    if function in (sorted, list, tuple, reversed) and first == Text(many=True):
        return first
    if function in (np.array, np.asarray) and first is not None and _strs(first):
        return first
    if function is bytes and first == Text():
        return first
    if isinstance(function, type) and issubclass(function, np.generic) and first is not None:
        if isinstance(first, Number):
            return Number(np.dtype(function), first.array)
        if isinstance(first, Constant) and type(first.value) in (int, float) and issubclass(function, np.number):
            return Number(np.dtype(function), array=False)
    if nature_of(function).decodes and len(arguments) == 1:
        return Number(np.dtype(np.uint8), array=True)
    return None
