"""The JPEG pipeline in each library: `jpeg.py` measures its iterations, `startup.py` its first batch.

With `floats` the values are from 0 to 1, otherwise the resized images are truncated to bytes.
"""

from __future__ import annotations

from typing import Any

from _common.photographs import shards

SIZE = (224, 224)
CYCLE, BUFFER, BATCH = 4, 1024, 32


def penstock(*, floats: bool = True) -> Any:
    import penstock as ps

    return penstock_images(floats=floats).shuffle(BUFFER).batch(BATCH).prefetch(ps.AUTOTUNE)


def penstock_images(*, floats: bool = True) -> Any:
    """Build a data set of single images and labels."""
    import numpy as np

    import penstock as ps

    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def prepare(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        image = ps.image.resize(ps.image.decode_jpeg(row["image"], channels=3), SIZE)
        return image / np.float32(255) if floats else ps.image.cast(image, np.uint8), row["label"]

    ds = ps.Dataset.list_files(shards(), shuffle=False)
    ds = ds.interleave(ps.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=ps.AUTOTUNE)
    return ds.map(prepare, num_parallel_calls=ps.AUTOTUNE)


def tf_data(*, records_shuffled: bool = False, floats: bool = True) -> Any:
    import tensorflow as tf

    if records_shuffled:
        ds = tf_data_images(BUFFER, floats=floats)
    else:
        ds = tf_data_images(floats=floats).shuffle(BUFFER)
    return ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def tf_data_images(records_shuffled: int | None = None, *, floats: bool = True) -> Any:
    """Build a data set of single images and labels, in the order of the records or shuffled with the given buffer."""
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def prepare(record: Any) -> Any:
        row = tf.io.parse_single_example(record, features)
        image = tf.image.resize(tf.io.decode_jpeg(row["image"], channels=3), SIZE)
        return image / 255.0 if floats else tf.cast(image, tf.uint8), row["label"]

    ds = tf.data.Dataset.list_files(shards(), shuffle=False)
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=tf.data.AUTOTUNE)
    if records_shuffled is not None:
        ds = ds.shuffle(records_shuffled)
    return ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
