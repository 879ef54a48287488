"""Arrays of 4 MB, sliced from a larger one and stacked in fours: only copies."""

from __future__ import annotations

from typing import Any

from _autotune.setting import AUTOTUNE, Setting, processes, sequential, threads
from _autotune.workload import Workload

WORDS, PLACES, BATCH = 1 << 20, 16, 4


def copier() -> Any:
    import numpy as np

    words = np.random.default_rng(0).random(WORDS + PLACES, np.float32)

    def copied(number: Any) -> Any:
        start = int(number) % PLACES
        return words[start : start + WORDS].copy()

    return copied


def penstock(setting: Setting) -> Any:
    import penstock as ps

    ds = ps.Dataset.range(PLACES).repeat()
    return setting.on(ds.map(copier(), **setting.calls).batch(BATCH))


def tf_data() -> Any:
    import tensorflow as tf

    copied = copier()

    def copy(number: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(copied, [number], tf.float32), (WORDS,))

    ds = tf.data.Dataset.range(PLACES).repeat()
    return ds.map(copy, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


MEMORY = Workload(
    "memory-bound", penstock, tf_data, sequential(0, 2, AUTOTUNE) + threads(1, 2, 4) + processes(2), each=BATCH
)
