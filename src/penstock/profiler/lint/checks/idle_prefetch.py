"""A prefetch that does nothing, or stands between a parallel map and its batch."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.node import Node
from penstock.plan.ops import Batch, Map, Prefetch
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection


def idle_prefetch(plan: Inspection) -> Iterator[Advice]:
    """Prefetch(m)·Prefetch(n), and Batch·Prefetch(n)·Map(f, parallel)."""
    for node in plan.written.walk():
        yield from _in(node)


def _in(node: Node) -> Iterator[Advice]:
    if isinstance(node, Prefetch) and isinstance(node.input, Prefetch):
        yield Advice.on(
            node.input,
            "idle-prefetch",
            "speed",
            f"{node.input.label} is followed by {node.label}: one buffer hands to the next.",
            calls([node]),
            "One buffer does the same with one hand-over less.",
        )
    if not isinstance(node, Batch) or not isinstance(node.input, Prefetch) or node.input.buffer_size == 0:
        return
    prefetch, mapped = node.input, node.input.input
    if isinstance(mapped, Map) and mapped.num_parallel_calls is not None:
        yield Advice.on(
            prefetch,
            "idle-prefetch",
            "speed",
            f"{prefetch.label} keeps the workers of {mapped.label} from writing into the memory of {node.label}.",
            calls([mapped, node, prefetch]),
            "They are ahead without it; behind the batch it makes whole batches ahead.",
        )
