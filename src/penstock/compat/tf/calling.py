"""Functions that call functions: `tf.function`, `tf.py_function`, `tf.cond`, `tf.map_fn` and their kin."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.structure import flatten, map_leaves
from penstock.compat.calling import argument, called, returned
from penstock.compat.dtypes import as_dtype, plain_nest
from penstock.compat.op import _emptied, known
from penstock.compat.operators import _reading, reading
from penstock.compat.values import array_of, lowered, raised, whole
from penstock.trace.drawing import SPAN, branch
from penstock.trace.graph import NotTraceable
from penstock.trace.traced import one_of
from penstock.trace.tracer import Tracer


def function(func: Any = None, input_signature: Any = None, **other: Any) -> Any:
    """The function itself: nothing is compiled, and Python runs as it is written. Also a decorator with arguments."""
    return func if func is not None else lambda decorated: decorated


def _as_told(result: Any, types: Any) -> Any:
    """What a Python function returned, in the dtypes that were said."""
    if isinstance(types, (list, tuple)):
        if not types:
            return []
        parts = result if isinstance(result, (list, tuple)) else [result]
        if len(parts) != len(types):
            message = f"The function returned {len(parts)} values, and Tout names {len(types)}."
            raise ps.errors.InvalidArgumentError(message)
        return [_as_told(part, kind) for part, kind in zip(parts, types, strict=True)]
    wanted = types.dtype if isinstance(types, ps.TensorSpec) else types
    if isinstance(result, (ps.RaggedTensor, ps.SparseTensor)):
        return result
    return raised(_own(array_of(lowered(result), as_dtype(wanted))))


def _only_real(values: Any) -> None:
    if any(isinstance(lowered(leaf), Tracer) for leaf in flatten(values)[0]):
        message = "it calls a Python function of its own"
        raise NotTraceable(message)


def py_function(func: Callable[..., Any], inp: Any = (), Tout: Any = (), name: Any = None) -> Any:
    """`func` called with tensors, its results in the dtypes of `Tout`. It is called for each element."""
    _only_real(tuple(inp))
    with reading(None, mapped=False):
        return _as_told(func(*(raised(array_of(value)) for value in inp)), Tout)


def numpy_function(
    func: Callable[..., Any], inp: Any = (), Tout: Any = (), stateful: Any = True, name: Any = None
) -> Any:
    """`func` called with numpy values, its results in the dtypes of `Tout`. It is called for each element."""
    _only_real(tuple(inp))
    with reading(None, mapped=False):
        return _as_told(func(*(_own(array_of(value)) for value in inp)), Tout)


def _own(value: Any) -> Any:
    """A value in memory that no one else can write into."""
    return value.copy() if isinstance(value, np.ndarray) else value


py_func = numpy_function


@known
def _one_of(number: Any, functions: list[Any]) -> Any:
    """What the function of this number returns; numbers drawn behind it are the same, whichever it is."""
    if isinstance(number, Tracer):
        leaves, structure = one_of(number, [partial(_returned, function) for function in functions])
        return structure.build(list(map(argument, leaves)))
    builder = _reading.builder
    begin = 0 if builder is None else builder.draws
    with branch():
        result = _returned(functions[int(number)])
    if builder is not None:
        builder.draws = max(builder.draws, begin + SPAN)
    return result if result is None else map_leaves(lambda leaf: argument(_in_one_piece(leaf)), result)


def _returned(function: Callable[[], Any]) -> Any:
    return returned(function())


def _in_one_piece(leaf: Any) -> Any:
    return leaf.copy() if isinstance(leaf, np.ndarray) and not leaf.flags.c_contiguous else leaf


def _truth(pred: Any) -> Any:
    value = lowered(pred)
    return value != 0 if isinstance(value, Tracer) else bool(value)


@known
def cond(
    pred: Any, true_fn: Any = None, false_fn: Any = None, name: Any = None, fn1: Any = None, fn2: Any = None
) -> Any:
    """What one of two functions returns."""
    return _one_of(_truth(pred), [false_fn or fn2, true_fn or fn1])


@known
def case(pred_fn_pairs: Any, default: Any = None, exclusive: Any = False, strict: Any = False, name: Any = None) -> Any:
    """What the function behind the first true condition returns."""
    pairs = [*(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)]
    number: Any = len(pairs)
    for at in reversed(range(len(pairs))):
        number = _where(_truth(pairs[at][0]), at, number)
    return _one_of(number, [*(chosen for _, chosen in pairs), default])


@known
def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: Any = None) -> Any:
    """What the function of this number returns, by default the last one."""
    pairs = branch_fns.items() if isinstance(branch_fns, dict) else branch_fns
    fns = dict(pairs if isinstance(branch_fns, dict) or isinstance(branch_fns[0], tuple) else enumerate(pairs))
    index, number = lowered(branch_index), len(fns)
    for at, key in enumerate(fns):
        number = _where(index == key, at, number)
    return _one_of(number, [*fns.values(), default or fns[max(fns)]])


def _where(condition: Any, first: Any, second: Any) -> Any:
    """`np.where` of a stand-in, or of what is known."""
    return np.where(condition, first, second) if isinstance(condition, Tracer) else first if condition else second


def while_loop(cond: Any, body: Any, loop_vars: Any, *args: Any, maximum_iterations: Any = None, **other: Any) -> Any:
    """Call `body` while the condition holds, and return the variables as they were given: in a list or a tuple."""
    state, count = type(loop_vars)(map(raised, map(lowered, loop_vars))), 0
    while bool(lowered(cond(*state))) and (maximum_iterations is None or count < maximum_iterations):
        made = body(*state)
        state, count = type(state)(made if isinstance(made, (list, tuple)) else [made]), count + 1
    return state


@known
def map_fn(
    fn: Any,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Any = None,
    back_prop: Any = True,
    swap_memory: Any = False,
    infer_shape: Any = True,
    name: Any = None,
    fn_output_signature: Any = None,
) -> Any:
    """`fn` of each row, the results stacked."""
    wanted = dtype if fn_output_signature is None else fn_output_signature
    signature = None if wanted is None else _signature(wanted)
    rows = map_leaves(array_of, tuple(elems) if type(elems) is tuple else elems)
    made = ps.map_fn(called(fn), rows, fn_output_signature=signature)
    return map_leaves(argument, made)


def _signature(wanted: Any) -> Any:
    return lowered(wanted) if isinstance(wanted, (ps.TensorSpec, ps.RaggedTensorSpec)) else plain_nest(wanted)


@known
def vectorized_map(fn: Any, elems: Any, fallback_to_while_loop: Any = True, warn: Any = True) -> Any:
    """As `map_fn`."""
    return map_fn(fn, elems)


def foldl(fn: Any, elems: Any, initializer: Any = None, *args: Any, **other: Any) -> Any:
    """One row after the other taken into a result."""
    rows = list(raised(whole(elems)))
    state = raised(array_of(initializer)) if initializer is not None else rows.pop(0)
    for row in rows:
        state = fn(state, row)
    return state


def scan(fn: Any, elems: Any, initializer: Any = None, *args: Any, **other: Any) -> Any:
    """As `foldl`, with every result on the way."""
    rows = list(raised(whole(elems)))
    states = [raised(array_of(initializer)) if initializer is not None else rows.pop(0)]
    for row in rows:
        states.append(fn(states[-1], row))
    return raised(np.stack([whole(state) for state in states[initializer is not None :]]))


def tf_print(
    *inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: Any = None
) -> None:
    """Print values as numpy writes them, to the standard error, as TensorFlow does."""
    stream = sys.stdout if output_stream == "file://stdout" else output_stream
    stream = sys.stderr if stream is None or isinstance(stream, str) else stream
    shown = [item.decode(errors="replace") if isinstance(item, bytes) else str(item) for item in _emptied(inputs, [])]
    stream.write(sep.join(shown) + end)


def executing_eagerly() -> bool:
    """True: everything is."""
    return True


def enable_eager_execution(*args: Any, **kwargs: Any) -> None:
    """Nothing to do: everything is executed as it is called."""


enable_v2_behavior = run_functions_eagerly = enable_eager_execution
