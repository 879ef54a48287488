"""Frozen: the base of classes that are frozen dataclasses without being compiled as such."""

from __future__ import annotations

import functools
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NoReturn, Self, dataclass_transform


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
            facts, (defaults, factories, names) = vars(self), _defaults(type(self))
            facts.update(defaults)
            facts.update(given)
            for name, factory in factories:
                if name not in given:
                    facts[name] = factory()
            if facts.keys() != names:
                _refuse(type(self), facts)
            self.__post_init__()

    def __post_init__(self) -> None:
        """Check the fields."""

    def over(self, **others: Any) -> Self:
        """The same with other values in some fields, which are right whatever they are: nothing is checked again.

        `dataclasses.replace` takes 8 µs for it, which a chain of steps takes several times for each.
        """
        kind: Any = type(self)
        made, own = object.__new__(kind), vars(self)
        vars(made).update({name: own[name] for name in _defaults(kind)[2]}, **others)
        found: Self = made
        return found

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
def _defaults(kind: Any) -> tuple[dict[str, Any], tuple[tuple[str, Any], ...], frozenset[str]]:
    """The fields of a class: defaults, what makes others, and the names of all."""
    every = fields(kind)
    defaults = {each.name: each.default for each in every if each.default is not MISSING}
    factories = tuple((each.name, each.default_factory) for each in every if each.default_factory is not MISSING)
    return defaults, factories, frozenset(each.name for each in every)


def _refuse(kind: Any, given: dict[str, Any]) -> NoReturn:
    """Say which field there is not, or which was not given."""
    names = [each.name for each in fields(kind)]
    lacking = next((name for name in names if name not in given), None)
    if lacking is not None:
        message = f"{kind.__qualname__} needs {lacking}"
        raise TypeError(message)
    message = f"{kind.__qualname__} has no field {next(name for name in given if name not in names)!r}"
    raise TypeError(message)


def _fields(one: Frozen) -> tuple[Any, ...]:
    return fields(one)  # type: ignore[arg-type]  # every subclass is a dataclass
