"""`tf.math`: arithmetic, comparisons, and reductions."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from penstock.block.tensors import RaggedTensor
from penstock.compat.dtypes import as_dtype
from penstock.compat.op import known, named, op
from penstock.compat.operands import check, matched
from penstock.compat.operators import calculated
from penstock.compat.teaching import Namespace, missing_in
from penstock.compat.tf.arrays import _axis, inside
from penstock.compat.tf.rows import by_rows, flat
from penstock.compat.values import Tensor, array_of, raised, whole
from penstock.errors import InvalidArgumentError

pi = np.pi


def _unary(name: str, function: Callable[[Any], Any], *, exact: bool = False) -> Any:
    @op(f"math.{name}", exact=exact, ragged=True)
    def call(x: Any) -> Any:
        return function(array_of(x))

    return named(call, name, f"`{name}` of each number.")


def _binary(name: str, function: Callable[[Any, Any], Any], *, exact: bool = False, first: bool = False) -> Any:
    @op(f"math.{name}", exact=exact, ragged=True, alike="x y", first=first)
    def call(x: Any, y: Any) -> Any:
        return function(x, y)

    return named(call, name, f"`{name}` of two values, number by number; Python's numbers take the other's dtype.")


def _pairs(x: Any, y: Any) -> Any:
    return np.stack(np.broadcast_arrays(x, y), -1)


def _operator(name: str, operation: str = "", *, first: bool = False) -> Any:
    def call(x: Any, y: Any, name: Any = None) -> Any:
        return calculated(operation, x, y, first=first)

    operation = operation or name
    return known(
        named(call, name, f"`{name}` of two values, number by number; both have one dtype, as with the operators.")
    )


def _rounded(x: Any) -> Any:
    return np.rint(x) if np.asarray(x).dtype.kind == "f" else x


def _same(x: Any, value: float) -> Any:
    return np.asarray(value, np.asarray(x).dtype)[()]


def _sigmoid(x: Any) -> Any:
    return _same(x, 1) / (_same(x, 1) + np.exp(-x))


abs = _unary("abs", np.abs, exact=True)
negative = _unary("negative", np.negative, exact=True)
sign = _unary("sign", np.sign, exact=True)
square = _unary("square", np.square, exact=True)
sqrt = _unary("sqrt", np.sqrt, exact=True)
rsqrt = _unary("rsqrt", lambda x: _same(x, 1) / np.sqrt(x), exact=True)
reciprocal = _unary("reciprocal", lambda x: _same(x, 1) / x, exact=True)
floor = _unary("floor", np.floor, exact=True)
ceil = _unary("ceil", np.ceil, exact=True)
rint = _unary("rint", np.rint, exact=True)
round = _unary("round", _rounded, exact=True)
exp = _unary("exp", np.exp)
expm1 = _unary("expm1", np.expm1)
log = _unary("log", np.log)
log1p = _unary("log1p", np.log1p)
sin = _unary("sin", np.sin)
cos = _unary("cos", np.cos)
tan = _unary("tan", np.tan)
asin = _unary("asin", np.arcsin)
acos = _unary("acos", np.arccos)
atan = _unary("atan", np.arctan)
sinh = _unary("sinh", np.sinh)
cosh = _unary("cosh", np.cosh)
tanh = _unary("tanh", np.tanh)
sigmoid = _unary("sigmoid", _sigmoid)
softplus = _unary("softplus", lambda x: np.logaddexp(_same(x, 0), x))
is_nan = _unary("is_nan", np.isnan, exact=True)
is_inf = _unary("is_inf", np.isinf, exact=True)
is_finite = _unary("is_finite", np.isfinite, exact=True)
logical_not = _unary("logical_not", np.logical_not, exact=True)

add = _operator("add", first=True)
subtract, multiply = _operator("subtract", "sub"), _operator("multiply", "mul")
truediv, pow = _operator("truediv", first=True), _operator("pow")
floordiv, floormod = _operator("floordiv"), _operator("floormod", "mod")
mod = floormod
maximum, minimum, atan2 = _operator("maximum"), _operator("minimum"), _operator("atan2")
equal, not_equal = _operator("equal"), _operator("not_equal")
greater, greater_equal = _operator("greater", "gt"), _operator("greater_equal", "ge")
less, less_equal = _operator("less", "lt"), _operator("less_equal", "le")
logical_and, logical_or, logical_xor = map(_operator, ("logical_and", "logical_or", "logical_xor"))
squared_difference = _binary("squared_difference", lambda x, y: np.square(x - y), exact=True)
divide_no_nan = _binary(
    "divide_no_nan",
    lambda x, y: np.divide(
        x, y, out=np.zeros(np.broadcast(x, y).shape, x.dtype if x.dtype.kind in "fc" else np.float64), where=y != 0
    )[()],
)


@known
def divide(x: Any, y: Any, name: Any = None) -> Any:
    """Return `x / y`: float32 for integers of up to 16 bits, float64 for longer integers."""
    return x / y if isinstance(x, Tensor) or isinstance(y, Tensor) else truediv(x, y)


@op("math.add_n", alike="inputs")
def add_n(inputs: Any) -> Any:
    return sum(inputs[1:], inputs[0])


@known
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: Any = None) -> Any:
    """Replace values outside of the two bounds by the nearer bound."""
    array, low, high = map(raised, matched([t, clip_value_min, clip_value_max], first=True))
    return minimum(maximum(array, low), high)


@op("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None) -> Any:
    array = whole(t)
    norm = np.sqrt(np.sum(np.square(array), axis=_axis(axes), keepdims=True))
    return array * np.asarray(clip_norm, array.dtype) / np.maximum(norm, np.asarray(clip_norm, array.dtype))


def _reduced(name: str, function: Callable[..., Any], block: Any = None) -> Any:
    @op(f"math.{name}", block=block)
    def call(
        input_tensor: Any, axis: Any = None, keepdims: Any = None, reduction_indices: Any = None, keep_dims: Any = None
    ) -> Any:
        along = _axis(axis if axis is not None else reduction_indices)
        array = array_of(input_tensor)
        if isinstance(array, RaggedTensor):
            return _of_rows(name, function, array, along, keepdims=bool(keepdims or keep_dims))
        return function(whole(array), axis=along, keepdims=bool(keepdims or keep_dims))

    return named(call, name, f"`{name}` over the axes `axis`, by default over all; the dtype stays.")


def _of_rows(name: str, function: Callable[..., Any], ragged: RaggedTensor, axis: Any, *, keepdims: bool) -> Any:
    """Reduce a ragged tensor along an axis, or over all its values."""
    if axis is None:
        return function(ragged.flat_values)
    rank = len(ragged.shape)
    at = axis[0] if isinstance(axis, tuple) and len(axis) == 1 else axis
    at = at + rank if isinstance(at, int) and at < 0 else at
    if isinstance(at, int) and at >= 1:
        inner = ragged.values
        if at > 1:
            reduce = partial(_of_rows, name, function) if isinstance(inner, RaggedTensor) else function
            return RaggedTensor(reduce(inner, axis=at - 1, keepdims=keepdims), ragged.row_splits)
        if not isinstance(inner, RaggedTensor):
            rows = [function(ragged[row], axis=0) for row in range(len(ragged))]
            found = np.stack(rows) if rows else function(inner[None], axis=1)[:0]
            return found[:, None] if keepdims else found
    if at == 0 and not isinstance(ragged.values, RaggedTensor):
        rows = [ragged[row] for row in range(len(ragged))]
        columns = [np.stack([row[at] for row in rows if len(row) > at]) for at in range(max(map(len, rows), default=0))]
        found = np.stack([function(column, axis=0) for column in columns]) if columns else ragged.values
        return found[None] if keepdims else found
    message = f"{name} of a ragged tensor takes the axis of its innermost rows, got axis={axis!r}."
    raise InvalidArgumentError(message, hint="x.to_tensor() is one array, of any axis.")


def _by_block(function: Callable[..., Any]) -> Any:
    """Return the form for Blocks of a reduction. Reductions of integers and bools do not depend on the order."""

    def block(input_tensor: Any, axis: Any = None, keepdims: Any = None, **old: Any) -> Any:
        if old or input_tensor.dtype.kind not in "iub":
            return None
        along = _axis(axis)
        rank = input_tensor.ndim
        if along is None:
            wanted = tuple(range(1, rank))
        else:
            wanted = tuple(inside(a) for a in ((along,) if isinstance(along, int) else along))
        return function(input_tensor, axis=wanted, keepdims=bool(keepdims))

    return block


def _sum(x: Any, **how: Any) -> Any:
    return np.sum(x, dtype=x.dtype, **how)


def _mean(x: Any, **how: Any) -> Any:
    if x.dtype.kind not in "iu":
        return np.mean(x, dtype=x.dtype, **how)
    wide = np.int64 if x.dtype.itemsize < 4 else x.dtype  # a sum of 8 or 16 bits would overflow
    total = np.sum(x, dtype=wide, **how)
    count = x.size // max(np.size(total), 1)
    return (np.sign(total) * (np.abs(total) // total.dtype.type(count))).astype(x.dtype)


def _log_sum_exp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, _same(x, 0))  # infinity minus infinity is not a number
    with np.errstate(divide="ignore"):  # the logarithm of 0 is minus infinity
        total = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    return total if keepdims else np.squeeze(total, axis)[()]


def _extreme(function: Callable[..., Any], of: str) -> Callable[..., Any]:
    """Return a function for the greatest or least value; of no values, the least or greatest of the dtype."""
    sign = -1 if of == "max" else 1

    def found(x: Any, **how: Any) -> Any:
        if x.size:
            return function(x, **how)
        numbers = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        start = sign * np.inf if numbers is None else getattr(numbers, "min" if of == "max" else "max")
        return function(x, initial=start, **how)

    return found


_max, _min = _extreme(np.max, "max"), _extreme(np.min, "min")
reduce_sum = _reduced("reduce_sum", _sum, _by_block(_sum))
reduce_mean = _reduced("reduce_mean", _mean)
reduce_max = _reduced("reduce_max", _max, _by_block(_max))
reduce_min = _reduced("reduce_min", _min, _by_block(_min))
reduce_prod = _reduced("reduce_prod", lambda x, **how: np.prod(x, dtype=x.dtype, **how))
reduce_all = _reduced("reduce_all", np.all, _by_block(np.all))
reduce_any = _reduced("reduce_any", np.any, _by_block(np.any))
reduce_std = _reduced("reduce_std", np.std)
reduce_variance = _reduced("reduce_variance", np.var)
reduce_logsumexp = _reduced("reduce_logsumexp", _log_sum_exp)
reduce_euclidean_norm = _reduced("reduce_euclidean_norm", lambda x, **how: np.sqrt(_sum(np.square(x), **how)))


@op("math.count_nonzero")
def count_nonzero(input: Any, axis: Any = None, keepdims: Any = None, dtype: Any = "int64") -> Any:
    found = np.count_nonzero(array_of(input), _axis(axis), keepdims=bool(keepdims))
    return np.asarray(found, as_dtype(dtype).dtype)[()]


def _place(name: str, function: Callable[..., Any]) -> Any:
    @op(f"math.{name}")
    def call(input: Any, axis: Any = None, output_type: Any = "int64", dimension: Any = None) -> Any:
        along = dimension if axis is None else axis
        return np.asarray(function(array_of(input), along or 0), as_dtype(output_type).dtype)[()]

    return named(call, name, f"Return the index that `np.{name}` finds along an axis, by default the first axis.")


argmax, argmin = _place("argmax", np.argmax), _place("argmin", np.argmin)


def _running(name: str, function: Any, start: int) -> Any:
    @op(f"math.{name}")
    def call(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Any:
        given = array_of(x)
        if isinstance(given, RaggedTensor):
            return by_rows(call, given, axis, exclusive, reverse)
        array = np.moveaxis(whole(given), axis, 0)
        found = function.accumulate(array[::-1] if reverse else array, dtype=array.dtype)
        if exclusive:
            found = np.concatenate([np.full_like(found[:1], start), found[:-1]])
        return np.moveaxis(found[::-1] if reverse else found, 0, axis)

    return named(call, name, f"Running {function.__name__}; `exclusive` begins with {start}, `reverse` at the end.")


cumsum, cumprod = _running("cumsum", np.add, 0), _running("cumprod", np.multiply, 1)


@op("math.bincount")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = "int32",
    axis: Any = None,
    binary_output: bool = False,
) -> Any:
    """Count each integer from 0 on, or add up its weights. With `axis=-1`, count in each row."""
    rows = np.atleast_2d(whole(arr) if axis else flat(arr))
    each = None if weights is None else flat(weights)
    most = max(int(rows.max(initial=-1)) + 1, int(minlength or 0))
    most = most if maxlength is None else min(most, int(maxlength))
    pairs = zip(rows, [None] * len(rows) if each is None else each.reshape(rows.shape), strict=True)
    counts = [np.bincount(*pair, most)[:most] for pair in pairs]
    found = np.stack(counts) > 0 if binary_output else np.stack(counts)
    return found.astype(as_dtype(dtype).dtype if each is None else each.dtype)[slice(None) if axis else 0]


TopK = namedtuple("TopK", ["values", "indices"])


@op("math.top_k")
def top_k(input: Any, k: int = 1, sorted: bool = True) -> Any:
    """Return the greatest values along the last axis, and their indices."""
    array = whole(input)
    if not array.ndim or array.shape[-1] < k:
        message = f"input must have at least k columns. Had {array.shape[-1] if array.ndim else 0}, needed {k}"
        raise InvalidArgumentError(message)
    falling = ~array if array.dtype.kind in "iub" else -array  # the negative of the least integer does not exist
    at = np.argsort(falling, -1, kind="stable")[..., :k]
    return TopK(np.take_along_axis(array, at, -1), at.astype(np.int32))


@op("math.in_top_k")
def in_top_k(targets: Any, predictions: Any, k: int) -> Any:
    scores, at = whole(predictions), whole(targets)
    own = np.take_along_axis(scores, at[:, None].astype(np.int64), 1)
    return (scores > own).sum(1) < k


@op("math.l2_normalize")
def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12) -> Any:
    array = whole(x)
    total = np.sum(np.square(array), axis=_axis(axis), keepdims=True)
    return array * (1 / np.sqrt(np.maximum(total, np.asarray(epsilon, array.dtype)))).astype(array.dtype)


@op("matmul", alike="a b", first=True)
def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
    left, right = whole(a), whole(b)
    return (left.swapaxes(-1, -2) if transpose_a else left) @ (right.swapaxes(-1, -2) if transpose_b else right)


@op("tensordot", alike="a b", first=True)
def tensordot(a: Any, b: Any, axes: Any) -> Any:
    return np.tensordot(a, b, axes)


@op("norm")
def norm(tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: Any = None) -> Any:
    array = whole(tensor)
    if ord in ("euclidean", 2) and axis is None:
        return np.sqrt(_sum(np.square(array), keepdims=bool(keepdims)))
    if axis is None:
        found = np.linalg.norm(array.reshape(-1), ord).astype(array.dtype)
        return found.reshape((1,) * array.ndim) if keepdims else found
    return np.linalg.norm(array, None if ord == "euclidean" else ord, _axis(axis), bool(keepdims)).astype(array.dtype)


@op("math.softmax")
def softmax(logits: Any, axis: int = -1) -> Any:
    given = array_of(logits)
    if isinstance(given, RaggedTensor):
        return by_rows(softmax, given, axis)
    array = whole(given)
    powers = np.exp(array - array.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@op("math.log_softmax")
def log_softmax(logits: Any, axis: int = -1) -> Any:
    array = whole(logits)
    moved = array - array.max(axis, keepdims=True)
    return moved - np.log(np.exp(moved).sum(axis, keepdims=True))


@op("math.moments")
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False) -> Any:
    array = whole(x)
    return (
        np.mean(array, _axis(axes), dtype=array.dtype, keepdims=keepdims),
        np.var(array, _axis(axes), dtype=array.dtype, keepdims=keepdims),
    )


@op("math.confusion_matrix")
def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = None, dtype: Any = "int32") -> Any:
    rows, columns = whole(labels), whole(predictions)
    count = int(max(rows.max(), columns.max()) + 1) if num_classes is None else int(num_classes)
    found = np.zeros((count, count), as_dtype(dtype).dtype)
    np.add.at(found, (rows, columns), 1)
    return found


complex = _binary("complex", lambda x, y: _pairs(x, y).view(np.result_type(x, np.complex64))[..., 0])
real = _unary("real", np.real, exact=True)
imag = _unary("imag", np.imag, exact=True)
conj = _unary("conj", np.conj, exact=True)
angle = _unary("angle", np.angle)
softsign = _unary("softsign", lambda x: x / (_same(x, 1) + np.abs(x)), exact=True)
log_sigmoid = _unary("log_sigmoid", lambda x: -np.logaddexp(_same(x, 0), -x))
multiply_no_nan = _binary("multiply_no_nan", lambda x, y: np.where(y == 0, y, x) * y, exact=True, first=True)
scalar_mul, accumulate_n, realdiv = multiply, add_n, truediv


def _towards_zero(x: Any, y: Any) -> Any:
    return np.trunc(x / y) if x.dtype.kind == "f" else np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))


truncatediv = _binary("truncatediv", _towards_zero, exact=True)
truncatemod = _operator("truncatemod")


@op("math.zero_fraction")
def zero_fraction(value: Any) -> Any:
    return np.mean(whole(value) == 0, dtype=np.float32)


def _rising(name: str, compare: Callable[[Any, Any], Any]) -> Any:
    @op(f"math.{name}")
    def call(x: Any) -> Any:
        array = whole(x).reshape(-1)
        return np.bool_(compare(array[1:], array[:-1]).all())

    return named(call, name, "Return True if each value compares like this with the value before.")


is_non_decreasing = _rising("is_non_decreasing", np.greater_equal)
is_strictly_increasing = _rising("is_strictly_increasing", np.greater)


@op("math.invert_permutation")
def invert_permutation(x: Any) -> Any:
    return np.argsort(whole(x)).astype(whole(x).dtype)


@op("math.polyval")
def polyval(coeffs: Any, x: Any) -> Any:
    return np.polyval([whole(one) for one in coeffs], array_of(x))


@op("einsum")
def einsum(equation: str, *inputs: Any, optimize: Any = "greedy") -> Any:
    return np.einsum(equation, *map(whole, inputs))


@op("searchsorted", alike="sorted_sequence values", first=True)
def searchsorted(sorted_sequence: Any, values: Any, side: Any = "left", out_type: Any = "int32") -> Any:
    """Return the index of each value in a sorted sequence. Several sequences have a row of values each."""
    rows, wanted = whole(sorted_sequence), whole(values)
    if rows.ndim == 1:
        return np.searchsorted(rows, wanted, side).astype(as_dtype(out_type).dtype)
    found = [np.searchsorted(row, its, side) for row, its in zip(_rows_of(rows), _rows_of(wanted), strict=True)]
    return np.stack(found).reshape(wanted.shape).astype(as_dtype(out_type).dtype)


def _rows_of(array: Any) -> Any:
    return array.reshape(-1, array.shape[-1])


@op("clip_by_global_norm")
def clip_by_global_norm(t_list: Any, clip_norm: Any, use_norm: Any = None) -> Any:
    """Scale tensors together to a norm of at most `clip_norm`, and return the norm before, too."""
    arrays = [whole(one) for one in t_list]
    squares = np.sum([np.sum(np.square(one)) for one in arrays], dtype=arrays[0].dtype)
    norm = np.sqrt(squares) if use_norm is None else whole(use_norm)[()]
    scale = clip_norm / max(norm, clip_norm)
    return [(one * scale).astype(one.dtype) for one in arrays], norm


@op("histogram_fixed_width")
def histogram_fixed_width(values: Any, value_range: Any, nbins: Any = 100, dtype: Any = "int32") -> Any:
    """Count the values in each of `nbins` bins of the range. Values outside count in the first or last bin."""
    low, high = (float(end) for end in value_range)
    place = np.floor((whole(values).reshape(-1) - low) / (high - low) * int(nbins))
    counts = np.bincount(np.clip(place, 0, int(nbins) - 1).astype(np.int64), minlength=int(nbins))
    return counts.astype(as_dtype(dtype).dtype)


def _segments(name: str, ufunc: Any, start: Any, *, empty: Any = 0) -> tuple[Any, Any]:
    """Return the functions `segment_…`, which takes sorted numbers, and `unsorted_segment_…`."""

    def reduced(data: Any, ids: Any, count: int, filler: Any) -> Any:
        rows, numbers = whole(data), whole(ids)
        found = np.full((count, *rows.shape[numbers.ndim :]), start(rows.dtype), rows.dtype)
        rows, numbers = rows.reshape(-1, *found.shape[1:]), numbers.reshape(-1)
        kept = (numbers >= 0) & (numbers < count)
        ufunc.at(found, numbers[kept], rows[kept])
        sizes = np.bincount(numbers[kept], minlength=count)
        if name == "mean":
            found = (found / np.maximum(sizes, 1).reshape(-1, *(1,) * (found.ndim - 1))).astype(rows.dtype)
        found[sizes == 0] = filler if filler is not None else start(rows.dtype)
        return found

    @op(f"math.segment_{name}")
    def of_sorted(data: Any, segment_ids: Any) -> Any:
        numbers = whole(segment_ids)
        return reduced(data, numbers, int(numbers[-1]) + 1 if numbers.size else 0, empty)

    @op(f"math.unsorted_segment_{name}")
    def of_any(data: Any, segment_ids: Any, num_segments: Any) -> Any:
        return reduced(data, segment_ids, int(num_segments), None)

    described = f"The {name} of the rows that have the same number."
    return named(of_sorted, f"segment_{name}", described), named(of_any, f"unsorted_segment_{name}", described)


def _limits(dtype: Any) -> Any:
    return np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)


segment_sum, unsorted_segment_sum = _segments("sum", np.add, lambda dtype: 0)
segment_mean, unsorted_segment_mean = _segments("mean", np.add, lambda dtype: 0)
segment_prod, unsorted_segment_prod = _segments("prod", np.multiply, lambda dtype: 1, empty=1)
segment_max, unsorted_segment_max = _segments("max", np.maximum, lambda dtype: _limits(dtype).min)
segment_min, unsorted_segment_min = _segments("min", np.minimum, lambda dtype: _limits(dtype).max)


def _inverted(x: Any) -> Any:
    check("tf.bitwise.invert", x.dtype, "iu")
    return np.invert(x)


_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")
bitwise = Namespace(
    "tf.bitwise", invert=_unary("invert", _inverted, exact=True), **{name: _operator(name) for name in _BITWISE}
)

__getattr__ = missing_in("tf.math", globals())
