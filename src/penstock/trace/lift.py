"""traceable: makes a public function a primitive, so that functions built of it can run a Block at a time."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.block.column import BytesColumn, Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.graph import Allocate, NotTraceable, Primitive
from penstock.trace.tracer import Tracer, bind

F = TypeVar("F", bound=Callable[..., Any])
BlockForm = Callable[[Any, Mapping[str, Any], int, Allocate | None], Sequence[Column] | None]


def traceable(
    name: str,
    rule: Callable[..., LeafSpec],
    *,
    batches: Callable[[int], bool] = lambda rank: False,
    block: BlockForm | None = None,
    presumes: Callable[[Mapping[str, Any]], bool] | None = None,
) -> Callable[[F], F]:
    """Declare a function of one value and static parameters as the primitive `name`.

    `rule(spec, **params)` gives the spec of its result for a value of `spec` and may raise NotTraceable.
    `batches(rank)` says whether the function also takes values of that rank with one more axis in front, then giving
    each its own result: dense columns are handed to it whole. `block` is its form for a whole column; it may give None
    for a column it does not take. `presumes(params)`: whether `rule` says what is usual, and `block` raises
    for a column that is not. Called with real values the function is as before.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        first_name = next(iter(signature.parameters))

        def check(specs: Sequence[Any], params: Mapping[str, Any]) -> Sequence[LeafSpec]:
            return [rule(specs[0], **params)]

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
            return [column_of([as_leaf(function(value, **params)) for value in values])]

        primitive = Primitive(name, check, run, presumes=presumes)

        def lift(*args: Any, **kwargs: Any) -> Tracer:
            found = signature.bind(*args, **kwargs)
            found.apply_defaults()
            params = {key: item for key, item in found.arguments.items() if key != first_name}
            if any(isinstance(item, Tracer) for item in params.values()):
                message = f"a parameter of {name} that differs between elements"
                raise NotTraceable(message)
            return bind(primitive, [found.arguments[first_name]], params)[0]

        return lifted_by(lift)(function)

    return decorate


def lifted_by(lift: Callable[..., Any]) -> Callable[[F], F]:
    """Declare that `lift` takes the call when the first argument is a stand-in; with real values nothing changes."""

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
    """The spec of a numeric array, for rules."""
    if not isinstance(spec, TensorSpec) or spec.dtype is bytes:
        message = "an array operation on what is no numeric array"
        raise NotTraceable(message)
    return spec


def byte_string(spec: LeafSpec) -> None:
    """Nothing for a scalar byte string; NotTraceable for anything else."""
    if not isinstance(spec, TensorSpec) or spec.dtype is not bytes or spec.shape:
        message = "a decoder called with what is no byte string"
        raise NotTraceable(message)
