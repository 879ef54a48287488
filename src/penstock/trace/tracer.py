"""Tracer: the stand-in for an element's leaf while a function is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.arithmetic import ASTYPE, UFUNCS, WHERE
from penstock.trace.graph import Const, GraphBuilder, Keys, NotTraceable, Operand, Primitive, Ref


class Tracer(NDArrayOperatorsMixin):
    """Knows its shape and dtype, not its value; arithmetic and primitives on it become equations."""

    __slots__ = ("builder", "ref", "spec")

    def __init__(self, builder: GraphBuilder, ref: Ref, spec: LeafSpec) -> None:
        self.builder = builder
        self.ref = ref
        self.spec = spec

    def _tensor(self) -> TensorSpec:
        if not isinstance(self.spec, TensorSpec) or self.spec.dtype is bytes:
            msg = "an array's attribute asked of a byte string or composite value"
            raise NotTraceable(msg)
        return self.spec

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self._tensor().shape
        known = tuple(extent for extent in shape if extent is not None)
        if len(known) < len(shape):
            msg = "it reads a shape that differs between elements"
            raise NotTraceable(msg)
        return known

    @property
    def dtype(self) -> np.dtype:
        dtype: np.dtype = self._tensor().dtype
        return dtype

    @property
    def ndim(self) -> int:
        return len(self._tensor().shape)

    def astype(self, dtype: Any) -> Tracer:
        if not self.ndim and np.dtype(dtype).kind in "SUO":
            msg = "it converts to a non-numeric dtype"
            raise NotTraceable(msg)
        if not np.dtype(dtype).isnative:
            message = "it converts to a foreign byte order"
            raise NotTraceable(message)
        return bind(ASTYPE, [self], {"dtype": np.dtype(dtype)})[0]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Tracer:
        primitive = UFUNCS.get(ufunc)
        if primitive is None or method != "__call__" or kwargs:
            msg = f"np.{ufunc.__name__} is not known to give equal bits for an array and its elements"
            raise NotTraceable(msg)
        return bind(primitive, inputs, {})[0]

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Tracer:
        if func is np.where and len(args) == 3 and not kwargs:
            return bind(WHERE, args, {})[0]
        if func is np.clip and len(args) == 3 and not kwargs and None not in args[1:]:
            clipped: Tracer = np.minimum(np.maximum(args[0], args[1]), args[2])
            return clipped
        msg = f"np.{func.__name__} has no form for whole Blocks"
        raise NotTraceable(msg)

    def _no(self, *args: Any, **kwargs: Any) -> NoReturn:
        msg = "it looks at a value: a branch, a loop, a conversion or an index"
        raise NotTraceable(msg)

    __bool__ = __int__ = __float__ = __index__ = __complex__ = __len__ = _no
    __iter__ = __getitem__ = __setitem__ = __contains__ = __array__ = __hash__ = __round__ = _no
    __str__ = __repr__ = __format__ = __bytes__ = _no  # the text of a stand-in must not become data


def operand(value: Any) -> Operand:
    if isinstance(value, Tracer):
        return value.ref
    if isinstance(value, Keys):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return Const(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return Const(value)
    msg = f"arithmetic with a {type(value).__name__}"
    raise NotTraceable(msg)


def bind(primitive: Primitive, values: Sequence[Any], params: Mapping[str, Any]) -> list[Tracer]:
    """Add an equation to the graph the values belong to; at least one of them is a Tracer."""
    builder = next(value.builder for value in values if isinstance(value, Tracer))
    refs = builder.bind(primitive, [operand(value) for value in values], params)
    specs = builder.equations[-1].specs
    return [Tracer(builder, ref, spec) for ref, spec in zip(refs, specs, strict=True)]
