"""Tracer: the placeholder for a leaf of an element while a function is traced."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from penstock.block.spec import LeafSpec, TensorSpec
from penstock.trace.arithmetic import (
    ASTYPE,
    CLIP,
    ITEM,
    RESHAPE,
    TRANSPOSE,
    TRIED_ASTYPE,
    UFUNCS,
    WHERE,
    astype,
    is_basic,
    of_each_row,
    permuted,
)
from penstock.trace.graph import Const, GraphBuilder, Keys, KeysFrom, NotTraceable, Operand, Primitive, Ref
from penstock.trace.items import LIST, LOOK_UP, LOOK_UP_MANY, MADE, WINDOW, WRITE, distance, kind_of_table
from penstock.trace.numpy_rows import (
    ALONG,
    CONCATENATE,
    COPY,
    PAD,
    PADS,
    POWER,
    REDUCTIONS,
    STACK,
    TRANSFORMS,
    by_row,
    choose,
    chooses,
)
from penstock.trace.rowwise import OperandPlace


def refused(why: str) -> Callable[..., NoReturn]:
    """Return a method that refuses to be called while a function is traced."""

    def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotTraceable(why)

    return refuse


_NUMBERS = frozenset((*UFUNCS.values(), *REDUCTIONS.values(), ASTYPE, TRIED_ASTYPE))  # these turn numbers into numbers


class Tracer(NDArrayOperatorsMixin):
    """A value of which only shape and dtype are known. Arithmetic and primitives on it become equations."""

    __slots__ = ("builder", "ref", "spec")

    def __init__(self, builder: GraphBuilder, ref: Ref, spec: LeafSpec) -> None:
        self.builder = builder
        self.ref = ref
        self.spec = spec

    def _tensor(self) -> TensorSpec:
        if not isinstance(self.spec, TensorSpec) or self.spec.dtype is bytes:
            raise NotTraceable("it reads an attribute of arrays from a byte string or a composite value")
        return self.spec

    @property
    def shape(self) -> tuple[int, ...]:
        shape = self._tensor().shape
        known = tuple(extent for extent in shape if extent is not None)
        if len(known) < len(shape):
            raise NotTraceable("it reads a shape that differs between elements")
        return known

    @property
    def dtype(self) -> np.dtype:
        return self._tensor().dtype

    @property
    def ndim(self) -> int:
        return len(self._tensor().shape)

    def astype(self, dtype: Any) -> Tracer:
        if not self.ndim and np.dtype(dtype).kind in "SUO":
            raise NotTraceable("it converts to a non-numeric dtype")
        if not np.dtype(dtype).isnative:
            raise NotTraceable("it converts to a foreign byte order")
        return bind(astype(self._tensor(), np.dtype(dtype)), [self], {"dtype": np.dtype(dtype)})[0]

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Tracer:
        if ufunc is np.matmul and method == "__call__" and not kwargs:
            return FUNCTIONS[np.matmul](*inputs)
        primitive = UFUNCS.get(ufunc)
        into = kwargs.pop("out", (None,))[0]
        itself = into is None or (into is self and type(self) is Tracer)
        if primitive is None or method != "__call__" or kwargs or not itself:
            raise NotTraceable(f"np.{ufunc.__name__} is not known to give equal bits for an array and its elements")
        if any(_is_complex(value) for value in inputs):
            if not any(getattr(value, "ndim", 0) for value in inputs):
                raise NotTraceable("numpy computes single complex numbers in another way than arrays of them")
            primitive = of_each_row(ufunc)
        made = bind(primitive, inputs, {})[0]
        return made if into is None else self._become(made)

    def _become(self, made: Tracer) -> Tracer:
        """Become the result of an operation in place. Other names of the same memory may not be read after that."""
        shared = self.builder.sharing(self.ref)
        if not self.ndim or made.spec != self.spec or any(ref.equation < 0 for ref in shared):
            raise NotTraceable("it writes into an array")
        self.builder.written |= shared
        self.ref = made.ref
        return self

    def _is_number(self) -> bool:
        """Return True if the value is certainly a number. A view may be an array without dimensions."""
        return self.ref.equation < 0 or self.builder.equations[self.ref.equation].primitive in _NUMBERS

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        known = FUNCTIONS.get(func)
        if known is None:
            raise NotTraceable(f"np.{func.__name__} has no vectorised form")
        try:
            return known(*args, **kwargs)
        except TypeError:
            raise NotTraceable(f"np.{func.__name__} is called in a way that has no vectorised form") from None

    @property
    def T(self) -> Tracer:
        return self.transpose()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def transpose(self, *axes: Any) -> Tracer:
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], (tuple, list))):
            axes = tuple(axes[0] or ())
        return self._moved(lambda array: array.transpose(*axes))

    def swapaxes(self, axis1: Any, axis2: Any, /) -> Tracer:
        return self._moved(lambda array: array.swapaxes(axis1, axis2))

    def _moved(self, function: Callable[[np.ndarray], np.ndarray]) -> Tracer:
        try:
            axes = permuted(self._tensor().shape, function)
        except (ValueError, TypeError) as error:
            raise NotTraceable(f"on a tracer it raised {type(error).__name__}: {error}") from None
        return bind(TRANSPOSE, [self], {"axes": axes})[0]

    def reshape(self, *shape: Any) -> Tracer:
        if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
            shape = tuple(shape[0])
        if not all(type(extent) is int or isinstance(extent, np.integer) for extent in shape):
            raise NotTraceable("it reshapes to a length that is not a number")
        return bind(RESHAPE, [self], {"shape": tuple(map(int, shape))})[0]

    def ravel(self) -> Tracer:
        return self.reshape(-1)

    def flatten(self) -> Tracer:
        return self.reshape(-1).copy()

    def squeeze(self, axis: Any = None) -> Tracer:
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        if not all(type(one) is int and -self.ndim <= one < self.ndim for one in axes):
            self._no()
        gone = {one % self.ndim for one in axes if axis is not None or self.shape[one] == 1}
        if any(self.shape[one] != 1 for one in gone):
            self._no()
        return self.reshape(*(extent for i, extent in enumerate(self.shape) if i not in gone))

    def copy(self, order: Any = "C") -> Tracer:
        if order not in ("C", "K"):
            self._no()
        return bind(COPY, [self], {"order": order})[0]

    def clip(self, min: Any, max: Any, /) -> Tracer:  # noqa: A002
        return clipped(self, min, max)

    def __getitem__(self, index: Any) -> Tracer:
        if is_basic(index):
            return bind(ITEM, [self], {"index": index})[0]
        return _by_row(choose)(self, index) if chooses(index) else looked_up(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        at, places = _indexed(index)
        self._become(bind(WRITE, [self, value, *places], {"index": at})[0])

    def __len__(self) -> int:
        first = self._tensor().shape[0] if self._tensor().shape else None
        if first is None:
            raise NotTraceable("it loops over a value or reads its length, and the length is not known in advance")
        return first

    def __iter__(self) -> Iterator[Tracer]:
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        spec = self._tensor()
        if spec.shape:
            raise NotTraceable("it branches on an array")
        return self.builder.chosen(self.ref) if spec.dtype == np.bool_ else bool(self != 0)

    def __pow__(self, by: Any) -> Any:
        if not self.ndim or self.dtype.kind != "f" or type(by) not in (int, float) or by in (-1, 0, 0.5, 1):
            return bind(POWER, [self, by], {})[0]  # the operator differs from np.power
        return np.square(self) if by == 2 else np.power(self, by)

    def __rpow__(self, base: Any) -> Any:
        return np.power(base, self) if self.ndim else bind(POWER, [base, self], {})[0]

    def _no(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotTraceable("it is called in a way that has no vectorised form")

    __int__ = __float__ = __complex__ = __round__ = refused("it converts a value to a Python number")
    item = tolist = refused("it converts a value to a Python number")
    tobytes = refused("it converts a value to bytes")
    __index__ = refused("it uses a value as an index, a length or a size")
    __contains__ = refused("it searches an array for a value")
    __array__ = refused("it passes a value to an unknown function that takes arrays")
    __hash__ = refused("it looks up a value in a dict or a set")
    # the text of a tracer must not become data
    __str__ = __repr__ = __format__ = __bytes__ = refused("it converts a value to text")


def _reduction(primitive: Primitive) -> Callable[..., Tracer]:
    def reduce(self: Tracer, axis: Any = None, **params: Any) -> Tracer:
        plain = {"keepdims": bool, "ddof": int}
        if any(type(value) is not plain.get(name) for name, value in params.items()):
            raise NotTraceable(f"{primitive.name} is called in a way that has no vectorised form")
        axes = axis if isinstance(axis, tuple) else (axis,)
        if axis is not None and not all(type(one) is int for one in axes):
            raise NotTraceable(f"{primitive.name} along an axis that is not a number")
        return bind(primitive, [self], {"axis": axis, **params})[0]

    return reduce


def _in_place(name: str) -> Callable[..., Any]:
    plain, into = getattr(operator, f"__{name}__"), getattr(NDArrayOperatorsMixin, f"__i{name}__")

    def operate(self: Tracer, other: Any) -> Any:
        return (plain if not self.ndim and self._is_number() else into)(self, other)  # for a number: x = x + other

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "xor", "or"):
    setattr(Tracer, f"__i{_name}__", _in_place(_name))
for _name, _primitive in REDUCTIONS.items():
    setattr(Tracer, _name, _reduction(_primitive))


def clipped(value: Any, low: Any, high: Any) -> Tracer:
    if low is None or high is None:
        raise NotTraceable("np.clip with one bound only")
    return bind(CLIP, [value, low, high], {})[0]


def _of(name: str) -> Callable[..., Any]:
    """Return a function that calls the method of the same name on a tracer."""

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        if type(value) is not Tracer:
            raise TypeError
        return getattr(value, name)(*args, **kwargs)

    return call


def _is_complex(value: Any) -> bool:
    dtype = getattr(value, "dtype", None)
    return isinstance(value, complex) or (isinstance(dtype, np.dtype) and dtype.kind == "c")


# These arguments may change the operation of a function, or make it write into an array.
_LEFT_OUT = ("out", "where", "subok", "like", "casting", "copy", "overwrite_input")
_DATA = ("weights", "prepend", "append")  # may be operands of any function, as they never decide a shape


def _by_row(function: Callable[..., Any], data: int = 1) -> Callable[..., Any]:
    """Return a form of a function that calls it for each row. Its first `data` parameters may be operands.

    Other parameters may not, because their values can decide the shape of the result.
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            signature = inspect.signature(function)
            given = signature.bind(*args, **kwargs).arguments
            names = list(signature.parameters)[:data]
        except ValueError:  # the function has no readable signature
            if len(args) > data:
                raise TypeError from None
            names, given = [], kwargs
        if any(given.get(name) is not None for name in _LEFT_OUT):
            raise TypeError
        others: list[Tracer] = []
        _placed([value for name, value in given.items() if name not in (*names, *_DATA)], others)
        if others:
            raise TypeError
        operands: list[Tracer] = []
        places, named = _placed(args, operands), _placed(kwargs, operands)
        primitive, kind = by_row(function, places, named, [one.spec for one in operands])
        made = bind(primitive, operands, {})
        return made[0] if kind is None else kind(made)

    return call


