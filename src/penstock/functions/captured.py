"""The places that a function reads, with the values that they had: globals, cells, dicts, lists, attributes."""

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
OWN = object()  # stands for the class of an object and the dict of its attributes


_WATCHED = 512  # most places that are compared before each call
_DIGESTED = 1 << 12  # most bytes of captured arrays that are digested before each call


@dataclass(frozen=True, slots=True)
class Captured:
    """The places that a function reads (globals, cells, dicts, lists, attributes), with the values found there.

    A graph of the function is valid while the values stay the same.
    """

    reads: tuple[tuple[Any, Any, Any], ...]
    _looks: list[tuple[_Look, ...]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def quickly_watched(self) -> bool:
        """True if comparing the places is fast enough to do it before each call for an element."""
        digested = sum(place.nbytes for place, name, _ in self.reads if name is CONTENT)
        return digested <= _DIGESTED and len(self.reads) <= _WATCHED

    def unchanged(self) -> bool:
        if not self._looks:
            self._looks.append(_looks_at(self.reads))
        try:
            for look in self._looks[0]:  # this loop runs before every Block
                if not look():
                    return False
        except (KeyError, IndexError, AttributeError, ValueError):  # the place is gone, or a cell is empty
            return False
        return True

    def places(self, *, changed: bool = False) -> set[Any]:
        """Return all places, or the `changed` places only. A list, dict or array is one place."""
        whole = {id(place) for place, name, _ in self.reads if name in (SIZE, CONTENT)}
        reads = [read for read in self.reads if not (changed and Captured((read,)).unchanged())]
        return {(id(place), None if id(place) in whole else name) for place, name, _ in reads}

    def without(self, function: Any) -> Captured:
        """Return the places with a weak reference to a function or object, so that it can be freed."""
        weak = weakref.ref(function)
        return Captured(tuple((weak if read[0] is function else read[0], *read[1:]) for read in self.reads))


_Look = Callable[[], bool]


def _looks_at(reads: Iterable[tuple[Any, Any, Any]]) -> tuple[_Look, ...]:
    """Return checks that compare the places. Each check compares many places, because it runs before each call."""
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
    """Return True if `place[name]`, or a plain attribute lookup, returns the value."""
    if name is OWN:
        return False
    if isinstance(place, (FunctionType, CellType, weakref.ref)):
        return True
    return value is not MISSING and name not in (SIZE, CONTENT) and type(place) in (dict, list, MappingProxyType)


def _getter(place: Any, names: list[Any]) -> Callable[[Any], Any]:
    if isinstance(place, CellType):
        return attrgetter("cell_contents", "cell_contents")
    two = names if len(names) > 1 else names * 2  # attrgetter returns a tuple only for two or more names
    if isinstance(place, weakref.ref):
        of_function = attrgetter(*two)
        return lambda weak: of_function(weak())
    return attrgetter(*two) if isinstance(place, FunctionType) else itemgetter(*two)


@dataclass(frozen=True, slots=True)
class _Holds:
    """A check of several names of one place at once."""

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
    """Return a digest of an array. A graph contains results that the function computed from its captured arrays."""
    if array.dtype.hasobject:  # byte strings, or objects that have replaced them
        inside: Any = tuple(item if type(item) in (bytes, str) else id(item) for item in array.flat)
    else:
        inside = array.tobytes()
    return hash((array.shape, array.dtype.str, inside))


def are_same(first: Any, second: Any) -> bool:
    """Return True if two functions with the same code always do the same, because they capture the same variables."""
    if first is second or type(first) is MethodType:
        return True
    if type(first) is not FunctionType or vars(first) or vars(second):
        return False
    if any(one.__defaults__ or one.__kwdefaults__ for one in (first, second)):
        return False
    return all(map(is_, first.__closure__ or (), second.__closure__ or ()))


CONSTANTS = frozenset(
    {bool, int, float, complex, str, bytes, type(None)}
    | {kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "biufcmM"}
)
