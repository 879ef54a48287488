"""What a function reads from outside of itself, whether that still is what it was, and which functions are alike in it.

The function of an interleave makes a new one for each of its inputs, `.map(lambda r: parse(r, label))`. All have one
code, and share what they read: globals, objects, the cells of what encloses them. What is found of the first is true of
the others. Whether a function is pure follows from the types of numbers and text, what it is traced to from the values.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter, is_, itemgetter
from types import BuiltinFunctionType, CellType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from penstock.forked import new_lock

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
    if first.__defaults__ is not None or second.__defaults__ is not None:
        return False
    cells, others = first.__closure__, second.__closure__
    return cells is others or all(map(is_, cells, others))


_MOST = 128  # that are kept; what they read stays in memory as long
_MOST_FOUND = 16  # of each, for different values and kinds of elements
_LONGEST = 1 << 12  # of a text, to keep it
_CONSTANTS = frozenset(
    {bool, int, float, complex, str, bytes, type(None)}
    | {kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "biufcmM"}
)
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")


class Alike:
    """Pure functions of one code, and whether they draw.

    `found` is what was found of them, by their values and whatever else it takes.
    """

    def __init__(self, function: FunctionType, captured: Captured, *, draws: bool) -> None:
        self.draws = draws
        own = {id(place) for place in (function, *(function.__closure__ or ()))}
        self._shared = Captured(tuple(read for read in captured.reads if id(read[0]) not in own))
        others = [value for value in _given(function) if type(value) not in _CONSTANTS]
        self._held = function.__code__, function.__globals__, others  # so that no others get their addresses
        self.found: dict[Hashable, Any] = {}

    def holds(self) -> bool:
        """Whether what all of them read is as it was."""
        return self._shared.unchanged()

    def captured_by(self, function: Any) -> Captured:
        """What one of them reads."""
        own = [(function, part, getattr(function, part)) for part in _PARTS]
        cells = [(cell, None, cell.cell_contents) for cell in function.__closure__ or ()]
        return Captured((*own, *cells, *self._shared.reads))

    def keep(self, key: Hashable, found: Any) -> None:
        with _LOCK:
            if len(self.found) >= _MOST_FOUND:
                del self.found[next(iter(self.found))]
            self.found[key] = found


_KNOWN: OrderedDict[Hashable, Alike] = OrderedDict()
_LOCK = new_lock()


def known_alike(function: Any) -> Alike | None:
    """What is known of functions like this one: that it is pure, to begin with."""
    key = alike_key(function)
    if key is None:
        return None
    with _LOCK:
        found = _KNOWN.get(key)
        if found is not None:
            _KNOWN.move_to_end(key)
    return found if found is not None and found.holds() else None


def keep_alike(function: Any, key: Hashable | None, captured: Captured, *, draws: bool) -> None:
    """Keep that a function is pure, which has read this and nothing else; `key` is what it was before it was read."""
    if key is None or key != alike_key(function):
        return
    made = Alike(function, captured, draws=draws)
    with _LOCK:
        _KNOWN[key] = made
        if len(_KNOWN) > _MOST:
            _KNOWN.popitem(last=False)


def alike_key(function: Any) -> Hashable | None:
    """What functions have in common that are alike; None of one that stands for itself."""
    if type(function) is not FunctionType or vars(function):
        return None
    try:
        given = _given(function)
    except ValueError:  # a cell is empty
        return None
    if not all(type(value) in _CONSTANTS or _is_there_anyway(value) for value in given):
        return None  # it would stay in memory for being kept here
    kinds = [type(value) if type(value) in _CONSTANTS else id(value) for value in given]
    return (id(function.__code__), id(function.__globals__), len(function.__defaults__ or ()), *kinds)


def _is_there_anyway(value: Any) -> bool:
    """Whether something is a part of the program, and holds nothing that is not."""
    plain = isinstance(value, FunctionType) and value.__closure__ is None and value.__defaults__ is None
    return plain or isinstance(value, (ModuleType, BuiltinFunctionType, type))


def values_of(function: Any) -> Hashable | None:
    """The numbers and texts that it is given by its cells and defaults; None where they are too long to keep."""
    if type(function) is not FunctionType:
        return None
    try:
        given = _given(function)
    except ValueError:
        return None
    if any(type(value) in (str, bytes) and len(value) > _LONGEST for value in given):
        return None
    return tuple(map(_bits, given))


def _given(function: FunctionType) -> list[Any]:
    """What it closes over, and its defaults, with the names of those that go by name."""
    given = [cell.cell_contents for cell in function.__closure__ or ()]
    given += function.__defaults__ or ()
    for name, value in (function.__kwdefaults__ or {}).items():
        given += (name, value)
    return given


def _bits(value: Any) -> Any:
    """What is equal for constants that are the same in all their bits, and for no others."""
    kind = type(value)
    if kind not in _CONSTANTS:
        return None  # it is the same object, which the key says
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    return kind, repr(value) if kind in (float, complex) else value
