"""The order of dict keys after steps that may change it: all elements get the order of the first one."""

from __future__ import annotations

from functools import partial

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
_CALLING = (FusedMap, Map, MapAndBatch)  # these call functions on workers, and each worker has another first element


def key_order(node: Node) -> Around | None:
    """Return the wrapper around `next` of a node's stage, or None for a step that cannot change the order."""
    return partial(_following, node) if isinstance(node, _JOINING + _CALLING) else None


def _following(node: Node, ask: Ask) -> Ask:
    """Return `ask` with Blocks in the key order of the node's spec, or of the first Block if the spec is unknown.

    The spec is computed only if the first Block contains dicts: it takes longer than most small data sets.
    """
    first: Structure | None = None
    plain = False

    def following(want: int) -> Block | None:
        nonlocal first, plain
        block = ask(want)
        if block is None or plain:
            return block
        if first is None:
            plain = not block.structure.has_names
            first = block.structure if plain or node.spec is None else flatten(node.spec)[1]
        return block if plain else ordered(block, first)

    return following


def ordered(block: Block, first: Structure) -> Block:
    """Return the elements with keys in the order of `first`, or unchanged if they have another nest."""
    if block.structure == first or not block.structure.same_as(first):
        return block
    return in_order(block, first)
