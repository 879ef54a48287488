"""A training step of 30 ms for one element, which takes about 5 ms to prepare."""

from __future__ import annotations

import hashlib
from typing import Any

from _autotune.setting import AUTOTUNE, Setting, sequential, threads
from _autotune.workload import Workload

STEP = 0.03
CONTENT = bytes(1 << 20)
TURNS = 8
SHAPE = (512, 512, 3)  # large enough to fill the buffers soon


def prepared(number: Any) -> Any:
    import numpy as np

    for _ in range(TURNS):
        hashlib.sha256(CONTENT).digest()
    return np.full(SHAPE, int(number) % 256, np.uint8)


def penstock(setting: Setting) -> Any:
    import penstock as ps

    return setting.on(ps.Dataset.range(1 << 20).repeat().map(prepared, **setting.calls))


def tf_data() -> Any:
    import tensorflow as tf

    def prepare(number: Any) -> Any:
        return tf.numpy_function(prepared, [number], tf.uint8)

    ds = tf.data.Dataset.range(1 << 20).repeat()
    return ds.map(prepare, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


SLOW_CONSUMER = Workload("step of 30 ms", penstock, tf_data, sequential(1, 8, AUTOTUNE) + threads(1, 2), step=STEP)
