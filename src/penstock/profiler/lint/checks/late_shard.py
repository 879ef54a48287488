"""A shard behind work that all consumers do and all but one throw away."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.plan.node import Node
from penstock.plan.ops import Batch, Filter, Interleave, Map, Prefetch, Shard, Shuffle
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.names import are_names, reads_files

_WASTED = (Map, Batch, Shuffle, Cache)
_PASSED = (*_WASTED, Filter, Prefetch)


def late_shard(plan: Inspection) -> Iterator[Advice]:
    """Shard(k, i) behind maps that are not known to be pure, batches, shuffles, or an interleave of k or more files."""
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
            notes.append("Behind a shuffle parts are disjoint only while all consumers shuffle with one seed.")
        notes.append("Which elements come to which consumer changes.")
        yield Advice.on(
            shard,
            "late-shard",
            "data" if any(isinstance(node, Shuffle) for node in done) else "speed",
            f"{shard.label} stands behind {labels}: all {shard.num_shards} consumers do that for all elements.",
            calls([shard, first, *between(shard, first)]),
            " ".join(notes),
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
