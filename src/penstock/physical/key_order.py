"""The order of dict keys after steps that may change it: that of the first element, for all elements."""

from __future__ import annotations

from penstock.block.block import Block, in_order
from penstock.block.structure import Structure, flatten
from penstock.physical.stage import Around, Ask
from penstock.plan.distribution import InTurn
from penstock.plan.fused import FusedMap, MapAndBatch
from penstock.plan.inputs import Concatenate
from penstock.plan.mixing import ChooseFrom, SampleFrom
from penstock.plan.node import Node
from penstock.plan.ops import FlatMap, Interleave, Map
from penstock.plan.windows import WindowedFlatMap

_JOINING = (ChooseFrom, Concatenate, FlatMap, InTurn, Interleave, SampleFrom, WindowedFlatMap)
_CALLING = (FusedMap, Map, MapAndBatch)  # workers call functions, each worker with another first element


def key_order(node: Node) -> Around | None:
    """Return what is called around `next` of the stage of a node, or None for a step that cannot change the order."""
    if not isinstance(node, _JOINING + _CALLING):
        return None
    structure = None if node.spec is None else flatten(node.spec)[1]
    return None if structure is not None and not has_names(structure) else lambda ask: _following(ask, structure)


def _following(ask: Ask, first: Structure | None) -> Ask:
    def following(want: int) -> Block | None:
        nonlocal first
        block = ask(want)
        if block is None:
            return None
        if first is None:
            first = block.structure
        return ordered(block, first)

    return following


def ordered(block: Block, first: Structure) -> Block:
    """Return the elements with their keys in the order of `first`, or as they are if they have another nest."""
    if block.structure == first or not block.structure.same_as(first):
        return block
    return in_order(block, first)


def has_names(structure: Structure) -> bool:
    """Return True if dicts are part of a nest."""
    return structure.kind is dict or any(map(has_names, structure.children))
