"""How plans run of which workers elsewhere make a part."""

from __future__ import annotations

from penstock.physical.delivered import Service
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.physical.stages.in_turn import Rounds
from penstock.physical.stages.mix import Mix
from penstock.plan.distribution import Distribute, InTurn, Remote, parted, taken_in_turn
from penstock.plan.node import Node


@register(Distribute)
def _distribute(node: Distribute, lowering: Lowering) -> Stage:
    def optimise(plan: Node) -> Node:
        return lowering.optimise(plan, lowering.options)

    if node.parts is not None:
        return lower(taken_in_turn(node, optimise), lowering)
    plan, _ = parted(node)
    return lower(optimise(plan), lowering)


@register(InTurn)
def _in_turn(node: InTurn, lowering: Lowering) -> Stage:
    count = len(node.parts)
    stages = tuple(lower(part, lowering.turn(count, index)) for index, part in enumerate(node.parts))
    known = node.spec is not None
    return Mix(
        stages,
        Rounds(count),
        "continue",
        node.label,
        node.where,
        same_kind=known,
        any_rank=node.any_rank,
        memory=lowering.memory,
    )


@register(Remote)
def _remote(node: Remote, lowering: Lowering) -> Stage:
    service: Service = node.service
    return service.stage(node, lowering)
