"""Elements of 0.6 ms, one in a hundred of them 50 times as long. The function releases the interpreter lock."""

from __future__ import annotations

import hashlib
from typing import Any

from _autotune.setting import Setting, processes, threads
from _autotune.workload import Workload

CONTENT = bytes(1 << 20)
ONE_IN, SLOWER = 100, 50


def is_slow(number: int) -> bool:
    """Return True for one number in a hundred, at irregular distances."""
    return number * 2_654_435_761 % (1 << 32) < (1 << 32) // ONE_IN


def hashed(number: Any) -> Any:
    for _ in range(SLOWER if is_slow(int(number)) else 1):
        hashlib.sha256(CONTENT).digest()
    return number


def penstock(setting: Setting, *, ordered: bool = True) -> Any:
    import penstock as ps

    return setting.on(ps.Dataset.range(1 << 20).repeat().map(hashed, **setting.calls, deterministic=ordered))


def tf_data() -> Any:
    import tensorflow as tf

    def hash_of(number: Any) -> Any:
        return tf.numpy_function(hashed, [number], tf.int64)

    ds = tf.data.Dataset.range(1 << 20).repeat()
    return ds.map(hash_of, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


SKEW = Workload("1 % cost 50×", penstock, tf_data, threads(1, 2, 4, 8) + processes(2))
