"""Functions of numpy that are called row by row, and vectorised forms of some of them.

    np.take(x, [0, 5])  →  rows.take([0, 5], axis=1)

A trial compares the results of a vectorised form with those of single rows, bit for bit (`rowwise`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any

import numpy as np

from penstock.trace.graph import Primitive
from penstock.trace.rowwise import Form, Function, OperandPlace, called_by_row, rowwise

TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")  # of numpy.fft, along one axis
_SHORT = 1 << 10  # values of a row; functions along an axis of longer rows are slower in a Block


def by_row(function: Function, args: Any, kwargs: Any, specs: Sequence[Any]) -> tuple[Primitive, type | None]:
    """Return a primitive that calls numpy's `function` for each row. Its arguments have places for operands of `specs`.

    The shape of the result must not depend on values. If the result is a tuple or list, its type is returned as well.
    """
    called, form = _form(function, args, kwargs, len(specs))
    return called_by_row(function.__name__, called, form, specs)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A key of an argument. Equal arguments with other types or bits have other keys."""

    kind: type
    bits: Any

    @staticmethod
    def of(part: Any) -> Any:
        if isinstance(part, OperandPlace):
            return part
        if type(part) in (tuple, list):
            return _Kept(type(part), tuple(map(_Kept.of, part)))
        if type(part) is dict:
            return _Kept(dict, tuple((name, _Kept.of(item)) for name, item in part.items()))
        if isinstance(part, (np.ndarray, np.generic)):
            return _Kept(type(part), (part.dtype.str, part.shape, part.tobytes()))
        return _Kept(type(part), repr(part))


def _form(function: Function, args: Any, kwargs: Any, operands: int) -> tuple[Function, Form | None]:
    """Return a call with operands at the places in its arguments, and its vectorised form. Equal calls share a form."""
    called = _calling(function, args, kwargs)
    known = WHOLE.get(function) if operands == 1 else None
    if known is None:
        return called, None
    key = function, _Kept.of(args), _Kept.of(kwargs)
    form = _FORMS.get(key)
    if form is None:
        try:
            of_rows = known(called, args, kwargs)
        except TypeError:
            of_rows = None
        if len(_FORMS) >= _MOST_FORMS:
            _FORMS.clear()
        form = _FORMS[key] = Form(called, of_rows)
    return called, None if form.of_rows is None else form


_FORMS: dict[Any, Form] = {}
_MOST_FORMS = 200


def _calling(function: Function, args: Any, kwargs: Any) -> Function:
    """Return `function` with `args` and `kwargs` bound, except for the operands: these are passed for each row."""
    places = [part.index for part in args if isinstance(part, OperandPlace)]
    nested = any(type(part) in (tuple, list, dict) for part in (*args, *kwargs.values()))
    if nested or any(isinstance(part, OperandPlace) for part in kwargs.values()):
        return lambda *values: function(*OperandPlace.filled(args, values), **OperandPlace.filled(kwargs, values))
    if len(places) == len(args) and not kwargs and places == [*range(len(args))]:
        return function
    if len(places) == 1:
        at = next(i for i, part in enumerate(args) if isinstance(part, OperandPlace))
        before, behind = args[:at], args[at + 1 :]
        return lambda value: function(*before, value, *behind, **kwargs)
    return lambda *values: function(*OperandPlace.filled(args, values), **kwargs)


def _shifted(axis: Any, rank: int) -> Any:
    """Return axes of an element as axes of a column."""
    if isinstance(axis, tuple):
        return tuple(_shifted(one, rank) for one in axis)
    if not -rank <= axis < rank:
        raise ValueError(f"there is no axis {axis} in {rank}")
    return axis % rank + 1


def _along_axis(rows: np.ndarray, axis: Any) -> tuple[np.ndarray, Any]:
    """Return rows with the axis of a function of one row. Without an axis, each row is one dimension."""
    if axis is None:
        return rows.reshape(len(rows), -1), 1
    return rows, _shifted(axis, rows.ndim - 1)


