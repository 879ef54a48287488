"""Augmentation at full size in each library: flips, colours, resize."""

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
        image = ps.image.decode_jpeg(row["image"], channels=3)
        image = ps.image.random_flip_left_right(image)
        image = ps.image.random_flip_up_down(image)
        image = ps.image.random_brightness(image, 0.1)
        image = ps.image.random_saturation(image, 0.75, 1.5)
        image = ps.image.random_hue(image, 0.15)
        image = ps.image.random_contrast(image, 0.75, 1.5)
        return ps.image.resize(image, SIZE) / np.float32(255), row["label"]

    ds = ps.Dataset.list_files(shards(), shuffle=False)
    ds = ds.interleave(ps.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=ps.AUTOTUNE).shuffle(BUFFER)
    ds = ds.map(prepare, num_parallel_calls=ps.AUTOTUNE)
    return ds.batch(BATCH).prefetch(ps.AUTOTUNE)


def tf_data() -> Any:
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def prepare(record: Any) -> Any:
        row = tf.io.parse_single_example(record, features)
        image = tf.io.decode_jpeg(row["image"], channels=3)
        image = tf.image.random_flip_left_right(image)
        image = tf.image.random_flip_up_down(image)
        image = tf.image.random_brightness(image, 0.1)
        image = tf.image.random_saturation(image, 0.75, 1.5)
        image = tf.image.random_hue(image, 0.15)
        image = tf.image.random_contrast(image, 0.75, 1.5)
        return tf.image.resize(image, SIZE) / 255.0, row["label"]

    ds = tf.data.Dataset.list_files(shards(), shuffle=False)
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=tf.data.AUTOTUNE).shuffle(BUFFER)
    return ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


def count(ds: Any) -> int:
    """Return the number of images of one iteration."""
    return sum(len(images) for images, _ in ds)
