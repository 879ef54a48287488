"""Steps that store elements for later iterations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.block.leaf import NESTED
from penstock.block.structure import leaves_rank_open
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.compression import codec_of
from penstock.plan.inputs import Scan
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode, check_function
from penstock.plan.ops import Map
from penstock.sources.arrays import RangeSource
from penstock.store.folder import folder_to_write, last_name
from penstock.store.memory import MemoryStore
from penstock.store.saved_source import SavedSource

if TYPE_CHECKING:
    from penstock.store.snapshot_store import SnapshotStore


class Cache(UnaryNode):
    """Stores the first complete iteration in memory and reads it in every later one.

    The store belongs to the step: all data sets built on one `cache()` call share it.
    """

    store: MemoryStore = field(default_factory=MemoryStore, compare=False, repr=False)

    name: ClassVar[str] = "cache"


class Snapshot(UnaryNode):
    """Writes iterations to files and reads them from there, in any process. An iteration appends to earlier ones.

    `store` finds the files by the plan before rewrites, so that a rewrite never leads to another snapshot.
    """

    path: str
    compression: str | None = "AUTO"
    reader_func: Callable[[Any], Any] | None = None
    shard_func: Callable[..., Any] | None = None
    store: SnapshotStore | Any = field(default=None, compare=False, repr=False)  # None: __post_init__ creates it

    name: ClassVar[str] = "snapshot"
    repairs: ClassVar[bool] = False  # True if elements in damaged files are computed again

    def __post_init__(self) -> None:
        self.settle(path=folder_to_write(self.path, self.name))
        codec_of(self.compression)
        for name in ("reader_func", "shard_func"):
            if getattr(self, name) is not None:
                check_function(name, getattr(self, name), self.name)
        if self.input.cardinality == INFINITE_CARDINALITY:
            message = f"A {self.name} stores complete iterations, and this data set is infinite."
            hint = f"Put {self.name}() before repeat(), or bound it with take()."
            raise InvalidArgumentError(message, hint=hint)
        if self.store is None:
            from penstock.store.snapshot_store import SnapshotStore

            store = SnapshotStore(self.path, self.input, self.shard_func, self.compression, droppable=self.repairs)
            self.settle(store=store)

    @property
    def label(self) -> str:
        return f"{self.name}({last_name(self.path)})"

    @property
    def faithful(self) -> bool:
        """True if the files are read in the order in which they were written."""
        return self.reader_func is None and self.shard_func is None


class DiskCache(Snapshot):
    """A cache in files. Elements in damaged files are computed again."""

    compression: str | None = None

    name: ClassVar[str] = "cache"
    repairs: ClassVar[bool] = True


class Followed(Node):
    """Yields the elements of an entry that is still being written. Their number is unknown."""

    folder: str
    element_spec: Any

    name: ClassVar[str] = "load"

    @property
    def label(self) -> str:
        return f"load({last_name(self.folder)}, wait=True)"

    @property
    def spec(self) -> Any:
        return None if self.gives_any_rank else self.element_spec

    @property
    def gives_any_rank(self) -> bool:
        return leaves_rank_open(self.element_spec)

    @property
    def cardinality(self) -> int:
        return UNKNOWN_CARDINALITY


def read_by(reader_func: Callable[[Any], Any], source: SavedSource, dataset: Callable[[Node], Any]) -> Any:
    """Return the data set that `reader_func` makes of the shards; `dataset` creates a data set from a plan."""

    def shard(number: Any) -> Any:
        return dataset(Scan(source=replace(source, shards=(source.shards[number],))))

    numbers = Scan(source=RangeSource(range(len(source.shards)), np.dtype(np.int64)))
    found = reader_func(dataset(Map(input=numbers, function=shard)))
    if not isinstance(getattr(found, NESTED, None), Node):
        message = f"reader_func must return a Dataset of elements, got {type(found).__name__}."
        hint = "For example lambda shards: shards.interleave(lambda shard: shard)."
        raise InvalidTypeError(message, hint=hint)
    return found
