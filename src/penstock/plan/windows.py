"""Windows whose elements a function does not read: its plan alone determines the elements of each window.

The function of `window(30, shift=1).flat_map(lambda w: w.batch(30))` creates the same plan for every window. It is
called once, with placeholders for the data sets of a window. The resulting plan determines which elements of a window
go to which position: it consists of `batch`, `take`, `skip`, `shard` and `zip` of placeholders, followed by maps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import is_
from types import FunctionType
from typing import Any

import numpy as np

from penstock.block.leaf import NESTED
from penstock.block.structure import LEAF, Structure, flatten, nest
from penstock.errors import InvalidArgumentError
from penstock.functions.planning import why_plans_otherwise
from penstock.functions.uses import waits
from penstock.plan.grouping import Window
from penstock.plan.inputs import Scan, Zip
from penstock.plan.node import Node
from penstock.plan.ops import Batch, FlatMap, Map, Prefetch, Repeat, Shard, Shuffle, Skip, Take
from penstock.sources.source import Position, Reader, Source

_KEEPING = (Take, Skip, Shard, Shuffle, Repeat, Prefetch)  # these steps do not change elements


_UNKNOWN = "A placeholder stands for all windows: it has no elements."


@dataclass(frozen=True)
class Placeholder(Source):
    """One component of a window: its size, if all windows have the same, and the spec of an element, if known."""

    component: int
    size: int | None
    kind: Any

    @property
    def label(self) -> str:
        return "window"

    @property
    def spec(self) -> Any:
        return self.kind

    @property
    def cardinality(self) -> int:
        if self.size is None:
            raise InvalidArgumentError(_UNKNOWN)
        return self.size

    def open(self, position: Position | None = None) -> Reader:
        raise InvalidArgumentError(_UNKNOWN)


@dataclass(frozen=True, slots=True)
class Placed:
    """Elements that a plan yields for a window: for each leaf its component, and the positions in the window.

    The first axis of the positions counts the elements; further axes are those of batches.
    """

    structure: Structure
    leaves: tuple[tuple[int, np.ndarray], ...]

    @property
    def count(self) -> int:
        return len(self.leaves[0][1])

    def cut(self, places: Callable[[np.ndarray], np.ndarray]) -> Placed:
        return Placed(self.structure, tuple((component, places(found)) for component, found in self.leaves))


def placed(plan: Node, size: int) -> Placed | None:
    """Return the elements that a plan yields for a window, or None if it does more or its batches differ in size."""
    match plan:
        case Scan(source=Placeholder(component=component)):
            return Placed(LEAF, ((component, np.arange(size)),))
        case Zip():
            parts = [part for part in (placed(part, size) for part in plan.parts) if part is not None]
            if not parts or len(parts) < len(plan.parts):
                return None
            count = min(part.count for part in parts)
            leaves = [(component, places[:count]) for part in parts for component, places in part.leaves]
            return Placed(nest(plan.structure, [part.structure for part in parts]), tuple(leaves))
        case Batch(num_parallel_calls=None) | Take() | Skip() | Shard():
            below = placed(plan.input, size)
        case _:
            return None
    if below is None:
        return None
    match plan:
        case Take(count=count):
            return below.cut(lambda places: places if count < 0 else places[:count])
        case Skip(count=count):
            return below.cut(lambda places: places[count if count >= 0 else len(places) :])
        case Shard(num_shards=shards, index=first):
            return below.cut(lambda places: places[first::shards])
        case Batch(batch_size=most, drop_remainder=drop):
            full, rest = divmod(below.count, most)
            if rest and not drop:
                return None if full else below.cut(lambda places: places[None])
            return below.cut(lambda places: places[: full * most].reshape(full, most, *places.shape[1:]))
    return None


class WindowedFlatMap(FlatMap):
    """A flat_map over windows whose function returns `inner` for each.

    The elements of many windows are copied at once.
    """

    inner: Node = field(compare=False, repr=False)
    structure: Structure = field(compare=False, repr=False)  # structure of the arguments of the function

    @property
    def as_written(self) -> FlatMap:
        return FlatMap(input=self.input, function=self.function, where=self.where)

    @property
    def maps(self) -> tuple[Map, ...]:
        """The maps after the placeholders, beginning with the one nearest to them."""
        return _maps(self.inner)[0]

    def placed(self, size: int) -> Placed | None:
        """Return the elements of windows of this size, without the maps."""
        return placed(_maps(self.inner)[1], size)


_data_sets: list[Callable[[Node], Any]] = []


def data_sets_are_made_by(make: Callable[[Node], Any]) -> None:
    """Register `make`, which creates data sets from plans, for placeholders."""
    _data_sets[:] = [make]


def window_below(step: FlatMap) -> Window | None:
    """Return the window step whose windows a flat_map receives, or None."""
    below = step.input
    while isinstance(below, _KEEPING):
        below = below.input
    return below if isinstance(below, Window) else None


def windowed(written: FlatMap) -> WindowedFlatMap | None:
    """Return the same step for many windows at once, or None if its function must be called for each window."""
    below = window_below(written)
    if below is None:
        return None
    if why_plans_otherwise(written.function) is not None:
        return None
    spec = below.input.spec
    leaves, structure = ([None], LEAF) if spec is None else flatten(spec)
    size = below.size if below.drop_remainder else None
    sources = [Placeholder(component, size, leaf) for component, leaf in enumerate(leaves)]
    given = structure.build([_data_sets[0](Scan(source=source, where=below.where)) for source in sources])
    try:
        made = written.function(*given) if type(given) is tuple else written.function(given)
    except Exception:  # the first window raises the error
        return None
    inner = getattr(made, NESTED, None)
    if not isinstance(inner, Node) or not all(map(is_pure, _maps(inner)[0])):
        return None
    found = WindowedFlatMap(
        input=written.input, function=written.function, inner=inner, structure=structure, where=written.where
    )
    places = found.placed(below.size)
    return None if places is None or not places.count else found


def _maps(inner: Node) -> tuple[tuple[Map, ...], Node]:
    steps: list[Map] = []
    while isinstance(inner, Map):
        steps.append(inner)
        inner = inner.input
    return tuple(reversed(steps)), inner


def is_pure(step: Map) -> bool:
    """Return True for a map that never waits, and whose result for an element never depends on place or time."""
    from penstock.trace.purity import may_draw  # tracing comes with the first function

    sequential = step.num_parallel_calls is None and step.executor == "auto"
    return sequential and step.vectorise and not may_draw(step.function) and not waits(step.function)


def plan_alike(one: Node, other: Node) -> bool:
    """Return True if two plans of the same function do the same with a window.

    Functions of maps that it creates are the same if they have one code and captured the same objects.
    """
    steps, below = _maps(one)
    others, beneath = _maps(other)
    if below != beneath or len(steps) != len(others):
        return False
    return all(_same(first.function, second.function) for first, second in zip(steps, others, strict=True))


def _same(function: Any, other: Any) -> bool:
    if function is other:
        return True
    if not (type(function) is type(other) is FunctionType and function.__code__ is other.__code__):
        return False
    return function.__globals__ is other.__globals__ and all(map(is_, _held(function), _held(other)))


def _held(function: FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *cells, len(cells)]
