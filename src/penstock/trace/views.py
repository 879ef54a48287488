"""Views and shapes as primitives: what numpy gives without calculating, of an element and of all elements at once.

    np.transpose(x, (2, 0, 1))   →   transpose of the column with axes (0, 3, 1, 2)

A column is turned as a whole, without a copy: its rows are views with the strides that the element's view would have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import TensorSpec
from penstock.trace.graph import Allocate, Equation, Graph, NotTraceable, Primitive, Ref

_SIZES = (97, 89, 2, 1, 0)  # of an unknown extent; what depends on it differs between them


def permuted(shape: Sequence[int | None], function: Callable[[np.ndarray], np.ndarray]) -> tuple[int, ...]:
    """In which order a function that only moves axes leaves them.

    >>> permuted((None, 3, 3), np.transpose)
    (2, 1, 0)
    """
    moved: tuple[int, ...] = function(np.empty(tuple(range(len(shape))))).shape
    return moved


def is_basic(index: Any) -> bool:
    """Whether an index only chooses positions along axes: integers, slices, `...` and None."""
    parts = index if type(index) is tuple else (index,)
    return all(
        part is None or part is Ellipsis or type(part) is int or (type(part) is slice and _is_plain(part))
        for part in parts
    )


def _is_plain(part: slice) -> bool:
    return all(type(value) in (int, type(None)) for value in (part.start, part.stop, part.step))


def _spec(value: Any, function: Callable[[np.ndarray], Any]) -> list[TensorSpec]:
    """The spec of a function of one array that gives a view."""
    if not isinstance(value, TensorSpec) or value.dtype is bytes:
        message = "a shape operation on what is no numeric array"
        raise NotTraceable(message)
    unknown = None in value.shape
    found: list[tuple[int, ...]] = []
    for size in _SIZES if unknown else (0,):
        shape = tuple(size + i if extent is None else extent for i, extent in enumerate(value.shape))
        try:
            found.append(np.shape(function(np.broadcast_to(np.zeros((), value.dtype), shape))))
        except (IndexError, ValueError) as error:
            if not unknown:
                message = f"on a stand-in it raised {type(error).__name__}: {error}"
                raise NotTraceable(message) from None
    if not found or len({len(shape) for shape in found}) > 1 or (unknown and len(found) < 2):
        message = "a view whose shape depends on the element"
        raise NotTraceable(message)
    extents = [set(of_axis) for of_axis in zip(*found, strict=True)]
    return [TensorSpec(tuple(next(iter(one)) if len(one) == 1 else None for one in extents), value.dtype)]


def _view(name: str, of_row: Callable[..., Any], of_rows: Callable[..., Any]) -> Primitive:
    def rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
        return _spec(specs[0], lambda array: of_row(array, **params))

    def run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
        column = operands[0]
        if isinstance(column, DenseColumn):
            return [DenseColumn(of_rows(column.array, **params))]
        return [column_of([as_leaf(of_row(value, **params)) for value in column.values()])]

    return Primitive(name, rule, run)


def _of_all(index: Any) -> Any:
    return (slice(None), *(index if type(index) is tuple else (index,)))


def _reshaped(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    known = np.empty(array.shape[1:], np.bool_).reshape(shape).shape if -1 in shape else shape
    return array.reshape(array.shape[0], *known)


TRANSPOSE = _view(
    "transpose",
    lambda array, axes: array.transpose(axes),
    lambda array, axes: array.transpose(0, *(axis + 1 for axis in axes)),
)
ITEM = _view("index", lambda array, index: array[index], lambda array, index: array[_of_all(index)])
RESHAPE = _view("reshape", lambda array, shape: array.reshape(shape), _reshaped)
VIEWS = frozenset((TRANSPOSE, ITEM, RESHAPE))


def views_together(graph: Graph, first: int, second: int) -> bool:
    """Whether two outputs are views of the same value, or one is of the other: they share memory for an element too."""
    one, other = graph.outputs[first], graph.outputs[second]
    if not (isinstance(one, Ref) and isinstance(other, Ref)) or one == other:
        return False
    return memory_of(graph.equations, one) == memory_of(graph.equations, other)


def memory_of(equations: Sequence[Equation], value: Ref) -> Ref:
    """The value that a view, or a view of a view, was taken of; any other value itself."""
    while value.equation >= 0 and equations[value.equation].primitive in VIEWS:
        (operand,) = equations[value.equation].operands
        assert isinstance(operand, Ref)
        value = operand
    return value
