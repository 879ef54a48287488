"""Checks of users' functions: bytes compared with str, float64 results, unkeyed random numbers, calls per element."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.block.block import Block, BlockBuilder
from penstock.block.spec import TensorSpec
from penstock.block.structure import components, flatten
from penstock.functions.uses import attribute, uses
from penstock.physical.stages.batch import stack_block
from penstock.physical.vectorise import equal_blocks
from penstock.plan.node import UnaryNode, short_location
from penstock.plan.ops import Batch, Map, Prefetch
from penstock.profiler.lint.advice import Finding
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, element_bytes, has_bytes, texts_in_functions
from penstock.profiler.lint.natures import only_numpy
from penstock.profiler.lint.unkeyed import unkeyed
from penstock.trace.graph import Const, Equation, Graph, Ref
from penstock.trace.traced import traced


def text_as_str(plan: Inspection) -> Iterator[Finding]:
    """Map(f), Filter(f) and similar steps, where f contains `text == "a"`, `text in ("a", "b")` or `f"{text}.png"`."""
    for node, found in texts_in_functions(plan.written):
        yield Finding(
            node,
            f"{node.label} {found.message} ({short_location(found.where)}).",
            found.mended,
            "Strings are bytes in elements, as in tf.data, and bytes never equal a str. Python does not warn.",
        )


def lossy_operands(plan: Inspection) -> Iterator[Finding]:
    """Map(f) of penstock.compat, where f contains `x * np.float64(0.5)` with an integer tensor x."""
    for node, _ in plan.asked(Map):
        losses = attribute(node.function, "__penstock_losses__")
        for loss in dict.fromkeys(losses(node.function, node.input.spec) if losses and node.input.spec else ()):
            yield Finding(
                node,
                f"{node.label} casts {loss}, which changes them.",
                "tf.cast(x, tf.float32), before the operation",
                "A numpy operand gets the dtype of the tensor, as in TensorFlow: fractions are cut off.",
            )


# The dtypes of a traced function show the operations that widen floats.
_FLOAT64 = np.dtype(np.float64)
_SIGNS = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "true_divide": "/", "power": "**"}
_TOLD_A_DTYPE = ("mean", "std", "var")
_NAMES = frozenset(("float64", "f8", "<f8", "d", "double"))
_WHY = "float32 is half the memory, and half to copy at every later step; networks take float32. Results differ in the "
_WHY += "last digits."


def widened_floats(plan: Inspection) -> Iterator[Finding]:
    """Map(f), where f returns `x / 255.0` of uint8, `x - MEAN` with a float64 MEAN, or `x.astype(float)`."""
    told: set[int] = set()
    for node, _ in plan.asked(Map):
        if id(node) not in told and node.input.spec is not None:
            told.add(id(node))
            for dtype, how, mended in _widened(node.function, node.input.spec):
                yield Finding(node, f"{node.label} converts {dtype} to float64: {how}.", mended, _WHY)


def _widened(function: Callable[..., Any], spec: Any) -> Iterator[tuple[str, str, str]]:
    """Yield, for each operation that created float64: the original dtype, the cause, and the better call."""
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
    """Return the dtype of an operation's arrays, if they are numbers with fewer bytes than float64."""
    found = None
    for operand in equation.operands:
        spec = graph.spec_of(operand) if isinstance(operand, Ref) else None
        if spec is None:
            continue
        if not isinstance(spec, TensorSpec) or spec.dtype is bytes or spec.dtype.kind not in "biuf":
            return None
        if spec.dtype.itemsize >= _FLOAT64.itemsize:
            return None
        if spec.shape and (found is None or found.kind == "b"):  # the condition of `where` is bool
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
        note = ", with array = array.astype(np.float32)"
    else:
        shown = f"{float(constant):g}"
        narrow, note = f"np.float32({shown})", ""
    if in_front:
        return f"{shown} {sign} {dtype}", f"{narrow} {sign} x{note}"
    return f"{dtype} {sign} {shown}", f"x {sign} {narrow}{note}"


def _asks_for_it(function: Callable[..., Any]) -> bool:
    """Return True if a function names float64, so that it is intended."""
    values = [use.value for use in uses(function)]
    named = any(value is np.float64 or (isinstance(value, np.dtype) and value == _FLOAT64) for value in values)
    code = getattr(function, "__code__", None)
    return named or (isinstance(code, CodeType) and any(one in _NAMES for one in code.co_consts if type(one) is str))


