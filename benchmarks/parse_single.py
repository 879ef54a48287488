"""What does it cost to parse element by element, as one writes it first?

    TFRecords of 65 536 rows → parse_single_example of 40 scalar features → batch 1024

penstock runs the function a Block at a time. Beside it stand its own batched form, `batch(1024).map(parse_example)`,
and tf.data in the form per element (a quarter of the rows a pass: its cost is per element).
Goal: at least 1 / 1.3 of the batched form's rate, hoped for equal.

    python benchmarks/parse_single.py [--pairs N]
"""

from __future__ import annotations

from typing import Any

from _common.clicks import COUNT, FLOATS, INTEGERS, SHARDS, clicks
from _common.duel import Pass, Side, duel

BATCH = 1024
FEWER = SHARDS // 4


def _features(io: Any, int64: Any, float32: Any) -> dict[str, Any]:
    features = {"label": io.FixedLenFeature((), int64)}
    features |= {name: io.FixedLenFeature((), float32) for name in FLOATS}
    return features | {name: io.FixedLenFeature((), int64) for name in INTEGERS}


def _penstock(*, batched: bool) -> Pass:
    import numpy as np

    import penstock as ps

    features = _features(ps.io, np.int64, np.float32)

    def parse_batch(records: Any) -> Any:
        return ps.io.parse_example(records, features)

    def parse_one(record: Any) -> Any:
        return ps.io.parse_single_example(record, features)

    ds = ps.TFRecordDataset(clicks())
    if batched:
        ds = ds.batch(BATCH).map(parse_batch, num_parallel_calls=ps.AUTOTUNE)
    else:
        ds = ds.map(parse_one, num_parallel_calls=ps.AUTOTUNE).batch(BATCH)
    ds = ds.prefetch(ps.AUTOTUNE)
    return lambda: _checked(sum(len(columns["label"]) for columns in ds), COUNT)


def per_element() -> Pass:
    return _penstock(batched=False)


def batched() -> Pass:
    return _penstock(batched=True)


def tf_data() -> Pass:
    import tensorflow as tf

    features = _features(tf.io, tf.int64, tf.float32)

    def parse(record: Any) -> Any:
        return tf.io.parse_single_example(record, features)

    ds = tf.data.TFRecordDataset(clicks()[:FEWER]).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return lambda: _checked(sum(len(columns["label"]) for columns in ds), COUNT * FEWER // SHARDS)


def _checked(count: int, expected: int) -> int:
    assert count == expected, f"{count} of {expected} rows"
    return count


if __name__ == "__main__":
    duel(
        "parse 40 features, one by one",
        Side("penstock", per_element),
        Side("penstock, batched", batched, goal=1 / 1.3, hoped=1),
        Side("tf.data", tf_data, needs="tensorflow"),
        prepare=clicks,
    )
