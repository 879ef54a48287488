"""How plans run of which workers elsewhere make a part."""

from __future__ import annotations

from penstock.physical.delivered import Service
from penstock.physical.lower import Lowering, lower, register
from penstock.physical.stage import Stage
from penstock.plan.distribution import Distribute, Remote, parted


@register(Distribute)
def _distribute(node: Distribute, lowering: Lowering) -> Stage:
    plan, _ = parted(node)
    return lower(lowering.optimise(plan, lowering.options), lowering)


@register(Remote)
def _remote(node: Remote, lowering: Lowering) -> Stage:
    service: Service = node.service
    return service.stage(node, lowering)
