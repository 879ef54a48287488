"""Functions of numpy whose result may differ in the last bit between an element and a Block of them.

Sums add in an order that depends on the length, and exp or tanh are other instructions at the end of an array than in
its midst, on some machines. Whether a form for a whole Block gives the very bits is therefore tried, once for each
function and shape, on random values, special ones among them. Where it does not, each row is calculated by itself, and
the operations around it still run by Block.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.block.arena import ARENA
from penstock.block.column import Column, DenseColumn, ListColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import TensorSpec
from penstock.trace.graph import Allocate, Const, NotTraceable, Primitive

_ROWS = (1, 2, 3, 7, 16)
_VALUES = 1 << 16  # that a trial calculates with, beyond what two rows hold
_LARGEST = 1 << 15  # values of a row: a call for each costs little beside them, and a trial would cost much
_SHORT = 1 << 10  # likewise, where the axis that a function goes along is slower to go along in a Block
_LISTED = 1 << 14  # bytes of a row from which on `column_of` leaves rows apart
_WHOLE = 67  # values that the last trial has at least: more than a vector body takes at once, and some behind it
_SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 1e19, -1e19, 5e9, 3e9, -3e9, 7e4, 300.7, 1e-40, 0.5, 2.0, 1.0, -1.0, -0.0]

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A function of one or more values, and what gives all its results at once; None where nothing does."""

    of_row: Function
    of_rows: Function | None
    largest: int = _LARGEST
    spreads: bool = False  # whether arrays of constants are given to it as if each row had its own


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A constant, told from those that equal it: 0.0 from -0.0, 1 from 1.0."""

    kind: type
    text: str
    value: Any = field(compare=False)


def rowwise(
    name: str,
    of_row: Function,
    of_rows: Function | None,
    rule: Any = None,
    *,
    largest: int = _LARGEST,
    spreads: bool = False,
) -> Primitive:
    """A primitive of `of_row(*values, **params)`; `of_rows` gets all rows, and constants as they are.

    It is for rows of up to `largest` values. What `spreads` gets arrays of constants in rows too.
    """
    form = Form(of_row, of_rows, largest, spreads)

    def by_probe(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
        return [_spec_by_probe(form, specs, params)]

    def run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
        return [_run(form, operands, params, rows, allocate)]

    return Primitive(name, by_probe if rule is None else rule, run, fresh=True, by_row=of_rows is None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where operand `index` stands among the arguments of a call."""

    index: int

    @staticmethod
    def filled(part: Any, values: Sequence[Any]) -> Any:
        """Arguments with values in the places of operands."""
        if isinstance(part, Place):
            return values[part.index]
        if type(part) in (tuple, list):
            return type(part)(Place.filled(item, values) for item in part)
        return {name: Place.filled(item, values) for name, item in part.items()} if type(part) is dict else part


def by_row(function: Function, args: Any, kwargs: Any, specs: Sequence[Any]) -> tuple[Primitive, type | None]:
    """A primitive that calls numpy's `function` for each row, with operands of `specs` in places among its arguments.

    The shape of what it gives does not depend on values. It may give a tuple or list, which is told, of results.
    """
    called, form = _form(function, args, kwargs, len(specs))
    probes = [_ones(spec) for spec in specs]
    tried = _tried(called, probes, {})
    several = tried if type(tried) in (tuple, list) else (tried,)
    found = [_spec_of(one) for one in several]
    fresh = not any(np.may_share_memory(one, probe) for one in several for probe in probes)
    shape, dtype = found[0].shape, found[0].dtype

    def as_found(row: tuple[Any, ...]) -> Any:
        """What it gives for one row, if that is as it was on stand-ins: the function went on from that."""
        made = called(*row)
        if (
            several is not tried
            and made.shape == shape
            and made.dtype is dtype
            and not (fresh and _is_a_view(made, row))
        ):
            return made
        for one, spec in zip(made if several is tried else (made,), found, strict=True):
            if one.shape != spec.shape or one.dtype != spec.dtype:
                message = f"np.{function.__name__} gave {one.dtype}{one.shape}, not {spec.dtype}{spec.shape}"
                raise TypeError(message)
            if fresh and _is_a_view(one, row):
                message = f"np.{function.__name__} gave a view"
                raise TypeError(message)
        return made

    def rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
        return found

    def run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
        whole = None if form is None else _all_at_once(form, operands, {})
        if whole is not None:
            return [whole]
        made = map(as_found, _values_of_rows(operands, rows))
        first = next(made)
        if type(first) not in (tuple, list):
            return [_stacked(first, made, rows, allocate)]
        of_each = list(zip(first, *made, strict=True))
        return [_stacked(one, iter(others), rows, None) for one, *others in of_each]

    kind = type(tried) if several is tried else None
    if kind is not None or not fresh:
        form = None
    return Primitive(function.__name__, rule, run, fresh=fresh and kind is None, by_row=form is None), kind


