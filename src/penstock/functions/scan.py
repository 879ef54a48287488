"""One walk over the syntax tree of a function: what it does beside computing its result. Nothing is called.

Each expression has an `Origin`: the objects from outside that it can be, and one that it can be part of, or hold.
What is left is the call's own: its arguments, and what it has created. Only that may be changed. A local variable is
everything that is assigned to it anywhere; inner functions and comprehensions share the variables of the function.

What the walk does not know counts as a side effect: a statement, a library function, a method. An object of the call
never gets hold of an object from outside later: to store one is refused as well.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import os
import sys
import weakref
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

import numpy as np

from penstock.functions.code import names as names_in
from penstock.functions.code import words
from penstock.functions.definition import definition
from penstock.functions.generators import generator_of
from penstock.functions.libraries import (
    ROOTS,
    Kind,
    dataset_class,
    is_fresh,
    is_written,
    known_place,
    path_of,
    planning,
    rule,
    unknown,
)
from penstock.functions.methods import KNOWN_METHODS, LOOKING, METHODS, READERS, STORING, TAKING, VERBS, VIEWS, WRITERS
from penstock.functions.objects import (
    ABSENT,
    MAPPINGS,
    Watched,
    assigning,
    contents,
    fields,
    in_class,
    in_object,
    is_a,
    is_cached_function,
    is_data,
    is_dataset_class,
    is_function,
    is_imported,
    is_plain,
    is_plain_inside,
    plans,
    users_method,
    watch,
    why_alone,
)
from penstock.functions.ownership import MAIN, STANDARD, is_users, is_users_path
from penstock.functions.tokenisers import tokeniser_of
from penstock.functions.uses import Use, closure, defaults

_MOST_STEPS = 20_000  # expressions looked at, in all functions
_MOST_CALLS = 30  # inside one another
_MOST_ROUNDS = 8  # until it is settled what local variables can be
_MOST_OBJECTS = 16  # that a value can be
_COROUTINE = CO_COROUTINE | CO_ITERABLE_COROUTINE | CO_ASYNC_GENERATOR
_OPENING = ("io.open", "builtins.open", "gzip.open", "bz2.open", "lzma.open", "wave.open")
_SEEDED = words(
    """random.Random numpy.random.default_rng numpy.random.RandomState numpy.random.Generator numpy.random.PCG64
    numpy.random.Philox numpy.random.SeedSequence numpy.random.MT19937 numpy.random.SFC64"""
)
_WRITING = words(  # special methods that no operator, loop or conversion calls
    """__new__ __init__ __post_init__ __setattr__ __delattr__ __setitem__ __delitem__ __call__ __enter__ __exit__
    __del__ __set__ __delete__ __init_subclass__ __set_name__ __setstate__ __replace__ __iadd__ __isub__ __imul__
    __ior__ __iand__ __ixor__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __imatmul__"""
)


class SideEffect(Exception):
    """The function has a side effect; the text completes "it …"."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An object from outside, as it is spelled, or the node of an inner function."""

    object: Any
    spelled: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and other.object is self.object

    def __hash__(self) -> int:
        return id(self.object)


class Origin(NamedTuple):
    """The objects that an expression can be. `held` spells one that it can hold, or be a part of."""

    objects: tuple[Known, ...] = ()
    held: str | None = None
    dataset: bool = False

    @property
    def outside(self) -> str | None:
        """The spelling of an object from outside that can be changed through the value."""
        return self.held or next((one.spelled for one in self.objects if not _is_constant(one.object)), None)

    @property
    def data(self) -> Origin:
        """The value without functions, which are called and not changed."""
        kept = (one for one in self.objects if is_users(type(one.object)) or not is_function(one.object))
        return self._replace(objects=tuple(kept))

    @property
    def part(self) -> Origin:
        """A part of the value, or what holds it. Only data can be part of something: of others the methods matter."""
        other = next(
            (one for one in self.objects if not isinstance(one.object, ast.AST) and not is_data(one.object)), None
        )
        if other is not None:
            message = f"passes `{other.spelled}` on, of class {type(other.object).__qualname__}"
            raise SideEffect(message)
        return Origin((), self.outside)


OWN = Origin()


def union(*values: Origin) -> Origin:
    """Return a value that can be any of these."""
    objects = tuple(dict.fromkeys(one for value in values for one in value.objects))
    held = next((value.held for value in values if value.held), None)
    if len(objects) > _MOST_OBJECTS:
        objects, held = (), held or Origin(objects).outside
    return Origin(objects, held, any(value.dataset for value in values))


@dataclass(slots=True)
class Arguments:
    """The arguments of a call; `rest` are further ones whose number is not known."""

    positional: list[Origin] = field(default_factory=list)
    named: dict[str, Origin] = field(default_factory=dict)
    rest: Origin | None = None

    @property
    def all(self) -> Origin:
        return union(*self.positional, *self.named.values(), self.rest or OWN)


