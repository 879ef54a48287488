"""Items of a tracer: `x[1:]` in a traced function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import TensorSpec
from penstock.trace.graph import Allocate, NotTraceable, Primitive
from penstock.trace.tracer import Tracer, bind


def item(tracer: Tracer, index: tuple[Any, ...]) -> Tracer:
    """Return `x[index]` for an index of numpy values."""
    return bind(_GETITEM, [tracer], {"index": tuple(map(_static, index))})[0]


def _static(part: Any) -> Any:
    """Return one part of an index, which must be equal for all elements."""
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, slice):
        return slice(*(None if at is None else _whole(at) for at in (part.start, part.stop, part.step)))
    return _whole(part)


def _whole(value: Any) -> int:
    found = getattr(value, "_value", value)
    if isinstance(found, (bool, np.bool_)) or not isinstance(found, (int, np.integer)):
        raise NotTraceable("it looks at a value: an index that differs between elements")
    return int(found)


def _getitem_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    spec, index = specs[0], params["index"]
    if not isinstance(spec, TensorSpec) or spec.open_rank:
        raise NotTraceable("an index into what is not an array")
    taken = sum(part is not None and part is not Ellipsis for part in index)
    missing = len(spec.shape) - taken
    if missing < 0 or index.count(Ellipsis) > 1:
        raise NotTraceable("an index with more parts than the value has dimensions")
    parts = index if Ellipsis in index else (*index, Ellipsis)
    shape: list[int | None] = []
    extents = iter(spec.shape)
    for part in parts:
        if part is Ellipsis:
            shape += [next(extents) for _ in range(missing)]
        elif part is None:
            shape.append(1)
        elif isinstance(part, slice):
            extent = next(extents)
            shape.append(None if extent is None else len(range(*part.indices(extent))))
        else:
            extent = next(extents)
            if extent is not None and not -extent <= part < extent:
                raise NotTraceable("an index outside of the value")
    return [TensorSpec(shape, spec.dtype)]


def _getitem_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    column, index = operands[0], params["index"]
    if isinstance(column, DenseColumn):
        return [DenseColumn(column.array[(slice(None), *index)])]
    return [column_of([as_leaf(value[index]) for value in column.values()])]


_GETITEM = Primitive("getitem", _getitem_rule, _getitem_run)
