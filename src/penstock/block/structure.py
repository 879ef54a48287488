"""Structures of nested elements: tuples, dicts, named tuples, dataclasses and attrs classes.

Lists are tensors, not structure, as in tf.data. Only a list that a function returns is converted to a tuple
(`components`). `None` is structure without a leaf: every element contains it, and no column stores it. A dataclass with
`LEAF_MARK` is a leaf: specs, sparse and ragged tensors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.errors import InvalidTypeError

LEAF_MARK = "__penstock_leaf__"


SAME_NEST = "Every element of a data set has the same nest of tuples and dicts."


@dataclass(frozen=True, slots=True)
class Structure:
    """The shape of a nest without its leaves. All elements of one data set have equal structures."""

    kind: (
        type | None
    )  # None: a leaf; tuple; dict; NoneType: None; else the type of a named tuple, dataclass or attrs class
    names: tuple[Any, ...] = ()  # dict keys or field names, in the element's own order
    children: tuple[Structure, ...] = ()
    size: int = 1  # number of leaves
    flat: bool = True  # True if every child is a leaf, or this is a leaf

    @property
    def is_leaf(self) -> bool:
        return self.kind is None

    @property
    def holds_none(self) -> bool:
        """True if some component is None."""
        return self.kind is NoneType or any(child.holds_none for child in self.children)

    @property
    def has_names(self) -> bool:
        """True if the nest contains dicts. Their keys may come in another order."""
        return self.kind is dict or any(child.has_names for child in self.children)

    @property
    def unpacks(self) -> bool:
        """True if a user's function receives the parts as separate arguments: only for plain tuples."""
        return self.kind is tuple

    def build(self, leaves: Sequence[Any]) -> Any:
        """Build an element from leaves, the inverse of `flatten`."""
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
            return tuple.__new__(self.kind, parts)
        if self.kind is NoneType:
            return None
        return _rebuilt(self.kind, self.names, parts)

    def rows(self, columns: Sequence[list[Any]]) -> list[Any]:
        """Build one nest per element from one list of values per leaf.

        Every element passes this function, so it is fast.
        """
        if self.kind is None:
            return columns[0]
        if not columns:
            raise ValueError("a structure without leaves has no rows")
        return self._rows(columns, len(columns[0]))

    def _rows(self, columns: Sequence[list[Any]], count: int) -> list[Any]:
        if self.kind is None:
            return columns[0]
        if not self.children:
            return [self._assemble(()) for _ in range(count)]
        parts: Sequence[list[Any]] = columns
        if not self.flat:
            parts, at = [], 0
            for child in self.children:
                parts.append(child._rows(columns[at : at + child.size], count))
                at += child.size
        if self.kind is tuple:
            return list(zip(*parts, strict=True))
        if self.kind is dict:
            names = self.names
            return [dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)]
        return [self._assemble(row) for row in zip(*parts, strict=True)]

    def flatten(self, element: Any) -> list[Any]:
        """Return the leaves of an element of this structure. Raise InvalidTypeError for another structure."""
        if self.kind is None:
            return [element]
        parts = self._parts_of_flat(element)
        if parts is not None:
            return parts
        collected: list[Any] = []
        if self._collect(element, collected) and _LEAVES.issuperset(map(type, collected)):
            return collected
        leaves, found = flatten(element)
        if found == self:
            return leaves
        if found.same_as(self):  # with dict keys in another order
            return collected
        message = f"The structure of the element changed: expected {self.describe()}, got {found.describe()}."
        raise InvalidTypeError(message, hint=SAME_NEST)

    def flatten_up_to(self, element: Any) -> list[Any]:
        """Return the leaves like `flatten`, but accept any value, even a tuple, where this structure has a leaf."""
        leaves: list[Any] = []
        if not self._collect(element, leaves):
            self.flatten(element)  # raises an error that names the difference
            raise AssertionError("a structure that differs and does not")
        return leaves

    def _parts_of_flat(self, element: Any) -> list[Any] | None:
        """Return the parts of a flat tuple or dict, or None for any other element, or if the names differ."""
        if self.kind is tuple and self.flat and type(element) is tuple and len(element) == self.size:
            return list(element)
        if self.kind is dict and self.flat and type(element) is dict and len(element) == self.size:
            try:
                return [element[name] for name in self.names]
            except KeyError:
                pass
        return None

    def _collect(self, element: Any, leaves: list[Any]) -> bool:
        """Append the values where this structure has leaves. Return False for an element of another structure."""
        kind = self.kind
        if kind is None:
            leaves.append(element)
            return True
        parts: Sequence[Any]
        if kind is dict:
            if type(element) is not dict and isinstance(element, Mapping):
                element = dict(element)
            if type(element) is not dict or len(element) != len(self.names):
                return False
            try:
                parts = [element[name] for name in self.names]
            except KeyError:
                return False
        elif type(element) is not kind or (isinstance(element, tuple) and len(element) != len(self.children)):
            return False
        else:
            parts = element if isinstance(element, tuple) else _fields_of(element, self.names)
        if self.flat:
            leaves += parts
            return True
        return all(child._collect(part, leaves) for child, part in zip(self.children, parts, strict=True))

    def same_as(self, other: Structure) -> bool:
        """Return True if the structures are equal, in any order of dict keys."""
        if self.kind is not other.kind or len(self.children) != len(other.children):
            return False
        if self.kind is dict:
            theirs = dict(zip(other.names, other.children, strict=True))
            return set(self.names) == set(theirs) and all(
                child.same_as(theirs[name]) for name, child in zip(self.names, self.children, strict=True)
            )
        return all(a.same_as(b) for a, b in zip(self.children, other.children, strict=True))

    def describe(self, leaves: Sequence[Any] | None = None) -> str:
        """Return the nest as a string, with `leaves` (or `·`) in the positions of leaves."""
        texts = iter(["·"] * self.size if leaves is None else [str(leaf) for leaf in leaves])
        return self._describe(texts)

    def _describe(self, texts: Iterator[str]) -> str:
        if self.kind is None:
            return next(texts)
        if self.kind is NoneType:
            return "None"
        parts = [child._describe(texts) for child in self.children]
        if self.kind is tuple:
            return "(" + ", ".join(parts) + ("," if len(parts) == 1 else "") + ")"
        if self.kind is dict:
            return "{" + ", ".join(f"{name!r}: {part}" for name, part in zip(self.names, parts, strict=True)) + "}"
        assert self.kind is not None
        named = ", ".join(f"{name}={part}" for name, part in zip(self.names, parts, strict=True))
        return f"{self.kind.__name__}({named})"

    def paths(self, prefix: str = "") -> list[str]:
        """Return a readable address for every leaf, such as `[1]['image']`; it is empty for a single leaf."""
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
NONE = Structure(NoneType, size=0)


