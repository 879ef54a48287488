"""op: declare a function of numpy values as a function of tf.

A declared function gets numpy values and returns numpy values. Called with tensors, it returns tensors. Called while a
function of `map` is traced, it becomes one equation of the graph. The equation runs for all elements of a Block at once
if the declaration has a form for Blocks (`block`, or `exact` for functions that compute each number alone). Otherwise
it runs row by row. The bits are equal in both cases.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, RaggedTensorSpec, SparseTensorSpec, TensorSpec, any_extent, spec_of
from penstock.block.structure import Structure, flatten
from penstock.block.tensors import RaggedTensor
from penstock.compat.dtypes import DType, plain
from penstock.compat.operands import _reading, matched
from penstock.compat.values import lowered, over_flat, raised
from penstock.keys import fold
from penstock.trace.drawing import element_key
from penstock.trace.graph import Allocate, Const, Keys, NotTraceable, Operand, Primitive
from penstock.trace.rowwise import Form, OperandPlace, all_at_once
from penstock.trace.tracer import Tracer

F = TypeVar("F", bound=Callable[..., Any])
Rule = Callable[..., LeafSpec]

_COMPOSITES = RaggedTensorSpec, SparseTensorSpec
_EXTENT = 6  # an unknown extent is 1 and 6 in turn when a function is tried for the shape of its result


class _Seeds:
    """The seed of `tf.random.set_seed`, from which random numbers outside of data sets follow, in their order."""

    def __init__(self) -> None:
        self.seed: int | None = None
        self._count = 0

    def set(self, seed: int | None) -> None:
        self.seed, self._count = seed, 0

    def key(self, seed: int | None) -> int:
        """Return the key of the next random number."""
        if self.seed is None or _in_element():
            return element_key(seed)
        self._count += 1
        return fold(self.seed, self._count, 0 if seed is None else seed + 1)


def _in_element() -> bool:
    from penstock.trace.drawing import _element

    return _element.draws is not None


seeds = _Seeds()


@dataclass(frozen=True, eq=False)
class _Call:
    """A function with its arguments, in which operands are replaced by their places."""

    function: Callable[..., Any]
    args: Any
    kwargs: Any
    keyed: bool = False  # the first operand is a key for random numbers

    def __call__(self, operands: Sequence[Any], function: Callable[..., Any] | None = None) -> Any:
        values = operands[1:] if self.keyed else operands
        args, kwargs = OperandPlace.filled(self.args, values), OperandPlace.filled(self.kwargs, values)
        if self.keyed:
            kwargs["key"] = operands[0]
        return (function or self.function)(*args, **kwargs)


def _emptied(part: Any, found: list[Tracer]) -> Any:
    kind = type(part)
    if kind is dict:
        return {name: _emptied(item, found) for name, item in part.items()}
    if kind is tuple or kind is list:
        return kind(_emptied(item, found) for item in part)
    value = plain(part) if kind is DType else lowered(part)
    if not isinstance(value, Tracer):
        return value
    found.append(value)
    return OperandPlace(len(found) - 1)


def _raised_nest(value: Any, given: Sequence[np.ndarray] = ()) -> Any:
    """Return results as tensors that share no memory with the arrays which the user passed to the function."""
    if isinstance(value, (tuple, list)):
        parts = [_raised_nest(item, given) for item in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if type(value) is dict:
        return {name: _raised_nest(item, given) for name, item in value.items()}
    if given and isinstance(value, np.ndarray) and any(np.may_share_memory(value, array) for array in given):
        value = value.copy()
    return raised(value)


def _arrays(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[np.ndarray]:
    """Return the arrays among the arguments. The user may write into these arrays later."""
    return [part for part in (*args, *kwargs.values()) if isinstance(part, np.ndarray)]


def _places(function: Callable[..., Any], names: str) -> list[tuple[str, int]]:
    """Return the parameters of these names, with their positions."""
    known = list(inspect.signature(function).parameters)
    return [(name, known.index(name)) for name in names.split()]


def _match(places: list[tuple[str, int]], args: tuple[Any, ...], kwargs: dict[str, Any], *, first: bool) -> Any:
    """Convert the arguments in `places` to one dtype. A single place holds a list of operands."""
    found = list(args)
    held: list[tuple[Any, Any]] = [(found, at) if at < len(found) else (kwargs, name) for name, at in places]
    if all(part is found or key in kwargs for part, key in held):
        values = [part[key] for part, key in held]
        if len(held) > 1:
            values = matched(values, first=first or _reading.mapped)
        elif isinstance(values[0], (list, tuple)) and values[0]:
            values = [matched(values[0], first=False)]
        for (part, key), value in zip(held, values, strict=True):
            part[key] = value
    return found


def op(
    name: str,
    *,
    rule: Rule | None = None,
    block: Callable[..., Any] | None = None,
    exact: bool = False,
    text: bool = False,
    draws: bool = False,
    ragged: bool = False,
    alike: str = "",
    first: bool = False,
) -> Callable[[F], F]:
    """Declare a function of numpy values as the operation `name`.

    Args:
        name: Name of the equation.
        rule: Function from the arguments, with specs in place of operands, to the spec of the result or a nest of
            specs. Without a rule, the function is tried on small values.
        block: The function for a whole Block, in which each operand has the rows along its first axis. It returns
            arrays or columns, or None if it cannot compute this Block.
        exact: The function computes each number alone, with the same bits in an array of any length.
        text: `block` also takes columns of byte strings.
        draws: The function uses random numbers. It has a parameter `seed`, and gets a key as `key=`.
        ragged: The function computes each number alone, but the last bits may depend on the length. It runs by Block
            if a trial found equal bits. A function that is `exact` or `ragged` also takes ragged tensors.
        alike: Names of parameters that are converted to one dtype by `operands.matched`. If there is one name, the
            items of this parameter are converted.
        first: The first operand decides the dtype also in eager code.

    Returns:
        A decorator.
    """

    def decorate(function: F) -> F:
        places = _places(function, alike)
        form = Form(function, functools.partial(_wide, function)) if ragged and not exact else None
        operation = _Operation(name, rule, block, exact, text, ragged, form)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("name", None)
            given = _arrays(args, kwargs)
            if places:
                args = tuple(_match(places, args, kwargs, first=first))
            operands: list[Tracer] = []
            template = _emptied(args, operands)
            named = _emptied(kwargs, operands)
            if draws:
                seed = _seed_of(named)
                if not operands and _reading.builder is None:
                    return _raised_nest(function(*template, **named, key=seeds.key(seed)))
                return _bound(
                    _Operation(name, None, block), _Call(function, template, named, keyed=True), operands, seed
                )
            if not operands:
                if (exact or ragged) and any(isinstance(part, RaggedTensor) for part in template):
                    return raised(over_flat(lambda *parts: function(*parts, **named), template))
                return _raised_nest(function(*template, **named), given)
            return _bound(operation, _Call(function, template, named), operands)

        marked: Any = known(call)
        if draws:
            marked.__penstock_draws__ = True
        return marked

    return decorate


def through(function: Any, *, first: Callable[[Any], Any] = lambda value: value, ragged: bool = False) -> Any:
    """Return a function of penstock as a function of tensors and tracers.

    Args:
        function: The function.
        first: Conversion of the first argument.
        ragged: The function computes each number alone, so that it also takes ragged tensors.
    """
    draws = "__penstock_draws__" in vars(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("name", None)
        operands: list[Tracer] = []
        template, named = _emptied(args, operands), _emptied(kwargs, operands)
        if not operands:
            if template:
                template = (first(template[0]), *template[1:])
                if ragged and isinstance(template[0], RaggedTensor):
                    return raised(over_flat(lambda *parts: function(*parts, **named), template))
            return _raised_nest(function(*template, **named), _arrays(args, kwargs))
        alone = len(operands) == 1 and OperandPlace(0) in (*template[:1], *list(named.values())[: not template])
        if alone:
            leaves, structure = flatten(
                function(*OperandPlace.filled(template, operands), **OperandPlace.filled(named, operands))
            )
            return structure.build([raised(leaf) for leaf in leaves])
        if draws:
            raise NotTraceable(f"a parameter of {function.__name__} that differs between elements")
        return applied(function.__name__, function, args, kwargs)

    return known(call)


def known(function: F) -> F:
    """Declare that a function of this package may be called while a user's function is traced."""
    marked: Any = function
    marked.__penstock_primitive__ = True
    return function


