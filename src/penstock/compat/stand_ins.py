"""SymbolicTensor: the stand-in that a function sees while it is read, with a tensor's operators.

It is the Tracer of `penstock.trace`, whose arithmetic becomes equations of a graph over whole Blocks, with what code
written for TensorFlow does beside: `x[1:]`, `x / y` with TensorFlow's dtypes, comparisons of text, and functions of
numpy that are no exact ones, which run row by row inside of a Block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from penstock.block.column import Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.block.spec import TensorSpec
from penstock.compat.values import TensorShape, lowered
from penstock.trace.graph import Allocate, NotTraceable, Primitive
from penstock.trace.tracer import Tracer, bind

_SMALL = (np.dtype(np.int8), np.dtype(np.uint8), np.dtype(np.int16), np.dtype(np.uint16))


class SymbolicTensor(Tracer):
    """The stand-in for a leaf of an element."""

    __slots__ = ()

    @classmethod
    def of(cls, tracer: Tracer) -> SymbolicTensor:
        return cls(tracer.builder, tracer.ref, tracer.spec)

    def plain(self) -> Tracer:
        """The same for penstock's own functions."""
        return Tracer(self.builder, self.ref, self.spec)

    @property
    def shape(self) -> TensorShape:
        return TensorShape(super().shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        values = [lowered(value) for value in inputs]
        try:
            return SymbolicTensor.of(super().__array_ufunc__(ufunc, method, *values, **kwargs))
        except NotTraceable:
            if method != "__call__" or kwargs or ufunc.nout != 1:
                raise
        from penstock.compat.op import applied

        return applied(f"np.{ufunc.__name__}", ufunc, tuple(values), {})

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return SymbolicTensor.of(super().__array_function__(func, types, args, kwargs))

    def astype(self, dtype: Any) -> SymbolicTensor:
        return SymbolicTensor.of(super().astype(dtype))

    def __truediv__(self, other: Any) -> Any:
        return divided(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return divided(other, self)

    def __eq__(self, other: object) -> Any:
        return self._compared("equal", other)

    def __ne__(self, other: object) -> Any:
        return self._compared("not_equal", other)

    __hash__ = Tracer.__hash__  # type: ignore[assignment]

    def _compared(self, how: str, other: Any) -> Any:
        spec = self.spec
        if isinstance(spec, TensorSpec) and spec.dtype is bytes:
            from penstock.compat.op import applied
            from penstock.compat.values import same_text

            def compare(left: Any, right: Any) -> Any:
                return getattr(np, how)(*same_text(left, right))

            return applied(f"strings.{how}", compare, (self, other), {})
        return getattr(np, how)(self, lowered(other))

    def __getitem__(self, key: Any) -> SymbolicTensor:
        index = key if isinstance(key, tuple) else (key,)
        parts = tuple(map(_static, index))
        return SymbolicTensor.of(bind(_GETITEM, [self], {"index": parts})[0])


def divided(left: Any, right: Any) -> Any:
    """`left / right`, as `values.true_divide` has it."""
    dtypes = [part.dtype for part in (left, right) if hasattr(part, "dtype")]
    if all(dtype in _SMALL for dtype in dtypes):
        left, right = (
            part.astype(np.float32) if hasattr(part, "dtype") else np.float32(part) for part in (left, right)
        )
    return np.true_divide(left, right)


def _static(part: Any) -> Any:
    """One part of an index, which must be the same for every element."""
    value = lowered(part)
    if value is None or value is Ellipsis:
        return value
    if isinstance(value, slice):
        return slice(*(None if at is None else _whole(at) for at in (value.start, value.stop, value.step)))
    return _whole(value)


def _whole(value: Any) -> int:
    found = lowered(value)
    if isinstance(found, (bool, np.bool_)) or not isinstance(found, (int, np.integer)):
        message = "it looks at a value: an index that differs between elements"
        raise NotTraceable(message)
    return int(found)


def _getitem_rule(specs: Sequence[Any], params: Mapping[str, Any]) -> list[TensorSpec]:
    spec, index = specs[0], params["index"]
    if not isinstance(spec, TensorSpec) or spec.open_rank:
        message = "an index into what is no array"
        raise NotTraceable(message)
    taken = sum(part is not None and part is not Ellipsis for part in index)
    missing = len(spec.shape) - taken
    if missing < 0 or index.count(Ellipsis) > 1:
        message = "an index with more parts than the value has dimensions"
        raise NotTraceable(message)
    parts = index if Ellipsis in index else (*index, Ellipsis)
    shape: list[int | None] = []
    extents = iter(spec.shape)
    for part in parts:
        if part is Ellipsis:
            shape += [next(extents) for _ in range(missing)]
        elif part is None:
            shape.append(1)
        elif isinstance(part, slice):
            extent = next(extents)
            shape.append(None if extent is None else len(range(*part.indices(extent))))
        else:
            extent = next(extents)
            if extent is not None and not -extent <= part < extent:
                message = "an index outside of the value"
                raise NotTraceable(message)
    return [TensorSpec(shape, spec.dtype)]


def _getitem_run(
    operands: Sequence[Any], params: Mapping[str, Any], rows: int, allocate: Allocate | None
) -> list[Column]:
    column, index = operands[0], params["index"]
    if isinstance(column, DenseColumn):
        return [DenseColumn(column.array[(slice(None), *index)])]
    return [column_of([as_leaf(value[index]) for value in column.values()])]


_GETITEM = Primitive("getitem", _getitem_rule, _getitem_run)
