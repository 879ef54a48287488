"""Splits made with take and skip: of a shuffle that differs between epochs, and of elements sorted by class."""

from __future__ import annotations

from penstock.errors import RandomnessWarning
from penstock.hints import tell
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.plan.ops import Enumerate, Map, Prefetch, Shuffle, Skip, Take
from penstock.sources.image_folder import ImageFolderSource

_ALIKE = (Map, Enumerate, Prefetch)  # give as many elements as they get, in the same order


def ordering(node: Node) -> Node:
    """Return the step or source that decides on the order of the elements of `node`."""
    while isinstance(node, _ALIKE):
        node = node.input
    return node


def reshuffled(node: Node) -> Shuffle | GlobalShuffle | None:
    """Return the shuffle that orders the elements of `node`, if its order differs between epochs."""
    node = ordering(node)
    if isinstance(node, (Shuffle, GlobalShuffle)) and node.reshuffle_each_iteration and node.input.cardinality != 1:
        return node
    return None


def sorted_by_class(node: Node) -> Scan | None:
    """Return the folder of images that the elements of `node` come from, if it has several classes one by one."""
    node = ordering(node)
    if not isinstance(node, Scan) or not isinstance(node.source, ImageFolderSource):
        return None
    labels = node.source.labels or (0,)
    return node if labels[0] < labels[-1] and list(labels) == sorted(labels) else None


def is_split(node: Node) -> bool:
    """Return True if both take and skip were made of a node, as `warn_of_split` notes with the node."""
    return len(vars(node).get("_cuts", ())) > 1


def warn_of_split(cut: Node) -> None:
    """Warn if both take and skip are made of one shuffle whose order differs between epochs."""
    if not isinstance(cut, (Take, Skip)) or cut.count <= 0:
        return
    node = ordering(cut.input)
    vars(node).setdefault("_cuts", set()).add(type(cut))
    if is_split(node) and reshuffled(node):
        tell(
            f"take and skip of one {node.label}: it makes another order in every epoch, so that elements which one "
            "epoch keeps for validation are trained on in another.",
            "Split first, with train, validation = ds.split((0.9, 0.1)), and shuffle train, or shuffle with seed=0 and "
            "reshuffle_each_iteration=False.",
            RandomnessWarning,
            cut.where,
        )
