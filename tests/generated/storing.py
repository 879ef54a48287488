"""Reference and generated steps: snapshots, and saved data sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.generated import folder, made
from tests.reference import elements, source_elements
from tests.strategies import Pipeline

import penstock as ps
from penstock.plan.storing import Snapshot
from penstock.store.saved_source import SavedSource

# -- meaning


@elements.register
def _(node: Snapshot, context: Any) -> Iterator[Any]:
    """Epoch 0 of the input, whichever epoch it is read in, and whether it comes from files or not."""
    return elements(node.input, context.in_epoch(0))


_SAVED: dict[str, list[Any]] = {}  # by folder, what was saved, in the order in which it is loaded


@source_elements.register
def _(source: SavedSource) -> Iterator[Any]:
    return iter(_SAVED[source.folder])


# -- steps


def entries() -> Path:
    """The folder of all caches and snapshots."""
    return folder() / "entries"


def _snapshot(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    """Into the folder of all others: a snapshot of another plan must never be taken for one of this."""
    if at.infinite or deterministic is False:
        return at
    compression = draw(st.sampled_from(["AUTO", None, "GZIP"]))
    return at.then(f"snapshot({compression})", at.dataset.snapshot(entries(), compression))


def _disk_cache(draw: Any, at: Pipeline, deterministic: bool | None) -> Pipeline:
    if at.infinite or deterministic is False:
        return at
    return at.then("cache(folder)", at.dataset.cache(entries()))


STEPS: list[Any] = [_snapshot, _disk_cache]


# -- sources


def _saved(name: str, shards: int, compression: str | None) -> Any:
    def make(count: int) -> ps.Dataset:
        ds = ps.Dataset.range(count).map(lambda i: {"a": i, "b": np.full(2, i / 2)})
        path = made(
            f"saved-{name}-{count}",
            lambda path: ds.save(path, compression, shard_func=lambda row: row["a"] // 3 % shards),
        )
        if str(path) not in _SAVED:
            rows = [{"a": np.int64(i), "b": np.full(2, i / 2)} for i in range(count)]
            parts = [[row for row in rows if row["a"] // 3 % shards == shard] for shard in range(shards)]
            turns = [[part[i] for part in parts if i < len(part)] for i in range(count)]
            _SAVED[str(path)] = [row for turn in turns for row in turn]
        return ps.Dataset.load(path)

    return make


SOURCES = [
    ("saved", _saved("one", 1, None), "other"),
    ("saved in shards", _saved("three", 3, "ZSTD"), "other"),
]
