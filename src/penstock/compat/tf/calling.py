"""Functions that call functions: `tf.function`, `tf.py_function`, `tf.cond`, `tf.map_fn` and similar ones."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import penstock as ps
from penstock.block.structure import flatten, map_leaves
from penstock.compat.calling import called, returned
from penstock.compat.dtypes import as_dtype, plain_nest
from penstock.compat.op import _emptied, known
from penstock.compat.operands import _reading, reading
from penstock.compat.values import array_of, lowered, raised, whole
from penstock.trace.drawing import SPAN, branch
from penstock.trace.graph import NotTraceable
from penstock.trace.traced import one_of
from penstock.trace.tracer import Tracer


def function(func: Any = None, input_signature: Any = None, **other: Any) -> Any:
    """Return the function unchanged: nothing is compiled. With arguments only, return a decorator."""
    return func if func is not None else lambda decorated: decorated


def _as_declared(result: Any, types: Any) -> Any:
    """Convert the result of a Python function to the declared dtypes."""
    if isinstance(types, (list, tuple)):
        if not types:
            return []
        parts = result if isinstance(result, (list, tuple)) else [result]
        if len(parts) != len(types):
            message = f"The function returned {len(parts)} values, and Tout names {len(types)}."
            raise ps.errors.InvalidArgumentError(message)
        return [_as_declared(part, kind) for part, kind in zip(parts, types, strict=True)]
    wanted = types.dtype if isinstance(types, ps.TensorSpec) else types
    if isinstance(result, (ps.RaggedTensor, ps.SparseTensor)):
        return result
    return raised(_own(array_of(lowered(result), as_dtype(wanted))))


def _only_real(values: Any) -> None:
    if any(isinstance(lowered(leaf), Tracer) for leaf in flatten(values)[0]):
        raise NotTraceable("it calls a Python function of its own")


def py_function(func: Callable[..., Any], inp: Any = (), Tout: Any = (), name: Any = None) -> Any:
    """Call `func` with tensors, and convert its results to the dtypes of `Tout`, once for each element."""
    _only_real(tuple(inp))
    with reading(None, mapped=False):
        return _as_declared(func(*(raised(array_of(value)) for value in inp)), Tout)


def numpy_function(
    func: Callable[..., Any], inp: Any = (), Tout: Any = (), stateful: Any = True, name: Any = None
) -> Any:
    """Call `func` with numpy values, and convert its results to the dtypes of `Tout`, once for each element."""
    _only_real(tuple(inp))
    with reading(None, mapped=False):
        return _as_declared(func(*(_own(array_of(value)) for value in inp)), Tout)


def _own(value: Any) -> Any:
    """Return a copy of an array, and any other value unchanged."""
    return value.copy() if isinstance(value, np.ndarray) else value


py_func = numpy_function


@known
def _one_of(number: Any, functions: list[Any]) -> Any:
    """Call the function of this number. Random numbers after the call do not depend on the chosen function."""
    if isinstance(number, Tracer):
        leaves, structure = one_of(number, [partial(_returned, function) for function in functions])
        return structure.build(list(map(raised, leaves)))
    builder = _reading.builder
    begin = 0 if builder is None else builder.draws
    with branch():
        result = _returned(functions[int(number)])
    if builder is not None:
        builder.draws = max(builder.draws, begin + SPAN)
    return result if result is None else map_leaves(lambda leaf: raised(_in_one_piece(leaf)), result)


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
    """Call `true_fn` if the predicate is True, else `false_fn`, and return the result."""
    return _one_of(_truth(pred), [false_fn or fn2, true_fn or fn1])


@known
def case(pred_fn_pairs: Any, default: Any = None, exclusive: Any = False, strict: Any = False, name: Any = None) -> Any:
    """Call the function of the first condition that is True, by default `default`, and return the result."""
    pairs = [*(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)]
    number: Any = len(pairs)
    for at in reversed(range(len(pairs))):
        number = _where(_truth(pairs[at][0]), at, number)
    return _one_of(number, [*(chosen for _, chosen in pairs), default])


@known
def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: Any = None) -> Any:
    """Call the function of this number, by default the last function, and return the result."""
    pairs = branch_fns.items() if isinstance(branch_fns, dict) else branch_fns
    fns = dict(pairs if isinstance(branch_fns, dict) or isinstance(branch_fns[0], tuple) else enumerate(pairs))
    index, number = lowered(branch_index), len(fns)
    for at, key in enumerate(fns):
        number = _where(index == key, at, number)
    return _one_of(number, [*fns.values(), default or fns[max(fns)]])


def _where(condition: Any, first: Any, second: Any) -> Any:
    """Return `np.where` of a tracer, or choose one value if the condition is known."""
    return np.where(condition, first, second) if isinstance(condition, Tracer) else first if condition else second


def while_loop(cond: Any, body: Any, loop_vars: Any, *args: Any, maximum_iterations: Any = None, **other: Any) -> Any:
    """Call `body` while the condition is True, and return the variables in a list or tuple, as they were passed."""
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
    """Call `fn` with each row, and stack the results."""
    wanted = dtype if fn_output_signature is None else fn_output_signature
    signature = None if wanted is None else _signature(wanted)
    rows = map_leaves(array_of, tuple(elems) if type(elems) is tuple else elems)
    made = ps.map_fn(called(fn), rows, fn_output_signature=signature)
    return map_leaves(raised, made)


def _signature(wanted: Any) -> Any:
    return lowered(wanted) if isinstance(wanted, (ps.TensorSpec, ps.RaggedTensorSpec)) else plain_nest(wanted)


@known
def vectorized_map(fn: Any, elems: Any, fallback_to_while_loop: Any = True, warn: Any = True) -> Any:
    """Call `map_fn`."""
    return map_fn(fn, elems)


def foldl(fn: Any, elems: Any, initializer: Any = None, *args: Any, **other: Any) -> Any:
    """Call `fn` with the result so far and each row in turn, and return the last result."""
    return deque(_states(fn, elems, initializer), maxlen=1).pop()


def scan(fn: Any, elems: Any, initializer: Any = None, *args: Any, **other: Any) -> Any:
    """Call `fn` with the result so far and each row in turn, as in `foldl`, and return all results."""
    states = list(_states(fn, elems, initializer))
    return raised(np.stack([whole(state) for state in states[initializer is not None :]]))


def _states(fn: Any, elems: Any, initializer: Any) -> Iterator[Any]:
    """Yield the first state and the result for each row. Without an initializer, the first row is the first state."""
    rows = list(raised(whole(elems)))
    state = raised(array_of(initializer)) if initializer is not None else rows.pop(0)
    yield state
    for row in rows:
        state = fn(state, row)
        yield state


def tf_print(
    *inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: Any = None
) -> None:
    """Print values as numpy writes them, to the standard error, as TensorFlow does."""
    stream = sys.stdout if output_stream == "file://stdout" else output_stream
    stream = sys.stderr if stream is None or isinstance(stream, str) else stream
    shown = [item.decode(errors="replace") if isinstance(item, bytes) else str(item) for item in _emptied(inputs, [])]
    stream.write(sep.join(shown) + end)


def executing_eagerly() -> bool:
    """Return True."""
    return True


def enable_eager_execution(*args: Any, **kwargs: Any) -> None:
    """Do nothing: every function already runs when it is called."""


enable_v2_behavior = run_functions_eagerly = enable_eager_execution
