"""Items of arrays, read and written for whole Blocks at positions that differ between elements; arrays from values.

    EYE[label]      →   EYE.take(labels, axis=0)
    row[label] = 1  →   rows[arange(n), labels] = 1

A position out of range raises for the Block as it does for its element. The elements then run one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from penstock.block.column import Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import TensorSpec
from penstock.trace.arithmetic import is_basic
from penstock.trace.graph import Allocate, Const, Equation, NotTraceable, Operand, Primitive, Ref
from penstock.trace.rowwise import OperandPlace, probe, rowwise, values_of_rows

_LARGEST = 1 << 24  # bytes of a table, which stays in memory as long as the graph


def _refuse(why: str) -> NoReturn:
    raise NotTraceable(f"it chooses elements of an array by values: {why}")


def _is_place(spec: Any) -> bool:
    """Return True if values of this kind are valid positions. Unsigned 64-bit integers may wrap around."""
    return isinstance(spec, TensorSpec) and spec.dtype is not bytes and (
        spec.dtype.kind == "i" or (spec.dtype.kind == "u" and spec.dtype.itemsize < 8)
    )  # fmt: skip


def _split(index: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the numbers and places at the beginning of an index, and the slices after them."""
    parts = index if type(index) is tuple else (index,)
    count = next((i for i, part in enumerate(parts) if type(part) not in (OperandPlace, int)), len(parts))
    if not all(type(part) is slice and is_basic(part) for part in parts[count:]):
        _refuse("they come after slices")
    return parts[:count], parts[count:]


def _zeros(spec: Any) -> Any:
    if None in spec.shape:
        _refuse("their number differs between elements")
    return np.zeros(spec.shape, spec.dtype)[()]


def _checked(index: Any, specs: Sequence[Any]) -> list[Any]:
    """Return zeros in place of the positions, which must be numbers, or one array of numbers."""
    places, behind = _split(index)
    if not all(map(_is_place, specs)):
        _refuse("they are no integers, or unsigned 64-bit integers")
    if any(spec.shape for spec in specs) and len(places) + len(behind) > 1:
        _refuse("they are several arrays")
    return [_zeros(spec) for spec in specs]


def is_table(array: np.ndarray, *, live: bool = False) -> bool:
    """Return True if a graph can look up items in an array: it is contiguous, and small unless it is `live`."""
    plain = array.dtype.kind in "biufc" and array.dtype.isnative and array.flags.c_contiguous
    return plain and array.ndim > 0 and (live or array.nbytes <= _LARGEST)


def kind_of_table(array: np.ndarray) -> tuple[Any, ...]:
    """Return the properties of a live array that must not change."""
    return array.shape, array.dtype


def _looked_up_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    table, *places = specs
    index = params["index"]
    if isinstance(table, Const):
        array = table.value if is_table(table.value, live="like" in params) else None
    else:
        tensor = isinstance(table, TensorSpec) and table.dtype is not bytes and None not in table.shape
        array = np.broadcast_to(np.zeros((), table.dtype), table.shape) if tensor else None
    if array is None:
        _refuse("the array is too large, not contiguous or not numeric")
    try:
        found = array[OperandPlace.filled(index, _checked(index, places))]
    except IndexError as error:
        _refuse(f"{error}")
    if not isinstance(table, Const) and np.ndim(found) and not any(spec.shape for spec in places):
        _refuse("that gives a view")
    return [TensorSpec(np.shape(found), array.dtype)]