def named(function: Any, name: str, description: str | None) -> Any:
    """Set the name and the docstring under which users find a generated function."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = description
    return function


def _seed_of(named: dict[str, Any]) -> int | None:
    seed = named.pop("seed", None)
    if isinstance(seed, OperandPlace):
        raise NotTraceable("a seed that differs between elements")
    return None if seed is None else int(seed)


def applied(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, exact: bool = False
) -> Any:
    """Call a function with tracers among the arguments: row by row, or for the whole Block if it is `exact`."""
    operands: list[Tracer] = []
    call = _Call(function, _emptied(args, operands), _emptied(kwargs, operands))
    return _bound(_Operation(name, exact=exact, text=exact), call, operands)


@dataclass(frozen=True, eq=False)
class _Operation:
    """The declaration of an operation: the arguments of `op`."""

    name: str
    rule: Rule | None = None
    block: Callable[..., Any] | None = None
    exact: bool = False
    text: bool = False
    ragged: bool = False
    form: Form | None = None


def _bound(operation: _Operation, call: _Call, operands: list[Tracer], seed: int | None = None) -> Any:
    """Add a call to the graph, and return tensors of the tracers of its results."""
    rule = operation.rule
    builder = operands[0].builder if operands else _reading.builder
    assert builder is not None
    structures: list[Structure] = []

    def specs_of(specs: Sequence[Any], params: Mapping[str, Any]) -> Sequence[LeafSpec]:
        known = rule is not None and (operation.ragged or not any(isinstance(spec, _COMPOSITES) for spec in specs))
        found, structure = flatten(call(specs, rule)) if known else _tried(operation.name, call, specs)
        structures.append(structure)
        return found

    def run(
        columns: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
    ) -> Sequence[Column]:
        return _run(operation, call, columns, rows, structures[0])

    keys: list[Operand] = []
    if call.keyed:
        keys.append(Keys(builder.next_draw() if seed is None else 0, seed))
    by_row = operation.block is None and not operation.exact and operation.form is None
    primitive = Primitive(operation.name, specs_of, run, by_row=by_row)
    refs = builder.bind(primitive, [*keys, *(operand.ref for operand in operands)], {})
    specs = builder.equations[-1].specs
    leaves = [raised(Tracer(builder, ref, spec)) for ref, spec in zip(refs, specs, strict=True)]
    return structures[0].build(leaves)


def _tried(name: str, call: _Call, specs: Sequence[Any]) -> tuple[list[LeafSpec], Structure]:
    """Return the specs of the results, by calling the function on small values of each size that they may have."""
    open_extents = any(isinstance(spec, TensorSpec) and (spec.open_rank or None in spec.shape) for spec in specs)
    try:
        found, structure = _tried_on(call, specs, 1, (1,))
        others = [_tried_on(call, specs, _EXTENT, (1, _EXTENT))[0]] if open_extents else []
    except Exception as error:  # the real elements decide whether this is an error
        message = f"{name} of a value whose shape differs between elements, or of another kind: {error}"
        raise NotTraceable(message.splitlines()[0]) from None
    if any(map(_may_be_an_extent, specs)) and any(isinstance(leaf, TensorSpec) and leaf.shape for leaf in found):
        try:
            others.append(_tried_on(call, specs, 1, (0, 2))[0])
        except Exception:  # no other extent, or place, suits the operands that are not numbers
            others.append(list(map(any_extent, found)))
    for other in others:
        relaxed = [a.relax(b) if type(a) is type(b) else None for a, b in zip(found, other, strict=False)]
        if len(found) != len(other) or None in relaxed:
            raise NotTraceable(f"{name} gives values whose rank differs between elements")
        found = [spec for spec in relaxed if spec is not None]
    return found, structure


def _tried_on(
    call: _Call, specs: Sequence[Any], extent: int, numbers: Sequence[int]
) -> tuple[list[LeafSpec], Structure]:
    """Return the specs of the results if open extents are `extent`, and integers the first number that works."""
    try:
        with np.errstate(all="ignore"):
            result = call([_probe(spec, extent, numbers[0]) for spec in specs])
    except Exception:
        if len(numbers) == 1:
            raise
        return _tried_on(call, specs, extent, numbers[1:])
    leaves, structure = flatten(result)
    return [spec_of(as_leaf(leaf)) for leaf in leaves], structure


def _may_be_an_extent(spec: Any) -> bool:
    """Return True for integers that may decide how large a result is."""
    return isinstance(spec, TensorSpec) and spec.dtype is not bytes and spec.dtype.kind in "iub" and len(spec.shape) < 3


def _probe(spec: Any, extent: int, number: int) -> Any:
    if isinstance(spec, Keys):
        return 1
    if isinstance(spec, Const):
        return spec.value
    if not isinstance(spec, TensorSpec) or spec.open_rank:
        raise NotTraceable("an operation on what is not an array")
    shape = tuple(extent if known is None else known for known in spec.shape)
    if spec.dtype is bytes:
        found = np.empty(shape, object)
        found.reshape(-1)[:] = b"1"
        return found if shape else b"1"
    return np.full(shape, number if _may_be_an_extent(spec) else 1, spec.dtype)[()]


def _run(
    operation: _Operation, call: _Call, columns: Sequence[Any], rows: int, structure: Structure
) -> Sequence[Column]:
    form, taken = operation.form, (DenseColumn, np.ndarray, *((BytesColumn,) if operation.text else ()))
    if all(isinstance(column, taken) for column in columns):
        arrays = [column.array if isinstance(column, DenseColumn) else column for column in columns]
        whole = None
        if operation.block is not None:
            whole = call(arrays, operation.block)
        elif operation.exact:
            texts = [texts_of(one) if isinstance(one, BytesColumn) else one for one in arrays]
            deepest = max(map(np.ndim, (*call.args, *call.kwargs.values())))  # of the constants
            whole = _wide(lambda *wide: call(wide), *texts, least=1 + deepest)
        elif form is not None and not call.kwargs:
            parts = [columns[part.index] if isinstance(part, OperandPlace) else Const(part) for part in call.args]
            tried = all_at_once(form, parts, {})
            if tried is not None:
                return [tried]
        if whole is not None:
            found = whole if isinstance(whole, tuple) else (whole,)
            return [part if isinstance(part, Column) else _column(np.asarray(part)) for part in found]
    values = [_values(column) for column in columns]
    made: list[list[Any]] = [[] for _ in range(structure.size)]
    for row in range(rows):
        leaves = structure.flatten(call([column[row] for column in values]))
        for place, leaf in zip(made, leaves, strict=True):
            place.append(as_leaf(leaf))
    return [column_of(place) for place in made]


def _wide(function: Callable[..., Any], *values: Any, least: int = 0) -> np.ndarray:
    """Return the results for all rows, of a function that works on each number by itself.

    The values get `least` dimensions or more, so that constants meet the dimensions of the elements, not the rows.
    """
    rank = max(least, *map(np.ndim, values))
    wide = [a.reshape(a.shape[0], *(1,) * (rank - a.ndim), *a.shape[1:]) if np.ndim(a) else a for a in values]
    return np.asarray(function(*wide))


def _column(found: np.ndarray) -> Column:
    if not found.dtype.hasobject:
        return DenseColumn(found)
    return BytesColumn.from_values(found.reshape(-1).tolist(), found.shape[1:], len(found))


def texts_of(column: BytesColumn) -> np.ndarray:
    """Return the byte strings of all elements in one array."""
    found = np.empty(column.starts.shape, object)
    flat = BytesColumn(
        column.buffers,
        column.starts.reshape(-1),
        column.lengths.reshape(-1),
        None if column.which is None else column.which.reshape(-1),
    )
    found.reshape(-1)[:] = flat.values()
    return found


def _values(column: Any) -> Any:
    if isinstance(column, np.ndarray):  # of keys
        return column.tolist()
    return column.values()