_MOST = 4096  # bytes of an element; for larger ones, the call itself is not the main cost
_FEWEST = 8  # elements in a batch from which the advice is useful
_SIZES = (8, 3, 1)  # sizes of the batches that are tried in addition to the real size
_MOST_ROWS = 1 << 12  # rows of a batch that is tried; no advice for larger ones


def vectorise_batch(plan: Inspection) -> Iterator[Finding]:
    """Batch(n)·Map(f), where f is plain numpy, cannot be traced, and returns for a batch what it returns per row."""
    if not plan.options.experimental_optimization.map_vectorization:
        return
    for batch, _ in plan.each(Batch):
        mapped = batch.input
        if isinstance(mapped, Prefetch):
            mapped = mapped.input
        if isinstance(mapped, Map) and _FEWEST <= batch.batch_size <= _MOST_ROWS:
            why = _why_per_element(mapped)
            if why is not None and _keeps_values(mapped.function, mapped.input.spec, batch.batch_size):
                whole: list[UnaryNode] = [batch, replace(mapped, num_parallel_calls=None)]
                yield Finding(
                    mapped,
                    f"{mapped.label} is called per element: {why}.",
                    calls(whole),
                    f"One call then computes a batch of {batch.batch_size}. On random batches, the function returned "
                    "the same bits as for each of their elements.",
                )


def _why_per_element(mapped: Map) -> str | None:
    """Return the reason why a function of small arrays that only uses numpy does not run on Blocks, or None."""
    # calling another object runs a method of its class
    if not isinstance(mapped.function, (FunctionType, MethodType, partial)):
        return None
    spec = mapped.input.spec
    size = element_bytes(spec)
    if size is None or size > _MOST or has_bytes(spec) or not mapped.vectorise or not only_numpy(mapped.function):
        return None
    leaves, structure = flatten(spec)
    found = traced(mapped.function, structure, leaves)
    return found.reason if found.graph is None else None


def _keeps_values(function: Callable[..., Any], spec: Any, rows: int) -> bool:
    """Return True if the function of a batch equals its stacked results per element, for random values.

    A function that cuts its argument to a length also cuts a batch, whose length is the number of `rows`.
    """
    leaves, structure = flatten(spec)
    random = np.random.default_rng(5)
    try:
        with np.errstate(all="ignore"):
            for size in (rows, *_SIZES):
                block = Block.from_elements(
                    [structure.build([_value(random, leaf, number) for leaf in leaves]) for number in range(size)]
                )
                results = _results(function, block.elements(), unpacks=structure.unpacks)
                batch = _results(function, stack_block(block).elements(), unpacks=structure.unpacks)
                if not equal_blocks(batch, stack_block(results)):
                    return False
    except Exception:  # an error for made-up values says nothing about the user's values
        return False
    return True


def _results(function: Callable[..., Any], elements: list[Any], *, unpacks: bool) -> Block:
    builder = BlockBuilder()
    for element in elements:
        builder.add(components(function(*element) if unpacks else function(element)))
    return builder.build()


def _value(random: np.random.Generator, leaf: Any, number: int) -> Any:
    """Return a value.

    The range differs between neighbours, so that scaling by the largest value has different results.
    """
    kind = np.dtype(leaf.dtype).kind
    if kind == "b":
        return (random.random(leaf.shape) < 0.5)[()]
    if kind in "iu":
        return random.integers(0, (2, 100, 128)[number % 3], leaf.shape).astype(leaf.dtype)[()]
    found = random.random(leaf.shape) if number % 3 == 0 else random.standard_normal(leaf.shape) * 10.0 ** (number % 3)
    return found.astype(leaf.dtype)[()]


def random_unkeyed(plan: Inspection) -> Iterator[Finding]:
    """Map(f), where f uses random numbers of np.random, random, or a generator object."""
    if plan.options.deterministic is False:
        return
    for found in unkeyed(plan.written):
        yield Finding(
            found.node,
            found.message,
            "rng = np.random.default_rng(ps.element_key()), in the function",
            "The random numbers then depend on the seed, the epoch and the element only. For images, use "
            "ps.image.random_*.",
        )
