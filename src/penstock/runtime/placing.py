"""Placing: what an iterator knows of whoever puts caches into its plan (`Options.autocache`)."""

from __future__ import annotations

from typing import Protocol

from penstock.physical.lower import StageObserver
from penstock.plan.node import Node


class Watching(Protocol):
    """One pass, from its first element: `meter` is shown its stages."""

    meter: StageObserver | None

    def ended(self) -> None:
        """Its last element was given."""


class Placing(Protocol):
    """Says where a cache stands in a plan; elements and their order are the same wherever it does."""

    @property
    def place(self) -> str | None:
        """Where it is to stand in passes that begin now."""

    def placed(self, place: str | None) -> Node:
        """The plan with a cache at that place, as written where there is none or nobody knows the place."""

    def watch(self, running: Node, place: str | None) -> Watching:
        """A pass over `running`, in which a cache stands at that place, begins."""
