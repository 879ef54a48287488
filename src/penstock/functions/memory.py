"""The memory of facts about functions. Functions that are alike share one entry.

`flat_map(lambda i: numbers.map(make(i)))` creates a function for each inner data set. All of these functions have one
code object, and differ in the values that they capture. `own_of` reads these values. Two functions are alike if they
have the same code and globals, and capture numbers and strings of the same types and other values of equal content.
Some answers follow from the types alone, such as "is the function pure?". Other answers also need the numbers and
strings, such as "what is the graph of the function?".

An entry is valid while the places that the functions share, such as globals, hold the same objects.
"""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from penstock.forked import new_lock
from penstock.functions.captured import CONSTANTS, CONTENT, MISSING, OWN, SIZE, Captured, content
from penstock.functions.code import codes
from penstock.functions.ownership import is_frozen, is_plain_object

R = TypeVar("R")

_MOST = 1024  # answers; an answer keeps the objects that its functions share in memory
_MOST_WALKED = 512  # captured values of a function that are compared
_LARGEST = 1 << 12  # bytes of a captured string or array
_THERE_ANYWAY = (ModuleType, BuiltinFunctionType, type, np.ufunc, np.dtype)
_PARTS = ("__code__", "__defaults__", "__kwdefaults__")


class _LikeNoOther(Exception):
    """The function captures itself or too many values, so that it is never compared with others."""


@dataclass(slots=True)
class Own:
    """The code of a function, and all values that the function captures."""

    kinds: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)  # numbers, strings and the content of arrays
    reads: list[tuple[Any, Any, Any]] = field(default_factory=list)  # in the form of `Captured.reads`
    held: list[Any] = field(default_factory=list)  # objects whose addresses are in `kinds`
    opaque: list[weakref.ref[Any]] = field(default_factory=list)  # likewise, with unknown content
    walked: list[Any] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)  # positions in `walked` by the address of the object

    def function(self, function: FunctionType) -> None:
        code = function.__code__
        self.held += (code, function.__globals__)
        self.kinds += (id(code), id(function.__globals__))
        self.reads += [(function, part, getattr(function, part)) for part in _PARTS]
        self.value(function.__defaults__)
        self.value(function.__kwdefaults__)
        self._attributes(vars(function))
        for cell in function.__closure__ or ():
            self._visit(cell)
            self.reads.append((cell, None, cell.cell_contents))
            self.value(cell.cell_contents)

    def value(self, value: Any) -> None:
        kind = type(value)
        if kind in CONSTANTS:
            self.kinds.append(kind)
            self.values.append(_bits(value))
            return
        before = self.places.get(id(value))
        if before == 0 or len(self.places) >= _MOST_WALKED:
            raise _LikeNoOther
        if before is None:
            self.content_of(value)
        else:
            self.kinds.append(before)  # one list under two names differs from two lists

    def content_of(self, value: Any) -> None:
        kind = type(value)
        self._visit(value)
        self.kinds.append(id(kind))
        if kind in (tuple, list, dict) and len(value) > _MOST_WALKED:
            raise _LikeNoOther
        if kind is FunctionType:
            self.function(value)
        elif kind is MethodType:
            self._all((value.__func__, value.__self__))
        elif kind is functools.partial:
            self._all((value.func, value.args, value.keywords))
        elif kind is tuple:
            self._all(value)
        elif kind is list:
            self.reads += ((value, SIZE, len(value)), *((value, at, item) for at, item in enumerate(value)))
            self._all(value)
        elif kind is dict and all(type(key) in CONSTANTS for key in value):
            self.reads += ((value, SIZE, len(value)), *((value, key, item) for key, item in value.items()))
            self._all(value)
            self._all(value.values())
        elif kind is np.ndarray and not value.dtype.hasobject and value.nbytes <= _LARGEST:
            self.reads.append((value, CONTENT, content(value)))
            self.kinds += (value.dtype, value.shape, value.strides, value.flags.writeable)
            self.values.append(value.tobytes())
        elif not is_frozen(kind) and is_plain_object(value):  # is_plain_object takes ten times as long as is_frozen
            self.held.append(kind)
            self.reads.append((value, OWN, (kind, vars(value))))
            self._attributes(vars(value))
        elif kind is BuiltinFunctionType and not isinstance(value.__self__, ModuleType):
            raise _LikeNoOther  # such as a method of a list
        elif issubclass(kind, _THERE_ANYWAY) or is_frozen(kind):
            self.held.append(value)
            self.kinds.append(id(value))
        else:
            self.opaque.append(weakref.ref(value))
            self.kinds.append(id(value))

    def _visit(self, value: Any) -> None:
        self.places[id(value)] = len(self.walked)
        self.walked.append(value)

    def _attributes(self, named: dict[str, Any]) -> None:
        self.kinds += named
        self.value(named)

    def _all(self, values: Collection[Any]) -> None:
        kinds = frozenset(map(type, values))
        if kinds <= CONSTANTS:  # the number is not part of the kinds: such a list may grow with each call
            self.kinds.append(kinds)
            self.values.append(tuple(map(_bits, values)))
            return
        self.kinds.append(len(values))
        for item in values:
            self.value(item)

    def shared(self, watched: Iterable[Any], *, with_content: bool) -> list[Any]:
        """Return the places that an answer was read from, without the places that only this function has.

        An answer can contain captured values (`with_content`). Their places are included, because the values may change
        after the function is freed.
        """
        kept = (list, dict, np.ndarray) if with_content else ()
        found: list[Any] = []
        for watch in watched:
            if isinstance(watch, Captured):
                reads = (read for read in watch.reads if id(read[0]) not in self.places or type(read[0]) in kept)
                found.append(Captured(tuple(reads)))
            elif id(owner := watch.owner()) not in self.places:
                found.append(watch)
            elif watch.name is None:
                named = {name for code in codes(owner.__code__) for name in code.co_names}
                held = owner.__globals__
                found.append(Captured(tuple((held, name, held.get(name, MISSING)) for name in named)))
        return found

    def used(self, seen: Captured) -> set[tuple[int, Any]]:
        """Return the positions in `walked` of the places that an answer was read from."""
        return {(self.places[id(place)], name) for place, name, _ in seen.reads if id(place) in self.places}

    def seen(self, used: set[tuple[int, Any]]) -> Captured:
        """Return the places of this function at the positions that an answer about another function `used`."""
        whole = {visit for visit, name in used if name is SIZE}
        reads = {(self.places[id(read[0])], read[1]): read for read in self.reads}
        others = [(self.walked[at], name) for at, name in used - reads.keys() if at not in whole]
        more = ((place, name, content(place) if name is CONTENT else MISSING) for place, name in others)
        return Captured((*(read for at, read in reads.items() if at in used or at[0] in whole), *more))