def _looked_up(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    table, columns, index = operands[0], operands[1:], params["index"]
    if "like" in params and (kind_of_table(table.value) != params["like"] or not is_table(table.value, live=True)):
        raise ValueError("a captured array has changed its shape, dtype or layout")
    if not all(isinstance(operand, (DenseColumn, Const)) for operand in operands):
        each = values_of_rows(operands, rows)
        return [column_of([as_leaf(of_row[OperandPlace.filled(index, row)]) for of_row, *row in each])]
    arrays = [column.array for column in columns]
    if type(index) is OperandPlace and isinstance(table, Const):
        return [DenseColumn(table.value.take(arrays[0], axis=0))]
    places, behind = _split(index)
    if isinstance(table, Const):
        found = table.value[OperandPlace.filled(places, arrays)]
    else:
        found = table.array[(_rows(rows, arrays), *OperandPlace.filled(places, arrays))]
    return [DenseColumn(found[(slice(None), *behind)] if behind else found)]


def _window_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    array, *bounds = specs[0].value, *specs[1:]
    if not is_table(array, live=True) or not all(_is_place(bound) and not bound.shape for bound in bounds):
        _refuse("the bounds of the slice are no integers, or the array is not contiguous or not numeric")
    return [TensorSpec((params["length"], *array.shape[1:]), array.dtype)]


def _windows(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
    array, length = operands[0].value, params["length"]
    begin, end = (operand.array.astype(np.int64) for operand in operands[1:])
    last = len(array) - length
    same = kind_of_table(array) == params["like"] and is_table(array, live=True)
    if not same or begin.min() < 0 or begin.max() > last or np.any(end != begin + length):
        message = "a slice of an array is shorter than others, or the array has changed its shape, dtype or layout"
        raise ValueError(message)
    shape, strides = (last + 1, length, *array.shape[1:]), (array.strides[0], *array.strides)
    return [DenseColumn(np.lib.stride_tricks.as_strided(array, shape, strides)[begin])]


WINDOW = Primitive("slice", _window_rule, _windows, presumes=lambda params: True)  # for an element, it may be a view


def distance(equations: Sequence[Equation], begin: Operand, end: Operand) -> int | None:
    """Return the difference of two numbers that are sums of one value and constants, or None if it is unknown."""
    (first, low), (second, high) = (_sum(equations, operand) for operand in (begin, end))
    return high - low if first == second else None


def _sum(equations: Sequence[Equation], value: Operand) -> tuple[Operand, int]:
    """Return the value and the constant of a sum."""
    total = 0
    while isinstance(value, Ref) and value.equation >= 0:
        equation = equations[value.equation]
        sign = {"add": 1, "subtract": -1}.get(equation.primitive.name)
        first, second = equation.operands if sign else (value, value)
        if sign == 1 and isinstance(first, Const):
            first, second = second, first
        if not isinstance(second, Const) or not isinstance(second.value, (int, np.integer)):
            break
        value, total = first, total + (sign or 0) * int(second.value)
    return value, total


def _rows(rows: int, places: Sequence[np.ndarray]) -> np.ndarray:
    """Return the row numbers as an index that comes before positions in the rows."""
    return np.arange(rows).reshape(rows, *(1,) * (max(array.ndim for array in places) - 1))


LOOK_UP = Primitive("look up", _looked_up_rule, _looked_up)  # with one position, it may be a view
LOOK_UP_MANY = Primitive("look up", _looked_up_rule, _looked_up, fresh=True)


def _written_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    target, value, *places = specs
    index = params["index"]
    if not isinstance(target, TensorSpec) or target.dtype is bytes or None in target.shape:
        _refuse("its shape differs between elements")
    given = np.asarray(probe(value)).dtype
    if given.kind not in "biufc" or not _converts(value, given, target.dtype):
        _refuse(f"{given} would be converted to {target.dtype}")
    array = np.zeros(tuple(extent or 0 for extent in target.shape), target.dtype)
    if _is_mask(index, places, target):
        part: Any = np.zeros((), target.dtype)
    else:
        if not places and not is_basic(index):
            _refuse("the index has no vectorised form")
        part = array[OperandPlace.filled(index, _checked(index, places) if places else ())]
    shape = np.shape(value.value) if isinstance(value, Const) else value.shape
    if None in shape or np.ndim(part) < len(shape) or np.broadcast_shapes(np.shape(part), shape) != np.shape(part):
        _refuse("the written value has another shape")
    if isinstance(value, Const) and not shape:
        np.zeros((), target.dtype)[...] = value.value  # raises if a Python number is too large
    return [target]


def _converts(value: Any, given: np.dtype, dtype: np.dtype) -> bool:
    """Return True if a single number is converted like the numbers of an array."""
    if isinstance(value, Const) and type(value.value) in (bool, int, float):
        return type(value.value) is not float or dtype.kind in "fc"
    return np.can_cast(given, dtype, "same_kind" if dtype.kind in "fc" else "safe")


def _is_mask(index: Any, places: Sequence[Any], target: TensorSpec) -> bool:
    mask = places[0] if type(index) is OperandPlace else None
    return mask is not None and mask.dtype == np.bool_ and mask.shape == target.shape and bool(target.shape)


def _written(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
    target, value, *columns = operands
    index = params["index"]
    if not all(isinstance(one, (DenseColumn, Const)) for one in operands):
        return [column_of([_written_row(index, *row) for row in values_of_rows(operands, rows)])]
    made = target.array.copy()
    arrays = [column.array for column in columns]
    if arrays and arrays[0].dtype == np.bool_:
        np.copyto(made, _aligned(value, made.ndim), where=arrays[0], casting="unsafe")
    elif arrays:
        places, behind = _split(index)
        parts = (_rows(rows, arrays), *OperandPlace.filled(places, arrays), *behind)
        rank = max(array.ndim for array in arrays) + made.ndim - 1 - len(places)
        made[parts] = _aligned(value, rank)
    else:
        part = made[(slice(None), *(index if type(index) is tuple else (index,)))]
        part[...] = _aligned(value, part.ndim)
    return [DenseColumn(made)]


def _written_row(index: Any, target: Any, value: Any, *places: Any) -> Any:
    made = target.copy()
    made[OperandPlace.filled(index, places)] = value
    return made


def _aligned(value: Any, rank: int) -> Any:
    """Return the values for each row along axis 0, with `rank` axes in all."""
    if isinstance(value, Const):
        return value.value
    shape = value.array.shape
    return value.array.reshape(shape[0], *(1,) * (rank - len(shape)), *shape[1:])


WRITE = Primitive("write", _written_rule, _written, fresh=True)


def _made_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    array = params["array"]
    return [TensorSpec(array.shape, array.dtype)]


def _made(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
    array = params["array"]
    made = np.empty((rows, *array.shape), array.dtype)
    made[...] = array
    return [DenseColumn(made)]


MADE = Primitive("make", _made_rule, _made, fresh=True)  # each element gets its own array of constants


def _listed(of_each: Any, filled: Any) -> Any:
    return as_leaf(filled) if of_each is None else np.array(filled, of_each[0])


def _list_of_row(*values: Any, items: Any, dtype: tuple[Any, ...] | None) -> Any:
    return _listed(dtype, OperandPlace.filled(_as_list(items), values))


def _as_list(items: Any) -> Any:
    return [_as_list(item) for item in items] if type(items) is tuple else items


def _list_of_rows(*arrays: Any, items: Any, dtype: tuple[Any, ...] | None) -> Any:
    ones = [np.ones(array.shape[1:], array.dtype)[()] if isinstance(array, np.ndarray) else array for array in arrays]
    like = _list_of_row(*ones, items=items, dtype=dtype)
    rows = next(len(array) for array in arrays if isinstance(array, np.ndarray))
    made = np.empty((rows, *like.shape), like.dtype)
    _fill(made, items, arrays)
    return made


def _fill(made: np.ndarray, items: Any, arrays: Sequence[Any]) -> None:
    if type(items) is tuple:
        for i, item in enumerate(items):
            _fill(made[:, i], item, arrays)
    else:
        made[...] = arrays[items.index] if isinstance(items, OperandPlace) else items


LIST = rowwise(
    "list", _list_of_row, _list_of_rows, spreads=True
)  # np.array of lists; without a dtype, a list as a leaf
