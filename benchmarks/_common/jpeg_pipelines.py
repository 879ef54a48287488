"""The JPEG pipeline as a user of each library writes it: `jpeg.py` times its passes, `startup.py` its first batch."""

from __future__ import annotations

from typing import Any

from _common.photographs import shards

SIZE = (224, 224)
CYCLE, BUFFER, BATCH = 4, 1024, 32


def penstock() -> Any:
    import numpy as np

    import penstock as ps

    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def prepare(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        image = ps.image.resize(ps.image.decode_jpeg(row["image"], channels=3), SIZE) / np.float32(255)
        return image, row["label"]

    ds = ps.Dataset.list_files(shards(), shuffle=False)
    ds = ds.interleave(ps.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=ps.AUTOTUNE)
    return ds.map(prepare, num_parallel_calls=ps.AUTOTUNE).shuffle(BUFFER).batch(BATCH).prefetch(ps.AUTOTUNE)


def tf_data(*, records_shuffled: bool = False) -> Any:
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def prepare(record: Any) -> Any:
        row = tf.io.parse_single_example(record, features)
        image = tf.image.resize(tf.io.decode_jpeg(row["image"], channels=3), SIZE) / 255.0
        return image, row["label"]

    ds = tf.data.Dataset.list_files(shards(), shuffle=False)
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=tf.data.AUTOTUNE)
    if records_shuffled:
        ds = ds.shuffle(BUFFER).map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        ds = ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).shuffle(BUFFER)
    return ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)