def own_of(function: Any) -> Own | None:
    """Return the code and captured values of a function, or None if they cannot be compared."""
    found = Own()
    try:
        found.content_of(function)
    except (_LikeNoOther, RecursionError, TypeError, ValueError):  # no weak reference, an empty cell
        return None
    return found


def _bits(value: Any) -> Any:
    """Return a key of a constant. Two constants have equal keys only if they have equal bits."""
    kind = type(value)
    if kind in (str, bytes) and len(value) > _LARGEST:
        raise _LikeNoOther
    if isinstance(value, np.generic):
        return kind, value.dtype.str, value.tobytes()
    return kind, repr(value) if kind in (float, complex) else value


_Entry = tuple[Own, Any, list[Any], set[tuple[int, Any]]]
_ENTRIES: OrderedDict[Hashable, _Entry] = OrderedDict()  # the least recently used first
_LOCK = new_lock()


def recalled(
    function: Any, question: Hashable, read: Callable[[], tuple[R, list[Any] | None]], *, by_value: bool
) -> tuple[R, Captured]:
    """Return the answer to a question about a function, and which places it was read from.

    `read` returns the answer and a list of watches over these places. With None instead of the list, the answer is not
    remembered. Functions that are alike share answers. The numbers and strings that they capture may differ,
    unless `by_value` is True.
    """
    notes = notes_of(function)
    known = None if notes is None else notes.get(question)
    if known is not None and all(watch.unchanged() for watch in known[1]):
        return known[0], Captured(())
    own = own_of(function)
    key = None if own is None else (question, tuple(own.kinds), tuple(own.values) if by_value else None)
    with _LOCK:
        entry = _ENTRIES.pop(key, None)
        if entry is not None and all(weak() is not None for weak in entry[0].opaque):
            _ENTRIES[key] = entry
    if own is not None and entry is not None and all(watch.unchanged() for watch in entry[2]):
        return entry[1], _joined([own.seen(entry[3]), *entry[2]])
    answer, watched = read()
    if watched is None:
        return answer, Captured(())
    found = answer, _joined(watched)
    weakly = not found[1].reads  # reads would keep the function or its captured values in memory
    if notes is not None and weakly:
        notes[question] = answer, watched
    again = own_of(function)
    if own is None or again is None or (by_value and own.opaque and not weakly):
        return found
    if (again.kinds, again.values) == (own.kinds, own.values):  # the function did not change meanwhile
        kept = Own(held=own.held, opaque=own.opaque)  # so that no other object gets their addresses
        with _LOCK:
            _ENTRIES[key] = kept, answer, own.shared(watched, with_content=by_value), own.used(found[1])
            if len(_ENTRIES) > _MOST:
                _ENTRIES.popitem(last=False)
    return found


def _joined(watched: Iterable[Any]) -> Captured:
    return Captured(tuple(read for watch in watched if isinstance(watch, Captured) for read in watch.reads))


_NOTES: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


def notes_of(function: Any) -> dict[Any, Any] | None:
    """Return the dict of facts about a callable, or None if it may equal others or has no weak references."""
    equals: Any = type(function).__eq__
    if equals is not object.__eq__ and type(function) is not MethodType:
        return None
    try:
        with _LOCK:
            return _NOTES.setdefault(function, {})
    except TypeError:
        return None
