"""Nested elements taken apart and put together again: tuples, dicts, named tuples and dataclasses of leaves.

Lists are tensors, never structure, as in tf.data. A dataclass that carries `LEAF_MARK` is a leaf: specs, sparse and
ragged tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from penstock.errors import InvalidTypeError

LEAF_MARK = "__penstock_leaf__"


@dataclass(frozen=True, slots=True)
class Structure:
    """The shape of a nest without its leaves; two elements of one stream always have equal structures."""

    kind: type | None  # None: a leaf; tuple; dict; else a named tuple or dataclass type
    names: tuple[Any, ...] = ()  # dict keys or field names, in the element's own order
    children: tuple[Structure, ...] = ()
    size: int = 1  # number of leaves
    flat: bool = True  # every child is a leaf, or this is one

    @property
    def is_leaf(self) -> bool:
        return self.kind is None

    @property
    def unpacks(self) -> bool:
        """Whether a user's function gets the parts as separate arguments: exactly for plain tuples."""
        return self.kind is tuple

    def build(self, leaves: Sequence[Any]) -> Any:
        """The inverse of `flatten`."""
        if self.kind is None:
            return leaves[0]
        if self.flat:
            return self._assemble(leaves)
        parts, at = [], 0
        for child in self.children:
            parts.append(child.build(leaves[at : at + child.size]))
            at += child.size
        return self._assemble(parts)

    def _assemble(self, parts: Sequence[Any]) -> Any:
        if self.kind is tuple:
            return tuple(parts)
        if self.kind is dict:
            return dict(zip(self.names, parts, strict=True))
        assert self.kind is not None
        if issubclass(self.kind, tuple):
            return self.kind(*parts)
        return self.kind(**dict(zip(self.names, parts, strict=True)))

    def rows(self, columns: Sequence[list[Any]]) -> list[Any]:
        """Per-element nests from per-leaf lists of values; the hot path of handing elements to Python."""
        if self.kind is None:
            return columns[0]
        if not columns:
            msg = "a structure without leaves has no rows"
            raise ValueError(msg)
        if self.kind is tuple and self.flat:
            return list(zip(*columns, strict=True))
        if self.kind is dict and self.flat:
            names = self.names
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return [self.build(row) for row in zip(*columns, strict=True)]

    def flatten(self, element: Any) -> list[Any]:
        """Leaves of an element that must have this structure; raises InvalidTypeError where it has another."""
        if self.kind is None:
            return [element]
        if self.kind is tuple and self.flat and type(element) is tuple and len(element) == self.size:
            return list(element)
        if self.kind is dict and self.flat and type(element) is dict and len(element) == self.size:
            try:
                return [element[name] for name in self.names]
            except KeyError:
                pass  # reported below, with both structures spelled out
        _, found = flatten(element)
        if found.same_as(self):
            return self._in_order(element)
        message = f"The structure of the element changed: expected {self.describe()}, got {found.describe()}."
        raise InvalidTypeError(message, hint="Every element of a data set has the same nest of tuples and dicts.")

    def _in_order(self, element: Any) -> list[Any]:
        if self.kind is None:
            return [element]
        leaves: list[Any] = []
        for part, child in zip(_parts(element, self), self.children, strict=True):
            leaves.extend(child._in_order(part))
        return leaves

    def same_as(self, other: Structure) -> bool:
        """Equality that does not look at the order of dict keys."""
        if self.kind is not other.kind or len(self.children) != len(other.children):
            return False
        if self.kind is dict:
            theirs = dict(zip(other.names, other.children, strict=True))
            return set(self.names) == set(theirs) and all(
                child.same_as(theirs[name]) for name, child in zip(self.names, self.children, strict=True)
            )
        return all(a.same_as(b) for a, b in zip(self.children, other.children, strict=True))

    def describe(self, leaves: Sequence[Any] | None = None) -> str:
        """The nest as text, with `leaves` (or `·`) in the leaf positions."""
        texts = iter(["·"] * self.size if leaves is None else [str(leaf) for leaf in leaves])
        return self._describe(texts)

    def _describe(self, texts: Iterator[str]) -> str:
        if self.kind is None:
            return next(texts)
        parts = [child._describe(texts) for child in self.children]
        if self.kind is tuple:
            return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
        if self.kind is dict:
            return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(self.names, parts, strict=True)) + "}"
        assert self.kind is not None
        named = ", ".join(f"{name}={part}" for name, part in zip(self.names, parts, strict=True))
        return f"{self.kind.__name__}({named})"

    def paths(self, prefix: str = "") -> list[str]:
        """A readable address for every leaf, such as `[1]['image']`; empty for a lone leaf."""
        if self.kind is None:
            return [prefix]
        found = []
        for i, child in enumerate(self.children):
            if self.kind is tuple:
                step = f"[{i}]"
            elif self.kind is dict:
                step = f"[{self.names[i]!r}]"
            else:
                step = f".{self.names[i]}"
            found.extend(child.paths(prefix + step))
        return found


LEAF = Structure(None)


def _is_dataclass_value(value: Any) -> bool:
    return is_dataclass(value) and not isinstance(value, type) and not hasattr(type(value), LEAF_MARK)


def is_nest(value: Any) -> bool:
    """Whether a value is taken apart (tuple, dict, named tuple, dataclass) instead of being a leaf."""
    return isinstance(value, (tuple, Mapping)) or _is_dataclass_value(value)


def _parts(element: Any, structure: Structure) -> list[Any]:
    if structure.kind is tuple or isinstance(element, tuple):
        return list(element)
    if structure.kind is dict:
        return [element[name] for name in structure.names]
    return [getattr(element, name) for name in structure.names]


def _node(kind: type, names: tuple[Any, ...], children: list[Structure]) -> Structure:
    return Structure(
        kind,
        names,
        tuple(children),
        sum(child.size for child in children),
        all(child.is_leaf for child in children),
    )


def nest(outer: Structure, parts: Sequence[Structure]) -> Structure:
    """`outer` with its leaves replaced by whole structures, in order."""
    remaining = iter(parts)

    def fill(structure: Structure) -> Structure:
        if structure.kind is None:
            return next(remaining)
        return _node(structure.kind, structure.names, [fill(child) for child in structure.children])

    return fill(outer)


def flatten(element: Any) -> tuple[list[Any], Structure]:
    """Take an element apart into its leaves, depth first, and the structure that puts them together again.

    >>> leaves, structure = flatten((1, {"a": 2, "b": (3, 4)}))
    >>> leaves
    [1, 2, 3, 4]
    >>> structure.build([v * 10 for v in leaves])
    (10, {'a': 20, 'b': (30, 40)})
    """
    kind: type
    if isinstance(element, tuple):
        names = tuple(getattr(element, "_fields", ()))
        kind = type(element) if names else tuple
        parts = list(element)
    elif isinstance(element, Mapping):
        kind, names, parts = dict, tuple(element), list(element.values())
    elif _is_dataclass_value(element):
        kind = type(element)
        names = tuple(field.name for field in fields(element) if field.init)
        parts = [getattr(element, name) for name in names]
    else:
        return [element], LEAF
    leaves: list[Any] = []
    children = []
    for part in parts:
        below, child = flatten(part)
        leaves.extend(below)
        children.append(child)
    return leaves, _node(kind, names, children)


def map_leaves(function: Any, element: Any) -> Any:
    """Apply a function to every leaf and keep the structure."""
    leaves, structure = flatten(element)
    return structure.build([function(leaf) for leaf in leaves])
