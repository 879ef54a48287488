"""The places that a function reads outside of itself, with what stood there, and numbers as arguments in its place."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter, is_, itemgetter
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any

import numpy as np

from penstock.functions.code import instructions

MISSING = object()
SIZE = object()
CONTENT = object()
OWN = object()  # of an object: its class, and the dict of its attributes


_WATCHED = 512  # places that are looked at before each call
_DIGESTED = 1 << 12  # bytes of captured arrays, likewise


@dataclass(frozen=True, slots=True)
class Captured:
    """The places a function reads (globals, cells, dicts, lists, attributes) with what stood there.

    A graph is good while it stays.
    """

    reads: tuple[tuple[Any, Any, Any], ...]
    _looks: list[tuple[_Look, ...]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def quickly_watched(self) -> bool:
        """Whether these may be looked at before each call of what is called per element."""
        digested = sum(place.nbytes for place, name, _ in self.reads if name is CONTENT)
        return digested <= _DIGESTED and len(self.reads) <= _WATCHED

    def unchanged(self) -> bool:
        if not self._looks:
            self._looks.append(_looks_at(self.reads))
        try:
            for look in self._looks[0]:  # before every Block
                if not look():
                    return False
        except (KeyError, IndexError, AttributeError, ValueError):  # it is not there any more; a cell is empty
            return False
        return True

    def without(self, function: Any) -> Captured:
        """The same, kept by somebody who is to let go of this function, or object, when all others have."""
        weak = weakref.ref(function)
        return Captured(tuple((weak if read[0] is function else read[0], *read[1:]) for read in self.reads))


_Look = Callable[[], bool]


def _looks_at(reads: Iterable[tuple[Any, Any, Any]]) -> tuple[_Look, ...]:
    """Questions whether things stand where they stood: few, and each about many, as they are asked for every call."""
    found: list[_Look] = []
    places: dict[int, tuple[Any, dict[Any, Any]]] = {}
    for place, name, value in reads:
        _, expected = places.setdefault(id(place), (place, {}))
        if expected.get(name, value) is value and _is_held(place, name, value):
            expected[name] = value
        else:
            found.append(_Stands(place, name, value))
    for place, expected in places.values():
        if expected:
            found.append(_Holds(_getter(place, [*expected]), place, (*expected.values(),)))
    return tuple(found)


def _is_held(place: Any, name: Any, value: Any) -> bool:
    """Whether the value is simply what is to be had of the place under the name."""
    if name is OWN:
        return False
    if isinstance(place, (FunctionType, CellType, weakref.ref)):
        return True
    return value is not MISSING and name not in (SIZE, CONTENT) and type(place) in (dict, list, MappingProxyType)


def _getter(place: Any, names: list[Any]) -> Callable[[Any], Any]:
    if isinstance(place, CellType):
        return attrgetter("cell_contents", "cell_contents")
    two = names if len(names) > 1 else names * 2  # of one it would be the value, of two or more it is a tuple
    if isinstance(place, weakref.ref):
        of_function = attrgetter(*two)
        return lambda weak: of_function(weak())
    return attrgetter(*two) if isinstance(place, FunctionType) else itemgetter(*two)


@dataclass(frozen=True, slots=True)
class _Holds:
    """The values that a place has under some names, all at once."""

    getter: Callable[[Any], Any]
    place: Any
    values: tuple[Any, ...]

    def __call__(self) -> bool:
        return all(map(is_, self.getter(self.place), self.values))


@dataclass(frozen=True, slots=True)
class _Stands:
    place: Any
    name: Any
    value: Any

    def __call__(self) -> bool:
        place, name, value = self.place, self.name, self.value
        if name is CONTENT:
            return bool(content(place) == value)
        if name is OWN:
            place = place() if type(place) is weakref.ref else place
            return type(place) is value[0] and vars(place) is value[1]
        if name is SIZE:
            return bool(len(place) == value)
        if isinstance(place, list):
            return place[name] is value
        return bool(place.get(name, MISSING) is value)


def content(array: np.ndarray) -> int:
    """A digest: what a function computed from a captured array is baked into its graph."""
    if array.dtype.hasobject:  # text, or what has taken its place
        inside: Any = tuple(item if type(item) in (bytes, str) else id(item) for item in array.flat)
    else:
        inside = array.tobytes()
    return hash((array.shape, array.dtype.str, inside))


def are_same(first: Any, second: Any) -> bool:
    """Whether functions of one code, with values of like kinds, do the same for good: only the object is another."""
    if first is second or type(first) is MethodType:
        return True
    if type(first) is not FunctionType or vars(first) or vars(second):
        return False
    if any(one.__defaults__ or one.__kwdefaults__ for one in (first, second)):
        return False
    return all(map(is_, _cells(first), _cells(second)))


class TakingNumbers:
    """A function as one that takes numbers that it closes over as arguments, behind its own; and texts.

    Those of numpy's, if it does nothing but calculate; others, if they go into its result as they are.

    >>> def adding(n):
    ...     return lambda x: x + n
    >>> taking = TakingNumbers.of(adding(np.int64(1)))
    >>> int(taking(3, np.int64(20)))
    23
    >>> taking.numbers_of(adding(np.int64(5))) == (5,), taking.numbers_of(adding(np.float32(5)))
    (True, None)
    """

    def __init__(self, function: FunctionType, given: list[Any], places: list[int], passed: frozenset[int]) -> None:
        self.function = function
        self._given = given
        self._places = places
        self._passed = passed
        self.kinds = [_AS_RESULTS.get(type(given[at]), type(given[at])) for at in places]

    @classmethod
    def of(cls, function: Any) -> TakingNumbers | None:
        """None where there are none, or where more than their values may matter: see `_calculates` and `_passed`."""
        if type(function) is not FunctionType or vars(function):
            return None
        if function.__defaults__ is not None or function.__kwdefaults__ is not None:
            return None
        given = [cell.cell_contents for cell in _cells(function)]
        found: set[int] = set()
        if _calculates(function) and all(type(value) in CONSTANTS or type(value) is np.ndarray for value in given):
            found.update(at for at, value in enumerate(given) if type(value) in _NUMBERS)
        names = _passed(function.__code__)
        passed = {at for at, name in enumerate(function.__code__.co_freevars) if name in names}
        passed = {at for at in passed if type(given[at]) in _NUMBERS or type(given[at]) in _AS_RESULTS}
        return cls(function, given, sorted(found | passed), frozenset(passed)) if found or passed else None

    def numbers_of(self, function: Any) -> tuple[Any, ...] | None:
        """The numbers of another function of the same code; None where it differs in more, or in their kinds."""
        if type(function) is not FunctionType or function.__code__ is not self.function.__code__:
            return None
        if function.__globals__ is not self.function.__globals__ or vars(function):
            return None
        if function.__defaults__ is not None or function.__kwdefaults__ is not None:
            return None
        numbers: list[Any] = []
        for at, (known, cell) in enumerate(zip(self._given, _cells(function), strict=True)):
            value = cell.cell_contents
            if at not in self._places:
                if value is not known:
                    return None
            elif type(value) is not type(known):
                return None
            elif at in self._passed:
                value = _as_result(value)
                if value is None:
                    return None
                numbers.append(value)
            elif value != value:
                return None  # what is not equal to itself may be found in a tuple all the same, by which object it is
            else:
                numbers.append(value)
        return tuple(numbers)

    def __call__(self, *given: Any) -> Any:
        function, own = self.function, len(given) - len(self._places)
        cells = list(_cells(function))
        for place, value in zip(self._places, given[own:], strict=True):
            cells[place] = CellType(value)
        made = FunctionType(function.__code__, function.__globals__, function.__name__, None, tuple(cells))
        return made(*given[:own])


def _cells(function: FunctionType) -> tuple[CellType, ...]:
    return function.__closure__ or ()


_NUMBERS = frozenset({  # one for each dtype
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.float16, np.float32,
    np.float64,
})  # fmt: skip
_AS_RESULTS = {bool: np.bool_, int: np.int64, float: np.float32, bytes: bytes, str: bytes}  # of a user's function
_PUTTING = frozenset({"LOAD_DEREF", "LOAD_CONST", "LOAD_SMALL_INT", "BUILD_TUPLE", "BUILD_CONST_KEY_MAP"})
_OPERATIONS = frozenset({
    "RESUME", "NOP", "CACHE", "COPY_FREE_VARS", "PUSH_NULL", "PRECALL", "CALL", "KW_NAMES", "CALL_KW", "LOAD_DEREF",
    "LOAD_CONST", "LOAD_SMALL_INT", "BINARY_OP", "BINARY_SUBSCR", "UNARY_NEGATIVE", "UNARY_INVERT", "COMPARE_OP",
    "BUILD_TUPLE", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "LOAD_ATTR", "LOAD_METHOD", "STORE_FAST", "RETURN_VALUE",
    "RETURN_CONST",
})  # fmt: skip


def _calculates(function: FunctionType) -> bool:
    """Whether a function does nothing but operations, methods and functions of numpy: it asks for no identity.

    Nor does anything that it calls, as `is`, and functions of Python's or the user's, could.
    """
    code = function.__code__
    if any(isinstance(constant, CodeType) for constant in code.co_consts):
        return False
    for step in instructions(code).steps:
        if step.name == "LOAD_GLOBAL":
            if function.__globals__.get(step.value) is not np:
                return False
        elif step.name not in _OPERATIONS and not step.name.startswith("LOAD_FAST"):
            return False
    return True


def _passed(code: CodeType) -> frozenset[str]:
    """What a function closes over and does nothing with but to put it into its result, at its end.

    >>> def labelled(f, label):
    ...     return lambda r: (f(r), label)
    >>> _passed(labelled(abs, 1).__code__)
    frozenset({'label'})
    """
    read = instructions(code)
    *steps, last = read.steps
    if last.name != "RETURN_VALUE" or read.handlers or any(step.target is not None for step in steps):
        return frozenset()
    at = len(steps)
    while at and (steps[at - 1].name in _PUTTING or steps[at - 1].name.startswith("LOAD_FAST")):
        at -= 1
    put = {step.value for step in steps[at:] if step.name == "LOAD_DEREF"}
    return frozenset(put.difference(step.value for step in steps[:at] if isinstance(step.value, str)))


def _as_result(value: Any) -> Any:
    """What it becomes in an element; None if it becomes nothing."""
    kind = type(value)
    if kind is int and not -(2**63) <= value < 2**63:
        return None
    if kind is str:
        try:
            return value.encode()
        except UnicodeEncodeError:
            return None
    return _AS_RESULTS[kind](value) if kind in _AS_RESULTS else value


CONSTANTS = frozenset(
    {bool, int, float, complex, str, bytes, type(None)}
    | {kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "biufcmM"}
)
