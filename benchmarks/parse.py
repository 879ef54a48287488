"""Measure how fast rows of 40 scalar features become columns.

    TFRecords of 65 536 rows → batch 1024 → parse_example of 1 label, 13 floats, 26 integers

The plan is the same on both sides and includes reading and checksums. Goal: ≥ 8 times the rate of tf.data, 12 times if
possible.

    python benchmarks/parse.py [--pairs N]
"""

from __future__ import annotations

from typing import Any

from _common import click_pipelines
from _common.click_pipelines import BATCH
from _common.clicks import COUNT, clicks
from _common.duel import Pass, Side, checked, duel


def penstock() -> Pass:
    ds = click_pipelines.penstock()
    return checked(lambda: sum(len(columns["label"]) for columns in ds), COUNT)


def tf_data() -> Pass:
    import tensorflow as tf

    features = click_pipelines.features(tf.io, tf.int64, tf.float32)

    def parse(records: Any) -> Any:
        return tf.io.parse_example(records, features)

    ds = tf.data.TFRecordDataset(clicks()).batch(BATCH)
    ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
    return checked(lambda: sum(len(columns["label"]) for columns in ds), COUNT)


if __name__ == "__main__":
    duel(
        "parse 40 features",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=8, hoped=12),
        prepare=clicks,
    )