def _placed(part: Any, found: list[Tracer]) -> Any:
    """Replace the operands in arguments by places, and copy arrays that may be overwritten later."""
    if type(part) is Tracer:
        found.append(part)
        return OperandPlace(len(found) - 1)
    if type(part) in (tuple, list):
        return type(part)(_placed(item, found) for item in part)
    if type(part) is dict:
        return {name: _placed(item, found) for name, item in part.items()}
    if isinstance(part, Tracer) or (isinstance(part, np.ndarray) and part.dtype.hasobject):
        raise TypeError
    return part.copy(order="K").view(np.ndarray) if isinstance(part, np.ndarray) else part


def _indexed(index: Any) -> tuple[Any, list[Tracer]]:
    """Replace the tracers in an index by places. Return the new index and the tracers."""
    found: list[Tracer] = []
    parts = index if type(index) is tuple else (index,)
    if not all(type(part) is Tracer or is_basic(part) for part in parts):
        raise NotTraceable("it chooses elements of an array by values")
    return _placed(index, found), found


def looked_up(table: Any, index: Any) -> Tracer:
    """Return the item at an index that differs between elements, of a tracer or an array that all elements share.

    A `Const` holds an array that may change. It is read when the graph runs.
    """
    bounds = [index.start, index.stop] if type(index) is slice and index.step is None else []
    if bounds and type(table) is not Tracer and all(type(bound) is Tracer for bound in bounds):
        length = distance(bounds[0].builder.equations, bounds[0].ref, bounds[1].ref)
        if length is None or length < 0:
            raise NotTraceable("it slices an array by values, and the length of the slice is not known")
        kind = kind_of_table(table.value if isinstance(table, Const) else table)
        return bind(WINDOW, [table, *bounds], {"length": length, "like": kind})[0]
    at, places = _indexed(index)
    single = type(table) is not Tracer and not any(place.ndim for place in places)
    like = {"like": kind_of_table(table.value)} if isinstance(table, Const) else {}
    return bind(LOOK_UP if single else LOOK_UP_MANY, [table, *places], {"index": at, **like})[0]


