"""Small files in a store that takes 50 ms per read, interleaved in order."""

from __future__ import annotations

import io
import time
from typing import Any

from _autotune.setting import Setting, threads
from _autotune.workload import Workload

LATENCY = 0.05
FILES, RECORDS, RECORD_BYTES = 4096, 16, 4096


def read(name: str) -> bytes:
    """Return the content of a file after the latency."""
    time.sleep(LATENCY)
    return int(name).to_bytes(8, "little") * (RECORDS * RECORD_BYTES // 8)


def names() -> list[str]:
    return [f"{number:05d}" for number in range(FILES)]


def register() -> None:
    """Register the store in fsspec as `late://`."""
    import fsspec
    from fsspec.spec import AbstractFileSystem

    class LateStore(AbstractFileSystem):
        protocol = "late"

        def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
            return {"name": self._strip_protocol(path), "size": RECORDS * RECORD_BYTES, "type": "file"}

        def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> io.BytesIO:
            return io.BytesIO(read(self._strip_protocol(path)))

    fsspec.register_implementation("late", LateStore, clobber=True)


def penstock(setting: Setting) -> Any:
    import penstock as ps

    register()
    urls = ps.Dataset.from_tensor_slices([f"late://{name}" for name in names()]).repeat()
    return setting.on(
        urls.interleave(
            lambda url: ps.FixedLengthRecordDataset(url, RECORD_BYTES),
            cycle_length=setting.parallel,
            num_parallel_calls=setting.parallel,
        )
    )


def tf_data() -> Any:
    import tensorflow as tf

    def records(name: Any) -> Any:
        content = tf.numpy_function(lambda found: read(found.decode()), [name], tf.string)
        rows = tf.reshape(tf.io.decode_raw(content, tf.uint8), (RECORDS, RECORD_BYTES))
        return tf.data.Dataset.from_tensor_slices(rows)

    ds = tf.data.Dataset.from_tensor_slices(names()).repeat()
    ds = ds.interleave(records, cycle_length=tf.data.AUTOTUNE, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.prefetch(tf.data.AUTOTUNE)


STORE = Workload("store 50 ms away", penstock, tf_data, threads(1, 4, 8, 16, 32, 64))
