"""Numbers plus one, in batches of 1024."""

from __future__ import annotations

from typing import Any

from _autotune.setting import AUTOTUNE, Setting, processes, sequential, threads
from _autotune.workload import Workload

NUMBERS, BATCH = 1 << 20, 1024


def penstock(setting: Setting) -> Any:
    import penstock as ps

    ds = ps.Dataset.range(NUMBERS).repeat()
    return setting.on(ds.map(lambda x: x + 1, **setting.calls).batch(BATCH))


def tf_data() -> Any:
    import tensorflow as tf

    ds = tf.data.Dataset.range(NUMBERS).repeat()
    return ds.map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)


TINY = Workload(
    "tiny elements", penstock, tf_data, sequential(0, AUTOTUNE) + threads(1, 2, 4) + processes(2), each=BATCH
)
