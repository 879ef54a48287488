"""Checks of the order of steps: work for elements that are dropped later, and shards of unequal length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.block.structure import flatten
from penstock.functions.uses import keeps_state
from penstock.plan.node import Node
from penstock.plan.ops import Batch, Filter, Interleave, Map, Prefetch, Shard, Shuffle, Skip
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Finding
from penstock.profiler.lint.calls import call, calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.names import are_names, reads_files
from penstock.profiler.lint.natures import work
from penstock.trace.graph import Graph, Ref
from penstock.trace.lift import families
from penstock.trace.traced import traced


def late_filter(plan: Inspection) -> Iterator[Finding]:
    """Filter(p)·Map(f), where f works on images and p reads only components that f returns unchanged."""
    for kept, _ in plan.each(Filter):
        mapped = kept.input
        if not isinstance(mapped, Map) or mapped.input.spec is None:
            continue
        leaves, structure = flatten(mapped.input.spec)
        function = traced(mapped.function, structure, leaves).graph
        if function is None or not families(step.primitive for step in function.equations):
            continue
        leaves, structure = flatten(mapped.spec)
        predicate = traced(kept.predicate, structure, leaves).graph
        if predicate is not None and all(_passes(function, i) for i in _read(predicate)):
            yield Finding(
                kept,
                f"{kept.label} only reads components that {mapped.label} returns unchanged, but runs after it.",
                calls([kept, mapped]),
                "The map is then not called for dropped elements. The predicate gets the input of the map.",
            )


def _read(graph: Graph) -> set[int]:
    """Return the numbers of the components that a function reads."""
    operands = [operand for step in graph.equations for operand in step.operands] + list(graph.outputs)
    return {operand.index for operand in operands if isinstance(operand, Ref) and operand.equation < 0}


def _passes(graph: Graph, number: int) -> bool:
    output = graph.outputs[number]
    return isinstance(output, Ref) and output.equation < 0


_WASTED = (Map, Batch, Shuffle, Cache)
_PASSED = (*_WASTED, Filter, Prefetch)


def late_shard(plan: Inspection) -> Iterator[Finding]:
    """Shard(k, i) after maps that are not known to be pure, batches, shuffles, or an interleave of k or more files."""
    for shard, _ in plan.each(Shard):
        done = [node for node in _until(shard) if isinstance(node, (*_WASTED, Interleave))]
        if shard.num_shards == 1 or not done:
            continue
        first = done[-1]
        labels = " and ".join(node.label for node in done[::-1])
        notes = []
        if isinstance(first, Interleave):
            notes.append("Each consumer then reads its own files.")
        else:
            notes.append("Each consumer then does that work for its own elements only.")
        if any(isinstance(node, Shuffle) for node in done):
            notes.append("After a shuffle, the shards are disjoint only if all consumers shuffle with one seed.")
        notes.append("The assignment of elements to consumers changes.")
        yield Finding(
            shard,
            f"{shard.label} comes after {labels}: all {shard.num_shards} consumers run these steps for all elements.",
            calls([shard, first, *between(shard, first)]),
            " ".join(notes),
            "data" if any(isinstance(node, Shuffle) for node in done) else "speed",
        )


def _until(shard: Shard) -> Iterator[Node]:
    for node in below(shard):
        if isinstance(node, Interleave):
            if reads_files(node) and node.input.cardinality >= shard.num_shards:
                yield node
            return
        if not isinstance(node, _PASSED) or are_names(node):
            return
        yield node


def late_skip(plan: Inspection) -> Iterator[Finding]:
    """Skip(n)·…·Map(f), where f reads or decodes, and no rewrite has moved the skip."""
    for skip, _ in plan.each(Skip):
        costly: list[Map] = []
        for node in below(skip):
            if not isinstance(node, (Map, Prefetch)) or (isinstance(node, Map) and keeps_state(node.function)):
                break
            if isinstance(node, Map) and work(node.function) is not None:
                costly.append(node)
        if skip.count > 0 and costly:
            first = costly[-1]
            found = work(first.function)
            does = "" if found is None else f"; it {found[0]}"
            yield Finding(
                skip,
                f"{skip.label} drops elements that {first.label} has computed{does}.",
                calls([skip, first, *between(skip, first)]),
                f"The map is then not called for the first {skip.count} elements. The result is the same.",
            )


def uneven_shards(plan: Inspection) -> Iterator[Finding]:
    """x·Shard(n, i), where the first consumer gets more elements than the last; or fewer file names than shards."""
    for shard, above in plan.asked(Shard):
        count = shard.input.cardinality
        if are_names(shard.input) and 0 <= count < shard.num_shards:
            yield Finding(
                shard,
                f"{shard.label} distributes {count} {'file' if count == 1 else 'files'} to {shard.num_shards} "
                f"consumers: {shard.num_shards - count} of them get nothing.",
                f"the records, as in .interleave(ps.TFRecordDataset){call(shard)}",
                "Or write the data into at least as many files as there are consumers, ideally a multiple.",
            )
            continue
        most, least = (_cardinality(shard, above, index) for index in (0, shard.num_shards - 1))
        if not 0 <= least < most:
            continue
        steps = "batches" if any(isinstance(node, Batch) for node in above) else "elements"
        yield Finding(
            shard,
            f"{shard.label} of {count} elements: consumer 0 gets {most} {steps}, consumer {shard.num_shards - 1} gets "
            f"{least}. Consumers that train together then wait for each other at the last step.",
            f".take({least})",
            "Add it at the end of the pipeline, or use repeat() and a fixed number of steps per epoch. For an "
            "evaluation, no change is needed.",
        )


def _cardinality(shard: Shard, above: tuple[Node, ...], index: int) -> int:
    """Return the number of elements of the plan for the consumer with this index."""
    below: Node = shard
    made: Node = replace(shard, index=index)
    for node in above:
        if not any(part is below for part in node.inputs):  # a rewrite has inserted a step
            return -1
        made, below = node.with_inputs(tuple(made if part is below else part for part in node.inputs)), node
    return made.cardinality
