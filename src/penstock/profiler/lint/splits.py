"""Checks of splits with take and skip: of a shuffle that differs between epochs, and of elements sorted by class."""

from __future__ import annotations

import numpy as np

from penstock.errors import RandomnessWarning
from penstock.hints import tell
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.inputs import Scan
from penstock.plan.node import Node
from penstock.plan.ops import Enumerate, Map, Prefetch, Shuffle, Skip, Take
from penstock.sources.arrays import ArraysSource
from penstock.sources.image_folder import ImageFolderSource
from penstock.sources.source import Source

_ALIKE = (Map, Enumerate, Prefetch)  # these steps keep the number and order of elements


def ordering(node: Node) -> Node:
    """Return the step or source that determines the order of the elements of `node`."""
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
    """Return the source of the elements of `node`, if its images or arrays are sorted by class."""
    node = ordering(node)
    labels = _labels(node.source) if isinstance(node, Scan) else np.empty(0)
    changes = np.diff(labels)
    grouped = 0 < np.count_nonzero(changes) < len(labels) // 2 and bool((changes >= 0).all())
    return node if grouped and isinstance(node, Scan) else None


def _labels(source: Source) -> np.ndarray:
    """Return likely labels: those of a folder of images, or integers in the last of several columns."""
    if isinstance(source, ImageFolderSource):
        return np.array(source.labels or ())
    if isinstance(source, ArraysSource) and len(source.columns) > 1:
        array = getattr(source.columns[-1], "array", np.empty(0))
        if array.ndim == 1 and array.dtype.kind in "iu":
            return array.astype(np.int64)
    return np.empty(0)


def is_split(node: Node) -> bool:
    """Return True if both take and skip were created from a node, as recorded by `warn_of_split`."""
    return len(vars(node).get("_cuts", ())) > 1


def warn_of_split(cut: Node) -> None:
    """Warn if both take and skip are created from one shuffle whose order differs between epochs."""
    if not isinstance(cut, (Take, Skip)) or cut.count <= 0:
        return
    node = ordering(cut.input)
    vars(node).setdefault("_cuts", set()).add(type(cut))
    if is_split(node) and reshuffled(node):
        tell(
            f"take and skip of one {node.label}: its order differs between epochs, so that elements that one "
            "epoch uses for validation are trained on in another.",
            "Split first, with train, validation = ds.split((0.9, 0.1)), and shuffle train, or shuffle with seed=0 and "
            "reshuffle_each_iteration=False.",
            RandomnessWarning,
            cut.where,
        )
