"""No step runs ahead of the training loop."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.batching import BatchNode
from penstock.plan.ops import Batch
from penstock.plan.scan import Scan
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.parallel import sequential_interleaves, sequential_maps
from penstock.rewrite.rules.inject_prefetch import has_workers, is_ahead, must_stay
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.sources.sliced import SlicedSource

_GROUPS = (Batch, BatchNode)


def no_prefetch(plan: Inspection) -> Iterator[Advice]:
    """A plan of batches whose end runs in the loop: nothing is parallel, or its end is not to run ahead unasked."""
    end = plan.written
    if not any(isinstance(node, _GROUPS) for node in end.walk()) or _becomes_parallel(plan):
        return
    if has_workers(plan.final):
        if is_ahead(plan.final) or must_stay(plan.final):
            return
        message = f"The steps up to {end.label}, behind the last parallel one, run in the training loop."
        if plan.options.experimental_optimization.inject_prefetch:  # else they would be ahead
            message += " They call what may do more than compute, and nobody has asked for that to be done ahead."
    elif all(_is_in_memory(node) for node in end.walk() if isinstance(node, Scan)):
        return
    else:
        message = f"All steps up to {end.label} run in the training loop: reading and training take turns."
    yield Advice.on(
        end,
        "no-prefetch",
        "speed",
        message,
        ".prefetch(ps.AUTOTUNE)",
        "As the last step: the next batches are then made while the loop works on this one.",
    )


def _becomes_parallel(plan: Inspection) -> bool:
    """Whether other advice makes a step parallel: what follows it is then ahead of the loop, or advised to be."""
    return any(sequential_maps(plan)) or any(sequential_interleaves(plan))


def _is_in_memory(scan: Scan) -> bool:
    source = scan.source
    while isinstance(source, SlicedSource):
        source = source.inner
    return isinstance(source, (ArraysSource, RangeSource))
