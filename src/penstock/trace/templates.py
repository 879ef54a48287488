"""Templates: what a function's variables are made of for each element, out of the values of a graph."""

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
    """The object that is called, which nothing that is kept of it may hold."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A value of the element: output number `index` of the graph."""

    index: int


@dataclass(frozen=True, slots=True, eq=False)
class TemplateNest:
    """A tuple, list or dict, which every element has its own of."""

    kind: type
    keys: tuple[Any, ...]
    items: tuple[Template, ...]


Template = Same | Itself | Slot | TemplateNest


class Templates:
    """Variables of a traced function as templates: the same value is the same slot, and the same dict the same.

    The function is `given` values beside the element; what else was there before it has its id in `outside`. A `twin`
    stands for the object that is called.
    """

    def __init__(self, given: Sequence[Any], outside: Collection[int], twin: Any) -> None:
        self._given = given
        self._outside = outside
        self._twin = twin
        self.outputs: list[Operand] = []
        self._places: dict[Operand, int] = {}  # among these
        self._made: dict[int, Template] = {}
        self._values: list[Any] = []  # so that no id is given twice

    def template(self, value: Any) -> Template:
        if type(value) is Tracer:
            if not isinstance(value.spec, TensorSpec):
                message = "a sparse, ragged or composite value before a value that is not known"
                raise NotTraceable(message)
            place = self._places.setdefault(value.ref, len(self.outputs))
            if place == len(self.outputs):
                self.outputs.append(value.ref)
            return Slot(place)
        if self._twin is not None and value is self._twin:
            return Itself()
        if id(value) in self._outside or any(value is given for given in self._given):
            return Same(value)  # whatever it is: the function is given this very object each time
        if type(value) in (tuple, list, dict):
            return self._nest(value)
        if type(value) in _CONSTANTS or isinstance(value, _NAMED):
            return Same(value)
        made = "an array" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
        message = f"it makes {made}, which each element has its own of"
        raise NotTraceable(message)

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
    """The values of some variables for each element; `itself` is what is called."""
    if not variables:
        return iter([()] * count)
    made: dict[int, list[Any]] = {}
    return zip(*[_rows(template, itself, columns, count, made) for template in variables], strict=True)


def leaves(template: Template, value: Any, found: dict[int, Any]) -> None:
    """Add the leaves of a variable, by the slots that its template has for them."""
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
    """Whether they say the same, with the very same values that are no slots."""
    return len(first) == len(second) and all(map(_same, first, second))


def _same(first: Template, second: Template) -> bool:
    if isinstance(first, TemplateNest) and isinstance(second, TemplateNest):
        return first.kind is second.kind and first.keys == second.keys and alike(first.items, second.items)
    if isinstance(first, Same) and isinstance(second, Same):
        return first.value is second.value
    return first == second
