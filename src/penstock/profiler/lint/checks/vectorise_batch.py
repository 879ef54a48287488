"""A map in front of a batch that runs per element, where its numpy takes the whole batch and gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from penstock.block.block import Block, Builder
from penstock.block.structure import components, flatten
from penstock.physical.equivalence import equal_blocks
from penstock.physical.stages.batch import stack_block
from penstock.plan.node import UnaryNode
from penstock.plan.ops import Batch, Map, Prefetch
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.natures import only_numpy
from penstock.profiler.lint.sizes import element_bytes, has_bytes
from penstock.trace.traced import traced

_MOST = 4096  # bytes of an element: above that the call itself is not what costs
_FEWEST = 8  # elements of a batch for which it pays
_SIZES = (8, 3, 1)  # of the batches that are tried


def vectorise_batch(plan: Inspection) -> Iterator[Advice]:
    """Batch(n)·Map(f), where f is plain numpy, cannot be traced, and gives a batch what it gives its elements."""
    if not plan.options.experimental_optimization.map_vectorization:
        return
    for batch, _ in plan.each(Batch):
        mapped = batch.input
        if isinstance(mapped, Prefetch):
            mapped = mapped.input
        if isinstance(mapped, Map) and batch.batch_size >= _FEWEST:
            why = _why_per_element(mapped)
            if why is not None and _keeps_values(mapped.function, mapped.input.spec):
                whole: list[UnaryNode] = [batch, replace(mapped, num_parallel_calls=None)]
                yield Advice.on(
                    mapped,
                    "vectorise-batch",
                    "speed",
                    f"{mapped.label} is called per element: {why}.",
                    calls(whole),
                    f"One call then does a batch of {batch.batch_size}. Tried on made-up batches, the function gave "
                    "the same bits as for each of their elements.",
                )


def _why_per_element(mapped: Map) -> str | None:
    """Why a function of small arrays that is nothing but numpy is not run on Blocks."""
    if not isinstance(mapped.function, (FunctionType, MethodType, partial)):  # an object's call is what its class says
        return None
    spec = mapped.input.spec
    size = element_bytes(spec)
    if size is None or size > _MOST or has_bytes(spec) or not mapped.vectorise or not only_numpy(mapped.function):
        return None
    leaves, structure = flatten(spec)
    found = traced(mapped.function, structure, leaves)
    return found.reason if found.graph is None else None


def _keeps_values(function: Callable[..., Any], spec: Any) -> bool:
    """Whether a batch gives, stacked and bit for bit, what its elements give: tried on values of these dtypes."""
    leaves, structure = flatten(spec)
    random = np.random.default_rng(5)
    try:
        with np.errstate(all="ignore"):
            for size in _SIZES:
                rows = [structure.build([_value(random, leaf) for leaf in leaves]) for _ in range(size)]
                block = Block.from_elements(rows)
                results = _results(function, block.elements(), unpacks=structure.unpacks)
                batch = _results(function, stack_block(block).elements(), unpacks=structure.unpacks)
                if not equal_blocks(batch, stack_block(results)):
                    return False
    except Exception:  # whatever it says, it is of values that are none of the user's
        return False
    return True


def _results(function: Callable[..., Any], elements: list[Any], *, unpacks: bool) -> Block:
    builder = Builder()
    for element in elements:
        builder.add(components(function(*element) if unpacks else function(element)))
    return builder.build()


def _value(random: np.random.Generator, leaf: Any) -> Any:
    kind = np.dtype(leaf.dtype).kind
    if kind in "iu":
        return random.integers(0, 100, leaf.shape).astype(leaf.dtype)[()]
    if kind == "b":
        return (random.random(leaf.shape) < 0.5)[()]
    return (random.standard_normal(leaf.shape) * 10).astype(leaf.dtype)[()]
