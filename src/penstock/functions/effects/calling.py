"""Calling: what a call does and gives. The user's functions are gone into; of a library's it is known, or it is not."""

from __future__ import annotations

import functools
import io
from collections import OrderedDict, defaultdict, deque
from contextlib import suppress
from inspect import (
    CO_ASYNC_GENERATOR,
    CO_COROUTINE,
    CO_GENERATOR,
    CO_ITERABLE_COROUTINE,
)
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, MethodType, WrapperDescriptorType
from typing import Any

import numpy as np

from penstock.functions.effects.interpreter import Frame
from penstock.functions.effects.libraries import (
    SEEDED,
    aliases,
    effect_of,
    known,
    mutated,
    path_of,
)
from penstock.functions.effects.methods import called_method
from penstock.functions.effects.objects import (
    MAPPINGS,
    Watched,
    callable_kind,
    data,
    fields,
    in_class,
    is_cached_function,
    is_dataset,
    is_function,
    is_imported,
    is_jitted,
    unmade,
    watch,
)
from penstock.functions.effects.reading import Items
from penstock.functions.effects.values import (
    OWN,
    Absent,
    Arguments,
    Atom,
    Bound,
    Cell,
    Inner,
    Known,
    Made,
    Part,
    Value,
    Visible,
    bound,
    change,
    check_mode,
    is_a,
    is_plain,
    is_seeded,
    outside,
    spelling,
    unfolded,
    union,
)
from penstock.functions.ownership import is_users
from penstock.functions.uses import defaults

_MOST_STEPS = 20_000  # instructions looked at, in all functions
_MOST_CALLS = 30  # inside one another
_COROUTINE = CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR
_CONTAINERS = (
    *(list, tuple, deque, enumerate, zip, map, filter, dict, set, frozenset, OrderedDict, defaultdict, reversed),
)
_TOO_MUCH = "calls more than can be looked through"
_OUTPUTS = ("out", "dst")
_TYPES = ("builtins.isinstance", "builtins.type", "builtins.getattr", "builtins.hasattr")
_LOOKING = ("builtins.len", *_TYPES)


