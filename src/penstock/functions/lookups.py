"""`Lookups`: finds the outer objects that names, attributes and items in a function's code refer to.

No code of the user runs during a lookup. Effects that a lookup finds are noted by their kind.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
import weakref
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from importlib import import_module
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, ModuleType, WrapperDescriptorType
from typing import Any, TypeVar

import numpy as np

from penstock.functions.code import names as names_in
from penstock.functions.code import words
from penstock.functions.generators import generator_of
from penstock.functions.libraries import ROOTS, Kind, path_of, rule, unknown
from penstock.functions.methods import KNOWN_METHODS, LOOKING, METHODS, READERS, STORING, VERBS, VIEWS, WRITERS
from penstock.functions.objects import (
    ABSENT,
    MAPPINGS,
    WatchedPlaces,
    assigning,
    contents,
    fields,
    in_class,
    in_object,
    is_a,
    is_dataset_class,
    is_imported,
    is_plain,
    is_plain_inside,
    users_method,
    why_alone,
    written_in,
)
from penstock.functions.origins import NOTHING, OWN, Arguments, CallFrame, KnownObject, Origins, SideEffect, union
from penstock.functions.ownership import MAIN, STANDARD, is_users, is_users_path
from penstock.functions.tokenisers import tokeniser_of
from penstock.functions.uses import Use

K = TypeVar("K")

_MOST_ITEMS = 16  # items of a container that are examined one by one
_WRITING = words(  # special methods that no operator, loop or conversion calls
    """__new__ __init__ __post_init__ __setattr__ __delattr__ __setitem__ __delitem__ __call__ __enter__ __exit__
    __del__ __set__ __delete__ __init_subclass__ __set_name__ __setstate__ __replace__ __iadd__ __isub__ __imul__
    __ior__ __iand__ __ixor__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __imatmul__"""
)


class Lookups(ABC):
    """Finds outer objects in the current function of the walk, and notes effects."""

    def __init__(self) -> None:
        self.notes: dict[Kind, tuple[str, int | None]] = {}  # the first reason of each kind, and its line
        self.watched: dict[Any, WatchedPlaces] = {}  # the places that were read
        self._line: int | None = None
        self._calls: list[str] = []  # the names of the functions that the walk is in
        self._fields: set[str] = set()  # fields of the data classes of which the function creates objects
        self._given: dict[tuple[ast.AST, str], Origins] = {}  # values of parameters of inner functions, in all calls
        self._returned: dict[ast.AST, Origins] = {}  # results of inner functions, in all calls
        self._frame: CallFrame | None = None
        self._slices = False  # the function creates slice objects
        self._changed = False  # this walk added a possible value to a variable or a result

    @abstractmethod
    def _users(self, function: Any, spelled: str, arguments: Arguments, *, imported: bool = False) -> Origins:
        """Return what a function of the user returns."""

    # -- notes

    def note(self, kinds: Sequence[Kind], why: str) -> None:
        """Keep the first reason of each kind. The walk ends at the first side effect."""
        if Kind.EFFECT in kinds:
            raise SideEffect(why)
        self._add(kinds, why)

    def refuse(self, why: str) -> None:
        """Note a side effect, which ends the walk."""
        self.note((Kind.EFFECT,), why)

    def _add(self, kinds: Sequence[Kind], why: str) -> None:
        for name in reversed(self._calls):
            why = f"calls `{name}`, which {why}"
        for kind in kinds:
            self.notes.setdefault(kind, (f"it {why}", self._line))

    def _tables(self, path: str) -> None:
        """Note the entry of a library function in the tables."""
        found = rule(path)
        if found is None:
            self.refuse(unknown(path))
        elif found[0]:
            self.note(*found)

    def _watch(self, owner: Any, name: str, value: Any) -> None:
        with suppress(TypeError):  # an object without weak references is assumed not to change
            self.watched[id(owner), name] = WatchedPlaces(weakref.ref(owner), name, (id(value),))

    def _change(self, value: Origins, does: str) -> None:
        """Note that an object is changed, unless it belongs to the call."""
        if value.outside:
            self.refuse(does.format(f"`{value.outside}`"))

    def _keep(self, value: Origins) -> None:
        """Note that an object of the call stores an outer object."""
        held = self._escape(value).outside
        if held:
            self.refuse(f"stores `{held}` in an object that may be changed")

    def _escape(self, value: Origins) -> Origins:
        """Return the result of `_escaped` for a value whose inner functions can be called later with any arguments."""
        for node in (one.object for one in value.objects):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                for parameter in parameters(node.args):
                    self._grow(self._given, (node, parameter), Origins((), "an argument"))
        return self._escaped(value)

    def _escaped(self, value: Origins) -> Origins:
        """Return the objects that code can reach from a value, including the results of its inner functions."""
        nodes = [one.object for one in value.objects if isinstance(one.object, ast.AST)]
        given = union(*(self._returned.get(node, NOTHING) for node in nodes))
        objects = tuple(one for one in value.objects if not isinstance(one.object, ast.AST))
        return Origins(objects, value.held or given.outside, value.own or bool(nodes), value.dataset)

    def _grow(self, table: MutableMapping[K, Origins], key: K, value: Origins) -> None:
        """Note that a variable or a result can also be this value."""
        grown = union(table.get(key, NOTHING), value)
        self._changed |= table.get(key) != grown
        table[key] = grown

    def _creates_slices(self) -> None:
        self._changed |= not self._slices
        self._slices = True

    # -- names

    @property
    def _here(self) -> CallFrame:
        assert self._frame is not None
        return self._frame

    def _name(self, name: str) -> Origins:
        frame = self._here
        local = frame.locals.get(name, NOTHING)
        if name in frame.locals and name not in names_in(frame.function.__code__) and name not in frame.cells:
            return local
        if name in frame.cells:
            return union(local, self._reached(frame.cells[name], name))
        names = frame.function.__globals__
        scope = names.get("__builtins__", sys.modules["builtins"])
        found = names.get(name, (scope if isinstance(scope, dict) else vars(scope)).get(name, ABSENT))
        if found is not ABSENT:
            if name in names and frame.imported:
                self._imported_again(names, name, found)
            return union(local, self._reached(found, name))
        if name not in frame.locals:
            self.refuse(f"uses `{name}`, which is not defined yet")
        return local

    def _imported_again(self, names: dict[str, Any], name: str, value: Any) -> None:
        """Note a global of a module that another process imports: there the global has its first value again."""
        if is_a(value, FunctionType, type, ModuleType):
            return
        module = names.get("__name__")
        if not is_plain(value):
            why = f"reads `{name}`: another process imports {module} again, and has no later changes"
            self.note((Kind.PROCESS,), why)
        elif by := assigning(names, name):
            self.note(
                (Kind.PROCESS,), f"reads `{name}`, to which `{by}` assigns: another process imports {module} again"
            )

    def _reached(self, value: Any, spelled: str) -> Origins:
        """Return an outer object. Refuse it if it must stay in its process."""
        if not is_a(value, ModuleType) and generator_of(Use(spelled, value)):
            self.note((Kind.SEEDED,), f"draws random numbers (`{spelled}`)")
            return Origins((KnownObject(value, spelled),))
        why = why_alone(value, spelled)
        if why is not None:
            self.refuse(why)
        found = rule(value.__name__ if is_a(value, ModuleType) else type(value).__module__)
        if found is not None and Kind.ACCELERATOR in found[0]:
            self.note(*found)
        if value is os.environ:
            self.note((Kind.PROCESS, Kind.OUTSIDE), "reads settings of its process (`os.environ`)")
        owner = value.__self__ if type(value) in (BuiltinFunctionType, MethodType) else None
        if owner is not None and not is_a(owner, ModuleType, type):
            self._reached(owner, spelled if "." in spelled else f"the {type(owner).__name__} of {spelled}")
        return Origins((KnownObject(value, spelled),), dataset=is_dataset_class(type(value)))

    def _module(self, name: str) -> Origins:
        if name not in sys.modules:
            root = name.partition(".")[0]
            if is_users_path(name) or root not in ROOTS or (root not in STANDARD and root not in sys.modules):
                self.refuse(f"imports `{name}`, which is not loaded yet")
            self.note((Kind.OUTSIDE,), f"imports `{name}`")
            import_module(name)
        return Origins((KnownObject(sys.modules[name], name),))

    # -- attributes

    def _attribute(self, owner: Origins, name: str) -> Origins:
        found = [self._attribute_of(one, name) for one in owner.objects]
        if owner.other:
            if name in LOOKING:
                self.note((Kind.OUTSIDE,), f"uses .{name}")
            elif (name not in METHODS or name in (*STORING, "replace")) and name not in self._fields:
                self.refuse(f"uses .{name}, whose effects are not known")
            elif owner.held and name in WRITERS:
                self.refuse(f"passes on the method .{name} of an object in `{owner.held}`")
            found.append(Origins((), owner.held, own=True))
        return union(*found)

    def _attribute_of(self, owner: KnownObject, name: str) -> Origins:
        value, kind, spelled = owner.object, type(owner.object), f"{owner.spelled}.{name}"
        if kind is ModuleType:
            return self._attribute_of_module(value, name, spelled)
        if is_a(value, type):
            return self._attribute_of_class(value, name, spelled)
        if name[:2] == "__" and name != "__call__":
            return Origins((), spelled)
        found = in_class(kind, name)
        if found is not ABSENT and users_method(type(found), "__get__") is not None:
            self.refuse(f"looks up `{spelled}` with code of its class")
        if is_a(found, property) and is_users(kind):
            return self._users(found.fget, spelled, Arguments([Origins((owner,))]), imported=is_imported(kind))
        held = in_object(value, name)
        if held is not ABSENT:
            if name in fields(value):
                self._watch(value, name, held)
            return self._reached(held, spelled)
        if is_users(kind):
            if any(users_method(kind, special) is not None for special in ("__getattribute__", "__getattr__")):
                self.refuse(f"looks up attributes of `{owner.spelled}` with code of its class")
            if is_a(found, functools.cached_property):
                self.refuse(f"computes `{spelled}` once and stores it")
            if is_a(found, FunctionType, classmethod):
                return Origins((KnownObject(found.__get__(value, kind), spelled),))
            if found is not ABSENT and not is_a(found, MethodDescriptorType):
                return self._reached(found.__func__ if is_a(found, staticmethod) else found, spelled)
        if callable(found) and name != "replace":  # a method
            self._check_method(owner, name)
            return self._result_of(owner, name)
        if kind is np.ndarray and not value.dtype.hasobject:
            return Origins((owner,)) if name in VIEWS else OWN
        return OWN if is_plain(value) else Origins((), spelled)

    def _attribute_of_module(self, module: ModuleType, name: str, spelled: str) -> Origins:
        path = f"{module.__name__}.{name}"
        found = vars(module).get(name, sys.modules.get(path, ABSENT))
        if found is ABSENT and module.__name__.partition(".")[0] == "penstock":
            found = getattr(module, name, ABSENT)  # getattr loads the module
        if found is ABSENT:
            return self._module(path)
        self._watch(module, name, found)
        if is_users_path(path) and module.__name__ not in MAIN:
            self._imported_again(vars(module), name, found)
        elif not is_users_path(path) and not is_a(found, ModuleType) and not callable(found) and not is_plain(found):
            self._tables(path)  # an object of a library
        return self._reached(found, spelled)

    def _attribute_of_class(self, kind: type, name: str, spelled: str) -> Origins:
        found = in_class(kind, name)
        if found is ABSENT:
            self.refuse(f"uses `{spelled}`, which does not exist")
        if is_users(kind):
            if is_a(found, staticmethod, classmethod):
                found = found.__get__(None, kind)
            return self._reached(found, spelled)
        if is_dataset_class(kind) or is_a(found, MethodDescriptorType, WrapperDescriptorType):
            return Origins((KnownObject(found.__get__(None, kind), spelled),))
        if not is_plain(found):
            self._tables(f"{path_of(kind)}.{name}")
        return Origins((KnownObject(getattr(kind, name), spelled),))

    # -- items

    def _subscript(self, node: ast.Subscript, owner: Origins, key: Origins) -> Origins:
        found = [self._operated(union(owner, key)), Origins((), owner.held, own=owner.other)]
        for one in owner.objects:
            value, alone = one.object, Origins((one,))
            if is_a(value, defaultdict) or users_method(type(value), "__missing__"):
                self.refuse(f"may add a key to `{one.spelled}`, a {type(value).__name__}")
            if isinstance(node.slice, ast.Constant) and (type(value) in MAPPINGS or is_a(value, list, tuple)):
                with suppress(LookupError, TypeError):
                    found.append(self._reached(value[node.slice.value], f"{one.spelled}[{node.slice.value!r}]"))
            elif is_numbers(value):
                found.append(alone)  # a view has the origin of its array
            elif type(value).__module__.startswith("numpy.lib"):  # np.mgrid, np.r_, np.s_
                self._creates_slices()
                found.append(key.part)
            elif isinstance(node.slice, ast.Slice):
                found.append(alone.part)
            else:
                found.append(self._items(alone, values=True))
                if self._slices or any(is_a(each.object, slice) for each in key.objects):
                    found.append(alone.part)
        return union(*found)

    def _items(self, value: Origins, *, values: bool = False) -> Origins:
        """Return the items that a loop over a value yields, or with `values` the values of a mapping."""
        if value.dataset and value.outside:
            self.refuse(f"reads the data set `{value.outside}`")
        found = [self._operated(value), Origins((), value.held, own=value.other)]
        for one in value.objects:
            held, items = one.object, contents(one.object, values=values)
            if is_plain(held) or (is_plain_inside(held) and not (is_a(held, np.ndarray) and held.ndim > 1)):
                found.append(OWN)
            elif is_numbers(held):
                found.append(Origins((one,)))
            elif items is not None and len(held) <= _MOST_ITEMS:
                found += (self._reached(item, f"{one.spelled}[…]") for item in items)
            elif not is_users(type(held)) or is_a(held, dict, list, tuple, set, frozenset):
                found.append(Origins((one,)).part)
            elif ("__getitem__" if values else "__iter__") not in written_in(type(held)):
                found.append(Origins((), one.spelled))
        return union(*found)

    # -- code of the user's classes, and methods of outer objects

    def _operated(self, value: Origins) -> Origins:
        """Return the results of the operators and properties of the user's classes: any of them may be called."""
        found = []
        for one in value.objects:
            kind = type(one.object)
            special = is_users(kind) and not is_a(one.object, ModuleType, type, FunctionType)
            for name, method in sorted(written_in(kind).items()) if special else ():
                if is_a(in_class(kind, name), property) or (name[:2] == "__" == name[-2:] and name not in _WRITING):
                    given = Arguments([Origins((one,))], rest=Origins((), "a value"))
                    found.append(self._users(method, f"{one.spelled}.{name}", given))
        return union(*found)

    def _check_method(self, one: KnownObject, name: str) -> None:
        """Refuse a method of an outer object unless the method is known to only read it."""
        value, kind, spelled = one.object, type(one.object), one.spelled
        changes = f"{VERBS[name]} `{spelled}`" if name in VERBS else f"may change `{spelled}` (.{name})"
        if kind is type(os.environ):
            if name not in READERS[dict]:
                self.refuse(changes)
        elif kind in READERS or kind is np.ndarray or is_users(kind):
            if name not in READERS.get(kind, METHODS - WRITERS):
                self.refuse(changes)
        elif is_plain(value):
            if name in LOOKING:
                self.note((Kind.OUTSIDE,), f"calls .{name}")
            elif name not in METHODS:
                self.refuse(f"calls {name} of `{spelled}`")
        elif (tokeniser := tokeniser_of(value)) is None or name not in tokeniser.methods:
            self._tables(path_of(kind))
            if name not in KNOWN_METHODS:
                self.refuse(f"calls {name} of `{spelled}`, of class {kind.__module__}.{kind.__qualname__}")

    def _result_of(self, one: KnownObject, name: str) -> Origins:
        """Return the results of a method of an outer object. The arguments of the method are not included."""
        value, alone = one.object, Origins((one,))
        if is_plain(value) or (kind := type(value)) is type(os.environ):
            return OWN
        if is_numbers(value):
            return alone if name in VIEWS else OWN
        if kind not in READERS:
            return Origins((), one.spelled) if tokeniser_of(value) is None else OWN
        inside = union(self._items(alone), self._items(alone, values=True))
        return inside if name == "get" else inside.part


def is_numbers(value: Any) -> bool:
    """Return True for an array without objects."""
    return is_a(value, np.ndarray) and not value.dtype.hasobject


def parameters(given: ast.arguments) -> list[str]:
    """Return the names of the parameters of a function."""
    every = (*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg)
    return [one.arg for one in every if one is not None]
