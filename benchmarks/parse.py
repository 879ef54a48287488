"""How fast do rows of 40 scalar features become columns?

    TFRecords of 65 536 rows → batch 1024 → parse_example of 1 label, 13 floats, 26 integers

The same plan on both sides; reading, framing and checksums are in it. Goal: ≥ 8 times tf.data, hoped for 12.

    python benchmarks/parse.py [--pairs N]
"""

from __future__ import annotations

from typing import Any

from _common.clicks import COUNT, FLOATS, INTEGERS, clicks
from _common.duel import Pass, Side, duel

BATCH = 1024


def penstock() -> Pass:
    import numpy as np

    import penstock as ps

    features = {"label": ps.io.FixedLenFeature((), np.int64)}
    features |= {name: ps.io.FixedLenFeature((), np.float32) for name in FLOATS}
    features |= {name: ps.io.FixedLenFeature((), np.int64) for name in INTEGERS}

    def parse(records: Any) -> Any:
        return ps.io.parse_example(records, features)

    ds = ps.TFRecordDataset(clicks()).batch(BATCH).map(parse, num_parallel_calls=ps.AUTOTUNE).prefetch(ps.AUTOTUNE)
    return lambda: _checked(sum(len(columns["label"]) for columns in ds))


def tf_data() -> Pass:
    import tensorflow as tf

    features = {"label": tf.io.FixedLenFeature((), tf.int64)}
    features |= {name: tf.io.FixedLenFeature((), tf.float32) for name in FLOATS}
    features |= {name: tf.io.FixedLenFeature((), tf.int64) for name in INTEGERS}

    def parse(records: Any) -> Any:
        return tf.io.parse_example(records, features)

    ds = tf.data.TFRecordDataset(clicks()).batch(BATCH)
    ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return lambda: _checked(sum(len(columns["label"]) for columns in ds))


def _checked(count: int) -> int:
    assert count == COUNT, f"{count} of {COUNT} rows"
    return count


if __name__ == "__main__":
    duel(
        "parse 40 features",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=8, hoped=12),
        prepare=clicks,
    )
