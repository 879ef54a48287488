"""Steps that keep elements beyond one pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.cache.memory import MemoryStore
from penstock.errors import InvalidArgumentError
from penstock.io import storage
from penstock.io.saved.compression import codec_of
from penstock.plan.node import INFINITE_CARDINALITY, UnaryNode, check_function
from penstock.plan.snapshot_store import SnapshotStore


@dataclass(frozen=True, kw_only=True)
class Cache(UnaryNode):
    """The first complete pass is kept in memory and serves every later one.

    The store belongs to the step: all data sets built on one `cache()` call share it.
    """

    store: MemoryStore = field(default_factory=MemoryStore, compare=False, repr=False)

    name: ClassVar[str] = "cache"


@dataclass(frozen=True, kw_only=True)
class Snapshot(UnaryNode):
    """The first complete pass is written to files, which serve every later one, in any process.

    `store` finds the files by the plan as it was written, so that rewrites make no other snapshot of it.
    """

    path: str
    compression: str | None = "AUTO"
    reader_func: Callable[[Any], Any] | None = None
    shard_func: Callable[..., Any] | None = None
    store: SnapshotStore | None = field(default=None, compare=False, repr=False)

    name: ClassVar[str] = "snapshot"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", local_folder(self.path, "snapshot"))
        codec_of(self.compression)
        for name in ("reader_func", "shard_func"):
            if getattr(self, name) is not None:
                check_function(name, getattr(self, name), self.name)
        if self.input.cardinality == INFINITE_CARDINALITY:
            message = "A snapshot keeps complete passes, and this data set is infinite."
            raise InvalidArgumentError(message, hint="Put snapshot() in front of repeat(), or bound it with take().")
        if self.store is None:
            store = SnapshotStore(self.path, self.input, self.shard_func, self.compression)
            object.__setattr__(self, "store", store)

    @property
    def faithful(self) -> bool:
        """Whether the files are read in the order in which they were written."""
        return self.reader_func is None and self.shard_func is None


def local_folder(path: Any, step: str) -> str:
    """The path of a folder to write to."""
    name = storage.as_path(path)
    if storage.is_url(name):
        message = f"{step} writes to a local folder, got {name!r}."
        raise InvalidArgumentError(message, hint="Write it locally, and copy the folder.")
    return name
