"""Elements with a wait of 10 ms each, like a lookup in a remote service."""

from __future__ import annotations

import time
from typing import Any

from _autotune.setting import Setting, threads
from _autotune.workload import Workload

SECONDS = 0.01


def waited(number: Any) -> Any:
    time.sleep(SECONDS)
    return number


def penstock(setting: Setting) -> Any:
    import penstock as ps

    return setting.on(ps.Dataset.range(1 << 20).repeat().map(waited, **setting.calls))


def tf_data() -> Any:
    import tensorflow as tf

    def wait(number: Any) -> Any:
        return tf.numpy_function(waited, [number], tf.int64)

    ds = tf.data.Dataset.range(1 << 20).repeat()
    return ds.map(wait, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


SLEEP = Workload("map that waits 10 ms", penstock, tf_data, threads(1, 2, 4, 8, 16, 32, 64))
