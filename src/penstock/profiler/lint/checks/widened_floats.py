"""A function that makes float64 of narrower numbers unasked: twice the memory, and twice to copy.

A function's code shows the line; of one that can be run on stand-ins their dtypes show what its code does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np

from penstock.block.spec import TensorSpec
from penstock.block.structure import flatten
from penstock.functions.uses import uses
from penstock.plan.explain import short_location
from penstock.plan.ops import Map
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.kinds import found_in_functions
from penstock.trace.graph import Const, Equation, Graph, Ref
from penstock.trace.kinds.values import Widened
from penstock.trace.traced import traced

_FLOAT64 = np.dtype(np.float64)
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "power": "**"}
_TOLD_A_DTYPE = ("mean", "std", "var")
_NAMES = frozenset(("float64", "f8", "<f8", "d", "double"))
_WHY = (
    "float32 is half the memory, and half to copy at every step behind; networks take float32. Results differ in the "
)
_WHY += "last digits."


def widened_floats(plan: Inspection) -> Iterator[Advice]:
    """Map(f) where f gives `x / 255.0` of uint8, or `x - MEAN` with a MEAN of float64, or `x.astype(float)`."""
    told: set[int] = set()
    for node, found in found_in_functions(plan.written, Widened):
        told.add(id(node))
        how = f"{found.spelled} ({short_location(found.where)})"
        yield _advice(node, found.dtype, how, _mended(found))
    for node, _ in plan.asked(Map):
        if id(node) not in told and node.input.spec is not None:
            told.add(id(node))
            for dtype, how, mended in _widened(node.function, node.input.spec):
                yield _advice(node, dtype, how, mended)


def _advice(node: Any, dtype: str, how: str, mended: str) -> Advice:
    message = f"{node.label} makes float64 of {dtype}: {how}."
    return Advice.on(node, "widened-floats", "memory", message, mended, _WHY)


def _mended(found: Widened) -> str:
    if found.number is not None:
        return _in_float32(found.operator, f"np.float32({found.number:g})", in_front=found.in_front)
    if found.operand.startswith("an array"):
        return _in_float32(found.operator, "array", in_front=found.in_front)
    parts = ("…", "x") if found.in_front else ("x", "…")
    return f"({f' {found.operator} '.join(parts)}).astype(np.float32)"


def _in_float32(operator: str, operand: str, *, in_front: bool) -> str:
    call = f"{operand} {operator} x" if in_front else f"x {operator} {operand}"
    return f"{call}, with array = array.astype(np.float32)" if operand == "array" else call


def _widened(function: Callable[..., Any], spec: Any) -> Iterator[tuple[str, str, str]]:
    """Yield for each operation that made float64: the dtype it was, how it came, and the mended call."""
    leaves, structure = flatten(spec)
    graph = traced(function, structure, leaves).graph
    if graph is None or _asks_for_it(function):
        return
    waiting = [output for output in graph.outputs if _is_wide(graph.spec_of(output)) and graph.spec_of(output).shape]
    seen: set[Any] = set()
    while waiting:
        operand = waiting.pop()
        if operand in seen or not isinstance(operand, Ref) or operand.equation < 0:
            continue
        seen.add(operand)
        equation = graph.equations[operand.equation]
        wide = [one for one in equation.operands if isinstance(one, Ref) and _is_wide(graph.spec_of(one))]
        waiting += wide
        narrow = _narrow(graph, equation)
        if narrow is not None and not wide:
            yield str(narrow), *_told(equation, narrow)


def _is_wide(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype == _FLOAT64


def _narrow(graph: Graph, equation: Equation) -> np.dtype | None:
    """The dtype of the arrays that an operation takes, where these are numbers of less than float64's bytes."""
    found = None
    for operand in equation.operands:
        spec = graph.spec_of(operand) if isinstance(operand, Ref) else None
        if spec is None:
            continue
        if not isinstance(spec, TensorSpec) or spec.dtype is bytes or spec.dtype.kind not in "biuf":
            return None
        if spec.dtype.itemsize >= _FLOAT64.itemsize:
            return None
        if spec.shape and (found is None or found.kind == "b"):  # which the condition of a where is
            found = spec.dtype
    return found


def _told(equation: Equation, dtype: np.dtype) -> tuple[str, str]:
    name = equation.primitive.name
    if name == "astype":
        return f"astype(float) of {dtype}", "x.astype(np.float32)"
    if name in _TOLD_A_DTYPE:
        return f"np.{name} of {dtype}", f"np.{name}(x, …, dtype=np.float32)"
    sign, constants = _SIGNS.get(name), [one.value for one in equation.operands if isinstance(one, Const)]
    if sign is None or len(equation.operands) != 2 or len(constants) != 1:
        return f"np.{name} of {dtype}", "(…).astype(np.float32)"
    (constant,) = constants
    in_front = isinstance(equation.operands[0], Const)
    if np.ndim(constant):
        shown, narrow = f"an array of {np.asarray(constant).dtype}", "array"
    else:
        shown = f"{float(constant):g}"
        narrow = f"np.float32({shown})"
    parts = (shown, str(dtype)) if in_front else (str(dtype), shown)
    return f" {sign} ".join(parts), _in_float32(sign, narrow, in_front=in_front)


def _asks_for_it(function: Callable[..., Any]) -> bool:
    """Whether a function names float64, as whoever wants it does."""
    named = any(use.value is np.float64 or use.value == _FLOAT64 for use in uses(function) if _is_dtype(use.value))
    code = getattr(function, "__code__", None)
    return named or (isinstance(code, CodeType) and any(one in _NAMES for one in code.co_consts if type(one) is str))


def _is_dtype(value: Any) -> bool:
    return value is np.float64 or isinstance(value, np.dtype)
