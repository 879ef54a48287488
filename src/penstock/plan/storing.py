"""Steps that keep elements beyond one pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from penstock.cache.memory import MemoryStore
from penstock.plan.node import UnaryNode


@dataclass(frozen=True, kw_only=True)
class Cache(UnaryNode):
    """The first complete pass is kept in memory and serves every later one.

    The store belongs to the step: all data sets built on one `cache()` call share it.
    """

    store: MemoryStore = field(default_factory=MemoryStore, compare=False, repr=False)

    name: ClassVar[str] = "cache"
