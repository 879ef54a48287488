"""The two ways to feed the training loop: the same steps on the same records, hence the same batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import penstock as ps
from penstock.demo.settings import Settings

# Pictures come as 500 by 375 pixels; the net looks at this many.
SIZE = 64
# How many shards are read in turn; it is part of the order, so both have it.
CYCLE = 4
SHUFFLE = 512

_FEATURES = {
    "image": ps.io.FixedLenFeature((), bytes),
    "label": ps.io.FixedLenFeature((), np.int64),
}


def prepare(record: bytes) -> tuple[Any, Any]:
    """A record to what the net takes: float32 (64, 64, 3) from 0 to 1, and the label."""
    row = ps.io.parse_single_example(record, _FEATURES)
    image = ps.image.decode_jpeg(row["image"], channels=3)
    return ps.image.resize(image, (SIZE, SIZE)) / np.float32(255), row["label"]


def naive(files: Sequence[str], settings: Settings) -> ps.Dataset:
    """One thing after the other, one record at a time, every epoch anew: what a first version looks like.

    The loop iterates it with the inline executor: nothing is rewritten, nothing runs but in the loop's own thread.
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
    """Reading and decoding beside the training, decoded pictures kept for the next epoch, batches made ahead."""
    return (
        ps.Dataset.list_files(list(files), shuffle=False)
        .interleave(ps.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=ps.AUTOTUNE)
        .map(prepare, num_parallel_calls=ps.AUTOTUNE)
        .cache()
        .shuffle(SHUFFLE, seed=settings.seed)
        .batch(settings.batch_size)
        .prefetch(ps.AUTOTUNE)
    )