def _reduced(name: str) -> Primitive:
    """Return the primitive of a method of arrays that reduces axes, all of them by default."""

    def of_row(array: Any, axis: Any = None, **params: Any) -> Any:
        return getattr(array, name)(axis=axis, **params)

    def of_rows(array: np.ndarray, axis: Any = None, **params: Any) -> Any:
        if axis is None and params.get("keepdims"):
            return getattr(array, name)(axis=tuple(range(1, array.ndim)), **params)
        array, axis = _along_axis(array, axis)
        return getattr(array, name)(axis=axis, **params)

    return rowwise(name, of_row, of_rows)


REDUCTIONS = {
    name: _reduced(name)
    for name in ("sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin")
}


def _along(name: str) -> Primitive:
    """Return the primitive of a function along one axis, or along all values if the axis is None."""
    function = getattr(np, name)

    def of_rows(array: np.ndarray, axis: Any) -> Any:
        array, axis = _along_axis(array, axis)
        return function(array, axis=axis)

    return rowwise(name, lambda array, axis: function(array, axis=axis), of_rows, largest=_SHORT)


ALONG = {name: _along(name) for name in ("sort", "argsort", "cumsum", "cumprod")}
COPY = rowwise("copy", lambda array, order: array.copy(order), lambda array, order: array.copy(order))
POWER = rowwise("power", operator.pow, None)  # the operator differs from np.power for some exponents
PADS = ("constant", "edge", "reflect", "symmetric", "wrap")  # modes of np.pad that only copy
PAD = rowwise(
    "pad",
    lambda array, widths, mode: np.pad(array, widths, mode),
    lambda array, widths, mode: np.pad(array, ((0, 0), *widths), mode),
)


def _rows_joined(function: Function) -> Function:
    def join(*arrays: Any, axis: int) -> Any:
        rank = max(np.ndim(array) for array in arrays) - 1 + (function is np.stack)
        return function(arrays, axis=_shifted(axis, rank))

    return join


CONCATENATE = rowwise(
    "concatenate",
    lambda *arrays, axis: np.concatenate(arrays, axis=axis),
    _rows_joined(np.concatenate),
    spreads=True,
)
STACK = rowwise("stack", lambda *arrays, axis: np.stack(arrays, axis=axis), _rows_joined(np.stack), spreads=True)


# Vectorised forms of functions of one value of the element and constants. A trial compares them with single rows.


def _elementwise(called: Function, args: Any, kwargs: Any) -> Function:
    """Return the form of a function that works on each number separately."""
    return called


_SIDES = {"right", "side", "left"}  # parameters for numbers outside of a table, or equal to one of its entries


def _in_table(names: str, most: int, *, strictly: bool) -> Callable[[Function, Any, Any], Function]:
    """Return the form of a function that looks up numbers in a sorted constant table. It refuses unsorted tables."""

    def form(called: Function, args: Any, kwargs: Any) -> Function:
        at, *values = names.split()
        given = dict(zip(values, args, strict=False))
        table = np.asarray(given[at]) if at in given and type(given[at]) is not OperandPlace else np.zeros(0)
        if len(args) > most or not kwargs.keys() <= _SIDES or table.ndim != 1 or table.dtype.kind not in "iuf":
            raise TypeError
        low, high = table[:-1], table[1:]
        in_order = (low < high if strictly else low <= high).all()
        if not in_order or not len(table) or table[0] != table[0]:
            raise TypeError
        return called

    return form


def _first_rows(of_rows: Function) -> Callable[[Function, Any, Any], Function]:
    """Return the form of a function whose first argument is the element's value. `of_rows` gets all rows instead."""

    def form(called: Function, args: Any, kwargs: Any) -> Function:
        if not args or args[0] != OperandPlace(0):
            raise TypeError
        return lambda rows: of_rows(rows, *args[1:], **kwargs)

    return form


def _whole_roll(rows: np.ndarray, shift: Any, axis: Any = None) -> Any:
    array, axis = _along_axis(rows, axis)
    return np.roll(array, shift, axis=axis).reshape(rows.shape)


def _whole_repeat(rows: np.ndarray, repeats: Any, axis: Any = None) -> Any:
    array, axis = _along_axis(rows, axis)
    return np.repeat(array, repeats, axis=axis)