def made(builder: GraphBuilder, array: np.ndarray) -> Tracer:
    """Return a tracer for an array of constants that is created for each element."""
    (ref,) = builder.bind(MADE, [], {"array": array})
    return Tracer(builder, ref, builder.equations[-1].specs[0])


def holds_stand_ins(value: Any) -> bool:
    """Return True for a tracer, and for a slice, list or tuple with tracers in it."""
    value = (value.start, value.stop) if type(value) is slice else value
    return isinstance(value, Tracer) or (type(value) in (tuple, list) and any(map(holds_stand_ins, value)))


def listed(items: Any, dtype: Any = None, *, as_leaf: bool = False) -> Tracer:
    """Return the tracer of `np.array(items, dtype)` for lists with tracers, or of such a list as a leaf."""
    values: list[Any] = []

    def placed(item: Any) -> Any:
        if type(item) is list or (type(item) is tuple and not as_leaf):
            return tuple(map(placed, item))
        values.append(item)
        return OperandPlace(len(values) - 1)

    return bind(LIST, values, {"items": placed(items), "dtype": None if as_leaf else (dtype,)})[0]


def _rot90(value: Tracer, k: Any = 1, axes: Any = (0, 1)) -> Tracer:
    if type(k) is not int or type(axes) not in (tuple, list) or len(axes) != 2:
        raise TypeError
    first, second = (axis % value.ndim for axis in axes)
    if k % 2:
        turned = value if k % 4 == 3 else _turned(value, second)
        turned = turned.swapaxes(first, second)
        return turned if k % 4 == 1 else _turned(turned, second)
    return _turned(value, (first, second) if k % 4 else ())


