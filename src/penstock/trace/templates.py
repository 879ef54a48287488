"""Templates: descriptions of a function's variables, which are built for each element from the outputs of a graph."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.trace.graph import NotTraceable, Operand
from penstock.trace.tracer import Tracer

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))
_NAMED = (FunctionType, BuiltinFunctionType, ModuleType, type, np.dtype, np.ufunc, np.generic)


@dataclass(frozen=True, slots=True)
class Same:
    """A value that is the same for every element."""

    value: Any


@dataclass(frozen=True, slots=True)
class Itself:
    """The object that is called. A template holds no reference to it, so that the object can be freed."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A value of the element: output `index` of the graph."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class TemplateNest:
    """A tuple, list or dict that is created for each element."""

    kind: type
    keys: tuple[Any, ...]
    items: tuple[Template, ...]


Template = Same | Itself | Slot | TemplateNest


class Templates:
    """Converts variables of a traced function to templates. Two variables with one value have one template.

    The function gets the values in `given` in addition to the element. `outside` has the ids of other objects that
    existed before the call. A `twin` stands for the object that is called.
    """

    def __init__(self, given: Sequence[Any], outside: Collection[int], twin: Any) -> None:
        self._given = given
        self._outside = outside
        self._twin = twin
        self.outputs: list[Operand] = []
        self._places: dict[Operand, int] = {}  # positions in `outputs`
        self._made: dict[int, Template] = {}
        self._values: list[Any] = []  # so that no id is used twice

    def template(self, value: Any) -> Template:
        if type(value) is Tracer:
            if not isinstance(value.spec, TensorSpec):
                raise NotTraceable("a variable is a sparse, ragged or composite value")
            place = self._places.setdefault(value.ref, len(self.outputs))
            if place == len(self.outputs):
                self.outputs.append(value.ref)
            return Slot(place)
        if self._twin is not None and value is self._twin:
            return Itself()
        if id(value) in self._outside or any(value is given for given in self._given):
            return Same(value)  # the function gets this same object in each call
        if type(value) in (tuple, list, dict):
            return self._nest(value)
        if type(value) in _CONSTANTS or isinstance(value, _NAMED):
            return Same(value)
        made = "an array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        raise NotTraceable(f"it creates {made}, and each element needs a new one")

    def _nest(self, value: Any) -> Template:
        known = self._made.get(id(value))
        if known is None:
            keys = tuple(value) if type(value) is dict else ()
            items = value.values() if type(value) is dict else value
            known = self._made[id(value)] = TemplateNest(type(value), keys, tuple(map(self.template, items)))
            self._values.append(value)
        return known


def rows_of(
    variables: Sequence[Template], itself: Any, columns: Sequence[list[Any]], count: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the values of some variables for each element. `itself` is the object that is called."""
    if not variables:
        return iter([()] * count)
    made: dict[int, list[Any]] = {}
    return zip(*[_rows(template, itself, columns, count, made) for template in variables], strict=True)


def leaves(template: Template, value: Any, found: dict[int, Any]) -> None:
    """Add the leaves of a variable to `found`, by the slots in its template."""
    if isinstance(template, Slot):
        found[template.index] = value
    elif isinstance(template, TemplateNest):
        parts = [value[key] for key in template.keys] if template.kind is dict else list(value)
        for item, part in zip(template.items, parts, strict=True):
            leaves(item, part, found)


def _rows(
    template: Template, itself: Any, columns: Sequence[list[Any]], count: int, made: dict[int, list[Any]]
) -> list[Any]:
    if isinstance(template, Slot):
        return columns[template.index]
    if isinstance(template, Itself):
        return [itself] * count
    if isinstance(template, Same):
        return [template.value] * count
    known = made.get(id(template))
    if known is None:
        parts = [_rows(item, itself, columns, count, made) for item in template.items]
        rows = zip(*parts, strict=True) if parts else (() for _ in range(count))
        if template.kind is dict:
            known = [dict(zip(template.keys, row, strict=True)) for row in rows]
        else:
            known = [template.kind(row) for row in rows]
        made[id(template)] = known
    return known


def alike(first: Sequence[Template], second: Sequence[Template]) -> bool:
    """Return True if the templates are equal, and their constant values are the same objects."""
    return len(first) == len(second) and all(map(_same, first, second))


def _same(first: Template, second: Template) -> bool:
    if isinstance(first, TemplateNest) and isinstance(second, TemplateNest):
        return first.kind is second.kind and first.keys == second.keys and alike(first.items, second.items)
    if isinstance(first, Same) and isinstance(second, Same):
        return first.value is second.value
    return first == second