def _is_a_view(made: Any, row: tuple[Any, ...]) -> bool:
    """Whether it may share memory with what it was made of."""
    if not isinstance(made, np.ndarray):
        return False
    if made.base is None:  # it has memory of its own, unless it is what was given
        return any(made is value for value in row)
    return any(np.may_share_memory(made, value) for value in row)


@dataclass(frozen=True, slots=True)
class _Kept:
    """An argument, told from those that equal it, in a key."""

    kind: type
    bits: Any

    @staticmethod
    def of(part: Any) -> Any:
        if isinstance(part, Place):
            return part
        if type(part) in (tuple, list):
            return _Kept(type(part), tuple(map(_Kept.of, part)))
        if type(part) is dict:
            return _Kept(dict, tuple((name, _Kept.of(item)) for name, item in part.items()))
        if isinstance(part, (np.ndarray, np.generic)):
            return _Kept(type(part), (part.dtype.str, part.shape, part.tobytes()))
        return _Kept(type(part), repr(part))


def _form(function: Function, args: Any, kwargs: Any, operands: int) -> tuple[Function, Form | None]:
    """A call with operands in places among its arguments; and its form for all rows, the same for equal calls."""
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
    """A call of a function with values in places among its arguments; as quick as it can be, it is one for each row."""
    places = [part.index for part in args if isinstance(part, Place)]
    nested = any(type(part) in (tuple, list, dict) for part in (*args, *kwargs.values()))
    if nested or any(isinstance(part, Place) for part in kwargs.values()):
        return lambda *values: function(*Place.filled(args, values), **Place.filled(kwargs, values))
    if len(places) == len(args) and not kwargs and places == [*range(len(args))]:
        return function
    if len(places) == 1:
        at = next(i for i, part in enumerate(args) if isinstance(part, Place))
        before, behind = args[:at], args[at + 1 :]
        return lambda value: function(*before, value, *behind, **kwargs)
    return lambda *values: function(*Place.filled(args, values), **kwargs)


def _spec_by_probe(form: Form, specs: Sequence[Any], params: Mapping[str, Any]) -> TensorSpec:
    """What the function gives for ones: its result has the same shape and dtype whatever the values are."""
    return _spec_of(_tried(form.of_row, [_ones(spec) for spec in specs], params))


def probe(spec: Any) -> Any:
    """A tiny stand-in whose dtype and rank behave like the operand's."""
    if isinstance(spec, Const):
        return spec.value
    if not isinstance(spec, TensorSpec) or spec.dtype is bytes:
        msg = "arithmetic on a value that is no numeric array"
        raise NotTraceable(msg)
    return np.ones((1,) * len(spec.shape), spec.dtype)[()]


def _ones(spec: Any) -> Any:
    found = probe(spec)
    if not isinstance(spec, TensorSpec):
        return found
    if None in spec.shape:
        message = "its shape differs between elements"
        raise NotTraceable(message)
    return np.ones(tuple(extent for extent in spec.shape if extent is not None), spec.dtype)[()]


