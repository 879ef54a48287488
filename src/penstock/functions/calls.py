"""`CallLookups`: the effects of a call in a function's code, and the origins of its result.

The code of user functions is walked through. Functions of libraries and methods of values are looked up in tables
(`libraries`, `methods`). An outer object may only be passed to code that is known not to change it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np

from penstock.functions.code import words
from penstock.functions.generators import generator_of
from penstock.functions.libraries import (
    Kind,
    dataset_class,
    is_fresh,
    is_written,
    known_place,
    path_of,
    planning,
    unknown,
)
from penstock.functions.lookups import Lookups, is_numbers
from penstock.functions.methods import LOOKING, METHODS, STORING, TAKING, VERBS, WRITERS
from penstock.functions.objects import (
    MAPPINGS,
    fields,
    in_class,
    in_object,
    is_a,
    is_cached_function,
    is_dataset_class,
    is_function,
    is_imported,
    is_plain,
    plans,
    users_method,
    written_in,
)
from penstock.functions.origins import NOTHING, OWN, Arguments, KnownObject, Origins, union
from penstock.functions.ownership import is_users
from penstock.functions.tokenisers import tokeniser_of
from penstock.functions.uses import Use

_OPENING = words("io.open builtins.open gzip.open bz2.open lzma.open wave.open numpy.load")
_SEEDED = words(
    """random.Random numpy.random.default_rng numpy.random.RandomState numpy.random.Generator numpy.random.PCG64
    numpy.random.Philox numpy.random.SeedSequence numpy.random.MT19937 numpy.random.SFC64"""
)
_ASKING = words("builtins.len builtins.isinstance builtins.hasattr builtins.callable builtins.issubclass")
_COPYING = words(  # the results of these hold the items of their arguments
    """builtins.list builtins.tuple builtins.dict builtins.dict.fromkeys builtins.set builtins.frozenset builtins.sorted
    builtins.enumerate builtins.zip builtins.map builtins.filter builtins.reversed builtins.iter builtins.sum
    builtins.max builtins.min"""
)
_CALLING = words(  # functions that call their argument and do not store it
    """builtins.map builtins.filter builtins.sorted builtins.max builtins.min functools.reduce itertools.accumulate
    itertools.groupby itertools.starmap itertools.takewhile itertools.dropwhile itertools.filterfalse
    numpy.apply_along_axis numpy.fromfunction numpy.piecewise"""
)
_COPYING_LIBRARIES = ("itertools.", "collections.")
_ITERATED = {"builtins.sum": 1, "builtins.dict.fromkeys": 1, "itertools.repeat": 0}  # number of iterated arguments


class CallLookups(Lookups):
    """The calls of the function that the walk is in."""

    creates_objects = False

    def _call(self, function: Origins, arguments: Arguments, node: ast.Call | None = None) -> Origins:
        if function.held:
            self.refuse(f"calls an object in `{function.held}` that is known only at run time")
        if function.other:
            self.refuse(f"passes `{arguments.all.outside or 'a value'}` to a function that is known only at run time")
        return union(*(self._call_one(one, arguments, node) for one in function.objects))

    def _call_one(self, one: KnownObject, arguments: Arguments, node: ast.Call | None) -> Origins:
        function, kind = one.object, type(one.object)
        if isinstance(function, (ast.FunctionDef, ast.Lambda)):
            for name, value in bound(function.args, arguments, {}).items():
                self._grow(self._given, (function, name), value)
            return self._returned.get(function, NOTHING)
        if generator_of(Use(one.spelled, function)):
            self._change(arguments.all, f"changes {{}} (`{one.spelled}`)")
            return OWN
        if "__penstock_primitive__" in fields(function):
            self.note((Kind.OUTSIDE,), f"calls `{one.spelled}`")
            data = arguments.all.data  # its result can hold arrays of its arguments, but is none of their containers
            return union(self._items(data), self._items(data, values=True), self._handed(arguments)).part
        if kind is FunctionType and is_users(function):
            return self._users(function, one.spelled, arguments)
        if kind is FunctionType and _is_of_datasets(function):  # ps.Dataset.range under another name
            owner = Origins((KnownObject(dataset_class(), one.spelled),))
            return self._planned(owner, dataset_class(), function.__name__, arguments)
        if kind is MethodType:
            owner = Origins((KnownObject(function.__self__, one.spelled.rpartition(".")[0] or one.spelled),))
            if is_dataset_class(_class_of(function.__self__)):
                return self._planned(owner, _class_of(function.__self__), function.__name__, arguments)
            if not is_users(function.__func__) and not is_a(function.__self__, type):
                return self._of_value(owner, function.__name__, arguments, node)
            every = Arguments([owner, *arguments.positional], arguments.named, arguments.rest)
            imported = is_imported(_class_of(function.__self__))
            return self._users(function.__func__, one.spelled, every, imported=imported)
        if kind is functools.partial:
            first = [self._reached(value, f"{one.spelled}'s argument") for value in function.args]
            named = {name: self._reached(value, f"{one.spelled}'s {name}") for name, value in function.keywords.items()}
            every = Arguments([*first, *arguments.positional], {**named, **arguments.named}, arguments.rest)
            return self._call(self._reached(function.func, one.spelled), every, node)
        if is_cached_function(function):  # each process has a cache, which changes no result
            self._users(fields(function)["__wrapped__"], one.spelled, arguments, imported=True)
            return Origins((), f"{one.spelled}(…)")
        if is_a(function, type) and is_users(function) and not is_dataset_class(function):
            return self._created(function, one.spelled, arguments)
        if kind in (MethodDescriptorType, WrapperDescriptorType):  # list.append(seen, x)
            owner = arguments.positional[0] if arguments.positional else arguments.rest or OWN
            rest = Arguments(arguments.positional[1:], arguments.named, arguments.rest)
            return self._of_value(owner, function.__name__, rest, node)
        if kind is BuiltinFunctionType and is_a(function.__self__, type):  # a class method: a new object each time
            return self._library(f"{known_place(function.__self__)}.{function.__name__}", function, arguments, node)
        if kind is BuiltinFunctionType and not is_a(function.__self__, ModuleType, type(None)):
            owner = Origins((KnownObject(function.__self__, one.spelled.rpartition(".")[0] or one.spelled),))
            return self._of_value(owner, function.__name__, arguments, node)
        method = users_method(kind, "__call__") or users_method(kind, "forward")
        if method is not None:
            every = Arguments([Origins((one,)), *arguments.positional], arguments.named, arguments.rest)
            return self._users(method, one.spelled, every, imported=is_imported(kind))
        path = known_place(function)
        if path is not None:
            return self._library(path, function, arguments, node)
        if kind in (FunctionType, BuiltinFunctionType, np.ufunc, MethodType) or is_a(function, type):
            self.refuse(unknown(path_of(function)))
        tokeniser = tokeniser_of(function)
        if not is_plain(function) and (tokeniser is None or "__call__" not in tokeniser.methods):
            self._chained(one, arguments)
        return union(arguments.all.data, self._handed(arguments)).part

    def _chained(self, one: KnownObject, arguments: Arguments) -> None:
        """Call an object of a library with the functions that it holds, as a chain of transformations does."""
        self._tables(path_of(type(one.object)))
        for value in fields(one.object).values():
            parts = value.values() if type(value) in MAPPINGS else value if type(value) in (list, tuple) else ()
            for each in (value, *parts):
                if is_function(each) or (callable(each) and each is not one.object and not is_a(each, type)):
                    held = KnownObject(each, f"{type(each).__name__} of {one.spelled}")
                    self._call(Origins((held,)), arguments)

    def _created(self, kind: type, spelled: str, arguments: Arguments) -> Origins:
        """Return a new object of a class of the user: a data class, a named tuple or an exception without methods."""
        names = vars(kind)
        written = written_in(kind)
        if "_member_map_" in names and not written:
            return OWN  # a member of an enumeration
        fields_of = names.get("__dataclass_fields__", {})
        known = bool(fields_of) or "_fields" in names or issubclass(kind, BaseException)
        if written or not known or type(kind) is not type:
            self.refuse(f"creates a `{spelled}`, which is more than a data class")
        self.creates_objects = True
        self._fields |= {*fields_of, *names.get("_fields", ())}
        values = [self._reached(value, spelled) for value in names.get("_field_defaults", {}).values()]
        for each in fields_of.values():
            if each.default is not dataclasses.MISSING:
                values.append(self._reached(each.default, spelled))
            if each.default_factory is not dataclasses.MISSING:
                values.append(self._call(self._reached(each.default_factory, spelled), Arguments()))
        return Origins((), union(self._escape(arguments.all), *values).outside, own=True)

    # -- functions of libraries

    def _library(self, path: str, function: Any, arguments: Arguments, node: ast.Call | None) -> Origins:
        """Return the result of a function or class of a library."""
        given = arguments.all
        seeded = arguments.positional or arguments.named
        if path in _SEEDED and seeded and not any(one.object is None for one in given.objects):
            return OWN
        self._tables(path)
        if path == "builtins.slice":
            self._creates_slices()
        if path in _OPENING:
            self._check_mode(node, arguments, 1)
        if path in _ASKING:
            return union(OWN, self._operated(given))
        given_as: list[tuple[int | str, Origins]] = [*enumerate(arguments.positional), *arguments.named.items()]
        for argument, value in given_as:
            if is_written(path, function, argument):
                self._change(value, f"changes {{}} (`{path}`)")
                self._keep(given)
        every = self._escaped(given) if is_fresh(path) or path in _CALLING else self._escape(given)
        if arguments.rest is not None and arguments.rest.outside and path.startswith(("numpy.", "cv2.", "scipy.")):
            self.refuse(f"passes `{arguments.rest.outside}` to `{path}`")
        copies = path in _COPYING or path.startswith(_COPYING_LIBRARIES)
        result = self._handed(arguments, whole=not copies)
        if is_dataset_class(_class_of(getattr(function, "__self__", function))):
            return Origins((), every.data.outside, own=True, dataset=True)
        objects = [one.object for one in every.objects]
        fresh = is_fresh(path) and all(is_numbers(one) or not is_a(one, np.ndarray) for one in objects)
        if type(function) is np.ufunc or fresh:
            return result.part
        if copies and (len(arguments.positional) == 1 or path not in ("builtins.max", "builtins.min")):
            iterated = arguments.positional[: _ITERATED.get(path)]
            others = [*arguments.positional[len(iterated) :], *arguments.named.values()]
            copied = self._escaped(union(*iterated, arguments.rest or NOTHING)).data
            kept = self._escaped(union(*others)).data
            return union(self._items(copied), self._items(copied, values=True), kept, result).part
        if path.startswith("numpy.") and not any(is_a(one, np.ndarray, bytearray) for one in objects):
            return union(self._items(every.data), self._items(every.data, values=True), result).part
        return union(every.data if path == "functools.reduce" else every, result).part

    def _check_mode(self, node: ast.Call | None, arguments: Arguments, place: int) -> None:
        """Refuse to open a file, except for reading. `place` is the position of the mode."""
        if node is None or arguments.rest is not None:
            self.refuse("opens a file in a mode that is known only at run time")
            return
        modes = [each.value for each in node.keywords if each.arg in ("mode", "mmap_mode")]
        for mode in (*node.args[place : place + 1], *modes):
            text = mode.value if isinstance(mode, ast.Constant) else "w"
            if text is not None and (not isinstance(text, str) or set(text) & set("wax+")):
                self.refuse("opens a file for writing")

    def _handed(self, arguments: Arguments, *, whole: bool = True) -> Origins:
        """Return the possible results of code that gets these arguments and calls the functions among them.

        The arguments themselves are not included. If `whole` is False, the functions are only called with items of
        the other arguments.
        """
        every = arguments.all
        data = self._escaped(every).data
        items = union(self._items(data), self._items(data, values=True))
        functions = Origins(tuple(one for one in every.objects if _is_called(one.object)))
        if not functions.objects:
            return union(OWN, self._operated(data))
        given = self._call(functions, Arguments(rest=union(items.part, data.part if whole else NOTHING)))
        return union(given.part, self._operated(data))

    # -- methods

    def _method(self, owner: Origins, name: str, arguments: Arguments, node: ast.Call) -> Origins:
        """Return the result of a method call on user objects, modules, classes, data sets or other values."""
        found = []
        if owner.other:
            found.append(self._of_value(owner._replace(objects=()), name, arguments, node))
        for one in owner.objects:
            value, kind = one.object, type(one.object)
            here = Origins((one,), dataset=owner.dataset)
            method = in_class(kind, name)
            special = is_a(method, MethodDescriptorType, WrapperDescriptorType, BuiltinFunctionType)
            if value is None:
                continue  # a method of None would raise
            if isinstance(value, ast.AST) or (name == "__call__" and is_function(value)):
                found.append(self._call(here, arguments, node))
            elif kind is np.ufunc:
                if name not in ("reduce", "accumulate", "outer", "reduceat", "at"):
                    self.refuse(f"calls {name} of `{one.spelled}`")
                self._change(arguments.all if name == "at" or len(arguments.positional) > 3 else OWN, "writes into {}")
                self._change(arguments.named.get("out", OWN), "writes into {}")
                found.append(OWN)
            elif is_dataset_class(kind) or (is_a(value, type) and is_dataset_class(value)):
                found.append(self._planned(here, value if is_a(value, type) else kind, name, arguments))
            elif is_a(value, ModuleType, type) or is_users(kind) > special or is_function(in_object(value, name)):
                found.append(self._call(self._attribute(here, name), arguments, node))
            else:
                found.append(self._of_value(here, name, arguments, node))
        return union(*found)

    def _planned(self, owner: Origins, kind: type, name: str, arguments: Arguments) -> Origins:
        """Return the data set that a step creates, unless the method reads one."""
        if not plans(kind, name) or (name == "apply" and owner.outside):
            self.refuse(f"reads the data set `{owner.outside or 'that it creates'}` (.{name})")
        data = tuple(one for one in owner.objects if not is_a(one.object, type))
        self._handed(arguments)
        held = union(Origins(data, owner.held), arguments.all.data).outside
        return Origins((), held, own=True, dataset=True)

    def _of_value(self, owner: Origins, name: str, arguments: Arguments, node: ast.Call | None) -> Origins:
        """Return the result of a method of a builtin value, or of an object of a library."""
        if name in ("__setattr__", "__delattr__"):
            self._change(owner, "assigns to an attribute of {}")
        if owner.dataset or (not owner.objects and name in planning(dataset_class()) - METHODS):
            self.note((Kind.OUTSIDE,), f"creates a data set (.{name})")
            return self._planned(owner, dataset_class(), name, arguments)
        if name == "replace" and len(arguments.positional) < 2 and not arguments.named:
            self.refuse("calls .replace with one argument, which renames a file")
        self._operated(owner)
        for one in owner.objects:
            self._check_method(one, name)
        if owner.held and (name in WRITERS or name not in METHODS):
            self.refuse(f"{VERBS.get(name, f'calls {name} of')} an object in `{owner.held}`")
        if not owner.objects and name in LOOKING:
            self.note((Kind.OUTSIDE,), f"calls .{name}")
            if name == "open":
                self._check_mode(node, arguments, 0)
        elif not owner.objects and name not in METHODS:
            self.refuse(f"calls .{name}, whose effects are not known")
        if name in STORING:
            every = arguments.all
            self._keep(self._items(every, values=True) if name in ("extend", "update", "extendleft") else every)
            return owner.part
        first = union(*arguments.positional[:1]).data
        more = union(*arguments.positional[1:], *arguments.named.values(), arguments.rest or NOTHING).data
        if (more.outside and name != "get") or (first.outside and name not in TAKING):
            self.refuse(f"passes `{more.outside or first.outside}` to .{name}")
        handed = self._handed(arguments)
        results = [self._result_of(one, name) for one in owner.objects]
        self._escape(more)
        if name == "get":
            return union(*results, Origins((), owner.held, own=owner.other), NOTHING if more == NOTHING else more.part)
        return union(handed, *results, Origins((), owner.held, own=True))


def _is_called(value: Any) -> bool:
    """Return True if code that gets a value may call it."""
    return isinstance(value, ast.AST) or is_function(value) or (is_a(value, type) and is_users(value))


def _is_of_datasets(function: FunctionType) -> bool:
    """Return True for a static method of Dataset."""
    return getattr(in_class(dataset_class(), function.__name__), "__func__", None) is function


def _class_of(value: Any) -> Any:
    return value if is_a(value, type) else type(value)


def bound(given: ast.arguments, arguments: Arguments, left_out: Mapping[str, Origins]) -> dict[str, Origins]:
    """Return the parameters of a function with their values. `left_out` are their defaults."""
    places = [*given.posonlyargs, *given.args]
    found: dict[str, Origins] = {}
    for place, parameter in enumerate([*places, *given.kwonlyargs]):
        name = parameter.arg
        if place < min(len(places), len(arguments.positional)):
            found[name] = arguments.positional[place]
        elif name in arguments.named:
            found[name] = arguments.named[name]
        else:
            found[name] = union(arguments.rest or NOTHING, left_out.get(name, NOTHING))
    for starred in filter(None, (given.vararg, given.kwarg)):
        more = (*arguments.positional[len(places) :], *arguments.named.values(), arguments.rest or NOTHING)
        found[starred.arg] = union(*more).part
    return found
