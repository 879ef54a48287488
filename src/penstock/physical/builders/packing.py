"""How sequences packed into rows, batches by tokens run."""

from __future__ import annotations

from penstock.keys import fold
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.pack import Pack
from penstock.physical.stages.sorted_token_batches import SortedTokenBatches
from penstock.physical.stages.token_batches import TokenBatches
from penstock.plan import packing


@register(packing.Pack)
def _pack(node: packing.Pack, lowering: Lowering) -> Stage:
    return Pack(lower(node.input, lowering), node, memory=lowering.memory)


@register(packing.BatchByTokens)
def _batch_by_tokens(node: packing.BatchByTokens, lowering: Lowering) -> Stage:
    vectorise = lowering.options.experimental_optimization.map_vectorization.enabled
    upstream = lower(node.input, lowering)
    if node.sort_window is None:
        return TokenBatches(upstream, node, vectorise=vectorise, memory=lowering.memory)
    key = fold(lowering.options.seed, node.salt) if node.seed is None else fold(node.seed, 0)
    if node.reshuffle_each_iteration:
        key = fold(key, lowering.epoch)
    chosen = key if node.shuffle_batches else None
    return SortedTokenBatches(upstream, node, chosen, vectorise=vectorise, memory=lowering.memory)
