"""Rows of 40 features, parsed 1024 at a time."""

from __future__ import annotations

from typing import Any

from _common.clicks import FLOATS, INTEGERS, clicks

from _autotune.setting import AUTOTUNE, Setting, processes, sequential, threads
from _autotune.workload import Workload

BATCH = 1024


def penstock(setting: Setting) -> Any:
    import numpy as np

    import penstock as ps

    features = {"label": ps.io.FixedLenFeature((), np.int64)}
    features |= {name: ps.io.FixedLenFeature((), np.float32) for name in FLOATS}
    features |= {name: ps.io.FixedLenFeature((), np.int64) for name in INTEGERS}

    def parse(records: Any) -> Any:
        return ps.io.parse_example(records, features)

    ds = ps.TFRecordDataset(clicks()).repeat().batch(BATCH)
    return setting.on(ds.map(parse, **setting.calls))


def tf_data() -> Any:
    import tensorflow as tf

    features = {"label": tf.io.FixedLenFeature((), tf.int64)}
    features |= {name: tf.io.FixedLenFeature((), tf.float32) for name in FLOATS}
    features |= {name: tf.io.FixedLenFeature((), tf.int64) for name in INTEGERS}

    def parse(records: Any) -> Any:
        return tf.io.parse_example(records, features)

    ds = tf.data.TFRecordDataset(clicks()).repeat().batch(BATCH)
    return ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


PARSE = Workload(
    "parse 40 features",
    penstock,
    tf_data,
    sequential(AUTOTUNE) + threads(1, 2, 4, 8) + processes(2),
    each=BATCH,
    prepare=clicks,
)
