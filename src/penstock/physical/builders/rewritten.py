"""How the steps that only rewrites make run, beside those of `builders.core`."""

from __future__ import annotations

from dataclasses import replace

from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages import shuffle_and_repeat as stages
from penstock.plan import shuffle_and_repeat as plan


@register(plan.ShuffleAndRepeat)
def _shuffle_and_repeat(node: plan.ShuffleAndRepeat, lowering: Lowering) -> Stage:
    shuffle = replace(node.shuffle, input=plan.Held(input=node.input))

    def build(index: int) -> Stage:
        return lower(shuffle, lowering.turn(node.repeat.count, index))

    return stages.ShuffleAndRepeat(build, node.repeat.count, node.shuffle.buffer_size, node.label, node.where)


@register(plan.Held)
def _held(node: plan.Held, lowering: Lowering) -> Stage:
    return stages.Held(lower(node.input, lowering), memory=lowering.memory)