def components(result: Any) -> Any:
    """Return the components of a function's result: a list becomes a tuple, as in tf.data; nested lists stay arrays.

    >>> components([0, b"hello", [1, 2]])
    (0, b'hello', [1, 2])
    """
    if not isinstance(result, list):
        return result
    if not result:
        message = (
            "The function returned an empty list. A list stands for a tuple of components, which needs at least one."
        )
        raise InvalidTypeError(message, hint=LISTS)
    return tuple(result)


def refuse_none(structure: Structure) -> None:
    """Raise InvalidTypeError if a whole element is None, the result of a function without `return`."""
    if structure.kind is NoneType:
        message = "None is no value; only a component may be None."
        raise InvalidTypeError(message, hint="Does the function return its result on every path?")


LISTS = "Return np.array(list, dtype) for one array, which may be empty or differ in length between elements."


def field_names(kind: type) -> tuple[str, ...] | None:
    """Return the names of all fields of a dataclass or an attrs class, or None for other classes and for leaves."""
    if hasattr(kind, LEAF_MARK):
        return None
    if is_dataclass(kind):
        return tuple(field.name for field in fields(kind))
    attributes = getattr(kind, "__attrs_attrs__", None)  # works without attrs installed
    return None if attributes is None else tuple(attribute.name for attribute in attributes)


