"""Watched: a function or object that was read, and how it then was. It does not keep it alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from penstock.trace.effects.objects import fields


@dataclass(frozen=True, slots=True)
class Watched:
    """What stood in an object's attribute, or, without a name, in all places that a function reads."""

    owner: weakref.ref[Any]
    name: str | None
    stood: tuple[int, ...]

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


def _places(function: FunctionType) -> tuple[int, ...]:
    own = (function.__code__, function.__defaults__, function.__kwdefaults__)
    named = (function.__globals__.get(name) for code in codes(function.__code__) for name in code.co_names)
    return tuple(map(id, (*own, *_held(function), *named)))


def _held(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # nothing is in it yet
            yield None


def codes(code: CodeType) -> Iterator[CodeType]:
    """A piece of code and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)
