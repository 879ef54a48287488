"""Rows like those of an advertisement log (Criteo's columns): a label, 13 floats, 26 integers, each a scalar."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from _common.duel import data_folder, written_once

COUNT, SHARDS = 65_536, 8
FLOATS = tuple(f"dense_{number:02d}" for number in range(13))
INTEGERS = tuple(f"category_{number:02d}" for number in range(26))
_VERSION = 1  # raise it when the data changes


def clicks() -> list[str]:
    """Return the TFRecord files, in order. The first call writes them."""
    folder = written_once(data_folder() / f"clicks-{_VERSION}", _write)
    return sorted(map(str, folder.iterdir()))


def _write(folder: Path) -> None:
    import penstock as ps

    print(f"writing {COUNT} rows", flush=True)
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=COUNT)
    floats = rng.standard_normal((COUNT, len(FLOATS))).astype(np.float32)
    integers = rng.integers(10_000_000, size=(COUNT, len(INTEGERS)))
    for shard in range(SHARDS):
        with ps.io.TFRecordWriter(folder / f"clicks-{shard:05d}-of-{SHARDS:05d}.tfrecord") as writer:
            for row in range(shard, COUNT, SHARDS):
                features = {"label": labels[row], **dict(zip(FLOATS, floats[row], strict=True))}
                writer.write(ps.io.encode_example(features | dict(zip(INTEGERS, integers[row], strict=True))))
