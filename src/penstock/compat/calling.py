"""called: wrap a user's function of tensors as a function of numpy values for `penstock.Dataset`.

The wrapper makes tensors of arrays, calls the function, and converts the results as TensorFlow does: Python's integers
become int32. penstock still examines the user's function, not the wrapper. The function decides whether the map runs by
Block, whether it may move to another process, and which key its cached results have.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from penstock.block.structure import flatten, map_leaves
from penstock.compat.op import known
from penstock.compat.operands import _reading, reading
from penstock.compat.values import array_of, lowered, raised
from penstock.trace.traced import trace
from penstock.trace.tracer import Tracer

_SHOWN = False


def called(function: Any) -> Any:
    """Return a function of numpy values that calls `function` with tensors.

    >>> called(lambda x: (x.numpy(), 3))(np.float32(0.5))
    (np.float32(0.5), np.int32(3))
    """
    if not callable(function) or hasattr(function, "__penstock_called__"):
        return function

    def call(*element: Any) -> Any:
        if _SHOWN:  # never True: the scan of the code finds here that the wrapper calls the function
            return function(*element)
        return run(function, element)

    return as_written_by(call, function)


def as_written_by(call: Any, function: Any) -> Any:
    """Give a wrapper the name and line of the user's function, which messages then show."""
    functools.update_wrapper(call, function)
    del call.__wrapped__
    if not hasattr(function, "__name__"):
        call.__name__ = call.__qualname__ = type(function).__name__
    if isinstance(function, FunctionType):
        code = function.__code__
        name = code.co_name if code.co_name.isidentifier() else "function"
        names = (name,) if call.__code__.co_freevars == ("function",) else call.__code__.co_freevars
        call.__code__ = call.__code__.replace(
            co_name=code.co_name, co_filename=code.co_filename, co_firstlineno=code.co_firstlineno, co_freevars=names
        )
    call.__penstock_called__ = function
    call.__penstock_losses__ = _losses
    for mark in ("__penstock_primitive__", "__penstock_draws__"):
        vars(call).pop(mark, None)
    return call


def _losses(function: Any, spec: Any) -> list[str]:
    """Return the casts of numpy operands that change values in a function of elements of this spec."""
    leaves, structure = flatten(spec)
    found: list[str] = []
    _reading.losses = found
    try:
        trace(function, structure, leaves)
    finally:
        _reading.losses = None
    return found


@known
def run(function: Callable[..., Any], element: tuple[Any, ...]) -> Any:
    """Call `function` with the components of an element as tensors, or as tensors of tracers."""
    leaves, structure = flatten(element)
    stand_in = next((leaf for leaf in leaves if isinstance(leaf, Tracer)), None)
    with reading(None if stand_in is None else stand_in.builder):
        result = function(*structure.build([raised(leaf) for leaf in leaves]))
    return returned(result)


def returned(result: Any) -> Any:
    """Return the result of a user's function as numpy values."""
    if type(result) is list:
        result = tuple(result)
    return result if result is None else map_leaves(_leaf, result)


def _leaf(leaf: Any) -> Any:
    kind = type(leaf)
    if kind is int or kind is float:
        return array_of(leaf)
    if kind is list and not any(isinstance(lowered(item), Tracer) for item in leaf):
        return array_of(leaf)
    if kind is list:
        from penstock.compat.tf.arrays import stack

        return lowered(stack(leaf))
    return np.bool_(leaf) if kind is bool else lowered(leaf)
