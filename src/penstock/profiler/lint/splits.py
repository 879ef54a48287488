"""Splits made with take and skip, and the shuffles in front of them."""

from __future__ import annotations

import weakref

from penstock.errors import RandomnessWarning
from penstock.hints import tell
from penstock.plan.indexing import GlobalShuffle
from penstock.plan.node import Node
from penstock.plan.ops import Enumerate, Map, Prefetch, Shuffle, Skip, Take

_ALIKE = (Map, Enumerate, Prefetch)  # give as many elements as they get, in the same order
_CUT: dict[int, tuple[weakref.ref[Node], set[type]]] = {}  # by the id of a shuffle: how it was cut


def reshuffled(node: Node) -> Shuffle | GlobalShuffle | None:
    """The shuffle in front, if it makes another order in every epoch."""
    while isinstance(node, _ALIKE):
        node = node.input
    if isinstance(node, (Shuffle, GlobalShuffle)) and node.reshuffle_each_iteration and node.input.cardinality != 1:
        return node
    return None


def _forget(number: int) -> None:
    _CUT.pop(number, None)


def is_split(shuffle: Node) -> bool:
    """Whether both take and skip were made of a shuffle."""
    known = _CUT.get(id(shuffle))
    return known is not None and known[0]() is shuffle and len(known[1]) > 1


def warn_of_split(cut: Node) -> None:
    """A RandomnessWarning where both take and skip are made of one shuffle that makes another order in every epoch."""
    if not isinstance(cut, (Take, Skip)) or cut.count <= 0:
        return
    shuffle = reshuffled(cut.input)
    if shuffle is None:
        return
    number = id(shuffle)
    known = _CUT.get(number)
    if known is None or known[0]() is not shuffle:
        known = _CUT[number] = (weakref.ref(shuffle, lambda gone: _forget(number)), set())
    known[1].add(type(cut))
    if is_split(shuffle):
        tell(
            f"take and skip of one {shuffle.label}: it makes another order in every epoch, so that elements which one "
            "epoch keeps for validation are trained on in another.",
            "Split first, with train, validation = ds.split((0.9, 0.1)), and shuffle train, or shuffle with seed=0 and "
            "reshuffle_each_iteration=False.",
            RandomnessWarning,
            cut.where,
        )
