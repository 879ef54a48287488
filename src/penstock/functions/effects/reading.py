"""What names, attributes and items give, as the code that is read finds them."""

from __future__ import annotations

import functools
import sys
import weakref
from abc import ABC, abstractmethod
from collections import defaultdict
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from penstock.functions.code import words
from penstock.functions.effects.libraries import effect_of
from penstock.functions.effects.objects import (
    ABSENT,
    CONTAINERS,
    MAPPINGS,
    Watched,
    assigning,
    callable_kind,
    content,
    data,
    fields,
    in_class,
    in_module,
    in_object,
    is_dataset,
    is_function,
    unmade,
    users_method,
    why_alone,
)
from penstock.functions.effects.values import (
    OWN,
    Absent,
    Arguments,
    Atom,
    Bound,
    Inner,
    Known,
    Made,
    Part,
    Value,
    Visible,
    is_a,
    is_outside,
    is_plain,
    outside,
    spelling,
    union,
)
from penstock.functions.ownership import MAIN, is_users, is_users_path

if TYPE_CHECKING:
    from penstock.functions.effects.interpreter import Frame


class Reading(ABC):
    """What names and attributes give."""

    def __init__(self, watched: list[Watched], *, alike: bool = True) -> None:
        self.watched = watched  # what was read, and how it was
        self.alike = alike  # whether it counts, too, what is otherwise in another process and is seen by nobody in one
        self.hidden: Value = ()  # things from outside that were put into objects of the call's own
        self._given: Value = ()  # by functions that were put there

    @abstractmethod
    def forget(self) -> None:
        """Results found so far may be more than they were."""

    @abstractmethod
    def called(
        self, frame: Frame, function: Any, spelled: str, arguments: Arguments, *, imported: bool = False
    ) -> Value:
        """What a function of the user's gives."""

    def read_from(self, owner: Any, name: str, value: Any) -> None:
        """An attribute was looked at."""
        with suppress(TypeError):  # what cannot be referred to weakly is taken to stay as it is
            self.watched.append(Watched(weakref.ref(owner), name, (id(value),)))

    # -- names

    def named(self, frame: Frame, name: str) -> Value:
        """A global name, or a builtin."""
        found = frame.names.get(name, ABSENT)
        if found is ABSENT:
            scope = frame.names.get("__builtins__", sys.modules["builtins"])
            found = (scope if isinstance(scope, dict) else vars(scope)).get(name, ABSENT)
            if found is ABSENT:
                message = f"uses `{name}`, which is not defined yet"
                raise Visible(message)
        elif frame.imported and not is_a(found, FunctionType, type, ModuleType):
            self.imported_anew(frame.names, name, found)
        return self.reached(found, name)

    def imported_anew(self, names: dict[str, Any], name: str, value: Any) -> None:
        """A global of a module that another process imports: there it is what the module makes it at first."""
        module = names.get("__name__")
        if not is_plain(value):
            message = (
                f"reads `{name}`, which another process has as the module {module} makes it, without later changes"
            )
            raise Visible(message)
        by = assigning(names, name)
        if by is not None:
            message = f"reads `{name}`, to which `{by}` assigns: another process imports {module} anew"
            raise Visible(message)

    def reached(self, value: Any, spelled: str, path: str | None = None) -> Value:
        """An object from outside; Visible for one that must stay where it is."""
        kind = type(value)
        if kind is BuiltinFunctionType:
            owner = value.__self__
            if owner is not None and not is_a(owner, ModuleType, type):
                known_by = spelled if "." in spelled else f"the {type(owner).__name__} of {spelled}"
                return (Bound(self.reached(owner, known_by)[0], value.__name__),)
        elif kind is MethodType:
            self.reached(value.__self__, spelled)
        elif path is not None and kind is not ModuleType and not is_plain(value) and not callable_kind(value):
            why = effect_of(path, alike=self.alike) if not is_users_path(path) else None
            if why is not None:
                raise Visible(why)
        why = why_alone(value, spelled, alike=self.alike)
        if why is not None:
            raise Visible(why)
        return (Known(value, spelled, path),)

    def module(self, name: str) -> Value:
        """A module that the code imports."""
        found = sys.modules.get(name)
        return (Absent(name),) if found is None else self.reached(found, name)

    # -- attributes

    def attribute(self, frame: Frame, owner: Value, name: str) -> Value:
        return union(*(self._attribute(frame, atom, name) for atom in owner))

    def _attribute(self, frame: Frame, atom: Atom, name: str) -> Value:
        if isinstance(atom, Absent):
            return (Absent(f"{atom.path}.{name}"),)
        if isinstance(atom, Known):
            kind = type(atom.object)
            if kind is ModuleType:
                return self._of_module(atom, atom.object, name)
            if issubclass(kind, type):
                return self._of_class(atom, atom.object, name)
            return self._of_object(frame, atom, atom.object, name)
        if isinstance(atom, Made) and is_users(atom.kind):
            found = in_class(atom.kind, name)
            if is_a(found, property):
                return self._property(frame, atom, found, name)
            if found is ABSENT or is_a(found, MemberDescriptorType):
                return union(OWN, atom.inner, self.hidden)
            if not is_a(found, FunctionType, classmethod, staticmethod):
                return union(OWN, self.reached(found, f"{atom.kind.__name__}.{name}"))
        return (Bound(atom, name),)

    def _of_module(self, atom: Known, module: ModuleType, name: str) -> Value:
        path = f"{module.__name__}.{name}"
        found = in_module(module, name)
        if found is ABSENT:
            return (Absent(path),)
        if is_users_path(path) and module.__name__ not in MAIN and not is_a(found, FunctionType, type, ModuleType):
            self.imported_anew(vars(module), name, found)
        return self.reached(found, f"{atom.spelled}.{name}", path)

    def _of_class(self, atom: Known, kind: type, name: str) -> Value:
        found = in_class(kind, name)
        spelled = f"{atom.spelled}.{name}"
        if found is ABSENT or is_a(found, classmethod) or not is_users(kind):
            return (Bound(atom, name),)
        if is_a(found, staticmethod):
            return (Known(found.__func__, spelled),)
        return self.reached(found, spelled)

    def _of_object(self, frame: Frame, atom: Known, value: Any, name: str) -> Value:
        spelled = f"{atom.spelled}.{name}"
        kind = type(value)
        if name == "__class__":
            return (Known(kind, spelled),)
        if name == "__dict__":
            return (Part(spelled),)
        found = in_class(kind, name)
        if found is not ABSENT and users_method(type(found), "__get__") is not None:
            message = f"looks up `{spelled}` by code of its class"
            raise Visible(message)
        if is_a(found, property) and is_users(kind):
            return self._property(frame, atom, found, name)
        if is_a(found, functools.cached_property) and name not in fields(value):
            return union(OWN, self.called(frame, found.func, spelled, Arguments([(atom,)])), (Part(spelled),))
        held = in_object(value, name)
        if held is not ABSENT:
            if name in fields(value):
                self.read_from(value, name, held)
            return self.reached(held, spelled)
        if is_users(kind):
            for special in ("__getattribute__", "__getattr__"):
                if users_method(kind, special) is not None:
                    message = f"looks up attributes of `{atom.spelled}` by code of its class"
                    raise Visible(message)
            if is_a(found, staticmethod):
                return (Known(found.__func__, spelled),)
            if found is not ABSENT and not is_a(found, FunctionType, classmethod):
                return self.reached(found, spelled)
        return (Bound(atom, name),)

    def _property(self, frame: Frame, atom: Atom, found: property, name: str) -> Value:
        return self.called(frame, found.fget, f"{spelling(atom)}.{name}", Arguments([(atom,)]))


