"""Steps that keep elements beyond one pass."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from penstock.block.leaf import NESTED
from penstock.block.structure import leaves_rank_open
from penstock.cache.memory import MemoryStore
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.hints import redacted
from penstock.io import storage
from penstock.io.compression import codec_of
from penstock.plan.inputs import Scan
from penstock.plan.node import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Node, UnaryNode, check_function
from penstock.plan.ops import Map
from penstock.sources.arrays import RangeSource
from penstock.sources.saved import SavedSource

if TYPE_CHECKING:
    from penstock.plan.snapshot_store import SnapshotStore

_READ_ONLY = r"([\w.+-]+::)*https?://"


class Cache(UnaryNode):
    """The first complete pass is kept in memory and serves every later one.

    The store belongs to the step: all data sets built on one `cache()` call share it.
    """

    store: MemoryStore = field(default_factory=MemoryStore, compare=False, repr=False)

    name: ClassVar[str] = "cache"


class Snapshot(UnaryNode):
    """Passes are written to files, behind what earlier ones have written, and read from them, in any process.

    `store` finds the files by the plan as it was written, so that rewrites make no other snapshot of it.
    """

    path: str
    compression: str | None = "AUTO"
    reader_func: Callable[[Any], Any] | None = None
    shard_func: Callable[..., Any] | None = None
    store: SnapshotStore | None = field(default=None, compare=False, repr=False)

    name: ClassVar[str] = "snapshot"
    repairs: ClassVar[bool] = False  # elements whose file is damaged are made once more

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
            from penstock.plan.snapshot_store import SnapshotStore

            store = SnapshotStore(self.path, self.input, self.shard_func, self.compression, droppable=self.repairs)
            self.settle(store=store)

    @property
    def label(self) -> str:
        return f"{self.name}({last_name(self.path)})"

    @property
    def faithful(self) -> bool:
        """Whether the files are read in the order in which they were written."""
        return self.reader_func is None and self.shard_func is None


class DiskCache(Snapshot):
    """A cache in files: what it holds can be made again, and is where it is damaged."""

    compression: str | None = None

    name: ClassVar[str] = "cache"
    repairs: ClassVar[bool] = True


class Followed(Node):
    """The elements of an entry that is being written; how many there will be nobody knows yet."""

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


def last_name(path: str) -> str:
    """What a folder is called, without those around it."""
    return path.rstrip("/").rpartition("/")[2]


def folder_to_write(path: Any, step: str) -> str:
    """The path, or the URL, of a folder to write to."""
    name = storage.as_path(path)
    if not name:
        message = f"{step} writes into a folder, and its path is empty."
        raise InvalidArgumentError(message, hint='Give the path of a folder, which need not be there; "." is this one.')
    if storage.is_url(name):
        if re.match(_READ_ONLY, name):
            message = f"{step} cannot write to {redacted(name)!r}: web servers give files, and take none."
            raise InvalidArgumentError(message, hint="Give a folder, or the URL of one in s3://, gs:// or hdfs://.")
        return name.rstrip("/")
    if os.path.isfile(name):  # noqa: PTH113 - pathlib takes longer to import than this module
        message = f"{step} writes into a folder, and {name!r} is a file."
        raise InvalidArgumentError(message, hint="Give the path of a folder, which need not be there.")
    return name


def read_by(reader_func: Callable[[Any], Any], source: SavedSource, dataset: Callable[[Node], Any]) -> Any:
    """The data set that `reader_func` makes of the shards; `dataset` makes a data set of a plan."""

    def shard(number: Any) -> Any:
        return dataset(Scan(source=replace(source, shards=(source.shards[number],))))

    numbers = Scan(source=RangeSource(range(len(source.shards)), np.dtype(np.int64)))
    found = reader_func(dataset(Map(input=numbers, function=shard)))
    if not isinstance(getattr(found, NESTED, None), Node):
        message = f"reader_func must return a Dataset of elements, got {type(found).__name__}."
        hint = "For example lambda shards: shards.interleave(lambda shard: shard)."
        raise InvalidTypeError(message, hint=hint)
    return found
