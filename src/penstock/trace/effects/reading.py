"""Reading: names and attributes, as the code that is read finds them."""

from __future__ import annotations

import functools
import sys
import weakref
from abc import ABC, abstractmethod
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from penstock.ownership import is_users, is_users_path
from penstock.trace.effects.imported import assigning
from penstock.trace.effects.libraries import why_visible
from penstock.trace.effects.objects import (
    ABSENT,
    callable_kind,
    fields,
    in_class,
    in_module,
    in_object,
    users_method,
    why_alone,
)
from penstock.trace.effects.values import (
    OWN,
    Absent,
    Arguments,
    Atom,
    Bound,
    Known,
    Made,
    Part,
    Value,
    Visible,
    is_a,
    is_plain,
    spelling,
    union,
)
from penstock.trace.effects.watched import Watched

if TYPE_CHECKING:
    from penstock.trace.effects.interpreter import Frame


class Reading(ABC):
    """What names and attributes give."""

    def __init__(self, watched: list[Watched]) -> None:
        self.watched = watched  # what was read, and how it was
        self.hidden: Value = ()  # things from outside that were put into objects of the call's own

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
            why = why_visible(path) if not is_users_path(path) else None
            if why is not None:
                raise Visible(why)
        why = why_alone(value, spelled)
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
        if is_users_path(path) and module.__name__ != "__main__" and not is_a(found, FunctionType, type, ModuleType):
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
