"""A shuffle behind the batch: whole batches change places, and neighbours stay together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.plan.batching import PaddedBatch
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.ops import Batch, Filter, Map, Prefetch, Repeat, Shuffle
from penstock.plan.storing import Cache
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import calls
from penstock.profiler.lint.inspection import Inspection, below, between
from penstock.profiler.lint.names import are_names

_ALIKE = (Map, Filter, Prefetch, Repeat, Cache)
_SHUFFLES = (Shuffle, GlobalShuffle)


def shuffle_batches(plan: Inspection) -> Iterator[Advice]:
    """Shuffle(n)·…·Batch(k), without a shuffle in front of the batch."""
    for shuffle, _ in plan.asked(Shuffle):
        for node in below(shuffle):
            if isinstance(node, (Batch, PaddedBatch)) and not _is_shuffled(node):
                elements = replace(shuffle, buffer_size=shuffle.buffer_size * node.batch_size)
                yield Advice.on(
                    shuffle,
                    "shuffle-batches",
                    "data",
                    f"{shuffle.label} changes the places of whole batches: {node.label} has put neighbours together.",
                    calls([elements, node, *between(shuffle, node)]),
                    "Every batch is then a mixture, another in every epoch. The buffer holds as much as before.",
                )
            if not isinstance(node, _ALIKE):
                break


def _is_shuffled(batch: Batch | PaddedBatch) -> bool:
    return any(isinstance(node, _SHUFFLES) and not are_names(node) for node in below(batch))
