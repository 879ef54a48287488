"""A map in front of a batch that runs per element, where its numpy could take the whole batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.block.structure import flatten
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


def vectorise_batch(plan: Inspection) -> Iterator[Advice]:
    """Batch(n)·Map(f), where f is plain numpy and cannot be traced."""
    if not plan.options.experimental_optimization.map_vectorization:
        return
    for batch, _ in plan.each(Batch):
        mapped = batch.input
        if isinstance(mapped, Prefetch):
            mapped = mapped.input
        if isinstance(mapped, Map) and batch.batch_size >= _FEWEST:
            why = _why_per_element(mapped)
            change = None if why is None else _change(why)
            if change is not None:
                whole: list[UnaryNode] = [batch, replace(mapped, num_parallel_calls=None)]
                yield Advice.on(
                    mapped,
                    "vectorise-batch",
                    "speed",
                    f"{mapped.label} is called per element: {why}.",
                    calls(whole),
                    f"One call then does a batch of {batch.batch_size}. {change}",
                )


def _why_per_element(mapped: Map) -> str | None:
    """Why a function of small arrays that is nothing but numpy is not run on Blocks."""
    spec = mapped.input.spec
    size = element_bytes(spec)
    if size is None or size > _MOST or has_bytes(spec) or not mapped.vectorise or not only_numpy(mapped.function):
        return None
    leaves, structure = flatten(spec)
    found = traced(mapped.function, structure, leaves)
    return found.reason if found.graph is None else None


def _change(why: str) -> str | None:
    """What has to be written anew; None where it is not known."""
    if why.startswith("it looks at a value"):
        return (
            "The function gets arrays with an axis more: write np.where(condition, a, b) for an if, and "
            "x.astype(...) for int(x) or float(x)."
        )
    if "last bit" in why:
        return (
            "Elementwise functions can stay as they are, but for axis=-1 where it sums or averages elements; "
            "results may differ in the last bit."
        )
    if why.startswith("it uses "):
        return "The function gets arrays with an axis more: write axis=-1 where it sums or averages elements."
    return None