class Calling(Items):
    """The world around one function while it is read."""

    def __init__(self, watched: list[Watched], *, alike: bool = True) -> None:
        super().__init__(watched, alike=alike)
        self._steps = 0
        self._inside = 0
        self._results: dict[Any, Value] = {}
        self._cells: dict[int, Cell] = {}
        self._chains: set[int] = set()  # objects that are being called

    def forget(self) -> None:
        self._results = {}

    def spend(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise Visible(_TOO_MUCH)

    def call(self, frame: Frame, function: Value, arguments: Arguments) -> Value:
        return union(*(self._call(frame, atom, arguments) for atom in function)) or OWN

    def _call(self, frame: Frame, atom: Atom, arguments: Arguments) -> Value:
        if isinstance(atom, Known):
            return self._call_known(frame, atom, arguments)
        if isinstance(atom, Bound):
            return called_method(self, frame, atom, arguments)
        if isinstance(atom, Inner):
            return self._code(atom.code, frame.names, atom.cells, arguments, atom.defaults, frame.imported)
        if isinstance(atom, Part):
            message = f"calls something in `{atom.spelled}`, which only running shows"
            raise Visible(message)
        if isinstance(atom, Absent):
            return self.library(frame, atom.path, arguments)
        if isinstance(atom, Made) and is_users(atom.kind):
            return called_method(self, frame, Bound(atom, "__call__"), arguments)
        if isinstance(atom, Made) and atom.kind is functools.partial:
            given = union(OWN, data(atom.inner), data(outside(arguments.all())))
            return union(given, *(self._call(frame, one, Arguments(rest=given)) for one in _functions(atom.inner)))
        if isinstance(atom, Made) and (functions := _functions(atom.inner)):  # what was taken out of it
            return union(*(self._call(frame, one, arguments) for one in functions))
        for one in unmade(data(outside(arguments.all()))):
            message = f"hands `{spelling(one)}` to a function that only running shows"
            raise Visible(message)
        self.escaped(frame, arguments)
        return OWN

    def _call_known(self, frame: Frame, atom: Known, arguments: Arguments) -> Value:
        function = atom.object
        kind = type(function)
        if "__penstock_primitive__" in fields(function):
            self.escaped(frame, arguments)  # `map_fn` calls what it is given
            return OWN
        if kind is FunctionType and is_users(function):
            return self.called(frame, function, atom.spelled, arguments)
        if kind is MethodType:
            owner = self.reached(function.__self__, atom.spelled)
            bound = Arguments([owner, *arguments.positional], arguments.named, arguments.rest)
            return self._call(frame, Known(function.__func__, atom.spelled), bound)
        if kind is functools.partial:
            return self._call(frame, *unfolded(function, arguments, atom.spelled))
        if is_cached_function(function):  # the process that imports it has another cache, which changes no result
            return self.called(frame, fields(function)["__wrapped__"], atom.spelled, arguments, imported=True)
        if is_jitted(function):
            return self.called(frame, fields(function)["py_func"], atom.spelled, arguments)
        if issubclass(kind, type):
            return self._made(frame, function, atom, arguments)
        if kind in (MethodDescriptorType, WrapperDescriptorType):  # list.append(seen, x)
            owner, *others = arguments.positional or [arguments.rest or OWN]
            rest = Arguments(others, arguments.named, arguments.rest)
            return union(*(called_method(self, frame, Bound(one, function.__name__), rest) for one in owner))
        if kind is np.ufunc:
            for given in (*arguments.positional[function.nin :], arguments.rest):
                change(given, lambda spelled: f"writes into {spelled}")
        if kind in (FunctionType, BuiltinFunctionType, np.ufunc) or known(kind.__module__) or atom.path:
            if not self.alike and effect_of(kind.__module__) is not None:
                self._chained(frame, atom, arguments)
            return self.library(frame, atom.path or path_of(function), arguments)
        if is_users(kind):
            return called_method(self, frame, Bound(atom, "__call__"), arguments)
        if is_plain(function):
            return union(OWN, *(self.each(frame, one, values=True) for one in arguments.positional))
        message = f"calls `{atom.spelled}`, of class {kind.__module__}.{kind.__qualname__}"
        raise Visible(message)

    def _chained(self, frame: Frame, atom: Known, arguments: Arguments) -> None:
        """What an object of a library was given to call, as a chain of transformations was."""
        if id(atom.object) in self._chains:
            return
        self._chains.add(id(atom.object))
        for value in fields(atom.object).values():
            parts = value.values() if type(value) in MAPPINGS else value if type(value) in (list, tuple) else ()
            for one in (value, *parts):
                if is_function(one) or (callable_kind(one) and known(type(one).__module__) and not is_a(one, type)):
                    self._call(frame, Known(one, f"{type(one).__name__} of {atom.spelled}"), arguments)
        self._chains.discard(id(atom.object))

    # -- the user's functions

    def called(
        self, frame: Frame, function: Any, spelled: str, arguments: Arguments, *, imported: bool = False
    ) -> Value:
        """A function of the user's: what is visible about it is visible about whoever calls it."""
        if type(function) is not FunctionType or not is_users(function):
            return self.call(frame, (Known(function, spelled),), arguments)
        try:
            return self.entered(function, arguments, imported=imported or frame.imported)
        except Visible as why:
            message = f"calls `{spelled}`, which {why}"
            raise Visible(message) from None

    def entered(self, function: FunctionType, arguments: Arguments, *, imported: bool = False) -> Value:
        """What a function of the user's gives. `imported` is one that another process gets with its module."""
        code = function.__code__
        shared = zip(function.__closure__ or (), code.co_freevars, strict=True)
        cells = tuple(self._cell(cell, name) for cell, name in shared)
        self.watched.append(watch(function))
        left_out: dict[str, Value] = {name: (Known(value, name),) for name, value in defaults(function).items()}
        imported = imported or is_imported(function)
        return self._code(code, function.__globals__, cells, arguments, left_out, imported)

    def _cell(self, cell: Any, name: str) -> Cell:
        """The cell of a closure, with what is in it now."""
        found = self._cells.get(id(cell))
        if found is None:
            found = self._cells[id(cell)] = Cell((), own=False)
            with suppress(ValueError):  # nothing is in it yet
                found.value = self.reached(cell.cell_contents, name)
        return found

    def _code(
        self,
        code: CodeType,
        names: dict[str, Any],
        cells: tuple[Cell, ...],
        arguments: Arguments,
        defaults: dict[str, Value] | Value,
        imported: bool,  # noqa: FBT001
    ) -> Value:
        if code.co_flags & _COROUTINE:
            message = "is a coroutine"
            raise Visible(message)
        variables = bound(code, arguments, defaults)
        shared = tuple((cell, cell.value) for cell in cells)
        asked = (code, shared, tuple(variables.items()), imported)
        if asked in self._results:
            return self._results[asked] or OWN
        if self._inside >= _MOST_CALLS:
            raise Visible(_TOO_MUCH)
        self._results[asked] = OWN  # where it calls itself
        self._inside += 1
        try:
            given = Frame(code, names, variables, cells, self, imported=imported).run()
        finally:
            self._inside -= 1
        if code.co_flags & CO_GENERATOR:
            given = (Made(list, outside(given)),)
        self._results[asked] = given
        return given or OWN

    # -- classes

    def _made(self, frame: Frame, kind: type, atom: Known, arguments: Arguments) -> Value:
        """A new object."""
        if not is_users(kind):
            return self.library(frame, path_of(kind), arguments, kind)
        if type(kind).__module__ not in ("builtins", "abc", "enum"):
            message = f"makes a `{atom.spelled}`, whose class is made by a class of its own"
            raise Visible(message)
        if is_plain(next(iter(vars(kind).get("_member_map_", {}).values()), object())):  # an enumeration
            return OWN
        inner = outside(arguments.all())
        made: Value = (Made(kind, inner),)
        if not issubclass(kind, tuple):
            for name in ("__new__", "__init__", "__post_init__"):
                method = in_class(kind, name)
                method = method.__func__ if is_a(method, staticmethod) else method
                if is_a(method, FunctionType):
                    first = (atom,) if name == "__new__" else made
                    given = Arguments() if name == "__post_init__" else arguments
                    bound = Arguments([first, *given.positional], given.named, given.rest)
                    self.called(frame, method, f"{atom.spelled}.{name}", bound)
        return made

    # -- libraries

    def library(self, frame: Frame, path: str, arguments: Arguments, kind: Any = None) -> Value:
        """A function or class of a library."""
        if path in SEEDED and is_seeded(arguments):
            return OWN
        if path in ("io.open", "builtins.open", "gzip.open", "bz2.open", "lzma.open", "wave.open"):
            check_mode(arguments)
            return OWN
        why = effect_of(path, alike=self.alike)
        if why is not None:
            raise Visible(why)
        if path not in _TYPES:
            self.looked_at(frame, arguments)
        place = mutated(path)
        if place is not None:
            for given in (*arguments.positional[place : place + 1], arguments.rest):
                change(given, lambda spelled: f"changes {spelled} (`{path}`)")
        for name in _OUTPUTS:
            change(arguments.named.get(name, ()), lambda spelled: f"writes into {spelled}")
        return self._result(frame, path, arguments, kind)

    def _result(self, frame: Frame, path: str, arguments: Arguments, kind: Any) -> Value:
        # of a data set, penstock's own functions make another one; whoever else is given one goes through it
        reads = not path.startswith("penstock.") and path not in _LOOKING
        gone_through = [one for one in arguments.positional if reads or not any(map(is_dataset, one))]
        given = union((), *(self.each(frame, one, values=False) for one in gone_through), arguments.rest)
        if kind is defaultdict and arguments.positional:  # what its items are made by
            made = self.call(frame, arguments.positional[0], Arguments())
            others = union(OWN, *(self.each(frame, one, values=True) for one in arguments.positional[1:]))
            return (Made(kind, outside(union(made, others, *arguments.named.values()))),)
        if kind in _CONTAINERS or path == "builtins.iter":
            self.escaped(frame, arguments, given)
            values = [self.each(frame, one, values=True) for one in arguments.positional]
            return (Made(kind or list, outside(union(given, *values, *arguments.named.values()))),)
        if kind is functools.partial:
            return (Made(kind, outside(union(given, arguments.all()))),)
        if kind is type and len(arguments.positional) == 1:
            return union(*(_class_of(atom) for atom in arguments.positional[0]))
        if path == "builtins.getattr" and len(arguments.positional) > 1:
            return self._getattr(frame, *arguments.positional[:2])
        self.escaped(frame, arguments, given)
        if kind in (io.BytesIO, io.StringIO):
            return (Made(kind),)
        if path == "builtins.sorted":
            return (Made(list, outside(given)),)
        if aliases(path):
            return union(OWN, data(union(outside(arguments.all()), outside(given))))
        return OWN

    def _getattr(self, frame: Frame, owner: Value, name: Value) -> Value:
        if len(name) == 1 and isinstance(name[0], Known) and is_a(name[0].object, str):
            return self.attribute(frame, owner, name[0].object)
        spelled = next((spelling(atom) for atom in outside(owner)), None)
        return OWN if spelled is None else (Part(spelled),)

    def escaped(self, frame: Frame, arguments: Arguments, given: Value = OWN) -> Value:
        results: list[Value] = [()]
        elements = Arguments(rest=union(OWN, unmade(data(union(given, outside(arguments.all()))))))
        for value in (*arguments.positional, *arguments.named.values(), given):
            for atom in value:
                if isinstance(atom, Inner) or (isinstance(atom, Known) and is_function(atom.object)):
                    results.append(self._call(frame, atom, elements))
                elif isinstance(atom, Bound) and _is_method(atom):
                    results.append(called_method(self, frame, atom, elements))
        return union(*results)


def _is_callable(atom: Atom) -> bool:
    """Whether something known can be called."""
    return isinstance(atom, Bound) or (isinstance(atom, Known) and is_function(atom.object))


def _functions(value: Value) -> list[Atom]:
    """What of a value can be called."""
    return [one for one in value if isinstance(one, Inner) or _is_callable(one)]


def _class_of(atom: Atom) -> Value:
    if isinstance(atom, Known):
        return (Known(type(atom.object), f"type({atom.spelled})"),)
    return (Known(atom.kind, atom.kind.__name__),) if isinstance(atom, Made) else OWN


def _is_method(atom: Bound) -> bool:
    """Whether an attribute that is handed over is a method."""
    owner = atom.owner
    if not isinstance(owner, (Known, Made)):
        return False
    kind = owner.kind if isinstance(owner, Made) else type(owner.object)
    found = in_class(kind, atom.name)
    return callable_kind(found) or is_a(found, staticmethod, classmethod)
