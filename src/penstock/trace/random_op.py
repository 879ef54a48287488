"""random_op: a public random function as a deterministic one whose parameters are drawn from a key.

    random_brightness(image, max_delta)   →   adjust_brightness(image, delta)   with delta = sample(key, …)

Declared so, a function that uses it can be traced: a Block of elements draws all its parameters at once and is then the
business of the deterministic primitive, or of a kernel that knows it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from penstock.block.column import Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec
from penstock.trace.graph import Allocate, Keys, NotTraceable, Primitive
from penstock.trace.lift import lifted_by
from penstock.trace.tracer import Tracer, bind

F = TypeVar("F", bound=Callable[..., Any])
Sample = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class RandomOp:
    """What `name` draws, and the public function that it then is.

    `sample(key, shape, **params)` gives the arguments for `becomes` beside the value: pure, from a 64-bit key, the
    value's shape, and the parameters of the random function but `seed`. `batches(rank)` says whether `sample` also
    takes an array of keys for values of that rank, with the shape of one, and `becomes` then the batch.
    """

    name: str
    sample: Sample
    becomes: Callable[..., Any]
    batches: Callable[[int], bool]


RANDOM_OPS: dict[str, RandomOp] = {}  # by the name of their primitive


def random_op(
    name: str,
    rule: Callable[..., LeafSpec],
    *,
    sample: Sample,
    becomes: Callable[..., Any],
    batches: Callable[[int], bool] = lambda rank: False,
) -> Callable[[F], F]:
    """Declare a random function of one value, static parameters and `seed` as the primitive `name`.

    The function itself calls `element_key(seed)` once and gives `becomes(value, **sample(key, shape, **params))`.
    `rule(spec, **params)` gives the spec of its result.
    """
    op = RANDOM_OPS[name] = RandomOp(name, sample, becomes, batches)

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        first_name = next(iter(signature.parameters))

        def check(specs: Sequence[Any], params: Mapping[str, Any]) -> Sequence[LeafSpec]:
            return [rule(specs[0], **params)]

        primitive = Primitive(name, check, functools.partial(_run, op))

        def lift(*args: Any, **kwargs: Any) -> Tracer:
            found = signature.bind(*args, **kwargs)
            found.apply_defaults()
            params = {key: item for key, item in found.arguments.items() if key not in (first_name, "seed")}
            seed = found.arguments["seed"]
            if any(isinstance(item, Tracer) for item in (*params.values(), seed)):
                message = f"a parameter of {name} that differs between elements"
                raise NotTraceable(message)
            value = found.arguments[first_name]
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
