"""Functions of numpy as primitives: universal functions, vectorised if the results for single elements are equal.

Views and changes of shape, which compute nothing, are here as well.

Most universal functions have one exactly defined result: the same bits for a scalar and inside a long array. The
others, such as exp and power, do not promise that. A trial compares them first (`rowwise`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import TensorSpec
from penstock.trace.graph import Allocate, Const, Equation, Graph, NotTraceable, Primitive, Ref
from penstock.trace.rowwise import probe, rowwise, values_of_rows

_EXACT: tuple[np.ufunc, ...] = (
    np.add, np.subtract, np.multiply, np.divide, np.floor_divide, np.remainder, np.negative, np.positive, np.absolute,
    np.sqrt, np.square, np.sign, np.floor, np.ceil, np.trunc, np.rint, np.greater, np.greater_equal, np.less,
    np.less_equal, np.equal, np.not_equal, np.logical_and, np.logical_or, np.logical_xor, np.logical_not,
    np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert, np.left_shift, np.right_shift, np.isnan, np.isfinite,
    np.isinf,
)  # fmt: skip

_EITHER_ZERO = (np.minimum, np.maximum, np.fmin, np.fmax)  # vector instructions return either of two zeros

UFUNCS: dict[np.ufunc, Primitive] = {}


def broadcast(shapes: Sequence[tuple[int | None, ...]]) -> tuple[int | None, ...]:
    """Broadcast shapes as numpy does. An unknown extent with a 1 stays unknown."""
    rank = max(map(len, shapes))
    found: list[int | None] = []
    for axis in range(-rank, 0):
        extents = {shape[axis] for shape in shapes if len(shape) >= -axis} - {1}
        if len(extents) > 1 and None not in extents:
            raise NotTraceable("shapes that do not broadcast")
        known = [extent for extent in extents if extent is not None]
        found.append(known[0] if known else (None if extents else 1))
    return tuple(found)


def _shape(spec: Any) -> tuple[int | None, ...]:
    return np.shape(spec.value) if isinstance(spec, Const) else spec.shape


def _rule(ufunc: Callable[..., Any], specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    probes = [probe(spec) for spec in specs]
    try:
        with np.errstate(all="ignore"):
            dtype = np.asarray(ufunc(*probes)).dtype
    except Exception as error:  # real elements decide whether this is an error
        raise NotTraceable(f"{ufunc.__name__} of these dtypes: {error}") from None
    if dtype.hasobject:
        raise NotTraceable(f"{ufunc.__name__} gives Python objects")
    return [TensorSpec(broadcast([_shape(spec) for spec in specs]), dtype)]


def _aligned(operands: Sequence[Any]) -> list[Any] | None:
    """Return arrays with the elements along axis 0 that broadcast as the elements do; None if a column is a list."""
    arrays = []
    ranks = []
    for operand in operands:
        if type(operand) is DenseColumn:
            array = operand.array
            ranks.append(array.ndim - 1)
        elif isinstance(operand, Const):
            array = operand.value
            ranks.append(array.ndim if isinstance(array, np.ndarray) else 0)
        else:
            return None
        arrays.append(array)
    rank = max(ranks)
    if rank > min(ranks):
        for i, operand in enumerate(operands):
            if ranks[i] < rank and isinstance(operand, DenseColumn):
                shape = operand.array.shape
                arrays[i] = operand.array.reshape(shape[0], *(1,) * (rank - ranks[i]), *shape[1:])
    return arrays


def _run(
    ufunc: np.ufunc, operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    arrays = _aligned(operands)
    if arrays is not None:
        if allocate is None and not any(isinstance(a, np.ndarray) and a.size >= _LARGE for a in arrays):
            return [DenseColumn(ufunc(*arrays))]
        shape = np.broadcast_shapes(*[np.shape(array) for array in arrays])
        dtype = np.asarray(ufunc(*[a[:1] if isinstance(a, np.ndarray) and a.ndim else a for a in arrays])).dtype
        place = None if allocate is None else allocate(shape[1:], dtype)
        place = ARENA.empty(shape, dtype) if place is None else place  # a new page of memory is slow
        return [DenseColumn(ufunc(*[_repeated(array, shape) for array in arrays], out=place))]
    return [column_of([ufunc(*row) for row in values_of_rows(operands, rows)])]


_LARGE = 1 << 14  # values
_FEW = 16  # numbers


def _repeated(array: Any, shape: tuple[int, ...]) -> Any:
    """Repeat a few numbers, such as one per channel, for each pixel of a row: numpy then computes a row at once."""
    few = len(shape) > 2 and 1 < shape[-1] <= _FEW and np.ndim(array) and array.shape[-1] == array.size == shape[-1]
    return np.tile(array.reshape(-1), (shape[-2], 1)) if few else array


def _make_tried(ufunc: np.ufunc) -> Primitive:
    """Make a primitive whose results may have other bits inside an array. A trial decides if it is vectorised."""

    def of_rows(*operands: Any) -> Any:
        dtype = np.result_type(*operands)
        either = ufunc in _EITHER_ZERO and dtype.kind == "f"
        if (either and max(map(np.ndim, operands)) > 1) or (ufunc is np.power and _own_exponent(*operands)):
            raise TypeError  # a trial cannot prove this: row by row
        values = _aligned([_operand(operand) for operand in operands]) or operands
        if not either:
            return ufunc(*values)
        chosen = values[not np.signbit(ufunc(dtype.type(-0.0), dtype.type(0.0)))]  # one of two zeros
        return np.where(np.equal(*values), chosen, ufunc(*values))

    return rowwise(ufunc.__name__, ufunc, of_rows, functools.partial(_rule, ufunc))


@functools.cache
def of_each_row(ufunc: np.ufunc) -> Primitive:
    """Return the row-by-row primitive for complex numbers: results for infinities may differ inside an array."""
    return rowwise(ufunc.__name__, ufunc, None, functools.partial(_rule, ufunc))


def _own_exponent(base: Any, exponent: Any) -> bool:
    """Return True if each row has one exponent for several values. For 0.5, numpy may take a root in one form only."""
    own = np.shape(exponent)[1:]
    return np.ndim(exponent) > 0 and (math.prod(own) == 1 or own != np.broadcast_shapes(np.shape(base)[1:], own))


def _operand(value: Any) -> Any:
    return DenseColumn(value) if isinstance(value, np.ndarray) and value.ndim else Const(value)


for _ufunc in _EXACT:
    _own_rule, _own_run = functools.partial(_rule, _ufunc), functools.partial(_run, _ufunc)
    UFUNCS[_ufunc] = Primitive(_ufunc.__name__, _own_rule, _own_run, fresh=True)
EXACT = frozenset(UFUNCS.values())  # the bits of a value do not depend on its neighbours
for _ufunc in dict.fromkeys(value for value in vars(np).values() if isinstance(value, np.ufunc)):
    if _ufunc not in UFUNCS and _ufunc.nout == 1 and _ufunc.signature is None:
        UFUNCS[_ufunc] = _make_tried(_ufunc)


def _astype_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    probe(specs[0])
    return [TensorSpec(specs[0].shape, params["dtype"])]


def _astype_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    column = operands[0]
    if isinstance(column, DenseColumn):
        return [DenseColumn(column.array.astype(params["dtype"]))]
    return [column_of([value.astype(params["dtype"]) for value in column.values()])]


ASTYPE = Primitive("astype", _astype_rule, _astype_run, fresh=True)


def _rows_converted(array: Any, dtype: np.dtype) -> Any:
    if dtype.kind == "u":
        raise TypeError  # numbers out of range convert differently inside a long array: row by row
    return array.astype(dtype)


TRIED_ASTYPE = rowwise("astype", lambda array, dtype: array.astype(dtype), _rows_converted, _astype_rule)


def astype(spec: Any, dtype: np.dtype) -> Primitive:
    """Return the primitive for a conversion. A float out of range may become another integer inside a long array."""
    return TRIED_ASTYPE if spec.dtype.kind in "fc" and dtype.kind not in "fcb" else ASTYPE


def _where_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    arrays = _aligned(operands)
    if arrays is not None:
        return [DenseColumn(np.where(*arrays))]
    return [column_of([np.where(*row) for row in values_of_rows(operands, rows)])]


WHERE = Primitive("where", functools.partial(_rule, np.where), _where_run, fresh=True)


def _clip_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    (found,) = _rule(np.clip, specs, params)
    if found.dtype.kind == "c":
        raise NotTraceable("np.clip of complex numbers")
    return [found]


def _clipped(*operands: Any) -> Any:
    return np.clip(*_aligned([_operand(operand) for operand in operands]) or operands)


CLIP = rowwise("clip", np.clip, _clipped, _clip_rule)


#     np.transpose(x, (2, 0, 1))   →   transpose of the column with axes (0, 3, 1, 2)
#
# A column is transposed as a whole, without a copy. Its rows are views with the strides of the element's own view.

_SIZES = (97, 89, 2, 1, 0)  # trial sizes of an unknown extent, to see which results depend on it


def permuted(shape: Sequence[int | None], function: Callable[[np.ndarray], np.ndarray]) -> tuple[int, ...]:
    """Return the order in which a function that only moves axes leaves them.

    >>> permuted((None, 3, 3), np.transpose)
    (2, 1, 0)
    """
    return function(np.empty(tuple(range(len(shape))))).shape


def is_basic(index: Any) -> bool:
    """Return True if an index only selects positions along axes: integers, slices, `...` and None."""
    parts = index if type(index) is tuple else (index,)
    return all(
        part is None or part is Ellipsis or type(part) is int or (type(part) is slice and _is_plain(part))
        for part in parts
    )


def _is_plain(part: slice) -> bool:
    return all(type(value) in (int, type(None)) for value in (part.start, part.stop, part.step))


def _spec(value: Any, function: Callable[[np.ndarray], Any]) -> list[TensorSpec]:
    """Return the spec of the result of a function that returns a view of an array."""
    if not isinstance(value, TensorSpec) or value.dtype is bytes:
        raise NotTraceable("a shape operation on a value that is not a numeric array")
    unknown = None in value.shape
    found: list[tuple[int, ...]] = []
    for size in _SIZES if unknown else (0,):
        shape = tuple(size + i if extent is None else extent for i, extent in enumerate(value.shape))
        try:
            found.append(np.shape(function(np.broadcast_to(np.zeros((), value.dtype), shape))))
        except (IndexError, ValueError) as error:
            if not unknown:
                raise NotTraceable(f"on a tracer it raised {type(error).__name__}: {error}") from None
    if not found or len({len(shape) for shape in found}) > 1 or (unknown and len(found) < 2):
        raise NotTraceable("a view whose shape depends on the element")
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

    return Primitive(name, rule, run, view=True)


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
    """Return True if two outputs are views of one value. They then share memory for single elements as well."""
    one, other = graph.outputs[first], graph.outputs[second]
    if not (isinstance(one, Ref) and isinstance(other, Ref)) or one == other:
        return False
    return memory_of(graph.equations, one) == memory_of(graph.equations, other)


def memory_of(equations: Sequence[Equation], value: Ref) -> Ref:
    """Return the value that a view, or a view of a view, was taken of; for any other value, the value itself."""
    while value.equation >= 0 and equations[value.equation].primitive in VIEWS:
        (operand,) = equations[value.equation].operands
        assert isinstance(operand, Ref)
        value = operand
    return value
