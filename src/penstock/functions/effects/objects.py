"""What is known of an object without asking it anything: its kind, its attributes, its content.

Also what another process gets by importing a module anew, and whether what was read is still as it was.
"""

from __future__ import annotations

import functools
import io
import sys
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from types import (
    BuiltinFunctionType,
    FunctionType,
    MappingProxyType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, TypeGuard

import numpy as np

from penstock.functions.code import codes, steps, words
from penstock.functions.effects.libraries import DATASET, effect_of, planning
from penstock.functions.effects.values import OWN, Inner, Known, Made, Part, Value, is_a, is_plain, union
from penstock.functions.ownership import MAIN, is_users
from penstock.functions.uses import closure

ABSENT = object()
MAPPINGS = (dict, OrderedDict, defaultdict, Counter, MappingProxyType)
CONTAINERS = (*MAPPINGS, list, tuple, set, frozenset, deque, bytearray)
_RANDOM = words("random _random numpy.random numpy.random._generator numpy.random.mtrand numpy.random.bit_generator")
_GENERATORS = words("Random Generator RandomState BitGenerator")  # named, since importing numpy.random takes its time
_MOST_LOOKED_AT = 1 << 16  # items of a container; of a longer one it is taken that the others are alike
_MOST_KEPT_APART = 16
_OF_ONE_PROCESS = words(  # modules whose objects belong to one process
    """threading _thread queue multiprocessing concurrent asyncio contextvars socket ssl sqlite3 subprocess selectors
    logging sched tempfile mmap"""
)


def why_alone(value: Any, spelled: str, *, alike: bool = True) -> str | None:
    """Why an object must stay in its process, if that shows in its kind; `alike` as in `effect_of`."""
    kind = type(value)
    root = kind.__module__.partition(".")[0]
    if root in _OF_ONE_PROCESS:
        return f"uses `{spelled}`, of class {kind.__module__}.{kind.__qualname__}"
    if any(base.__module__ in _RANDOM and base.__name__ in _GENERATORS for base in type.mro(kind)):
        return f"draws random numbers from `{spelled}`"
    if issubclass(kind, io.IOBase):
        return f"uses the open file `{spelled}`"
    if in_class(kind, "__next__") is not ABSENT:
        return f"draws from `{spelled}`, of class {kind.__qualname__}"
    why = effect_of(value.__name__ if kind is ModuleType else kind.__module__, alike=alike)
    if why is not None and "accelerator" in why:
        return why
    return None


def in_class(kind: type, name: str) -> Any:
    """What a class has by a name, without binding it."""
    for place in type.mro(kind) if type(kind) is type else kind.__mro__:
        found = vars(place).get(name, ABSENT)
        if found is not ABSENT:
            return found
    return ABSENT


def in_object(value: Any, name: str) -> Any:
    """What an object itself has by a name."""
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
    """The attributes that an object keeps in a dict, which is asked for in a way that no class can change."""
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


def in_module(module: ModuleType, name: str) -> Any:
    held = vars(module)
    if name in held:
        return held[name]
    return sys.modules.get(f"{module.__name__}.{name}", ABSENT)


def content(known: Known, *, values: bool = False) -> Value:
    """What comes of going through an object, or, of a mapping, its `values`."""
    value = known.object
    kind = type(value)
    inside = Part(known.spelled)
    if kind in MAPPINGS:
        return _items(value.values() if values else value.keys(), len(value), known.spelled)
    if kind in CONTAINERS:
        return _items(value, len(value), known.spelled)
    if issubclass(kind, np.ndarray):
        return OWN if kind is np.ndarray and value.ndim == 1 and not value.dtype.hasobject else (*OWN, inside)
    if issubclass(kind, tuple):
        return _items(tuple.__iter__(value), tuple.__len__(value), known.spelled)
    return OWN if is_plain(value) else (*OWN, inside)


def _items(items: Iterable[Any], count: int, spelled: str) -> Value:
    looked_at = list(islice(items, _MOST_LOOKED_AT))
    if all(map(is_plain, looked_at)):
        return OWN
    if count > _MOST_KEPT_APART:
        return (*OWN, Part(spelled))
    return union(*((Known(item, f"{spelled}[…]"),) for item in looked_at))


def is_dataset(atom: Any) -> TypeGuard[Known | Made]:
    """Whether something known is a data set of penstock's."""
    kind = atom.kind if isinstance(atom, Made) else type(atom.object) if isinstance(atom, Known) else object
    return is_dataset_class(kind)


def is_dataset_class(kind: type) -> bool:
    return _dataset_class(kind) is not None


def plans(kind: type, name: str) -> bool:
    """Whether a method of data sets reads nothing, and makes one that reads later."""
    found = _dataset_class(kind)
    return found is not None and name in planning(found)


def _dataset_class(kind: type) -> type | None:
    """penstock's Dataset, which a class is derived from."""
    return next((place for place in type.mro(kind) if (place.__module__, place.__name__) == DATASET), None)


def users_method(kind: type, name: str) -> FunctionType | None:
    """A method that the user has written, for an operator or a protocol."""
    if not is_users(kind):
        return None
    found = in_class(kind, name)
    return found if is_a(found, FunctionType) else None


def callable_kind(value: Any) -> bool:
    """Whether a value can be called."""
    return in_class(type(value), "__call__") is not ABSENT


def is_cached_function(value: Any) -> bool:
    return type(value) is functools._lru_cache_wrapper


def is_jitted(value: Any) -> bool:
    return type(value).__module__.startswith("numba.") and "py_func" in fields(value)


def is_function(value: Any) -> bool:
    kind = type(value)
    if kind in (FunctionType, MethodType, BuiltinFunctionType, MethodDescriptorType, functools.partial, np.ufunc):
        return True
    return is_cached_function(value) or (is_users(kind) and in_class(kind, "__call__") is not ABSENT)


def unmade(value: Value) -> Value:
    """Without the functions that the code makes: whoever is handed one is taken to call it, and not to change it."""
    return tuple(atom for atom in value if not isinstance(atom, Inner))


def data(value: Value) -> Value:
    """Without functions, classes and modules, which nobody is about to change."""
    return tuple(
        atom
        for atom in value
        if not (isinstance(atom, Known) and (is_a(atom.object, type, ModuleType) or is_function(atom.object)))
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """What stood in an object's attribute, or, without a name, in all places that a function reads."""

    owner: weakref.ref[Any]
    name: str | None
    stood: tuple[Any, ...]

    def unchanged(self) -> bool:
        """Whether the same objects stand there."""
        owner = self.owner()
        if owner is None:
            return False
        if self.name is None:
            return _places(owner) == self.stood
        return (id(fields(owner).get(self.name)),) == self.stood


def watch(function: FunctionType) -> Watched:
    """A function's code, defaults, closure, and the globals that it names."""
    return Watched(weakref.ref(function), None, _places(function))


def _places(function: FunctionType) -> tuple[Any, ...]:
    own = (function.__code__, function.__defaults__, function.__kwdefaults__)
    named = (function.__globals__.get(name) for code in codes(function.__code__) for name in code.co_names)
    return (*map(id, (*own, *named)), *((name, id(value)) for name, value in closure(function)))


def is_imported(thing: Any) -> bool:
    """Whether a function or class is sent by its name: one that its module has under that name."""
    name, module = thing.__qualname__, sys.modules.get(thing.__module__)
    if module is None or thing.__module__ in MAIN or "<locals>" in name:
        return False
    outermost, *inner = name.split(".")
    found = vars(module).get(outermost)
    for part in inner:
        found = vars(found).get(part) if isinstance(found, type) else None
    return found is thing


def assigning(names: dict[str, Any], name: str) -> str | None:
    """The function of a module, given by its names, that assigns to a global of that name."""
    for value in list(names.values()):
        if type(value) is FunctionType and value.__globals__ is names:
            for code in codes(value.__code__):
                if name in code.co_names and _assigns(code, name):
                    return value.__name__
    return None


def _assigns(code: Any, name: str) -> bool:
    return any(step.name == "STORE_GLOBAL" and step.value == name for step in steps(code))
