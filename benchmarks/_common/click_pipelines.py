"""Pipelines from rows of 40 scalar features to columns in penstock: by batch, and per element."""

from __future__ import annotations

from typing import Any

from _common.clicks import FLOATS, INTEGERS, clicks

BATCH = 1024


def features(io: Any, int64: Any, float32: Any) -> dict[str, Any]:
    """Return the feature descriptions of either library, from its module `io`."""
    found = {"label": io.FixedLenFeature((), int64)}
    found |= {name: io.FixedLenFeature((), float32) for name in FLOATS}
    return found | {name: io.FixedLenFeature((), int64) for name in INTEGERS}


def penstock(*, batched: bool = True) -> Any:
    import numpy as np

    import penstock as ps

    wanted = features(ps.io, np.int64, np.float32)

    def parse_batch(records: Any) -> Any:
        return ps.io.parse_example(records, wanted)

    def parse_one(record: Any) -> Any:
        return ps.io.parse_single_example(record, wanted)

    ds = ps.TFRecordDataset(clicks())
    if batched:
        ds = ds.batch(BATCH).map(parse_batch, num_parallel_calls=ps.AUTOTUNE)
    else:
        ds = ds.map(parse_one, num_parallel_calls=ps.AUTOTUNE).batch(BATCH)
    return ds.prefetch(ps.AUTOTUNE)
