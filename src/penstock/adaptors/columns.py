"""The columns of an element, by name: keys and numbers of its nest, joined by dots."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.block.structure import Structure, flatten
from penstock.errors import InvalidArgumentError, InvalidTypeError


def column_names(structure: Structure) -> list[str]:
    """Names in the order of the leaves; of an element that is a single value, the empty one.

    >>> column_names(flatten(({"image": 1, "id": 2}, 3))[1])
    ['0.image', '0.id', '1']
    """
    if structure.kind is None:
        return [""]
    names = structure.names or range(len(structure.children))
    found = []
    for name, child in zip(names, structure.children, strict=True):
        found += [f"{name}.{below}" if below else str(name) for below in column_names(child)]
    return found


def called(name: str) -> str:
    """How a sentence begins about a column."""
    return f"Column {name!r}" if name else "The element"


def checked_names(parameter: str, names: Any) -> frozenset[str]:
    """Names of columns as a caller gives them: one, or several."""
    several = [names] if isinstance(names, str) else names
    if not isinstance(several, Iterable) or not all(isinstance(name, str) for name in several):
        message = f"{parameter} takes names of columns, got {names!r}."
        raise InvalidTypeError(message, hint='Such as "id", or ["0.id", "1"] for parts of a tuple.')
    return frozenset(several)


def check_there(parameter: str, names: Iterable[str], there: Sequence[str]) -> None:
    """Raise InvalidArgumentError for names that no column has."""
    missing = sorted(set(names) - set(there))
    if missing:
        message = f"{parameter} names the column {missing[0]!r}, which the element does not have."
        have = ", ".join(map(repr, there)) if any(there) else "none with a name: it is a single value"
        raise InvalidArgumentError(message, hint=f"It has {have}.")


def spec_columns(spec: Any) -> list[tuple[str, Any]]:
    """The columns of a nest of specs."""
    leaves, structure = flatten(spec)
    return list(zip(column_names(structure), leaves, strict=True))
