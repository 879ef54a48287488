"""`Origins`: the outer objects that the value of an expression can be or can contain.

Outer objects exist before the call: globals, captured variables, default values, and the objects in them.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

from penstock.functions.objects import is_data, is_function, is_plain
from penstock.functions.ownership import is_users

_MOST_OBJECTS = 16  # that an expression can be


class SideEffect(Exception):
    """The function has a side effect. The text completes a sentence that begins with "it"."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownObject:
    """An outer object with its spelling in the code, or the syntax tree of an inner function."""

    object: Any
    spelled: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KnownObject) and other.object is self.object

    def __hash__(self) -> int:
        return id(self.object)


class Origins(NamedTuple):
    """The outer objects that the value of an expression can be.

    `held` is the spelling of an outer object that the value can contain or be a part of. With `own`, the value can also
    be an argument, or an object that the call creates. With `dataset`, the value is a data set of penstock.
    """

    objects: tuple[KnownObject, ...] = ()
    held: str | None = None
    own: bool = False
    dataset: bool = False

    @property
    def other(self) -> bool:
        """True if the value can also be an object other than `objects`."""
        return self.own or self.held is not None or not self.objects

    @property
    def outside(self) -> str | None:
        """The spelling of an outer object that can be changed through the value."""
        return self.held or next((one.spelled for one in self.objects if not _is_constant(one.object)), None)

    @property
    def data(self) -> Origins:
        """The origins without functions, because code calls functions and does not change them."""
        kept = (one for one in self.objects if is_users(type(one.object)) or not is_function(one.object))
        return self._replace(objects=tuple(kept))

    @property
    def part(self) -> Origins:
        """The origins of a part of the value, or of a container with the value. Only data is allowed."""
        for one in self.objects:
            if not isinstance(one.object, ast.AST) and not is_data(one.object):
                raise SideEffect(f"passes on `{one.spelled}`, an object of class {type(one.object).__qualname__}")
        return Origins((), self.outside, own=True)


NOTHING = Origins()
OWN = Origins(own=True)


def union(*values: Origins) -> Origins:
    """Return the origins of a value that comes from any of these values."""
    objects = tuple(dict.fromkeys(one for value in values for one in value.objects))
    held = next((value.held for value in values if value.held), None)
    own = any(value.own for value in values)
    if len(objects) > _MOST_OBJECTS:
        objects, held, own = objects[:_MOST_OBJECTS], held or Origins(objects).outside, True
    return Origins(objects, held, own, any(value.dataset for value in values))


@dataclass(slots=True)
class Arguments:
    """The arguments of a call. `rest` stands for further arguments of unknown number."""

    positional: list[Origins] = field(default_factory=list)
    named: dict[str, Origins] = field(default_factory=dict)
    rest: Origins | None = None

    @property
    def all(self) -> Origins:
        """The origins of a value that comes from any argument."""
        return union(*self.positional, *self.named.values(), self.rest or NOTHING)


@dataclass(slots=True, eq=False)
class CallFrame:
    """The variables of a function of the user, and those of the functions and comprehensions inside it."""

    function: FunctionType
    imported: bool  # another process imports its module again
    cells: dict[str, Any]
    refused: frozenset[str]  # global and nonlocal names: assigning to them is a side effect
    locals: dict[str, Origins] = field(default_factory=dict)
    inside: list[ast.AST] = field(default_factory=list)  # the current function of the walk, and inner functions
    returned: Origins = NOTHING


def _is_constant(value: Any) -> bool:
    return isinstance(value, ast.AST) or is_plain(value)