def _rebuilt(kind: type, names: tuple[str, ...], parts: Sequence[Any]) -> Any:
    """Return an object with these fields, without a call of the class's own code.

    The constructor has already checked and converted the values. A second call would convert them twice.
    """
    try:
        made: Any = object.__new__(kind)
    except TypeError as error:
        message = f"An element of the class {kind.__name__} cannot be rebuilt from its fields: {error}."
        raise InvalidTypeError(message, hint="Give a tuple, a dict, or a dataclass without a built-in base.") from None
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def _fields_of(element: Any, names: tuple[str, ...]) -> list[Any]:
    """Return the values of all fields. Raise InvalidTypeError for an object with missing or additional attributes."""
    kind = type(element)
    try:
        found = [getattr(element, name) for name in names]
    except AttributeError as error:
        message = f"An element of the class {kind.__name__} lacks a field: {error}."
        raise InvalidTypeError(message, hint="Set every field in __init__ or __post_init__.") from None
    beside = [
        name
        for name in getattr(element, "__dict__", ())
        if name not in names and not isinstance(getattr(kind, name, None), cached_property)
    ]
    if beside:
        message = f"An element of the class {kind.__name__} has the attribute {beside[0]!r}, which is not a field."
        raise InvalidTypeError(message, hint=f"Declare it, such as `{beside[0]}: float = field(init=False)`.")
    return found


def _is_object_with_fields(value: Any) -> bool:
    kind = type(value)
    return (hasattr(kind, "__dataclass_fields__") or hasattr(kind, "__attrs_attrs__")) and not hasattr(kind, LEAF_MARK)


def is_nest(value: Any) -> bool:
    """Return True if a value is a nest (tuple, dict, an object with fields), not a leaf."""
    return isinstance(value, (tuple, Mapping)) or _is_object_with_fields(value)


def _node(kind: type, names: tuple[Any, ...], children: list[Structure]) -> Structure:
    return Structure(
        kind,
        names,
        tuple(children),
        sum(child.size for child in children),
        all(child.is_leaf for child in children),
    )


def nest(outer: Structure, parts: Sequence[Structure]) -> Structure:
    """Return `outer` with its leaves replaced by structures, in order."""
    remaining = iter(parts)

    def fill(structure: Structure) -> Structure:
        if structure.kind is None:
            return next(remaining)
        return _node(structure.kind, structure.names, [fill(child) for child in structure.children])

    return fill(outer)


_NUMBERS = {np.dtype(code).type for code in "?bhilqBHILQefdFD"}
_LEAVES = frozenset({np.ndarray, bytes, str, bool, int, float, list, *_NUMBERS})


def flatten(element: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of an element, depth first, and the structure that rebuilds it.

    >>> leaves, structure = flatten((1, {"a": 2, "b": (3, 4)}))
    >>> leaves
    [1, 2, 3, 4]
    >>> structure.build([v * 10 for v in leaves])
    (10, {'a': 20, 'b': (30, 40)})
    """
    kind: type = type(element)
    if kind in _LEAVES:
        return [element], LEAF
    if element is None:
        return [], NONE
    if isinstance(element, tuple):
        names = tuple(getattr(element, "_fields", ()))
        kind = type(element) if names else tuple
        parts = list(element)
    elif isinstance(element, Mapping):
        kind, names, parts = dict, tuple(element), list(element.values())
    elif _is_object_with_fields(element):
        kind = type(element)
        names = field_names(kind) or ()
        parts = _fields_of(element, names)
    else:
        return [element], LEAF
    leaves: list[Any] = []
    children = []
    for part in parts:
        below, child = flatten(part)
        leaves.extend(below)
        children.append(child)
    return leaves, _node(kind, names, children)


def leaves_rank_open(spec: Any) -> bool:
    """Return True if a spec in the nest has an open rank."""
    return any(getattr(leaf, "open_rank", False) for leaf in flatten(spec)[0])


def map_leaves(function: Any, element: Any) -> Any:
    """Apply a function to every leaf and keep the structure."""
    leaves, structure = flatten(element)
    return structure.build([function(leaf) for leaf in leaves])


def known_bytes(spec: Any) -> tuple[int, bool]:
    """Return the bytes of the parts of known size, and True if all parts have a known size.

    >>> known_bytes((TensorSpec((2, 3), np.float32), TensorSpec((None,), np.int64)))
    (24, False)
    """
    found = [None] if spec is None else [_leaf_bytes(leaf) for leaf in flatten(spec)[0]]
    return sum(size for size in found if size is not None), None not in found


def _leaf_bytes(leaf: Any) -> int | None:
    if not isinstance(leaf, TensorSpec) or leaf.open_rank or leaf.dtype is bytes:
        return None
    extents = [extent for extent in leaf.shape if extent is not None]
    return math.prod(extents) * np.dtype(leaf.dtype).itemsize if len(extents) == len(leaf.shape) else None
