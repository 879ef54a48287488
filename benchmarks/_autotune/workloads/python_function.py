"""A function of about 5 ms of pure Python per element, which holds the interpreter lock."""

from __future__ import annotations

from typing import Any

from _autotune.setting import Setting, processes, threads
from _autotune.workload import Workload

TURNS = 40_000


def churned(number: Any) -> int:
    value = int(number)
    for _ in range(TURNS):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFF_FFFF
    return value


def penstock(setting: Setting) -> Any:
    import penstock as ps

    return setting.on(ps.Dataset.range(1 << 20).repeat().map(churned, **setting.calls))


def tf_data() -> Any:
    import numpy as np
    import tensorflow as tf

    def churn(number: Any) -> Any:
        return tf.numpy_function(lambda x: np.int64(churned(x)), [number], tf.int64)

    ds = tf.data.Dataset.range(1 << 20).repeat()
    return ds.map(churn, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


PYTHON_FUNCTION = Workload("Python function of 5 ms", penstock, tf_data, threads(1, 2, 4) + processes(1, 2, 4))
