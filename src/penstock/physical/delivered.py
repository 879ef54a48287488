"""Service: who makes the elements of a part of a plan elsewhere. Implemented in `delivery`."""

from __future__ import annotations

from abc import ABC, abstractmethod

from penstock.physical.lower import Lowering
from penstock.physical.stage import Stage
from penstock.plan.distribution import Remote


class Service(ABC):
    """Frozen and small: it stands in a plan, and travels with it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """How labels call it."""

    @abstractmethod
    def stage(self, node: Remote, lowering: Lowering) -> Stage:
        """What gives the elements of this part, in their order, to whoever consumes them here."""