def _moving(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(value: Tracer, *args: Any) -> Tracer:
        return value._moved(lambda array: function(array, *args))

    return call


def _turned(value: Tracer, axis: Any = None) -> Tracer:
    axes = range(value.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    places = {one if one >= 0 else one + value.ndim for one in axes}
    if not all(0 <= one < value.ndim for one in places):
        raise TypeError
    return value[tuple(slice(None, None, -1) if i in places else slice(None) for i in range(value.ndim))]


def _expanded(value: Tracer, axis: Any) -> Tracer:
    rank = value.ndim + 1
    if type(axis) is not int or not -rank <= axis < rank:
        raise TypeError
    return value[(*(slice(None),) * (axis % rank), None)]


def _joined(primitive: Primitive) -> Callable[..., Tracer]:
    def join(values: Any, axis: Any = 0) -> Tracer:
        if type(values) not in (tuple, list) or type(axis) is not int:
            raise TypeError
        return bind(primitive, list(map(_as_array, values)), {"axis": axis})[0]

    return join


def _as_array(value: Any) -> Any:
    """Return a value as numpy joins it: lists and tuples become arrays."""
    if type(value) not in (tuple, list):
        return value
    return listed(value) if holds_stand_ins(value) else np.asarray(value)


def _of_rank(value: Any, rank: int) -> Any:
    """Return a value with leading axes added, as `np.atleast_1d` and `np.atleast_2d` add them."""
    array = _as_array(value)
    array = array if type(array) is Tracer else np.asarray(array)
    return array if array.ndim >= rank else array[(None,) * (rank - array.ndim)]


def _stacked_along(rank: int, axis: int) -> Callable[..., Any]:
    def join(values: Any) -> Any:
        if type(values) not in (tuple, list):
            raise TypeError
        arrays = [_of_rank(value, rank) for value in values]
        return FUNCTIONS[np.concatenate](arrays, 0 if arrays[0].ndim == 1 else axis)

    return join


def _appended(arr: Any, values: Any, axis: Any = None) -> Any:
    arrays = [_of_rank(value, 0) for value in (arr, values)]
    if axis is None:
        arrays, axis = [array.reshape(-1) for array in arrays], 0
    return FUNCTIONS[np.concatenate](arrays, axis)


def _outer(a: Any, b: Any) -> Any:
    first, second = (_of_rank(value, 0).reshape(-1) for value in (a, b))
    return first[:, None] * second[None, :]


def _pad(value: Any, pad_width: Any, mode: Any = "constant") -> Tracer:
    if type(value) is not Tracer or mode not in PADS:
        raise TypeError
    widths = np.broadcast_to(np.asarray(pad_width), (value.ndim, 2))
    if widths.dtype.kind not in "iu":
        raise TypeError
    return bind(PAD, [value], {"widths": tuple(map(tuple, widths.tolist())), "mode": mode})[0]


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.where: lambda condition, x, y: bind(WHERE, [condition, x, y], {})[0],
    np.clip: clipped,
    **{getattr(np, name): _of(name) for name in (*REDUCTIONS, "ravel", "squeeze", "swapaxes")},
    np.transpose: lambda value, axes=None: value.transpose(axes),
    np.reshape: lambda value, shape: value.reshape(shape),
    np.moveaxis: _moving(np.moveaxis),
    np.rollaxis: _moving(np.rollaxis),
    np.flip: _turned,
    np.fliplr: lambda value: _turned(value, 1),
    np.flipud: lambda value: _turned(value, 0),
    np.expand_dims: _expanded,
    np.concatenate: _joined(CONCATENATE),
    np.stack: _joined(STACK),
    np.pad: _pad,
    np.rot90: _rot90,
    np.copy: lambda value, order="K": value.copy(order),
}
# The shapes of their results do not depend on the values of their first parameter, or of the first two or three.
_BY_ROW = (
    """
    nancumsum nancumprod diff median nanmedian nansum nanprod nanmean nanstd nanvar nanmax nanmin nanargmax nanargmin
    average ptp round around nan_to_num einsum trace vstack hstack dstack column_stack ones_like zeros_like tril triu
    unwrap angle sinc packbits unpackbits isin linalg.norm linalg.det linalg.inv linalg.eigvalsh
    partition argpartition tile repeat take delete append resize full_like histogram linalg.matrix_power""",
    """
    gradient percentile quantile nanpercentile nanquantile roll dot inner outer tensordot matmul vdot cross kron isclose
    searchsorted digitize convolve correlate""",
    "ediff1d interp",
)


def _named(names: str) -> Iterator[Any]:
    """Yield the functions of numpy with these names that the installed version has."""
    for name in names.split():
        place, _, function = name.rpartition(".")
        found = getattr(getattr(np, place) if place else np, function, None)
        if found is not None:
            yield found


def _along(name: str) -> Callable[..., Any]:
    """Return a function that works along one axis. With other arguments, it is called for each row."""
    function = getattr(np, name)
    usual = inspect.signature(function).parameters["axis"].default
    by_itself = _by_row(function)

    def call(value: Any, *args: Any, **kwargs: Any) -> Any:
        axis = args[0] if len(args) == 1 else kwargs.get("axis", usual)
        only_axis = len(args) + len(kwargs) <= 1 and (args or kwargs.keys() <= {"axis"})
        if type(value) is Tracer and only_axis and (axis is None or type(axis) is int):
            return bind(ALONG[name], [value], {"axis": axis})[0]
        return by_itself(value, *args, **kwargs)

    return call


def _or(known: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `known`, or `otherwise` for arguments that `known` does not take."""

    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return known(*args, **kwargs)
        except TypeError:
            return otherwise(*args, **kwargs)

    return call


_TRANSFORMS = [*TRANSFORMS, *(f"{name}{many}" for name in TRANSFORMS[:4] for many in "2n"), "fftshift", "ifftshift"]
for _data, _names in enumerate(_BY_ROW, 1):
    FUNCTIONS.update((function, _by_row(function, _data)) for function in _named(_names))
FUNCTIONS.update((function, _by_row(function)) for function in _named(" ".join(f"fft.{n}" for n in _TRANSFORMS)))
FUNCTIONS[np.hstack] = _or(_stacked_along(1, 1), FUNCTIONS[np.hstack])
FUNCTIONS[np.vstack] = _or(_stacked_along(2, 0), FUNCTIONS[np.vstack])
FUNCTIONS[np.append] = _or(_appended, FUNCTIONS[np.append])
FUNCTIONS[np.outer] = _or(_outer, FUNCTIONS[np.outer])
FUNCTIONS[np.atleast_1d] = lambda value: _of_rank(value, 1)
FUNCTIONS[np.atleast_2d] = lambda value: _of_rank(value, 2)
FUNCTIONS.update((getattr(np, name), _along(name)) for name in ALONG)
for _name in ("argsort", "cumsum", "cumprod", "round", "dot", "repeat", "take", "trace"):
    setattr(Tracer, _name, FUNCTIONS[getattr(np, _name)])


def operand(value: Any) -> Operand:
    if isinstance(value, Tracer):
        return value.ref
    if isinstance(value, (Const, Keys, KeysFrom)):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return Const(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return Const(value.copy(order="K").view(np.ndarray))  # the function may write into it later
    raise NotTraceable(f"arithmetic with a {type(value).__name__}")


def _of_numpy(value: Any) -> Any:
    """Return a parameter; an array of a class of penstock becomes a plain array of numpy."""
    plain = not isinstance(value, np.ndarray) or type(value) is np.ndarray or value.dtype.hasobject
    return value if plain else value.view(np.ndarray)


def bind(primitive: Primitive, values: Sequence[Any], params: Mapping[str, Any]) -> list[Tracer]:
    """Add an equation to the graph of the values. At least one of the values is a Tracer."""
    if any(isinstance(value, Tracer) and not isinstance(value.spec, TensorSpec) for value in values):
        raise NotTraceable("an operation on a value that is not an array")
    builder = next(value.builder for value in values if isinstance(value, Tracer))
    params = {name: _of_numpy(value) for name, value in params.items()}
    refs = builder.bind(primitive, [operand(value) for value in values], params)
    specs = builder.equations[-1].specs
    return [Tracer(builder, ref, spec) for ref, spec in zip(refs, specs, strict=True)]
