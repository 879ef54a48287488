"""Facts about an object that are read without running its code: its kind, its attributes, its content.

The module also checks if another process imports the same object, and if places still have their old values.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import os
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from types import (
    BuiltinFunctionType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
)
from typing import Any

import numpy as np

from penstock.functions.code import codes, steps, words
from penstock.functions.libraries import dataset_class, planning
from penstock.functions.ownership import MAIN, is_frozen, is_users
from penstock.functions.uses import closure

ABSENT = object()
MAPPINGS = (dict, OrderedDict, defaultdict, Counter, MappingProxyType)
CONTAINERS = (*MAPPINGS, list, tuple, set, frozenset, deque, bytearray)
_RANDOM = words("random _random numpy.random numpy.random._generator numpy.random.mtrand numpy.random.bit_generator")
_GENERATORS = words("Random Generator RandomState BitGenerator")  # by name, because importing numpy.random is slow
_MOST_LOOKED_AT = 1 << 16  # items of a container that are examined; the others are assumed to be like them
_OF_ONE_PROCESS = words(  # modules whose objects belong to one process
    """threading _thread queue multiprocessing concurrent asyncio contextvars socket ssl sqlite3 subprocess selectors
    logging sched tempfile mmap"""
)


def why_alone(value: Any, spelled: str) -> str | None:
    """Return why an object must stay in its process, judged by its class, or None."""
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    if root in _OF_ONE_PROCESS:
        return f"uses `{spelled}`, of class {kind.__module__}.{kind.__qualname__}"
    if any(base.__module__ in _RANDOM and base.__name__ in _GENERATORS for base in type.mro(kind)):
        return f"draws random numbers from `{spelled}`"
    if issubclass(kind, io.IOBase):
        return f"uses the open file `{spelled}`"
    if kind is not type and in_class(kind, "__next__") is not ABSENT:
        return f"takes items from the iterator `{spelled}`, of class {kind.__qualname__}"
    return None


def in_class(kind: type, name: str) -> Any:
    """Return the attribute of a class, unbound; ABSENT if there is none."""
    for place in type.mro(kind) if type(kind) is type else kind.__mro__:
        found = vars(place).get(name, ABSENT)
        if found is not ABSENT:
            return found
    return ABSENT


def in_object(value: Any, name: str) -> Any:
    """Return the attribute that an object itself stores; ABSENT if there is none."""
    held = fields(value)
    if name in held:
        return held[name]
    slot = in_class(type(value), name)
    if is_a(slot, MemberDescriptorType):
        try:
            return slot.__get__(value)
        except AttributeError:
            return ABSENT
    return ABSENT


def fields(value: Any) -> dict[str, Any]:
    """Return the dict of an object's attributes, read in a way that its class cannot change."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


def contents(value: Any, *, values: bool = False) -> Iterable[Any] | None:
    """Return the items of a builtin container, or the keys or `values` of a mapping; None for other objects."""
    kind = type(value)
    if kind in MAPPINGS:
        return value.values() if values else value.keys()
    if kind in CONTAINERS or issubclass(kind, tuple):
        return tuple.__iter__(value) if issubclass(kind, tuple) else iter(value)
    return None


def is_plain_inside(value: Any) -> bool:
    """Return True for a container with immutable items only, and for an array of numbers."""
    if type(value) is np.ndarray:
        return not value.dtype.hasobject
    items = contents(value, values=True)
    return items is not None and all(map(is_plain, islice(items, _MOST_LOOKED_AT)))


def is_data(value: Any) -> bool:
    """Return True for plain values, arrays, classes and data sets, and for builtin containers of such values."""
    waiting, seen = [value], 0
    while waiting and seen < _MOST_LOOKED_AT:
        held, seen = waiting.pop(), seen + 1
        kind = type(held)
        if kind in CONTAINERS or kind is tuple:
            waiting += contents(held, values=True) or ()
        elif not (
            is_plain(held) or kind in (np.ndarray, type(os.environ)) or is_a(held, type) or is_dataset_class(kind)
        ):
            return False
    return True


def is_dataset_class(kind: type) -> bool:
    """Return True for penstock's Dataset and classes derived from it."""
    return dataset_class() in type.mro(kind) and dataset_class() is not type


def plans(kind: type, name: str) -> bool:
    """Return True for a method of data sets that creates another one and reads nothing."""
    return is_dataset_class(kind) and name in planning(dataset_class())


