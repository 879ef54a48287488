"""`traceable` makes a public function a primitive, so that functions that call it can run on whole Blocks.

`random_op` does the same for random functions. `of_nature` declares the kind of work of an operation.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.block.column import BytesColumn, Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.graph import Allocate, Keys, NotTraceable, Primitive
from penstock.trace.tracer import Tracer, bind

if TYPE_CHECKING:
    from penstock.trace.graph import Graph

F = TypeVar("F", bound=Callable[..., Any])
BlockForm = Callable[[Any, Mapping[str, Any], int, Allocate | None], Sequence[Column] | None]


def traceable(
    name: str,
    rule: Callable[..., Any],
    *,
    batches: Callable[[int], bool] = lambda rank: False,
    block: BlockForm | None = None,
    presumes: Callable[[Mapping[str, Any]], bool] | None = None,
    fresh: bool = False,
    gives: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Declare a function of one value and static parameters as the primitive `name`.

    `rule(spec, **params)` returns the spec of its result for a value of `spec` and may raise NotTraceable.
    `batches(rank)` is True if the function also takes values of that rank with one more leading axis, and then returns
    a result for each. Such a function gets whole dense columns. `block` is its form for a whole column. It may return
    None for a column that it does not support. `presumes(params)` is True if `rule` applies to usual columns only;
    `block` then raises for other columns. A `fresh` function never returns memory of its argument. `gives` is the named
    tuple of a function with several results; `rule` then returns one of specs. Calls with real values are unchanged.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        def check(specs: Sequence[Any], params: Mapping[str, Any]) -> Sequence[LeafSpec]:
            found = rule(specs[0], **params)
            return [found] if gives is None else list(found)

        def run(
            operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
        ) -> Sequence[Column]:
            column = operands[0]
            whole = None if block is None else block(column, params, rows, allocate)
            if whole is not None:
                return whole
            if isinstance(column, DenseColumn) and batches(column.array.ndim - 1):
                return [DenseColumn(function(column.array, **params))]
            if isinstance(column, BytesColumn) and column.starts.ndim == 1:
                values: Sequence[Any] = column.views()
            else:
                values = column.values()
            made = [function(value, **params) for value in values]
            results = [made] if gives is None else zip(*made, strict=True)
            return [column_of(list(map(as_leaf, each))) for each in results]

        primitive = Primitive(name, check, run, fresh, view=not fresh, presumes=presumes)

        def lift(*args: Any, **kwargs: Any) -> Any:
            value, params = _static(name, signature, args, kwargs)
            results = bind(primitive, [value], params)
            return results[0] if gives is None else gives(*results)

        return lifted_by(lift)(function)

    return decorate


def _static(name: str, signature: inspect.Signature, args: Any, kwargs: Any) -> tuple[Tracer, dict[str, Any]]:
    """Return the first argument of a call, and the others by name. These must not be tracers."""
    found = signature.bind(*args, **kwargs)
    found.apply_defaults()
    (_, value), *others = found.arguments.items()
    if any(isinstance(item, Tracer) for _, item in others):
        raise NotTraceable(f"a parameter of {name} that differs between elements")
    return value, dict(others)


def lifted_by(lift: Callable[..., Any]) -> Callable[[F], F]:
    """Declare that `lift` is called if the first argument is a tracer. Calls with real values are unchanged."""

    def decorate(function: F) -> F:
        first_name = next(iter(inspect.signature(function).parameters))

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            value = args[0] if args else kwargs.get(first_name)
            return lift(*args, **kwargs) if type(value) is Tracer else function(*args, **kwargs)

        call.__penstock_primitive__ = True  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]

    return decorate


def tensor(spec: LeafSpec) -> TensorSpec:
    """Return the spec of a numeric array, for rules. Raise NotTraceable for any other spec."""
    if not isinstance(spec, TensorSpec) or spec.dtype is bytes:
        raise NotTraceable("an array operation on a value that is not a numeric array")
    return spec


def byte_string(spec: LeafSpec) -> None:
    """Raise NotTraceable for any spec except that of a scalar byte string."""
    if not isinstance(spec, TensorSpec) or spec.dtype is not bytes or spec.shape:
        raise NotTraceable("a decoder is called with a value that is not a byte string")


# An operation declares its nature where it is defined. Rewrite rules, lint checks and stages use the nature, never the
# name of an operation.


@dataclass(frozen=True, slots=True)
class Nature:
    """The kind of work of a function. Without a declaration, its work is assumed to be short.

    `work` describes work that takes so long that other threads may help, such as "works on images". A function that
    `decodes` turns the bytes of an encoded file into an array of uint8.
    """

    work: str = ""
    decodes: bool = False


_UNKNOWN = Nature()


def of_nature(nature: Nature) -> Callable[[F], F]:
    """Declare the nature of a function.

    >>> @of_nature(Nature("works on images"))
    ... def blur(image): ...
    >>> nature_of(blur).work, nature_of(len).work
    ('works on images', '')
    """

    def decorate(function: F) -> F:
        function.__penstock_nature__ = nature  # type: ignore[attr-defined]
        return function

    return decorate


def nature_of(value: Any) -> Nature:
    """Return the nature that a function declares, or an empty one for any other value."""
    found = vars(value).get("__penstock_nature__") if type(value) is FunctionType else None
    return found if isinstance(found, Nature) else _UNKNOWN


def draws(value: Any) -> bool:
    """Return True if a function is declared to use the random key of its element (`random_op`)."""
    return type(value) is FunctionType and "__penstock_draws__" in vars(value)


@dataclass(frozen=True, slots=True)
class Family:
    """Primitives whose names begin with one word, as `image.resize` begins with `image`.

    `work` describes what they do. Their bits do not depend on the memory layout of arrays. `fuse` names a function as
    "module:function", because it is imported when it is first needed. It takes a graph and `copied`, and returns the
    graph with neighbouring primitives as one.
    """

    work: str
    fuse: str

    def fused(self, graph: Graph, *, copied: Collection[int]) -> Graph:
        """Return the graph with neighbouring primitives as one.

        The `copied` outputs are copied before other code reads them. Their memory layout may therefore change.
        """
        module, _, name = self.fuse.partition(":")
        return getattr(import_module(module), name)(graph, copied=copied)


FAMILIES: dict[str, Family] = {}


def families(primitives: Iterable[Primitive]) -> list[Family]:
    """Return the families of primitives, each once, in order."""
    words = dict.fromkeys(primitive.name.partition(".")[0] for primitive in primitives)
    return [FAMILIES[word] for word in words if word in FAMILIES]


#     random_brightness(image, max_delta)   →   adjust_brightness(image, delta)   with delta = sample(key, …)
#
# After this declaration, functions that call it can be traced. A Block gets all its random parameters at once, and then
# runs the deterministic primitive, or a kernel for it.

Sample = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RandomOp:
    """The random parameters of `name`, and the public function `becomes` that it calls with them.

    `sample(key, shape, **params)` returns the arguments of `becomes` except the value. It is a pure function of a
    64-bit key, the value's shape, and the parameters of the random function except `seed`. `batches(rank)` is True if
    `sample` also takes an array of keys, with the shape of one value of that rank. `becomes` then takes the batch.
    """

    name: str
    sample: Sample
    becomes: Callable[..., Any]
    batches: Callable[[int], bool]


RANDOM_OPS: dict[str, RandomOp] = {}  # by the name of the primitive


def random_op(
    name: str,
    rule: Callable[..., LeafSpec],
    *,
    sample: Sample,
    becomes: Callable[..., Any],
    batches: Callable[[int], bool] = lambda rank: False,
    fresh: bool = False,
) -> Callable[[F], F]:
    """Declare a random function of one value, static parameters and `seed` as the primitive `name`.

    The function itself calls `element_key(seed)` once and returns `becomes(value, **sample(key, shape, **params))`.
    `rule(spec, **params)` returns the spec of its result.
    """
    op = RANDOM_OPS[name] = RandomOp(name, sample, becomes, batches)

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        def check(specs: Sequence[Any], params: Mapping[str, Any]) -> Sequence[LeafSpec]:
            return [rule(specs[0], **params)]

        primitive = Primitive(name, check, functools.partial(_run, op), fresh, view=not fresh)

        def lift(*args: Any, **kwargs: Any) -> Tracer:
            value, params = _static(name, signature, args, kwargs)
            seed = params.pop("seed")
            ordinal = value.builder.next_draw() if seed is None else 0
            return bind(primitive, [value, Keys(ordinal, seed)], params)[0]

        call = lifted_by(lift)(function)
        call.__penstock_draws__ = True  # type: ignore[attr-defined]
        return call

    return decorate


def _run(
    op: RandomOp, operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> Sequence[Column]:
    column, keys = operands
    assert isinstance(keys, np.ndarray)
    if isinstance(column, DenseColumn) and op.batches(column.array.ndim - 1):
        return [DenseColumn(op.becomes(column.array, **op.sample(keys, column.array.shape[1:], **params)))]
    made = [
        as_leaf(op.becomes(value, **op.sample(int(key), np.shape(value), **params)))
        for value, key in zip(column.values(), keys, strict=True)
    ]
    return [column_of(made)]
