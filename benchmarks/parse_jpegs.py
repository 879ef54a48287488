"""Measure how fast records of images are parsed without decoding the images.

    TFRecords of 1600 photographs of 45 KB → batch 128 → parse_example of image and label → the label

penstock leaves the images in the mapped file and reads them once, for their checksums. The program compares this with
penstock's reading without parsing, and with tf.data, which copies each image. Goal: at least 0.8 of reading alone, and
at least the rate of tf.data.

    python benchmarks/parse_jpegs.py [--pairs N]
"""

from __future__ import annotations

from typing import Any

from _common.duel import Pass, Side, checked, duel
from _common.photographs import COUNT, photographs, shards

BATCH = 128


def _penstock(*, parsed: bool) -> Pass:
    import numpy as np

    import penstock as ps

    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def label(records: Any) -> Any:
        return ps.io.parse_example(records, features)["label"]

    ds = ps.TFRecordDataset(shards()).batch(BATCH)
    if parsed:
        ds = ds.map(label).prefetch(ps.AUTOTUNE)
        return checked(lambda: sum(len(labels) for labels in ds), COUNT)
    ds = ds.map(lambda records: True).prefetch(ps.AUTOTUNE)
    return lambda: COUNT if sum(ds) == -(-COUNT // BATCH) else 0


def with_parsing() -> Pass:
    return _penstock(parsed=True)


def reading_alone() -> Pass:
    return _penstock(parsed=False)


def tf_data() -> Pass:
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def label(records: Any) -> Any:
        return tf.io.parse_example(records, features)["label"]

    ds = tf.data.TFRecordDataset(shards()).batch(BATCH)
    ds = ds.map(label, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return checked(lambda: sum(len(labels) for labels in ds), COUNT)


if __name__ == "__main__":
    duel(
        "parse records of photographs",
        Side("penstock", with_parsing),
        Side("penstock, reading alone", reading_alone, goal=0.8, hoped=1),
        Side("tf.data", tf_data, needs="tensorflow", goal=1),
        prepare=photographs,
    )
