"""Parameters: what a function is given by a call, by its defaults, and by what it closes over."""

from __future__ import annotations

from inspect import (
    CO_VARARGS,
    CO_VARKEYWORDS,
)
from types import CodeType, FunctionType
from typing import Any

from penstock.trace.effects.values import (
    OWN,
    Arguments,
    Atom,
    Known,
    Made,
    Value,
    Visible,
    is_a,
    outside,
    union,
)


def unfolded(partial: Any, arguments: Arguments, spelled: str) -> tuple[Atom, Arguments]:
    """A partial function with all its arguments. Its parts are read as the class, and not a subclass, has them."""
    first = [(Known(value, f"{spelled}'s argument"),) for value in partial.args]
    named = {name: (Known(value, f"{spelled}'s {name}"),) for name, value in partial.keywords.items()}
    every = Arguments([*first, *arguments.positional], {**named, **arguments.named}, arguments.rest)
    return Known(partial.func, spelled), every


def closure(function: FunctionType) -> list[tuple[Any, str]]:
    return list(zip(function.__closure__ or (), function.__code__.co_freevars, strict=True))


def defaults(function: FunctionType) -> dict[str, Value]:
    """What parameters stand for that are left out."""
    code = function.__code__
    given = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(given) : code.co_argcount]
    values = {**dict(zip(names, given, strict=True)), **(function.__kwdefaults__ or {})}
    return {name: (Known(value, name),) for name, value in values.items()}


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