_READING = words(
    """__len__ __iter__ __next__ __reversed__ __bool__ __int__ __float__ __index__ __complex__ __abs__ __hash__
    __bytes__ __fspath__ __array__ __trunc__ __floor__ __ceil__ __round__ __copy__"""
)
_COMPARING = words("__eq__ __ne__ __lt__ __le__ __gt__ __ge__ __getitem__ __contains__ __add__ __radd__ __deepcopy__")


class Items(Reading):
    """What items and iteration give, and what operators do."""

    @abstractmethod
    def escaped(self, frame: Frame, arguments: Arguments, given: Value = OWN) -> Value:
        """What functions give that are handed to somebody else: they are called there, with what else was handed."""

    def put(self, frame: Frame, value: Value) -> None:
        """Something is put into an object of the call's own: whatever is taken out of one may be it, and be called."""
        given = outside(self.escaped(frame, Arguments([value])))
        self._given = union(self._given, tuple(Part(spelling(atom)) for atom in given))
        more = data(outside(value))
        hidden = union(self.hidden, more)
        if OWN[0] in hidden:  # there are too many functions to keep them apart: what they give stands for them
            hidden = union(OWN, unmade(self.hidden), unmade(more), self._given)
        if set(hidden) != set(self.hidden):
            self.hidden = hidden
            self.forget()
            frame.changed = True

    def each(self, frame: Frame, value: Value, *, values: bool = False) -> Value:
        """What comes of going through a value, or through the `values` of a mapping."""
        found: list[Value] = [()]
        for atom in value:
            if is_dataset(atom) and outside((atom,)):
                message = f"reads the data set `{spelling(atom)}`"
                raise Visible(message)
            if isinstance(atom, Made):
                found.append(union(OWN, atom.inner, self.hidden))
            elif isinstance(atom, Inner) or (isinstance(atom, Known) and is_function(atom.object)):
                found.append((*OWN, atom))  # it stands for what holds it, a pair in a list
            elif isinstance(atom, Known):
                found.append(self._reached_all(content(atom, values=values)))
            else:
                found.append((*OWN, Part(spelling(atom))) if is_outside(atom) else union(OWN, self.hidden))
        return union(*found) or OWN

    def _reached_all(self, value: Value) -> Value:
        found = (self.reached(atom.object, atom.spelled) if isinstance(atom, Known) else (atom,) for atom in value)
        return union((), *found)

    def item(self, frame: Frame, owner: Value, key: Value) -> Value:
        return union(*(self._item(frame, atom, key) for atom in owner))

    def _item(self, frame: Frame, atom: Atom, key: Value) -> Value:
        part = any(isinstance(one, Made) and one.kind is slice for one in key)
        if isinstance(atom, Made):
            return (atom,) if part and atom.kind in CONTAINERS else self._users_item(frame, atom, key)
        if isinstance(atom, Known):
            value = atom.object
            kind = type(value)
            if kind is defaultdict:
                message = f"may add a key to `{atom.spelled}`, a defaultdict"
                raise Visible(message)
            if kind in MAPPINGS or kind in (list, tuple):
                constant = _constant(key)
                if constant is not ABSENT:
                    return self._known_item(atom, value, constant)
                inner = content(atom, values=True)
                return (Made(kind, outside(inner)),) if part else self._reached_all(inner)
            if kind is np.ndarray and value.ndim == 1 and part:
                return (Part(atom.spelled),)
            return self._users_item(frame, atom, key)
        return self.each(frame, (atom,))

    def _known_item(self, atom: Known, value: Any, key: Any) -> Value:
        try:
            found = value[key]
        except (LookupError, TypeError):  # the call raises it, too
            return OWN
        return self.reached(found, f"{atom.spelled}[{key!r}]")

    def _users_item(self, frame: Frame, atom: Known | Made, key: Value) -> Value:
        return union(*(self._special(frame, atom, name, key) for name in ("__getitem__", "__missing__")))

    def _special(self, frame: Frame, atom: Known | Made, name: str, *given: Value) -> Value:
        """An operator of a class of the user's."""
        kind = atom.kind if isinstance(atom, Made) else type(atom.object)
        method = users_method(kind, name)
        if method is None:
            return self.each(frame, (atom,), values=True)
        return self.called(frame, method, f"{spelling(atom)}.{name}", Arguments([(atom,), *given]))

    def operator(self, frame: Frame, value: Value, name: str, *given: Value) -> Value:
        """What an operator on a value gives, where a class of the user's says so; nothing where none does."""
        found: list[Value] = [()]
        for atom in value:
            if isinstance(atom, (Known, Made)):
                kind = atom.kind if isinstance(atom, Made) else type(atom.object)
                method = users_method(kind, name)
                if method is not None and is_users(method):  # a dataclass has some that it has not written
                    found.append(self.called(frame, method, f"{spelling(atom)}.{name}", Arguments([(atom,), *given])))
        return union(*found)

    def held(self, value: Value) -> Value:
        """Objects of the user's classes that a container holds."""
        return union((), *(atom.inner for atom in value if isinstance(atom, Made)))

    def shown(self, frame: Frame, value: Value) -> None:
        """A value becomes part of a text."""
        for name in ("__str__", "__repr__"):
            self.operator(frame, value, name)
        self.operator(frame, value, "__format__", OWN)

    def looked_at(self, frame: Frame, arguments: Arguments) -> None:
        """A function of a library's may ask an object of the user's for anything that reads it."""
        value = tuple(atom for atom in arguments.all() if isinstance(atom, (Known, Made)))
        if any(is_users(atom.kind if isinstance(atom, Made) else type(atom.object)) for atom in value):
            self.shown(frame, value)
            for name in _READING:
                self.operator(frame, value, name)
            for name in _COMPARING:
                self.operator(frame, value, name, OWN)

    def attribute_set(self, frame: Frame, owner: Value, name: str, value: Value | None) -> None:
        """What a class of the user's does where an attribute is assigned to, or deleted."""
        given: list[Value] = [] if value is None else [value]
        special = "__delattr__" if value is None else "__setattr__"
        self.operator(frame, owner, special, (Known(name, "a name"),), *given)
        for atom in owner:
            found: Any = in_class(atom.kind, name) if isinstance(atom, Made) and is_users(atom.kind) else ABSENT
            setter = (found.fdel if value is None else found.fset) if is_a(found, property) else None
            if setter is not None:
                self.called(frame, setter, f"{spelling(atom)}.{name}", Arguments([(atom,), *given]))

    def managed(self, frame: Frame, value: Value) -> None:
        """A with block."""
        for atom in value:
            kind = atom.kind if isinstance(atom, Made) else type(atom.object) if isinstance(atom, Known) else None
            if kind is not None and is_users(kind):
                for name, count in (("__enter__", 0), ("__exit__", 3)):
                    self._special(frame, atom, name, *[OWN] * count)  # type: ignore[arg-type]
            elif is_outside(atom):
                message = f"uses `{spelling(atom)}` in a with statement"
                raise Visible(message)

    def combined(self, left: Value, right: Value) -> Value:
        """The result of an operator on two values: new, but a container still holds what was in both."""
        containers = [atom for atom in (*left, *right) if _contains(atom)]
        if not containers:
            return OWN
        first = containers[0]
        kind = first.kind if isinstance(first, Made) else type(first.object)
        inner = (one.inner if isinstance(one, Made) else outside(content(one, values=True)) for one in containers)
        return (Made(kind, union((), *inner)),)

    def filled(self, container: Value, inner: Value) -> Value:
        """A container that has been given more to hold."""
        if not inner:
            return container
        return tuple(
            Made(atom.kind, union(atom.inner, inner)) if isinstance(atom, Made) else atom for atom in container
        )


def _contains(atom: Atom) -> TypeGuard[Made | Known]:
    if isinstance(atom, Made):
        return atom.kind in CONTAINERS
    return isinstance(atom, Known) and type(atom.object) in CONTAINERS


def _constant(key: Value) -> Any:
    if len(key) == 1 and isinstance(key[0], Known) and type(key[0].object) in (str, bytes, int, bool):
        return key[0].object
    return ABSENT
