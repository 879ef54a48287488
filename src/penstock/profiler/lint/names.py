"""Checks of data sets of file names and of the steps that read them."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import ShardWarning
from penstock.hints import tell
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.inputs import Scan
from penstock.plan.node import Node, function_name
from penstock.plan.ops import FlatMap, Interleave, Repeat, Shard, Shuffle, Skip, Take
from penstock.profiler.lint.inspection import below
from penstock.sources.arrays import ArraysSource

_ORDER = (Shuffle, GlobalShuffle, Shard, Take, Skip, Repeat)


def are_names(node: Node) -> bool:
    """Return True if a data set contains names of files, in any order."""
    for part in (node, *below(node)):
        if isinstance(part, Scan):
            return isinstance(part.source, ArraysSource) and part.source.name.endswith(("files)", " files"))
        if not isinstance(part, _ORDER):
            return False
    return False


def reads_files(node: Interleave | FlatMap) -> bool:
    """Return True if the inputs that a step opens are files."""
    module = str(getattr(node.function, "__module__", ""))
    is_reader = module.startswith("penstock.") and function_name(node.function).endswith("Dataset")
    return is_reader or are_names(node.input)


def _shards_of_names(plan: Node) -> Iterator[Shard]:
    for node in plan.walk():
        if isinstance(node, Shard) and are_names(node.input):
            yield node
        if isinstance(node, (Interleave, FlatMap)) and reads_files(node):
            for part in (node.input, *below(node.input)):
                if not isinstance(part, _ORDER):
                    break
                if isinstance(part, Shard):
                    yield part


def warn_of_no_file(plan: Node) -> None:
    """Warn once per process, at the user's line, of a shard without a file."""
    for node in _shards_of_names(plan):
        if 0 < node.input.cardinality <= node.index:
            count = node.input.cardinality
            tell(
                f"{node.label} has no file: it distributes {count} {'file' if count == 1 else 'files'} to "
                f"{node.num_shards} consumers.",
                "Distribute the records, as in .interleave(ps.TFRecordDataset).shard(num_shards, index), or write the "
                "data into at least as many files as there are consumers.",
                ShardWarning,
                node.where,
            )
