"""Frozen: the base of classes that are frozen dataclasses without being compiled as such."""

from __future__ import annotations

import functools
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, dataclass_transform


@dataclass_transform(eq_default=True, frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Frozen:
    """A subclass is a frozen dataclass: its annotations are fields, given by keyword, and it is equal by value.

    `dataclass(frozen=True)` writes six methods anew for each class and compiles them: a third of a millisecond of CPU
    time whenever penstock is imported, and for some sixty kinds of steps a fifth of the import. Here they stand once.

    >>> class Point(Frozen):
    ...     x: int
    ...     y: int = 0
    >>> Point(x=1) == Point(x=1, y=0), Point(x=1)
    (True, Point(x=1, y=0))
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False)(cls)

    if not TYPE_CHECKING:  # a type checker makes one of the fields

        def __init__(self, **given: Any) -> None:
            facts = vars(self)
            for name, default, factory in _defaults(type(self)):
                if name in given:
                    facts[name] = given.pop(name)
                elif default is not MISSING:
                    facts[name] = default
                elif factory is not MISSING:
                    facts[name] = factory()
                else:
                    message = f"{type(self).__qualname__} needs {name}"
                    raise TypeError(message)
            if given:
                message = f"{type(self).__qualname__} has no field {next(iter(given))!r}"
                raise TypeError(message)
            self.__post_init__()

    def __post_init__(self) -> None:
        """Check the fields."""

    def __setattr__(self, name: str, value: Any) -> None:
        message = f"cannot assign to field {name!r}"
        raise FrozenInstanceError(message)

    def __delattr__(self, name: str) -> None:
        message = f"cannot delete field {name!r}"
        raise FrozenInstanceError(message)

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if type(self) is type(other) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in _fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, each.name) for each in _fields(self) if each.compare)


@functools.cache
def _defaults(kind: Any) -> tuple[tuple[str, Any, Any], ...]:
    """The names of the fields of a class, each with its default and what makes one."""
    return tuple((each.name, each.default, each.default_factory) for each in fields(kind))


def _fields(one: Frozen) -> tuple[Any, ...]:
    return fields(one)  # type: ignore[arg-type]  # every subclass is a dataclass
