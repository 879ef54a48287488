"""Read what is kept:  Take(n)·Scan(s)   →   Scan(s[:n]),  Skip(n) → s[n:],  Shard(k, i) → s[i::k]

The results are equal because element i of an indexed source does not depend on the way it is read. Skipped elements are
not read. A shard reads every k-th element only from a source in memory. A file would be read whole in any case.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeGuard

from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.plan.ops import Shard, Skip, Take
from penstock.rewrite.rule import rule
from penstock.sources.arrays import ArraysSource, RangeSource
from penstock.sources.source import IndexedSource, SlicedSource, Source


@rule(
    Take | Skip | Shard,
    "Reads only the selected elements where take, skip or shard follow a source with an index.",
    for_lint=False,
)
def cut_source(cut: Take | Skip | Shard) -> Node | None:
    """Take, Skip and Shard of an indexed source become a slice of the source: the rest is not read."""
    scan = cut.input
    if not isinstance(scan, Scan) or not _by_rows(scan.source):
        return None
    match cut:
        case Take(count=count) if count >= 0:
            part = SlicedSource(scan.source, 0, count)
        case Skip(count=count):
            part = SlicedSource(scan.source, count) if count >= 0 else SlicedSource(scan.source, 0, 0)
        case Shard(num_shards=stride, index=first) if _in_memory(scan.source):
            part = SlicedSource(scan.source, first, None, stride)
        case _:
            return None
    return replace(scan, source=part)


def _by_rows(source: Source) -> TypeGuard[IndexedSource]:
    """Return True if an iteration over the source reads rows by number and keeps no position in a file."""
    return isinstance(source, IndexedSource) and type(source).open is IndexedSource.open


def _in_memory(source: Source) -> bool:
    while isinstance(source, SlicedSource):
        source = source.inner
    return isinstance(source, (RangeSource, ArraysSource))
