"""Items: what containers hold, and in which order, as the code that is read finds it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from penstock.ownership import is_users
from penstock.trace.effects.objects import (
    ABSENT,
    CONTAINERS,
    MAPPINGS,
    content,
    data,
    users_method,
)
from penstock.trace.effects.reading import Reading
from penstock.trace.effects.values import (
    OWN,
    Arguments,
    Atom,
    Known,
    Made,
    Part,
    Value,
    Visible,
    is_outside,
    outside,
    spelling,
    union,
)

if TYPE_CHECKING:
    from penstock.trace.effects.interpreter import Frame

_SETS = (set, frozenset)


class Items(Reading):
    """What items and iteration give, and what operators do."""

    def put(self, frame: Frame, value: Value) -> None:
        """Something is put into an object of the call's own: whatever is taken out of one may be it."""
        hidden = union(self.hidden, data(outside(value)))
        if set(hidden) != set(self.hidden):
            self.hidden = hidden
            self.forget()
            frame.changed = True

    def each(self, frame: Frame, value: Value, *, values: bool = False) -> Value:
        """What comes of going through a value, or through the `values` of a mapping."""
        found: list[Value] = [()]
        for atom in value:
            if isinstance(atom, Made):
                found.append(union(OWN, atom.inner, self.hidden))
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

    def operator(self, frame: Frame, value: Value, name: str) -> None:
        """What an operator on a value does, where a class of the user's says so."""
        for atom in value:
            if isinstance(atom, (Known, Made)):
                kind = atom.kind if isinstance(atom, Made) else type(atom.object)
                method = users_method(kind, name)
                if method is not None:
                    rest = [OWN] if name == "__contains__" else []
                    self.called(frame, method, f"{spelling(atom)}.{name}", Arguments([(atom,), *rest]))

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

    def ordered(self, value: Value) -> None:
        """Going through a value, one after the other: the order of a set of texts is another in every process."""
        for atom in value:
            by_numbers = isinstance(atom, Known) and type(atom.object) in _SETS and _ordered_alike(atom.object)
            kind = atom.kind if isinstance(atom, Made) else type(atom.object) if isinstance(atom, Known) else None
            if kind in _SETS and not by_numbers:
                message = "goes through a set, whose order differs between processes"
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


def _ordered_alike(items: set[Any] | frozenset[Any]) -> bool:
    return len(items) < 2 or all(type(item) is int for item in items)