@dataclass(slots=True, eq=False)
class Frame:
    """The variables of a function of the user, and those of the functions and comprehensions inside it."""

    function: FunctionType
    imported: bool  # another process imports its module again
    cells: dict[str, Any]
    refused: frozenset[str]  # names that belong to code around the function
    locals: dict[str, Origin] = field(default_factory=dict)
    inside: list[ast.AST] = field(default_factory=list)  # the function that is walked through, and inner ones
    returned: Origin = OWN


class Scan:
    """The walk over one function and over the functions of the user that it calls."""

    def __init__(self) -> None:
        self.notes: dict[Kind, tuple[str, int | None]] = {}  # the first reason of each kind, and its line
        self.watched: list[Watched] = []  # the places that were looked at
        self.creates_objects = False
        self._line: int | None = None
        self._steps = 0
        self._calls: list[str] = []  # the functions that are being walked through
        self._results: dict[Any, Origin] = {}
        self._fields: set[str] = set()  # of the data classes of which the function creates objects
        self._returned: dict[ast.AST, Origin] = {}  # by inner functions, whoever calls them
        self._frame: Frame | None = None

    def start(self, function: Any, given: Mapping[str, Any]) -> None:
        """Walk through a function. `given` are arguments that others have, too; the others are its own."""
        named = {
            name: Origin((Known(value, name if name.isidentifier() else "a value"),)) for name, value in given.items()
        }
        try:
            if type(function) is FunctionType and is_users(function):
                if function.__code__.co_flags & CO_GENERATOR:
                    self.refuse("is a generator")
                self._enter(function, Arguments(named=named, rest=OWN))
            else:
                self._call(self._reached(function, _name_of(function)), Arguments(named=named, rest=OWN))
        except SideEffect as why:
            self._add((Kind.EFFECT,), str(why))

    def note(self, kinds: Sequence[Kind], why: str) -> None:
        """Keep the first reason of each kind. The walk ends at the first side effect."""
        if Kind.EFFECT in kinds:
            raise SideEffect(why)
        self._add(kinds, why)

    def _add(self, kinds: Sequence[Kind], why: str) -> None:
        for name in reversed(self._calls):
            why = f"calls `{name}`, which {why}"
        for kind in kinds:
            self.notes.setdefault(kind, (f"it {why}", self._line))

    def refuse(self, why: str) -> None:
        """Note a side effect, which ends the walk."""
        self.note((Kind.EFFECT,), why)

    def _tables(self, path: str) -> None:
        """Note what the tables of libraries say of a function."""
        found = rule(path)
        if found is None:
            self.refuse(unknown(path))
        elif found[0]:
            self.note(*found)

    # -- functions of the user

    def _users(self, function: Any, spelled: str, arguments: Arguments, *, imported: bool = False) -> Origin:
        if type(function) is not FunctionType or not is_users(function):
            return self._call(Origin((Known(function, spelled),)), arguments)
        if len(self._calls) > _MOST_CALLS:
            self.refuse("calls more than can be looked through")
        outer = self._frame
        self._calls.append(spelled)
        given = self._enter(function, arguments, imported=imported or (outer is not None and outer.imported))
        self._calls.pop()
        self._frame = outer
        return given

    def _enter(self, function: FunctionType, arguments: Arguments, *, imported: bool = False) -> Origin:
        """Return what a function of the user returns."""
        code = function.__code__
        if code.co_flags & _COROUTINE:
            self.refuse("is a coroutine")
        self.watched.append(watch(function))
        found = definition(function)
        if found is None:
            self.refuse("has no source text that could be read")
            return OWN
        left_out = {name: Origin((Known(value, name),)) for name, value in defaults(function).items()}
        variables = _bound(found.node.args, arguments, left_out)
        imported = imported or is_imported(function)
        asked = function, tuple(variables.items()), imported
        if asked in self._results:
            return self._results[asked]
        self._results[asked] = OWN  # for a function that calls itself
        shared = [each for each in ast.walk(found.node) if isinstance(each, (ast.Global, ast.Nonlocal))]
        refused = {
            name for each in shared for name in each.names if type(each) is ast.Global or name in code.co_freevars
        }
        frame = Frame(function, imported, dict(closure(function)), frozenset(refused), variables)
        for node in ast.walk(found.node):
            if isinstance(node, ast.FunctionDef) and node is not found.node:
                frame.locals[node.name] = Origin((Known(node, node.name),))
        for _ in range(_MOST_ROUNDS):
            self._frame = frame
            before = {**frame.locals}, {**self._returned}, self._results[asked]
            self._function(found.node)
            self._results[asked] = frame.returned
            if before == (frame.locals, {**self._returned}, self._results[asked]):
                return self._results[asked]
        self.refuse("has variables that may be too many things")
        return OWN

    def _function(self, node: ast.FunctionDef | ast.Lambda) -> None:
        """Walk through the body of a function."""
        self._here.inside.append(node)
        if isinstance(node, ast.Lambda):
            self._return(self._value(node.body))
        else:
            self._statements(node.body)
        self._here.inside.pop()

    @property
    def _here(self) -> Frame:
        assert self._frame is not None
        return self._frame

    def _return(self, value: Origin) -> None:
        frame = self._here
        if len(frame.inside) == 1:
            frame.returned = union(frame.returned, value)
        else:
            node = frame.inside[-1]
            self._returned[node] = union(self._returned.get(node, OWN), value)

    def _inner(self, node: ast.FunctionDef | ast.Lambda) -> Origin:
        """Return an inner function, and walk through it as if it were called with values of the call's own."""
        given = node.args
        for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
            if one is not None:
                self._assign(one.arg, OWN)
        for each in (*given.defaults, *filter(None, given.kw_defaults)):
            if self._value(each).outside:
                self.refuse("has an inner function with a default from outside")
        self._function(node)
        return Origin((Known(node, getattr(node, "name", "a lambda")),))

    # -- statements

    def _statement(self, node: ast.AST) -> None:
        if not self._calls:
            self._line = getattr(node, "lineno", self._line)
        match node:
            case ast.Assign() | ast.AnnAssign():
                value = OWN if node.value is None else self._value(node.value)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._store(target, value)
            case ast.AugAssign():
                old, value = self._value(node.target), self._value(node.value)
                self._operated(union(old, value))
                self._change(old, f"changes {{}} ({_SIGNS.get(type(node.op), 'in place')}=)")
                if isinstance(node.op, (ast.Add, ast.BitOr)):
                    self._keep(self._each(value))
                self._store(node.target, OWN)
            case ast.Return():
                self._return(OWN if node.value is None else self._value(node.value))
            case ast.For():
                self._store(node.target, self._each(self._value(node.iter)))
                self._statements(node.body, node.orelse)
            case ast.With():
                for item in node.items:
                    manager = self._value(item.context_expr)
                    if manager.outside:
                        self.refuse(f"uses `{manager.outside}` in a with statement")
                    if item.optional_vars is not None:
                        self._store(item.optional_vars, OWN)
                self._statements(node.body)
            case ast.Import() | ast.ImportFrom():
                self._import(node)
            case ast.FunctionDef(decorator_list=[]):
                self._inner(node)
            case ast.Delete():
                for target in node.targets:
                    self._store(target, OWN)
            case ast.ExceptHandler():
                if node.name:
                    self._assign(node.name, OWN)
                self._statements([] if node.type is None else [node.type], node.body)
            case ast.expr():
                self._operated(self._value(node))
            case ast.Expr() | ast.If() | ast.While() | ast.Raise() | ast.Assert() | ast.Try():
                self._statements(ast.iter_child_nodes(node))
            case ast.Pass() | ast.Break() | ast.Continue() | ast.Global() | ast.Nonlocal():
                pass
            case _:
                self.refuse(f"has a statement that is not looked into ({type(node).__name__})")

    def _statements(self, *bodies: Any) -> None:
        for body in bodies:
            for each in body:
                self._statement(each)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            if isinstance(node, ast.Import):
                found = self._module(alias.name)
                self._assign(name, found if alias.asname else self._module(name))
            elif node.level or node.module is None or alias.name == "*":
                self.refuse("imports from its own package")
            else:
                self._assign(alias.asname or alias.name, self._attribute(self._module(node.module), alias.name))

    def _module(self, name: str) -> Origin:
        if name not in sys.modules:
            if is_users_path(name) or name.partition(".")[0] not in STANDARD & ROOTS:
                self.refuse(f"imports `{name}`, which is not loaded yet")
            self.note((Kind.OUTSIDE,), f"imports `{name}`")
            import_module(name)
        return Origin((Known(sys.modules[name], name),))

    # -- changes

    def _assign(self, name: str, value: Origin) -> None:
        frame = self._here
        if name in frame.refused:
            around = " of the function around it" if name in frame.function.__code__.co_freevars else ", a global"
            self.refuse(f"assigns to `{name}`{around}")
        frame.locals[name] = union(frame.locals.get(name, OWN), value)

    def _store(self, target: ast.expr, value: Origin) -> None:
        match target:
            case ast.Name(id=name):
                self._assign(name, value)
            case ast.Tuple() | ast.List():
                for each in target.elts:
                    self._store(each, self._each(value))
            case ast.Starred():
                self._store(target.value, value.part)
            case ast.Attribute(attr=name):
                self._change(self._value(target.value), f"assigns to an attribute, {name}, of {{}}")
                self._keep(value)
            case ast.Subscript():
                self._operated(self._value(target.slice))
                self._change(self._value(target.value), "writes into {}")
                self._keep(self._each(value) if isinstance(target.slice, ast.Slice) else value)
            case _:
                self.refuse("assigns to what is not looked into")

    def _change(self, value: Origin, does: str) -> None:
        """Note that an object is changed, unless it is the call's own."""
        if value.outside:
            self.refuse(does.format(f"`{value.outside}`"))

    def _keep(self, value: Origin) -> None:
        """Note that an object of the call gets hold of something."""
        held = self._escaped(value).outside
        if held:
            self.refuse(f"keeps `{held}` in an object that may be changed")

    def _escaped(self, value: Origin) -> Origin:
        """Return what others can reach that are handed a value: also what the inner functions in it return."""
        nodes = [one.object for one in value.objects if isinstance(one.object, ast.AST)]
        given = union(OWN, *(self._returned.get(node, OWN) for node in nodes))
        objects = tuple(one for one in value.objects if not isinstance(one.object, ast.AST))
        return Origin(objects, value.held or given.outside, value.dataset)

    # -- expressions

    def _value(self, node: ast.expr) -> Origin:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            self.refuse("is longer than can be looked through")
        match node:
            case ast.Constant():
                return OWN
            case ast.Name(id=name):
                return self._name(name)
            case ast.Attribute(value=owner, attr=name):
                return self._attribute(self._value(owner), name)
            case ast.Subscript():
                return self._subscript(node)
            case ast.Call():
                return self._called(node)
            case ast.Lambda():
                return self._inner(node)
            case ast.BoolOp() | ast.IfExp():
                parts = [self._value(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
                return union(self._operated(union(*parts)), *parts)
            case ast.Compare() | ast.UnaryOp() | ast.JoinedStr() | ast.FormattedValue() | ast.Slice():
                parts = [self._value(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)]
                return self._operated(union(OWN, *parts))
            case ast.BinOp():
                left, right = self._value(node.left), self._value(node.right)
                lists = [one for one in (*left.objects, *right.objects) if contents(one.object) is not None]
                inside = self._each(Origin(tuple(lists), left.held or right.held))
                return union(self._operated(union(left, right)), inside.part)
            case ast.List() | ast.Tuple() | ast.Set():
                return union(OWN, *(self._escaped(self._value(each)) for each in node.elts)).part
            case ast.Dict():
                values = [self._value(each) for each in (*filter(None, node.keys), *node.values)]
                if None in node.keys:  # what is unpacked has its values in the new one
                    values = [each for value in values for each in (self._each(value), self._each(value, values=True))]
                return union(OWN, *map(self._escaped, values)).part
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                for one in node.generators:
                    self._store(one.target, self._each(self._value(one.iter)))
                    self._statements(one.ifs)
                items = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
                return union(*(self._escaped(self._value(each)) for each in items)).part
            case ast.NamedExpr():
                value = self._value(node.value)
                self._store(node.target, value)
                return value
            case ast.Starred():
                return self._each(self._value(node.value))
            case ast.Yield():
                value = OWN if node.value is None else self._escaped(self._value(node.value))
                self._return(value.part)
                return OWN
        self.refuse(f"has an expression that is not looked into ({type(node).__name__})")
        return OWN

    def _name(self, name: str) -> Origin:
        frame = self._here
        local = frame.locals.get(name, OWN)
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
        """Note a global of a module that another process imports: there it is what the module assigns first."""
        if is_a(value, FunctionType, type, ModuleType):
            return
        module = names.get("__name__")
        if not is_plain(value):
            why = f"reads `{name}`, which another process has as the module {module} makes it, without later changes"
            self.note((Kind.PROCESS,), why)
        elif by := assigning(names, name):
            self.note(
                (Kind.PROCESS,), f"reads `{name}`, to which `{by}` assigns: another process imports {module} again"
            )

    def _reached(self, value: Any, spelled: str) -> Origin:
        """Return an object from outside, unless it must stay where it is."""
        if not is_a(value, ModuleType) and generator_of(Use(spelled, value)):
            self.note((Kind.SEEDED,), f"draws random numbers (`{spelled}`)")
            return Origin((Known(value, spelled),))
        why = why_alone(value, spelled)
        if why is not None:
            self.refuse(why)
        found = rule(value.__name__ if is_a(value, ModuleType) else type(value).__module__)
        if found is not None and Kind.ACCELERATOR in found[0]:
            self.note(*found)
        if value is os.environ:
            self.note((Kind.PROCESS, Kind.OUTSIDE), "asks what its process was started with (`os.environ`)")
        owner = value.__self__ if type(value) in (BuiltinFunctionType, MethodType) else None
        if owner is not None and not is_a(owner, ModuleType, type):
            self._reached(owner, spelled if "." in spelled else f"the {type(owner).__name__} of {spelled}")
        return Origin((Known(value, spelled),), dataset=is_dataset_class(type(value)))

    def _attribute(self, owner: Origin, name: str) -> Origin:
        found = [self._of(one, name) for one in owner.objects]
        if owner.held or not owner.objects:
            if name in LOOKING:
                self.note((Kind.OUTSIDE,), f"uses .{name}")
            elif (name not in METHODS or name in STORING) and name not in self._fields:
                self.refuse(f"uses .{name}, of which is not known what it does")
            elif owner.held and name in WRITERS:
                self.refuse(f"hands over .{name} of something in `{owner.held}`")
        return union(Origin((), owner.held), *found)

    def _of(self, owner: Known, name: str) -> Origin:
        """Return an attribute of an object from outside, which is looked up without running any code."""
        value, kind, spelled = owner.object, type(owner.object), f"{owner.spelled}.{name}"
        if kind is ModuleType:
            return self._of_module(value, name, spelled)
        if is_a(value, type):
            return self._of_class(value, name, spelled)
        if name[:2] == "__" and name != "__call__":
            return Origin((), spelled)
        found = in_class(kind, name)
        if found is not ABSENT and users_method(type(found), "__get__") is not None:
            self.refuse(f"looks up `{spelled}` by code of its class")
        if is_a(found, property) and is_users(kind):
            return self._users(found.fget, spelled, Arguments([Origin((owner,))]), imported=is_imported(kind))
        held = in_object(value, name)
        if held is not ABSENT:
            if name in fields(value):
                self._watch(value, name, held)
            return self._reached(held, spelled)
        if is_users(kind):
            if any(users_method(kind, special) is not None for special in ("__getattribute__", "__getattr__")):
                self.refuse(f"looks up attributes of `{owner.spelled}` by code of its class")
            if is_a(found, functools.cached_property):
                self.refuse(f"computes `{spelled}` once and keeps it")
            if is_a(found, FunctionType, classmethod):
                return Origin((Known(found.__get__(value, kind), spelled),))
            if found is not ABSENT and not is_a(found, MethodDescriptorType):
                return self._reached(found.__func__ if is_a(found, staticmethod) else found, spelled)
        if callable(found):  # a method
            self._check_known(owner, name)
            return self._given(owner, name)
        if kind is np.ndarray and not value.dtype.hasobject:
            return Origin((owner,)) if name in VIEWS else OWN
        return OWN if is_plain(value) else Origin((), spelled)

    def _of_module(self, module: ModuleType, name: str, spelled: str) -> Origin:
        path = f"{module.__name__}.{name}"
        found = vars(module).get(name, sys.modules.get(path, ABSENT))
        if found is ABSENT and module.__name__.partition(".")[0] == "penstock":
            found = getattr(module, name, ABSENT)  # which is loaded now
        if found is ABSENT:
            return self._module(path)
        self._watch(module, name, found)
        if is_users_path(path) and module.__name__ not in MAIN:
            self._imported_again(vars(module), name, found)
        elif not is_users_path(path) and not is_a(found, ModuleType) and not callable(found) and not is_plain(found):
            self._tables(path)  # an object of a library
        return self._reached(found, spelled)

    def _of_class(self, kind: type, name: str, spelled: str) -> Origin:
        found = in_class(kind, name)
        if found is ABSENT:
            self.refuse(f"uses `{spelled}`, which is not there")
        if is_users(kind):
            if is_a(found, staticmethod, classmethod):
                found = found.__get__(None, kind)
            return self._reached(found, spelled)
        if is_dataset_class(kind) or is_a(found, MethodDescriptorType, WrapperDescriptorType):
            return Origin((Known(found.__get__(None, kind), spelled),))
        if not is_plain(found):
            self._tables(f"{path_of(kind)}.{name}")
        return Origin((Known(getattr(kind, name), spelled),))

    def _watch(self, owner: Any, name: str, value: Any) -> None:
        with suppress(TypeError):  # an object without weak references is taken to stay as it is
            self.watched.append(Watched(weakref.ref(owner), name, (id(value),)))

    def _subscript(self, node: ast.Subscript) -> Origin:
        owner = self._value(node.value)
        found = [self._operated(union(owner, self._value(node.slice))), Origin((), owner.held)]
        for one in owner.objects:
            value = one.object
            if is_a(value, defaultdict) or users_method(type(value), "__missing__"):
                self.refuse(f"may add a key to `{one.spelled}`, a {type(value).__name__}")
            if isinstance(node.slice, ast.Constant) and (type(value) in MAPPINGS or is_a(value, list, tuple)):
                with suppress(LookupError, TypeError):
                    found.append(self._reached(value[node.slice.value], f"{one.spelled}[{node.slice.value!r}]"))
            elif _is_array(value) and not value.dtype.hasobject:
                found.append(Origin((one,)))  # a view, which counts as the array
            else:
                found.append(self._each(Origin((one,)), values=True))
        return union(*found)

    def _operated(self, value: Origin) -> Origin:
        """Return what the operators of the user's classes give: any of them may be called."""
        found = [OWN]
        for one in value.objects:
            kind = type(one.object)
            special = is_users(kind) and not is_a(one.object, ModuleType, type, FunctionType)
            for name in sorted(written_names(kind) - _WRITING) if special else ():
                if name[:2] == "__" and name[-2:] == "__":
                    given = Arguments([Origin((one,))], rest=Origin((), "a value"))
                    found.append(self._users(in_class(kind, name), f"{one.spelled}.{name}", given))
        return union(*found)

    def _each(self, value: Origin, *, values: bool = False) -> Origin:
        """Return what a loop over a value gives, or one over the values of a mapping."""
        if value.dataset and value.outside:
            self.refuse(f"reads the data set `{value.outside}`")
        found = [self._operated(value), Origin((), value.held)]
        for one in value.objects:
            held, items = one.object, contents(one.object, values=values)
            if is_plain(held) or (is_plain_inside(held) and not (_is_array(held) and held.ndim > 1)):
                continue
            if _is_array(held) and not held.dtype.hasobject:
                found.append(Origin((one,)))
            elif items is not None and len(held) <= _MOST_OBJECTS:
                found += (self._reached(item, f"{one.spelled}[…]") for item in items)
            elif not is_users(type(held)) or is_a(held, dict, list, tuple, set, frozenset):
                found.append(Origin((one,)).part)
        return union(*found)

    # -- calls

    def _called(self, node: ast.Call) -> Origin:
        arguments = Arguments()
        for each in node.args:
            if isinstance(each, ast.Starred) or arguments.rest is not None:
                arguments.rest = union(arguments.rest or OWN, self._value(each))
            else:
                arguments.positional.append(self._value(each))
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg is None:
                arguments.rest = union(arguments.rest or OWN, self._each(value, values=True))
            else:
                arguments.named[keyword.arg] = value
        if isinstance(node.func, ast.Attribute):
            return self._method(self._value(node.func.value), node.func.attr, arguments, node)
        return self._call(self._value(node.func), arguments, node)

    def _call(self, function: Origin, arguments: Arguments, node: ast.Call | None = None) -> Origin:
        if function.held:
            self.refuse(f"calls something in `{function.held}`, which only running shows")
        if not function.objects:
            self.refuse(f"hands `{arguments.all.outside or 'a value'}` to a function that only running shows")
        return union(*(self._call_one(one, arguments, node) for one in function.objects))

    def _call_one(self, one: Known, arguments: Arguments, node: ast.Call | None) -> Origin:
        function, kind = one.object, type(one.object)
        if isinstance(function, ast.AST):
            if arguments.all.outside:
                self.refuse(f"hands `{arguments.all.outside}` to an inner function")
            return self._returned.get(function, OWN)
        if generator_of(Use(one.spelled, function)):
            self._change(arguments.all, f"changes {{}} (`{one.spelled}`)")
            return OWN
        if "__penstock_primitive__" in fields(function):
            self.note((Kind.OUTSIDE,), f"calls `{one.spelled}`")
            return union(arguments.all.data, self._handed(arguments)).part
        if kind is FunctionType and is_users(function):
            return self._users(function, one.spelled, arguments)
        if kind is MethodType and not is_dataset_class(_class_of(function.__self__)):
            owner = Origin((Known(function.__self__, one.spelled.rpartition(".")[0] or one.spelled),))
            every = Arguments([owner, *arguments.positional], arguments.named, arguments.rest)
            return self._users(
                function.__func__, one.spelled, every, imported=is_imported(_class_of(function.__self__))
            )
        if kind is functools.partial:
            first = [self._reached(value, f"{one.spelled}'s argument") for value in function.args]
            named = {name: self._reached(value, f"{one.spelled}'s {name}") for name, value in function.keywords.items()}
            every = Arguments([*first, *arguments.positional], {**named, **arguments.named}, arguments.rest)
            return self._call(self._reached(function.func, one.spelled), every, node)
        if is_cached_function(function):  # each process has a cache, which changes no result
            return self._users(fields(function)["__wrapped__"], one.spelled, arguments, imported=True)
        if is_a(function, type) and is_users(function) and not is_dataset_class(function):
            return self._created(function, one.spelled, arguments)
        if kind in (MethodDescriptorType, WrapperDescriptorType):  # list.append(seen, x)
            owner = arguments.positional[0] if arguments.positional else arguments.rest or OWN
            rest = Arguments(arguments.positional[1:], arguments.named, arguments.rest)
            return self._of_value(owner, function.__name__, rest, node)
        if kind is BuiltinFunctionType and is_a(function.__self__, type):  # a class method: another object each time
            return self._library(f"{known_place(function.__self__)}.{function.__name__}", function, arguments, node)
        if kind is BuiltinFunctionType and not is_a(function.__self__, ModuleType, type(None)):
            owner = Origin((Known(function.__self__, one.spelled.rpartition(".")[0] or one.spelled),))
            return self._of_value(owner, function.__name__, arguments, node)
        method = users_method(kind, "__call__") or users_method(kind, "forward")
        if method is not None:
            every = Arguments([Origin((one,)), *arguments.positional], arguments.named, arguments.rest)
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

    def _chained(self, one: Known, arguments: Arguments) -> None:
        """Call an object of a library with the functions that it holds, as a chain of transformations does."""
        self._tables(path_of(type(one.object)))
        for value in fields(one.object).values():
            parts = value.values() if type(value) in MAPPINGS else value if type(value) in (list, tuple) else ()
            for each in (value, *parts):
                if is_function(each) or (callable(each) and each is not one.object and not is_a(each, type)):
                    self._call(Origin((Known(each, f"{type(each).__name__} of {one.spelled}"),)), arguments)

    def _created(self, kind: type, spelled: str, arguments: Arguments) -> Origin:
        """Return a new object of a class of the user: a data class or named tuple without methods."""
        written = next(iter(written_names(kind)), None)
        if "_member_map_" in vars(kind) and written is None:
            return OWN  # a member of an enumeration
        fields_of = vars(kind).get("__dataclass_fields__", {})
        if (
            written
            or not (fields_of or "_fields" in vars(kind))
            or any(is_users(f.default_factory) for f in fields_of.values())
        ):
            self.refuse(f"creates a `{spelled}`, which is more than a data class")
        self.creates_objects = True
        self._fields |= {*fields_of, *vars(kind).get("_fields", ())}
        return Origin((), self._escaped(arguments.all).outside)

    def _handed(self, arguments: Arguments, *, whole: bool = True) -> Origin:
        """Return what code gives that gets these arguments and calls the functions among them, beside the arguments.

        Without `whole`, the functions are called with items of the other arguments only.
        """
        every = arguments.all
        data = self._escaped(every).data
        items = union(self._each(data), self._each(data, values=True))
        if any(isinstance(one.object, ast.AST) for one in every.objects) and items.outside:
            self.refuse(f"hands `{data.outside}` to an inner function")
        functions = Origin(tuple(one for one in every.objects if _is_called(one.object)))
        if not functions.objects:
            return self._operated(data)
        given = self._call(functions, Arguments(rest=union(items.part, data.part if whole else OWN)))
        return union(given.part, self._operated(data))

    def _library(self, path: str, function: Any, arguments: Arguments, node: ast.Call | None) -> Origin:
        """Return what a function or class of a library returns."""
        none = node is not None and any(isinstance(each, ast.Constant) and each.value is None for each in node.args[:1])
        if path in _SEEDED and (arguments.positional or arguments.named) and not none:
            return OWN
        self._tables(path)
        if path in _OPENING:
            if node is None and arguments.rest is None:
                self.refuse("opens a file in a way that only running shows")
            self._check_mode(node, 1)
        if path in _ASKING:
            return self._operated(arguments.all)
        given_as: list[tuple[int | str, Origin]] = [*enumerate(arguments.positional), *arguments.named.items()]
        for argument, value in given_as:
            if is_written(path, function, argument):
                self._change(value, f"changes {{}} (`{path}`)")
                self._keep(arguments.all)
        every = self._escaped(arguments.all)
        if arguments.rest is not None and arguments.rest.outside and path.startswith(("numpy.", "cv2.", "scipy.")):
            self.refuse(f"hands `{arguments.rest.outside}` to `{path}`")
        given = self._handed(arguments, whole=not path.startswith(_COPYING))
        if is_dataset_class(_class_of(getattr(function, "__self__", function))):
            return Origin((), every.data.outside, dataset=True)
        arrays = any(_is_array(one.object) for one in every.objects)
        alone = len(arguments.positional) == 1 or path not in ("builtins.max", "builtins.min")
        if type(function) is np.ufunc or (is_fresh(path) and not any(_is_objects(one.object) for one in every.objects)):
            return given.part
        if (alone and path.startswith(_COPYING)) or (path.startswith("numpy.") and not arrays):
            return union(self._each(every.data), self._each(every.data, values=True), given).part
        return union(every.data if path == "functools.reduce" else every, given).part

    def _check_mode(self, node: ast.Call | None, place: int) -> None:
        """Refuse to open a file in another way than for reading."""
        named = [] if node is None else [each.value for each in node.keywords if each.arg in ("mode", None)]
        given = named if node is None else [*node.args[place : place + 1], *named]
        for mode in given:
            if not (isinstance(mode, ast.Constant) and isinstance(mode.value, str)) or set(mode.value) & set("wax+"):
                self.refuse("opens a file for writing")

    def _method(self, owner: Origin, name: str, arguments: Arguments, node: ast.Call) -> Origin:
        """Return what a method returns: of the user, of a module or class, of a data set, of a value."""
        found = []
        if owner.held or not owner.objects:
            found.append(self._of_value(owner._replace(objects=()), name, arguments, node))
        for one in owner.objects:
            value, kind = one.object, type(one.object)
            here = Origin((one,), dataset=owner.dataset)
            method = in_class(kind, name)
            special = is_a(method, MethodDescriptorType, WrapperDescriptorType, BuiltinFunctionType)
            if isinstance(value, ast.AST) or (name == "__call__" and is_function(value)):
                found.append(self._call(here, arguments, node))
            elif kind is np.ufunc:
                if name not in ("reduce", "accumulate", "outer", "reduceat", "at"):
                    self.refuse(f"calls {name} of `{one.spelled}`")
                self._change(arguments.all if name == "at" or len(arguments.positional) > 3 else OWN, "writes into {}")
                self._change(arguments.named.get("out", OWN), "writes into {}")
            elif is_dataset_class(kind) or (is_a(value, type) and is_dataset_class(value)):
                found.append(self._planned(here, value if is_a(value, type) else kind, name, arguments))
            elif is_a(value, ModuleType, type) or is_users(kind) > special or is_function(in_object(value, name)):
                found.append(self._call(self._attribute(here, name), arguments, node))
            else:
                found.append(self._of_value(here, name, arguments, node))
        return union(*found)

    def _planned(self, owner: Origin, kind: type, name: str, arguments: Arguments) -> Origin:
        """Return the data set that a step creates, unless the method reads one."""
        if not plans(kind, name) or (name == "apply" and owner.outside):
            self.refuse(f"reads the data set `{owner.outside or 'that it creates'}` (.{name})")
        data = tuple(one for one in owner.objects if not is_a(one.object, type))
        self._handed(arguments)
        return Origin((), union(Origin(data, owner.held), arguments.all.data).outside, dataset=True)

    def _of_value(self, owner: Origin, name: str, arguments: Arguments, node: ast.Call | None) -> Origin:
        """Return what a method of a builtin value returns, or of an object of a library."""
        if name in ("__setattr__", "__delattr__"):
            self._change(owner, "assigns to an attribute of {}")
        if owner.dataset or (not owner.objects and name in planning(dataset_class()) - METHODS):
            self.note((Kind.OUTSIDE,), f"creates a data set (.{name})")
            return self._planned(owner, dataset_class(), name, arguments)
        for one in owner.objects:
            self._check_known(one, name)
        if owner.held and (name in WRITERS or name not in METHODS):
            self.refuse(f"{VERBS.get(name, f'calls {name} of')} something in `{owner.held}`")
        if not owner.objects and name in LOOKING:
            self.note((Kind.OUTSIDE,), f"calls .{name}")
            if name == "open":
                self._check_mode(node, 0)
        elif not owner.objects and name not in METHODS:
            self.refuse(f"calls .{name}, of which is not known what it does")
        if name in STORING:
            every = arguments.all
            self._keep(self._each(every, values=True) if name in ("extend", "update", "extendleft") else every)
            return owner.part
        first = union(OWN, *arguments.positional[:1]).data
        more = union(OWN, *arguments.positional[1:], *arguments.named.values(), arguments.rest or OWN).data
        if (more.outside and name != "get") or (first.outside and name not in TAKING):
            self.refuse(f"hands `{more.outside or first.outside}` to .{name}")
        given = union(self._handed(arguments), *(self._given(one, name) for one in owner.objects))
        return union(given, Origin((), owner.held), more.part if name == "get" else OWN)

    def _check_known(self, one: Known, name: str) -> None:
        """Refuse a method of an object from outside that is not known to only read it."""
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

    def _given(self, one: Known, name: str) -> Origin:
        value = one.object
        if is_plain(value) or (kind := type(value)) is type(os.environ):
            return OWN
        if _is_array(value) and not value.dtype.hasobject:
            return Origin((one,)) if name in VIEWS else OWN
        if kind not in READERS:
            return Origin((), one.spelled) if tokeniser_of(value) is None else OWN
        inside = union(self._each(Origin((one,))), self._each(Origin((one,)), values=True))
        return inside if name == "get" else inside.part


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitOr: "|", ast.BitAnd: "&", ast.Mod: "%", ast.Div: "/"}
_ASKING = tuple(f"builtins.{name}" for name in ("len", "isinstance", "hasattr", "callable", "issubclass"))
_COPYING = (
    *("builtins.list", "builtins.tuple", "builtins.dict", "builtins.set", "builtins.frozenset", "builtins.sorted"),
    *("builtins.enumerate", "builtins.zip", "builtins.map", "builtins.filter", "builtins.reversed", "builtins.iter"),
    *("builtins.sum", "builtins.max", "builtins.min", "itertools.", "collections."),
)


def _is_constant(value: Any) -> bool:
    return isinstance(value, ast.AST) or is_plain(value)


def _is_array(value: Any) -> bool:
    return is_a(value, np.ndarray)


def _is_objects(value: Any) -> bool:
    return _is_array(value) and value.dtype.hasobject


def written_names(kind: type) -> set[str]:
    """Return the names of the functions that the user has written in a class, and not `dataclass` or `namedtuple`."""
    names = {name for place in kind.__mro__ if is_users(place) for name in vars(place)}
    generated = dataclasses.is_dataclass(kind) or issubclass(kind, tuple)
    found = {name: users_method(kind, name) for name in names}
    return {
        name
        for name, method in found.items()
        if method and is_users(method) and not (generated and method.__code__.co_filename.startswith("<string>"))
    }


def _is_called(value: Any) -> bool:
    """Return True if code that is handed a value may call it."""
    return is_function(value) or (is_a(value, type) and is_users(value))


def _class_of(value: Any) -> Any:
    return value if is_a(value, type) else type(value)


def _name_of(function: Any) -> str:
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is functools.partial:
        function = function.func
    return str(function.__name__) if type(function) in (FunctionType, BuiltinFunctionType) else type(function).__name__


def _bound(given: ast.arguments, arguments: Arguments, left_out: Mapping[str, Origin]) -> dict[str, Origin]:
    """Return the parameters of a function with their values."""
    places = [*given.posonlyargs, *given.args]
    found: dict[str, Origin] = {}
    for place, parameter in enumerate([*places, *given.kwonlyargs]):
        name = parameter.arg
        if place < min(len(places), len(arguments.positional)):
            found[name] = arguments.positional[place]
        elif name in arguments.named:
            found[name] = arguments.named[name]
        else:
            found[name] = union(arguments.rest or OWN, left_out.get(name, OWN))
    for starred in filter(None, (given.vararg, given.kwarg)):
        more = (*arguments.positional[len(places) :], *arguments.named.values(), arguments.rest or OWN)
        found[starred.arg] = union(OWN, *more).part
    return found
