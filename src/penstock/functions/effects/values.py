"""What is known of a value while code is read: the things it may be; and what a call gives its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from inspect import (
    CO_VARARGS,
    CO_VARKEYWORDS,
)
from types import CodeType
from typing import Any

import numpy as np

from penstock.functions.ownership import is_frozen


@dataclass(frozen=True, slots=True)
class Own:
    """Part of the element, or made by this call: nobody else can see what becomes of it."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An object that the function reaches from outside, as it is spelled there, and its place in a library."""

    object: Any
    spelled: str
    path: str | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and other.object is self.object

    def __hash__(self) -> int:
        return id(self.object)


@dataclass(frozen=True, slots=True)
class Part:
    """Something inside an object from outside; which one depends on the element."""

    spelled: str


@dataclass(frozen=True, slots=True)
class Made:
    """An object of a known kind that this call made; `inner` is what it holds of things from outside."""

    kind: type
    inner: Value = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """An attribute, perhaps a method, of something."""

    owner: Atom
    name: str


@dataclass(frozen=True, slots=True)
class Absent:
    """Something of a module that is not loaded, or not loaded that far."""

    path: str


@dataclass(slots=True, eq=False)
class Cell:
    """A variable shared between a function and those inside it; not `own` if it is from outside what is read."""

    value: Value = ()
    own: bool = True


@dataclass(frozen=True, slots=True)
class Cells:
    """A tuple of cells: the closure of a function being made."""

    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Inner:
    """A function or comprehension that the code makes."""

    code: CodeType
    cells: tuple[Cell, ...] = ()
    defaults: Value = ()


@dataclass(frozen=True, slots=True)
class Null:
    """The empty place that calls have on the stack."""


Atom = Own | Known | Part | Made | Bound | Absent | Cell | Cells | Inner | Null
Value = tuple[Atom, ...]

OWN: Value = (Own(),)
NULL: Value = (Null(),)
_MOST = 16  # things a value may be before it is only "part of" one of them


@dataclass(slots=True)
class Arguments:
    """What a function is called with; `rest` are further ones, of unknown number."""

    positional: list[Value] = field(default_factory=list)
    named: dict[str, Value] = field(default_factory=dict)
    rest: Value = ()

    def all(self) -> Value:
        return union(*self.positional, *self.named.values(), self.rest)


class Visible(Exception):
    """What the code does that could be noticed; the message completes "it …"."""


def union(*values: Value) -> Value:
    """A value that may be any of these."""
    if len(values) == 1:
        return values[0]
    found = tuple(dict.fromkeys(atom for value in values for atom in value))
    if len(found) <= _MOST:
        return found
    spelled = next((spelling(atom) for atom in found if is_outside(atom)), None)
    return OWN if spelled is None else (*OWN, Part(spelled))


def is_outside(atom: Atom) -> bool:
    """Whether a change of it could be seen by others than this call."""
    if isinstance(atom, Bound):
        return is_outside(atom.owner)
    if isinstance(atom, Known):
        return not is_plain(atom.object)
    return isinstance(atom, Part)


def outside(value: Value) -> Value:
    """What of a value, or inside it, others could see; and functions that the code makes, which may do so."""
    found: list[Atom] = []
    for atom in value:
        if isinstance(atom, Made):
            found.extend(outside(atom.inner))
        elif is_outside(atom) or isinstance(atom, Inner):
            found.append(atom)
    return tuple(found)


def spelling(atom: Atom) -> str:
    match atom:
        case Known() | Part():
            return atom.spelled
        case Bound():
            return f"{spelling(atom.owner)}.{atom.name}"
        case Absent():
            return atom.path
        case Inner():
            return atom.code.co_name
        case Made() if held := outside(atom.inner):
            return spelling(held[0])
    return "a value"


def change(value: Value, does: Callable[[str], str]) -> None:
    """Refuse what changes something from outside: `does` says what it does, of its name."""
    for atom in value:
        if is_outside(atom):
            raise Visible(does(f"`{spelling(atom)}`"))


def holding(kind: type, values: Iterable[Value]) -> Value:
    """A new container around values."""
    return (Made(kind, union((), *(outside(value) for value in values))),)


_PLAIN: tuple[type, ...] = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, range)


def is_a(value: Any, *kinds: type) -> bool:
    """Whether a value is of a kind. `isinstance` would ask the value itself where its class is another."""
    return issubclass(type(value), kinds)


def is_plain(value: Any) -> bool:
    """Whether a value can be changed by nobody, and holds nothing that can."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if kind is tuple or kind is frozenset:
        return all(map(is_plain, value))
    # of the class, since an object may say anything about its own
    known = issubclass(kind, (np.generic, np.dtype, Enum)) or (kind.__module__, kind.__name__) in _ALSO_PLAIN
    return known or is_frozen(kind)


_ALSO_PLAIN = {
    ("re", "Pattern"),
    ("_struct", "Struct"),
    ("datetime", "datetime"),
    ("datetime", "date"),
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
    ("decimal", "Decimal"),
    ("fractions", "Fraction"),
    ("uuid", "UUID"),
    ("pathlib", "PosixPath"),
    ("pathlib", "PurePosixPath"),
    ("pathlib", "WindowsPath"),
    ("pathlib._local", "PosixPath"),
    ("pathlib._local", "WindowsPath"),
    ("operator", "itemgetter"),
    ("operator", "attrgetter"),
}


def unfolded(partial: Any, arguments: Arguments, spelled: str) -> tuple[Atom, Arguments]:
    """A partial function with all its arguments. Its parts are read as the class, and not a subclass, has them."""
    first = [(Known(value, f"{spelled}'s argument"),) for value in partial.args]
    named = {name: (Known(value, f"{spelled}'s {name}"),) for name, value in partial.keywords.items()}
    every = Arguments([*first, *arguments.positional], {**named, **arguments.named}, arguments.rest)
    return Known(partial.func, spelled), every


def bound(code: CodeType, arguments: Arguments, defaults: dict[str, Value] | Value) -> dict[str, Value]:
    """The parameters of a function with what they are given."""
    count = code.co_argcount
    every = count + code.co_kwonlyargcount
    found: dict[str, Value] = {}
    for place, name in enumerate(code.co_varnames[:every]):
        by_place = arguments.positional[place] if place < min(count, len(arguments.positional)) else ()
        given = by_place or arguments.named.get(name, ())
        left_out = defaults.get(name, ()) if isinstance(defaults, dict) else union(OWN, defaults)
        found[name] = given or union(arguments.rest, left_out) or OWN
    more = outside(union((), *arguments.positional[count:], *arguments.named.values(), arguments.rest))
    starred = bool(code.co_flags & CO_VARARGS) + bool(code.co_flags & CO_VARKEYWORDS)
    found.update({name: (Made(tuple, more),) for name in code.co_varnames[every : every + starred]})
    return found


def is_seeded(arguments: Arguments) -> bool:
    given = [value for value in (*arguments.positional, *arguments.named.values()) if value]
    return bool(given) and not any(isinstance(atom, Known) and atom.object is None for atom in given[0])


def check_mode(arguments: Arguments) -> None:
    """Files are read, and not written."""
    given = union((), *arguments.positional[1:2], arguments.named.get("mode", ()), arguments.rest)
    for atom in given:
        if not (isinstance(atom, Known) and is_a(atom.object, str)) or set(atom.object) & set("wax+"):
            message = "opens a file for writing"
            raise Visible(message)
