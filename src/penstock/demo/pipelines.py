"""The two pipelines of the training loop. They have the same steps on the same records, and thus the same batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import penstock as ps
from penstock.demo.settings import Settings

# Images have 500 by 375 pixels. The net gets squares of this many pixels.
SIZE = 64
# Number of shards that are read in turn. It affects the order, so both pipelines use it.
CYCLE = 4
SHUFFLE = 512

_FEATURES = {
    "image": ps.io.FixedLenFeature((), bytes),
    "label": ps.io.FixedLenFeature((), np.int64),
}


def prepare(record: bytes) -> tuple[Any, Any]:
    """Decode a record for the net: an image as float32 (64, 64, 3) from 0 to 1, and the label."""
    row = ps.io.parse_single_example(record, _FEATURES)
    image = ps.image.decode_jpeg(row["image"], channels=3)
    return ps.image.resize(image, (SIZE, SIZE)) / np.float32(255), row["label"]


def naive(files: Sequence[str], settings: Settings) -> ps.Dataset:
    """Return a pipeline that does one step after the other for one record at a time, again in every epoch.

    The loop iterates it with the inline executor. No step is optimised, and all steps run in the thread of the loop.
    """
    one_by_one = ps.Options(experimental_optimization={"apply_default_optimizations": False})
    return (
        ps.Dataset.list_files(list(files), shuffle=False)
        .interleave(ps.TFRecordDataset, cycle_length=CYCLE)
        .map(prepare)
        .shuffle(SHUFFLE, seed=settings.seed)
        .batch(settings.batch_size)
        .with_options(one_by_one)
    )


def pipelined(files: Sequence[str], settings: Settings) -> ps.Dataset:
    """Return a pipeline that reads and decodes during the training, caches decoded images and prefetches batches."""
    return (
        ps.Dataset.list_files(list(files), shuffle=False)
        .interleave(ps.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=ps.AUTOTUNE)
        .map(prepare, num_parallel_calls=ps.AUTOTUNE)
        .cache()
        .shuffle(SHUFFLE, seed=settings.seed)
        .batch(settings.batch_size)
        .prefetch(ps.AUTOTUNE)
    )