def _whole_tile(rows: np.ndarray, reps: Any) -> Any:
    given = reps if type(reps) in (tuple, list) else (reps,)
    more = max(0, len(given) - (rows.ndim - 1))
    ones = (1,) * (rows.ndim - 1 - len(given))
    return np.tile(rows.reshape(len(rows), *(1,) * more, *rows.shape[1:]), (1, *ones, *given))


def _whole_diff(rows: np.ndarray, n: int = 1, axis: int = -1) -> Any:
    return np.diff(rows, n, axis=_shifted(axis, rows.ndim - 1))


def _whole_take(rows: np.ndarray, indices: Any, axis: Any = None, **kwargs: Any) -> Any:
    array, axis = _along_axis(rows, axis)
    return array.take(indices, axis=axis, **kwargs)


def choose(array: Any, index: Any) -> Any:
    """Return `array[index]`, for an index that `chooses` accepts."""
    return array[index]


def chooses(index: Any) -> bool:
    """Return True if an index is one list or array of positions, perhaps with slices and `...`."""
    parts = index if type(index) is tuple else (index,)
    listed = [part for part in parts if not isinstance(part, (slice, EllipsisType))]
    return len(listed) == 1 and type(listed[0]) in (list, np.ndarray) and _are_places(listed[0])


def _are_places(part: Any) -> bool:
    if type(part) is list:
        return bool(part) and all(type(one) is int or isinstance(one, np.integer) for one in part)
    return bool(part.ndim == 1 and part.dtype.kind in "iu" and part.size)


def _whole_chosen(rows: np.ndarray, index: Any) -> Any:
    """Index all rows. As in numpy, the axis of the positions comes first in the memory layout."""
    parts = list(index) if type(index) is tuple else [index]
    dots = next((i for i, part in enumerate(parts) if part is ...), len(parts))
    parts[dots : dots + 1] = [slice(None)] * (rows.ndim - 1 - sum(part is not ... for part in parts))
    axis = next(i for i, part in enumerate(parts) if not isinstance(part, slice))
    places, parts[axis] = parts[axis], slice(None)
    chosen = np.moveaxis(rows[(slice(None), *parts)], axis + 1, 1).take(places, axis=1)
    return np.moveaxis(chosen, 1, axis + 1)


def _whole_transform(function: Function) -> Function:
    """Return the form of a Fourier transform along one axis, by default the last."""

    def of_rows(rows: np.ndarray, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return function(rows, n, _shifted(axis, rows.ndim - 1), norm)

    return of_rows


def _order(function: Function, own: int) -> Function:
    """Return the form of a function of sorted numbers, such as the median. `own` arguments come before its axis."""

    def of_rows(rows: np.ndarray, *given: Any, axis: Any = None) -> Any:
        if len(given) > own:
            (axis,) = given[own:]
        if not all(type(one) in (int, float) for one in given[:own]):
            raise TypeError
        rows, axis = _along_axis(rows, axis)
        return function(rows, *given[:own], axis=axis)

    return of_rows


WHOLE: dict[Function, Callable[[Function, Any, Any], Function]] = {
    **dict.fromkeys((np.nan_to_num, np.round, np.around, np.tril, np.triu), _elementwise),
    np.digitize: _in_table("bins x bins", 3, strictly=False),
    np.searchsorted: _in_table("a a", 3, strictly=False),
    np.interp: _in_table("xp x xp fp", 5, strictly=True),
    np.roll: _first_rows(_whole_roll),
    np.repeat: _first_rows(_whole_repeat),
    np.tile: _first_rows(_whole_tile),
    np.diff: _first_rows(_whole_diff),
    np.isin: _first_rows(np.isin),
    np.take: _first_rows(_whole_take),
    choose: _first_rows(_whole_chosen),
    **{getattr(np.fft, name): _first_rows(_whole_transform(getattr(np.fft, name))) for name in TRANSFORMS},
    np.median: _first_rows(_order(np.median, 0)),
    np.ptp: _first_rows(_order(np.ptp, 0)),
    np.percentile: _first_rows(_order(np.percentile, 1)),
    np.quantile: _first_rows(_order(np.quantile, 1)),
}
