"""Stages of steps that mix several data sets."""

from __future__ import annotations

import numpy as np

from penstock.keys import fold
from penstock.physical.builders.core import key_function, mixed
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages import resample
from penstock.physical.stages.sampling import Choosing, Constant, FromData, Handled, Sampling, Scheduled, Weights
from penstock.plan import mixing
from penstock.plan.mix_weights import MixWeights
from penstock.plan.node import Node
from penstock.plan.ops import Repeat

# Combined with the user's seed, so that steps with the same seed use different random numbers.
_SAMPLE, _ACCEPT = 1, 2


def _key(node: mixing.SampleFrom | mixing.Accept, lowering: Lowering, step: int) -> int:
    return fold(lowering.options.seed, node.salt, step) if node.seed is None else fold(node.seed, step)


@register(mixing.SampleFrom)
def _sample_from(node: mixing.SampleFrom, lowering: Lowering) -> Stage:
    key = _key(node, lowering, _SAMPLE)
    if node.rerandomize_each_iteration:
        key = fold(key, lowering.epoch)
    sources: tuple[Node, ...] = node.sources
    if node.on_empty == "repeat":  # a data set repeated forever ends only if it is empty
        sources = tuple(Repeat(input=source, where=node.where) for source in sources)
    stages = [lower(source, lowering) for source in sources]
    return mixed(node, lowering, stages, Sampling(key, _weights(node, lowering)), node.on_empty)


def _weights(node: mixing.SampleFrom, lowering: Lowering) -> Weights:
    count = len(node.sources)
    if node.weights is None:
        return FromData(lower(node.parts[-1], lowering), count, node)
    if isinstance(node.weights, tuple):
        return Constant(node.weights)
    if isinstance(node.weights, MixWeights):
        return Handled(node.weights)
    return Scheduled(node.weights, count, node)


@register(mixing.ChooseFrom)
def _choose_from(node: mixing.ChooseFrom, lowering: Lowering) -> Stage:
    choices, *stages = (lower(part, lowering) for part in node.parts)
    chooser = Choosing(choices, len(stages), node)
    return mixed(node, lowering, stages, chooser, "stop" if node.stop_on_empty_dataset else "continue")


@register(mixing.WithClass)
def _with_class(node: mixing.WithClass, lowering: Lowering) -> Stage:
    function = key_function(node, "class_func", lowering)
    return resample.WithClassStage(lower(node.input, lowering), function, node.num_classes, node)


@register(mixing.Accept)
def _accept(node: mixing.Accept, lowering: Lowering) -> Stage:
    upstream = lower(node.input, lowering)
    pairs: resample.Known | resample.Estimated
    if node.initial is None:
        pairs = resample.Estimated(upstream, len(node.target), resample.accepting(node.target))
    else:
        chances, _ = mixing.acceptance(np.array(node.initial), np.array(node.target))
        pairs = resample.Known(upstream, chances)
    key = fold(_key(node, lowering, _ACCEPT), lowering.epoch)
    return resample.AcceptStage(pairs, key, node)


@register(mixing.EstimateMix)
def _estimate_mix(node: mixing.EstimateMix, lowering: Lowering) -> Stage:
    pairs = resample.Estimated(lower(node.input, lowering), len(node.target), resample.mixing(node.target))
    return resample.EstimateMixStage(pairs, node)
