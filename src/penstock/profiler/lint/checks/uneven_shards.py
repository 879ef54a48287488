"""Shards that give their consumers unequal numbers of elements, or one of them none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.plan.node import Node
from penstock.plan.ops import Batch, Shard
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call
from penstock.profiler.lint.inspection import Inspection
from penstock.profiler.lint.names import are_names


def uneven_shards(plan: Inspection) -> Iterator[Advice]:
    """x·Shard(n, i), where x makes more elements for the first consumer than for the last; fewer names than shards."""
    for shard, above in plan.asked(Shard):
        count = shard.input.cardinality
        if are_names(shard.input) and 0 <= count < shard.num_shards:
            yield Advice.on(
                shard,
                "uneven-shards",
                "data",
                f"{shard.label} deals {count} {'file' if count == 1 else 'files'} to {shard.num_shards} consumers: "
                f"{shard.num_shards - count} of them get nothing.",
                f"the records, as in .interleave(ps.TFRecordDataset){call(shard)}",
                "Or write the data into at least as many files as there are consumers, at best a multiple.",
            )
            continue
        most, least = (_cardinality(shard, above, index) for index in (0, shard.num_shards - 1))
        if not 0 <= least < most:
            continue
        steps = "batches" if any(isinstance(node, Batch) for node in above) else "elements"
        yield Advice.on(
            shard,
            "uneven-shards",
            "data",
            f"{shard.label} of {count} elements: consumer 0 gets {most} {steps}, consumer {shard.num_shards - 1} gets "
            f"{least}. Those that train together wait for each other at the last step.",
            f".take({least})",
            "At the end of the pipeline; or repeat() with a fixed number of steps for each epoch. For evaluation, "
            "where nobody waits, it is as it should be.",
        )


def _cardinality(shard: Shard, above: tuple[Node, ...], index: int) -> int:
    """The number of elements that the consumer with this number gets of the plan."""
    below: Node = shard
    made: Node = replace(shard, index=index)
    for node in above:
        if not any(part is below for part in node.inputs):  # a rewrite has put something between
            return -1
        made, below = node.with_inputs(tuple(made if part is below else part for part in node.inputs)), node
    return made.cardinality