def _tried(function: Function, probes: Sequence[Any], params: Mapping[str, Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(*probes, **params)
    except Exception as error:  # the real elements decide whether this is an error, on the user's own line
        message = f"on a stand-in it raised {type(error).__name__}: {error}"
        raise NotTraceable(message) from None


def _spec_of(made: Any) -> TensorSpec:
    if not isinstance(made, (np.ndarray, np.generic)) or made.dtype.hasobject:
        message = f"it gives a {type(made).__name__}"
        raise NotTraceable(message)
    return TensorSpec(np.shape(made), made.dtype)


def _run(
    form: Form, operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> Column:
    if form.spreads:
        operands = [_spread(operand, rows) for operand in operands]
    whole = _all_at_once(form, operands, params)
    if whole is not None:
        return whole
    made = (form.of_row(*row, **params) for row in _values_of_rows(operands, rows))
    return _stacked(next(made), made, rows, allocate)


def _all_at_once(form: Form, operands: Sequence[Any], params: Mapping[str, Any]) -> Column | None:
    """The results where they are those of each row, bit for bit."""
    if form.of_rows is None or not all(_in_one_piece(operand, form.largest) for operand in operands):
        return None
    if not _equal(form, tuple(map(_kind, operands)), tuple(sorted(params.items()))):
        return None
    return DenseColumn(form.of_rows(*map(_array, operands), **params))


def _spread(operand: Any, rows: int) -> Any:
    """An array of constants as a column."""
    if not isinstance(operand, Const) or not np.ndim(operand.value):
        return operand
    return DenseColumn(np.repeat(operand.value[None], rows, axis=0))


def _values_of_rows(operands: Sequence[Any], rows: int) -> Iterable[tuple[Any, ...]]:
    values = [[operand.value] * rows if isinstance(operand, Const) else operand.values() for operand in operands]
    return zip(*values, strict=True)


def _stacked(first: Any, others: Iterator[Any], rows: int, allocate: Allocate | None) -> Column:
    """A column of results, which lie in memory as they did by themselves: what is calculated next depends on it."""
    if isinstance(first, np.ndarray) and first.flags.c_contiguous and first.nbytes >= _LISTED:
        place = None if allocate is None else allocate(first.shape, first.dtype)
        place = ARENA.empty((rows, *first.shape), first.dtype) if place is None else place
        place[0] = first
        for row in range(1, rows):
            made = next(others)
            if made.shape != first.shape or made.dtype != first.dtype or not made.flags.c_contiguous:
                return ListColumn([*place[:row].copy(), *map(as_leaf, (made, *others))])
            place[row] = made
        return DenseColumn(place)
    leaves = [as_leaf(first), *map(as_leaf, others)]
    if all(leaf.flags.c_contiguous for leaf in leaves if isinstance(leaf, np.ndarray)):
        return column_of(leaves)
    return ListColumn(leaves)


def _in_one_piece(operand: Any, largest: int) -> bool:
    if isinstance(operand, Const):
        return np.ndim(operand.value) == 0
    if not isinstance(operand, DenseColumn) or not (operand.array.flags.c_contiguous or operand.array.ndim == 1):
        return False
    return bool(operand.array.size <= largest * len(operand.array))


def _array(operand: Any) -> Any:
    return operand.value if isinstance(operand, Const) else np.ascontiguousarray(operand.array)


def _kind(operand: Any) -> Any:
    if isinstance(operand, Const):
        return _Scalar(type(operand.value), repr(operand.value), operand.value)
    return operand.array.shape[1:], operand.array.dtype


@functools.lru_cache(1000)
def _equal(form: Form, operands: tuple[Any, ...], params: tuple[tuple[str, Any], ...]) -> bool:
    """Whether a function gives equal bits for rows by themselves and all at once, found by trying it."""
    given = dict(params)
    assert form.of_rows is not None
    arrayed = not all(isinstance(kind, _Scalar) or kind[0] == () for kind in operands)
    with np.errstate(all="ignore"):
        for arrays in _trials(operands):
            try:
                whole = form.of_rows(*arrays, **given)
            except Exception:
                return False
            columns = [list(array) if isinstance(array, np.ndarray) else None for array in arrays]
            for row in range(len(whole)):
                own = [value if rows is None else rows[row] for rows, value in zip(columns, arrays, strict=True)]
                copies = [value.copy() if isinstance(value, np.ndarray) else value for value in own]
                for each in (own, copies) if arrayed else (own,):
                    made = np.asarray(form.of_row(*each, **given))
                    if not _same(made, np.asarray(whole[row])):
                        return False
    return True


def _same(first: np.ndarray, second: np.ndarray) -> bool:
    return first.dtype == second.dtype and first.shape == second.shape and first.tobytes() == second.tobytes()


def _trials(operands: tuple[Any, ...]) -> Iterator[list[Any]]:
    """Operands for some numbers of rows: smooth values and special ones, at places that are aligned or not."""
    random = np.random.default_rng(7)
    size = max(int(np.prod(kind[0])) for kind in operands if not isinstance(kind, _Scalar))
    left = max(_VALUES, 2 * size)
    for special in (False, True):
        for rows in (*_ROWS[:-1], max(_ROWS[-1], -(-_WHOLE // max(size, 1)))):
            if rows > 2 and rows * size > left:
                break
            left -= rows * size
            yield [_values(random, rows, kind, special=special) for kind in operands]


def _values(random: np.random.Generator, rows: int, kind: Any, *, special: bool) -> Any:
    if isinstance(kind, _Scalar):
        return kind.value
    shape, dtype = kind
    count = rows * int(np.prod(shape))
    made = np.empty(count + 1, dtype)[1:] if special else np.empty(count, dtype)  # special: off a vector's boundary
    if dtype.kind == "f":
        made[:] = np.clip(random.standard_normal(count) * 10 ** random.uniform(-3, 2, count), -6e4, 6e4)
        if special and count:
            made[:] = np.where(random.random(count) < 0.4, random.choice([0.0, -0.0], count), made)
            places = random.integers(0, count, max(1, count // 9))
            made[places] = random.choice(_SPECIAL, len(places))
            every = made.reshape(rows, -1)[1::2]  # of every other row: sums and maxima of the rest are no nan
            every[:] = np.resize(random.permutation(_SPECIAL), every.shape)
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        made[:] = random.integers(info.min, info.max, count, dtype, endpoint=True)
    elif dtype.kind == "b":
        made[:] = random.random(count) < 0.5
    else:
        parts = _values(random, rows, ((*shape, 2), made.real.dtype), special=special)
        made.real[:], made.imag[:] = parts.reshape(-1, 2).T
    return made.reshape(rows, *shape)


def _shifted(axis: Any, rank: int) -> Any:
    """Axes of an element as axes of all."""
    if isinstance(axis, tuple):
        return tuple(_shifted(one, rank) for one in axis)
    if not -rank <= axis < rank:
        message = f"there is no axis {axis} in {rank}"
        raise ValueError(message)
    return axis % rank + 1


def _reduced(name: str) -> Primitive:
    """A method of arrays that makes one value of those along axes, all of them by default."""

    def of_row(array: Any, axis: Any = None, **params: Any) -> Any:
        return getattr(array, name)(axis=axis, **params)

    def of_rows(array: np.ndarray, axis: Any = None, **params: Any) -> Any:
        if axis is not None:
            return getattr(array, name)(axis=_shifted(axis, array.ndim - 1), **params)
        if params.get("keepdims"):
            return getattr(array, name)(axis=tuple(range(1, array.ndim)), **params)
        return getattr(array.reshape(len(array), -1), name)(axis=1, **params)

    return rowwise(name, of_row, of_rows)


REDUCTIONS = {
    name: _reduced(name)
    for name in ("sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin")
}


def _along(name: str) -> Primitive:
    """A function that works along one axis, or on all values in one row where there is none."""
    function = getattr(np, name)

    def of_rows(array: np.ndarray, axis: Any) -> Any:
        if axis is None:
            return function(array.reshape(len(array), -1), axis=1)
        return function(array, axis=_shifted(axis, array.ndim - 1))

    return rowwise(name, lambda array, axis: function(array, axis=axis), of_rows, largest=_SHORT)


ALONG = {name: _along(name) for name in ("sort", "argsort", "cumsum", "cumprod")}
COPY = rowwise("copy", lambda array, order: array.copy(order), lambda array, order: array.copy(order))
POWER = rowwise("power", operator.pow, None)  # the operator, which takes other ways than np.power for some exponents
PADS = ("constant", "edge", "reflect", "symmetric", "wrap")  # ways of np.pad that only copy
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


# Functions of one value of the element and constants, for all rows at once. Whether they give the same is tried.


def _elementwise(called: Function, args: Any, kwargs: Any) -> Function:
    """A function that works on each number by itself."""
    return called


_SIDES = {"right", "side", "left"}  # what happens beside a table, or on its places


def _in_table(names: str, most: int, *, strictly: bool) -> Callable[[Function, Any, Any], Function]:
    """A function that looks each number up in a constant table; in one out of order it may depend on the others."""

    def form(called: Function, args: Any, kwargs: Any) -> Function:
        at, *values = names.split()
        given = dict(zip(values, args, strict=False))
        table = np.asarray(given[at]) if at in given and type(given[at]) is not Place else np.zeros(0)
        if len(args) > most or not kwargs.keys() <= _SIDES or table.ndim != 1 or table.dtype.kind not in "iuf":
            raise TypeError
        low, high = table[:-1], table[1:]
        in_order = (low < high if strictly else low <= high).all()
        if not in_order or not len(table) or table[0] != table[0]:
            raise TypeError
        return called

    return form


def _first_rows(of_rows: Function) -> Callable[[Function, Any, Any], Function]:
    """A function whose first argument is the element's value: another one gets all rows, and the same constants."""

    def form(called: Function, args: Any, kwargs: Any) -> Function:
        if not args or args[0] != Place(0):
            raise TypeError
        return lambda rows: of_rows(rows, *args[1:], **kwargs)

    return form


def _whole_roll(rows: np.ndarray, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return np.roll(rows.reshape(len(rows), -1), shift, axis=1).reshape(rows.shape)
    return np.roll(rows, shift, axis=_shifted(axis, rows.ndim - 1))


def _whole_repeat(rows: np.ndarray, repeats: Any, axis: Any = None) -> Any:
    if axis is None:
        return np.repeat(rows.reshape(len(rows), -1), repeats, axis=1)
    return np.repeat(rows, repeats, axis=_shifted(axis, rows.ndim - 1))


def _whole_tile(rows: np.ndarray, reps: Any) -> Any:
    given = reps if type(reps) in (tuple, list) else (reps,)
    more = max(0, len(given) - (rows.ndim - 1))
    ones = (1,) * (rows.ndim - 1 - len(given))
    return np.tile(rows.reshape(len(rows), *(1,) * more, *rows.shape[1:]), (1, *ones, *given))


def _whole_diff(rows: np.ndarray, n: int = 1, axis: int = -1) -> Any:
    return np.diff(rows, n, axis=_shifted(axis, rows.ndim - 1))


def _order(function: Function, own: int) -> Function:
    """A function of the order of numbers, of all or along an axis, with so many other arguments before that."""

    def of_rows(rows: np.ndarray, *given: Any, axis: Any = None) -> Any:
        if len(given) > own:
            (axis,) = given[own:]
        if not all(type(one) in (int, float) for one in given[:own]):
            raise TypeError
        if axis is None:
            return function(rows.reshape(len(rows), -1), *given[:own], axis=1)
        return function(rows, *given[:own], axis=_shifted(axis, rows.ndim - 1))

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
    np.median: _first_rows(_order(np.median, 0)),
    np.ptp: _first_rows(_order(np.ptp, 0)),
    np.percentile: _first_rows(_order(np.percentile, 1)),
    np.quantile: _first_rows(_order(np.quantile, 1)),
}