def users_method(kind: type, name: str) -> FunctionType | None:
    """Return the method of a class for an operator or a protocol if the user wrote it, else None."""
    if not is_users(kind):
        return None
    found = in_class(kind, name)
    return found if is_a(found, FunctionType) else None


def written_in(kind: type) -> dict[str, FunctionType]:
    """Return the functions in a class by name, without those that `dataclass` or `namedtuple` created."""
    generated = dataclasses.is_dataclass(kind) or issubclass(kind, tuple)
    found: dict[str, FunctionType] = {}
    for name in {name for place in kind.__mro__ if is_users(place) for name in vars(place)}:
        method = in_class(kind, name)
        if is_a(method, property):
            method = method.fget
        elif name[0] == "_" and is_a(method, staticmethod, classmethod):  # such as `__new__`
            method = method.__func__
        by_hand = is_a(method, FunctionType) and is_users(method)
        if by_hand and not (generated and method.__code__.co_filename.startswith("<string>")):
            found[name] = method
    return found


def is_cached_function(value: Any) -> bool:
    return type(value) is functools._lru_cache_wrapper


def is_function(value: Any) -> bool:
    kind = type(value)
    if kind in (FunctionType, MethodType, BuiltinFunctionType, MethodDescriptorType, functools.partial, np.ufunc):
        return True
    return is_cached_function(value) or (is_users(kind) and in_class(kind, "__call__") is not ABSENT)


_PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)
_ALSO_PLAIN = words(
    """re.Pattern _struct.Struct datetime.datetime datetime.date datetime.timedelta datetime.timezone decimal.Decimal
    fractions.Fraction uuid.UUID pathlib.PosixPath pathlib.PurePosixPath pathlib.WindowsPath
    pathlib._local.PosixPath pathlib._local.WindowsPath operator.itemgetter operator.attrgetter"""
)


def is_a(value: Any, *kinds: type) -> bool:
    """Return True if the type of a value is one of these. `isinstance` may run code of the value's `__class__`."""
    return issubclass(type(value), kinds)


def is_plain(value: Any) -> bool:
    """Return True for an immutable value that holds only immutable values."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is tuple or kind is frozenset:
        return all(map(is_plain, value))
    if issubclass(kind, type):
        return value.__module__ in ("builtins", "numpy")
    known = issubclass(kind, (np.generic, np.dtype, Enum)) or f"{kind.__module__}.{kind.__name__}" in _ALSO_PLAIN
    return known or is_frozen(kind)


@dataclass(frozen=True, slots=True)
class WatchedPlaces:
    """The value of an object's attribute; without a name, the values of all places that a function reads."""

    owner: weakref.ref[Any]
    name: str | None
    stood: tuple[Any, ...]

    def unchanged(self) -> bool:
        """Return True if the same objects are there."""
        owner = self.owner()
        if owner is None:
            return False
        if self.name is None:
            return _places(owner) == self.stood
        return (id(fields(owner).get(self.name)),) == self.stood


def watch(function: FunctionType) -> WatchedPlaces:
    """Return a `WatchedPlaces` for a function's code, defaults, closure and the globals that it names."""
    return WatchedPlaces(weakref.ref(function), None, _places(function))


def _places(function: FunctionType) -> tuple[Any, ...]:
    own = (function.__code__, function.__defaults__, function.__kwdefaults__)
    named = (function.__globals__.get(name) for code in codes(function.__code__) for name in code.co_names)
    return (*map(id, (*own, *named)), *((name, id(value)) for name, value in closure(function)))


def is_imported(thing: Any) -> bool:
    """Return True if a function or class is pickled by name, because its module has it under that name."""
    name, module = thing.__qualname__, sys.modules.get(thing.__module__)
    if module is None or thing.__module__ in MAIN or "<locals>" in name:
        return False
    outermost, *inner = name.split(".")
    found = vars(module).get(outermost)
    for part in inner:
        found = vars(found).get(part) if isinstance(found, type) else None
    return found is thing


def assigning(names: dict[str, Any], name: str) -> str | None:
    """Return the name of a function that assigns to a global, or None. `names` are the globals of the module."""
    for value in list(names.values()):
        if type(value) is FunctionType and value.__globals__ is names:
            for code in codes(value.__code__):
                if name in code.co_names and _assigns(code, name):
                    return value.__name__
    return None


def _assigns(code: Any, name: str) -> bool:
    return any(step.name == "STORE_GLOBAL" and step.value == name for step in steps(code))
