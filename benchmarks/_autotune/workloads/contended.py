"""Functions that hold one lock for the whole call, so that a second worker can only wait."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from _autotune.setting import Setting, threads
from _autotune.workload import Workload

SECONDS = 0.002
CONTENT = bytes(4 << 20)


def waiting() -> None:
    time.sleep(SECONDS)


def hashing() -> None:
    """Hash for about 2 ms in C, which releases the interpreter lock."""
    hashlib.sha256(CONTENT).digest()


def locked(work: Callable[[], None]) -> Callable[[Any], Any]:
    lock = threading.Lock()

    def in_turn(number: Any) -> Any:
        with lock:
            work()
        return number

    return in_turn


def penstock(work: Callable[[], None], setting: Setting) -> Any:
    import penstock as ps

    return setting.on(ps.Dataset.range(1 << 20).repeat().map(locked(work), **setting.calls))


def tf_data(work: Callable[[], None]) -> Any:
    import tensorflow as tf

    in_turn = locked(work)
    ds = tf.data.Dataset.range(1 << 20).repeat()
    ds = ds.map(lambda x: tf.numpy_function(in_turn, [x], tf.int64), num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)


CONTENDED = tuple(
    Workload(f"lock held while {work.__name__}", partial(penstock, work), partial(tf_data, work), threads(1, 2, 4, 8))
    for work in (waiting, hashing)
)
