"""A shuffle with a buffer, where all elements could be shuffled without one."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.physical.access import obstacle
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import Node
from penstock.plan.ops import Map, Prefetch, Shuffle
from penstock.plan.scan import Scan
from penstock.profiler.lint.advice import Advice
from penstock.profiler.lint.calls import call
from penstock.profiler.lint.inspection import Inspection, below
from penstock.sources.parquet import ParquetSource


def global_shuffle(plan: Inspection) -> Iterator[Advice]:
    """Shuffle(n)·…·Scan(s), where s has an index and more than n elements."""
    for shuffle, _ in plan.asked(Shuffle):
        count = shuffle.input.cardinality
        if 1 < shuffle.buffer_size < count and _by_number(shuffle):
            exact = GlobalShuffle(
                input=shuffle.input,
                seed=shuffle.seed,
                reshuffle_each_iteration=shuffle.reshuffle_each_iteration,
                salt=shuffle.salt,
                where=shuffle.where,
            )
            yield Advice.on(
                shuffle,
                "global-shuffle",
                "data",
                f"{shuffle.label} mixes neighbours among {count} elements, and these can be read in any order.",
                call(exact),
                "All orders are then possible, with no buffer to fill and none to hold.",
            )


def _by_number(shuffle: Shuffle) -> bool:
    """Whether nothing but maps stands between the shuffle and a source that is quick to read by number."""
    if obstacle(shuffle.input) is not None:
        return False
    node: Node = shuffle
    for node in below(shuffle):
        if not isinstance(node, (Map, Prefetch)):
            break
    return isinstance(node, Scan) and not isinstance(node.source, ParquetSource)
