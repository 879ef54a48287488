"""Functions of numpy whose results for an element and for a Block of elements may differ in the last bit.

The order of additions in a sum depends on the length. On some machines, exp or tanh run other instructions at the end
of an array than inside it. A trial therefore compares the bits of a form for whole Blocks with those of single rows. It
runs once for each function and shape, on random values and special values. If the bits differ, each row is computed
separately. The operations before and after it still run on whole Blocks.
"""

from __future__ import annotations

import functools
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
_VALUES = 1 << 16  # values in a trial, which uses at least two rows
_LARGEST = 1 << 15  # values of a row; with more, a call per row costs little, and a trial costs much
_LISTED = 1 << 14  # bytes of a row; `column_of` does not stack larger rows
_WHOLE = 67  # fewest values of the last trial: more than one step of a vector loop, and a remainder
_SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 1e19, -1e19, 5e9, 3e9, -3e9, 7e4, 300.7, 1e-40, 0.5, 2.0, 1.0, -1.0, -0.0]

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """A function of one or more values, and its vectorised form, which is None if there is none."""

    of_row: Function
    of_rows: Function | None
    largest: int = _LARGEST
    spreads: bool = False  # True if arrays of constants are repeated for each row


@dataclass(frozen=True, slots=True)
class _Scalar:
    """A key of a constant that differs for equal constants: for 0.0 and -0.0, for 1 and 1.0."""

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
    """Return a primitive of `of_row(*values, **params)`. `of_rows` gets all rows, and constants unchanged.

    `of_rows` is used for rows of at most `largest` values. With `spreads`, arrays of constants are repeated for it.
    """
    form = Form(of_row, of_rows, largest, spreads)

    def by_probe(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
        return [_spec_by_probe(form, specs, params)]

    def run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
        return [_run(form, operands, params, rows, allocate)]

    return Primitive(name, by_probe if rule is None else rule, run, fresh=True, by_row=of_rows is None)


@dataclass(frozen=True, slots=True)
class OperandPlace:
    """The place of operand `index` in the arguments of a call."""

    index: int

    @staticmethod
    def filled(part: Any, values: Sequence[Any]) -> Any:
        """Return arguments with values at the places of operands."""
        if isinstance(part, OperandPlace):
            return values[part.index]
        if type(part) in (tuple, list):
            return type(part)(OperandPlace.filled(item, values) for item in part)
        return {name: OperandPlace.filled(item, values) for name, item in part.items()} if type(part) is dict else part


def called_by_row(
    name: str, called: Function, form: Form | None, specs: Sequence[Any]
) -> tuple[Primitive, type | None]:
    """Return a primitive that calls a function for each row, with operands of `specs`, or uses its vectorised form.

    The shape of the result must not depend on values. If the result is a tuple or list, its type is returned as well.
    """
    probes = [_ones(spec) for spec in specs]
    tried = _tried(called, probes, {})
    several = tried if type(tried) in (tuple, list) else (tried,)
    found = [_spec_of(one) for one in several]
    fresh = not any(np.may_share_memory(one, probe) for one in several for probe in probes)
    shape, dtype = found[0].shape, found[0].dtype

    def as_found(row: tuple[Any, ...]) -> Any:
        """Return the result for one row. Raise TypeError if its kind differs from that during tracing."""
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
                raise TypeError(f"{name} gave {one.dtype}{one.shape}, not {spec.dtype}{spec.shape}")
            if fresh and _is_a_view(one, row):
                raise TypeError(f"{name} gave a view")
        return made

    def rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
        return found

    def run(operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> list[Column]:
        whole = None if form is None else all_at_once(form, operands, {})
        if whole is not None:
            return [whole]
        made = map(as_found, values_of_rows(operands, rows))
        first = next(made)
        if type(first) not in (tuple, list):
            return [_stacked(first, made, rows, allocate)]
        of_each = list(zip(first, *made, strict=True))
        return [_stacked(one, iter(others), rows, None) for one, *others in of_each]

    kind = type(tried) if several is tried else None
    if kind is not None or not fresh:
        form = None
    return Primitive(name, rule, run, fresh=fresh and kind is None, by_row=form is None), kind


def _is_a_view(made: Any, row: tuple[Any, ...]) -> bool:
    """Return True if a result may share memory with the operands."""
    if not isinstance(made, np.ndarray):
        return False
    if made.base is None:  # it owns its memory, or is an operand itself
        return any(made is value for value in row)
    return any(np.may_share_memory(made, value) for value in row)


def _spec_by_probe(form: Form, specs: Sequence[Any], params: Mapping[str, Any]) -> TensorSpec:
    """Return the spec of the function's result for ones. Shape and dtype do not depend on the values."""
    return _spec_of(_tried(form.of_row, [_ones(spec) for spec in specs], params))


def probe(spec: Any) -> Any:
    """Return a tiny value with the dtype and the rank of an operand."""
    if isinstance(spec, Const):
        return spec.value
    if not isinstance(spec, TensorSpec) or spec.dtype is bytes:
        raise NotTraceable("arithmetic on a value that is not a numeric array")
    return np.ones((1,) * len(spec.shape), spec.dtype)[()]


def _ones(spec: Any) -> Any:
    found = probe(spec)
    if not isinstance(spec, TensorSpec):
        return found
    if None in spec.shape:
        raise NotTraceable("its shape differs between elements")
    return np.ones(tuple(extent for extent in spec.shape if extent is not None), spec.dtype)[()]


def _tried(function: Function, probes: Sequence[Any], params: Mapping[str, Any]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function(*probes, **params)
    except Exception as error:  # real elements decide whether this is an error
        raise NotTraceable(f"on a tracer it raised {type(error).__name__}: {error}") from None


def _spec_of(made: Any) -> TensorSpec:
    if not isinstance(made, (np.ndarray, np.generic)) or made.dtype.hasobject:
        raise NotTraceable(f"it returns a {type(made).__name__}")
    return TensorSpec(np.shape(made), made.dtype)


def _run(
    form: Form, operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> Column:
    if form.spreads:
        operands = [_spread(operand, rows) for operand in operands]
    whole = all_at_once(form, operands, params)
    if whole is not None:
        return whole
    made = (form.of_row(*row, **params) for row in values_of_rows(operands, rows))
    return _stacked(next(made), made, rows, allocate)


def all_at_once(form: Form, operands: Sequence[Any], params: Mapping[str, Any]) -> Column | None:
    """Return the results of all rows if a trial shows that they equal those of single rows; else None."""
    if form.of_rows is None or not all(_in_one_piece(operand, form.largest) for operand in operands):
        return None
    if not _equal(form, tuple(map(_kind, operands)), tuple(sorted(params.items()))):
        return None
    return DenseColumn(form.of_rows(*map(_array, operands), **params))


def _spread(operand: Any, rows: int) -> Any:
    """Return an array of constants as a column, and any other operand unchanged."""
    if not isinstance(operand, Const) or not np.ndim(operand.value):
        return operand
    return DenseColumn(np.repeat(operand.value[None], rows, axis=0))


def values_of_rows(operands: Sequence[Any], rows: int) -> Iterable[tuple[Any, ...]]:
    """Return the values of the operands for each row."""
    values = [[operand.value] * rows if isinstance(operand, Const) else operand.values() for operand in operands]
    return zip(*values, strict=True)


def _stacked(first: Any, others: Iterator[Any], rows: int, allocate: Allocate | None) -> Column:
    """Return a column of results that keep their memory layout, because later computations depend on it."""
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
    """Return True if a function gives equal bits for single rows and for all rows. The answer comes from a trial."""
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
    """Return True if two arrays are equal and have the same memory layout, on which sums depend."""
    alike = first.dtype == second.dtype and first.shape == second.shape and _strides(first) == _strides(second)
    return alike and first.tobytes() == second.tobytes()


def _strides(array: np.ndarray) -> list[int]:
    return [stride for extent, stride in zip(array.shape, array.strides, strict=True) if extent > 1]


def _trials(operands: tuple[Any, ...]) -> Iterator[list[Any]]:
    """Yield operands for several numbers of rows: first ordinary values, then special ones in unaligned memory."""
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
    made = np.empty(count + 1, dtype)[1:] if special else np.empty(count, dtype)  # special: unaligned
    if dtype.kind == "f":
        made[:] = np.clip(random.standard_normal(count) * 10 ** random.uniform(-3, 2, count), -6e4, 6e4)
        if special and count:
            made[:] = np.where(random.random(count) < 0.4, random.choice([0.0, -0.0], count), made)
            places = random.integers(0, count, max(1, count // 9))
            made[places] = random.choice(_SPECIAL, len(places))
            every = made.reshape(rows, -1)[1::2]  # every other row only, so that other sums and maxima are not nan
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
