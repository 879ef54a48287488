"""The places that a function reads outside of itself, with what stood there."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter, is_, itemgetter
from types import CellType, FunctionType, MappingProxyType, MethodType
from typing import Any

import numpy as np

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

    def places(self, *, changed: bool = False) -> set[Any]:
        """Return the places that are read, or those that hold other values now; a list, dict or array is one place."""
        whole = {id(place) for place, name, _ in self.reads if name in (SIZE, CONTENT)}
        reads = [read for read in self.reads if not (changed and Captured((read,)).unchanged())]
        return {(id(place), None if id(place) in whole else name) for place, name, _ in reads}

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


def _cells(function: FunctionType) -> tuple[CellType, ...]:
    return function.__closure__ or ()


CONSTANTS = frozenset(
    {bool, int, float, complex, str, bytes, type(None)}
    | {kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "biufcmM"}
)
