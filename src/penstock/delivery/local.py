"""Local: a service of this machine's own, without a dispatcher: processes that belong to the consumer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from penstock.delivery.crew import crew
from penstock.delivery.delivered import Delivered
from penstock.delivery.part import Packet, Part
from penstock.physical.delivered import Service
from penstock.physical.lower import Lowering
from penstock.physical.stage import Stage
from penstock.plan.distribution import Remote
from penstock.runtime.machine.granted import granted_cpus


@dataclass(frozen=True, slots=True)
class Local(Service):
    """`workers` processes, None: as many as help, up to the cores. `max_outstanding` ranges are asked for ahead."""

    workers: int | None = None
    max_outstanding: int | None = None

    @property
    def name(self) -> str:
        return "'local'"

    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        size = 1 if node.part is not None else self.workers or granted_cpus()
        auto = node.part is None and self.workers is None
        return Delivered(node, packet_of(node, lowering), partial(crew, size, auto=auto), lowering, self.most)

    def most(self, workers: int) -> int:
        return ahead(workers, self.max_outstanding)


def packet_of(node: Remote, lowering: Lowering) -> Packet:
    """What the workers are sent. Raises InvalidArgumentError for what cannot be."""
    part = Part(node.base, node.middle, lowering.options, lowering.dataset, lowering.provenance, node.finish)
    return Packet.of(node, part)


def ahead(workers: int, asked: int | None) -> int:
    """How many ranges are asked for or at hand: enough that one that takes long keeps nobody from working."""
    return 3 * workers + 1 if asked is None else asked
