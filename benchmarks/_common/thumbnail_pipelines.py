"""CIFAR's usual augmentation in each library: pad, flip, crop, rotate, cutout, normalise."""

from __future__ import annotations

from typing import Any

import numpy as np

from _common.thumbnails import SIDE, thumbnails

BATCH, MARGIN, HOLE = 512, 4, 8
MOST = float(np.deg2rad(5))  # largest angle of a rotation
MEAN = np.array([125.3, 123.0, 113.9], np.float32)
STD = np.array([63.0, 62.1, 66.7], np.float32)
PADDINGS = ((MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0))


def penstock() -> Any:
    """Build the pipeline per element, with the batch at the end."""
    import penstock as ps

    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def prepare(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        image = ps.image.decode_png(row["image"], channels=3)
        image = ps.image.pad(image, PADDINGS, "REFLECT")
        image = ps.image.random_flip_left_right(image)
        image = ps.image.random_crop(image, (SIDE, SIDE, 3))
        image = ps.image.random_rotate(image, MOST, "bilinear", "reflect")
        image = ps.image.random_cutout(image, HOLE)
        return ps.image.normalize(image, MEAN, STD), row["label"]

    ds = ps.TFRecordDataset(thumbnails()).map(prepare, num_parallel_calls=ps.AUTOTUNE)
    return ds.batch(BATCH).prefetch(ps.AUTOTUNE)


def tf_data(*, whole_batches: bool) -> Any:
    """Build the pipeline with rotation, cutout and arithmetic on the batch.

    With `whole_batches`, parsing, padding and flips are on the batch too, as the performance guide advises; operations
    without a form for batches run in tf.map_fn. Without it, these operations are mapped over elements before the batch.
    """
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def decode(content: Any) -> Any:
        return tf.ensure_shape(tf.io.decode_png(content, channels=3), (SIDE, SIDE, 3))

    def crop(image: Any) -> Any:
        return tf.image.random_crop(image, (SIDE, SIDE, 3))

    def one(record: Any) -> Any:
        row = tf.io.parse_single_example(record, features)
        image = tf.pad(decode(row["image"]), PADDINGS, "REFLECT")
        return crop(tf.image.random_flip_left_right(image)), row["label"]

    def many(records: Any) -> Any:
        rows = tf.io.parse_example(records, features)
        images = tf.map_fn(decode, rows["image"], fn_output_signature=tf.uint8)
        images = tf.pad(images, [[0, 0], *PADDINGS], "REFLECT")
        images = tf.map_fn(crop, tf.image.random_flip_left_right(images))
        return rest(images, rows["label"])

    def rest(images: Any, labels: Any) -> Any:
        count = tf.shape(images)[0]
        images = rotated(images, tf.random.uniform((count,), -MOST, MOST))
        centres = tf.random.uniform((2, count, 1), 0, SIDE, tf.int32) - HOLE // 2
        inside = (tf.range(SIDE) >= centres) & (tf.range(SIDE) < centres + HOLE)
        hole = inside[0][:, :, None, None] & inside[1][:, None, :, None]
        images = tf.where(hole, tf.zeros((), tf.uint8), images)
        return (tf.cast(images, tf.float32) - MEAN) / STD, labels

    def rotated(images: Any, angles: Any) -> Any:
        """Rotate like tfa.image.rotate, which is no longer maintained."""
        cosine, sine, last = tf.cos(angles), tf.sin(angles), tf.constant(SIDE - 1, tf.float32)
        right = (last - (cosine * last - sine * last)) / 2
        down = (last - (sine * last + cosine * last)) / 2
        nothing = tf.zeros_like(angles)
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=images,
            transforms=tf.stack([cosine, -sine, right, sine, cosine, down, nothing, nothing], axis=1),
            output_shape=(SIDE, SIDE),
            interpolation="BILINEAR",
            fill_mode="REFLECT",
            fill_value=0.0,
        )

    ds = tf.data.TFRecordDataset(thumbnails())
    if whole_batches:
        ds = ds.batch(BATCH).map(many, num_parallel_calls=tf.data.AUTOTUNE)
    else:
        ds = ds.map(one, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)
        ds = ds.map(rest, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)
