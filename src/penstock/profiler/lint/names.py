"""Data sets of the names of files, and what reads them."""

from __future__ import annotations

from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import Node, function_name
from penstock.plan.ops import FlatMap, Interleave, Repeat, Shard, Shuffle, Skip, Take
from penstock.plan.scan import Scan
from penstock.profiler.lint.inspection import below
from penstock.sources.arrays import ArraysSource

_ORDER = (Shuffle, GlobalShuffle, Shard, Take, Skip, Repeat)


def are_names(node: Node) -> bool:
    """Whether a data set is names of files, in whatever order."""
    for part in (node, *below(node)):
        if isinstance(part, Scan):
            return isinstance(part.source, ArraysSource) and part.source.name.endswith(("files)", " files"))
        if not isinstance(part, _ORDER):
            return False
    return False


def reads_files(node: Interleave | FlatMap) -> bool:
    """Whether the inputs that a step opens are files."""
    module = str(getattr(node.function, "__module__", ""))
    is_reader = module.startswith("penstock.") and function_name(node.function).endswith("Dataset")
    return is_reader or are_names(node.input)
