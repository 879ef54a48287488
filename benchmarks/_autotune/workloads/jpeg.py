"""Photographs from TFRecords, decoded and resized, in batches of 32."""

from __future__ import annotations

from typing import Any

from _common.photographs import photographs, shards

from _autotune.setting import Setting, processes, threads
from _autotune.workload import Workload

CYCLE, BATCH, SIZE = 4, 32, (224, 224)


def penstock(setting: Setting) -> Any:
    import numpy as np

    import penstock as ps

    features = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}

    def prepare(record: bytes) -> Any:
        row = ps.io.parse_single_example(record, features)
        image = ps.image.resize(ps.image.decode_jpeg(row["image"], channels=3), SIZE) / np.float32(255)
        return image, row["label"]

    ds = ps.Dataset.from_tensor_slices(shards()).repeat()
    ds = ds.interleave(ps.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=setting.parallel)
    return setting.on(ds.map(prepare, **setting.calls).batch(BATCH))


def tf_data() -> Any:
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature((), tf.string), "label": tf.io.FixedLenFeature((), tf.int64)}

    def prepare(record: Any) -> Any:
        row = tf.io.parse_single_example(record, features)
        return tf.image.resize(tf.io.decode_jpeg(row["image"], channels=3), SIZE) / 255.0, row["label"]

    ds = tf.data.Dataset.from_tensor_slices(shards()).repeat()
    ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=CYCLE, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


JPEG = Workload("JPEG", penstock, tf_data, threads(1, 2, 4, 8) + processes(2), each=BATCH, prepare=photographs)
