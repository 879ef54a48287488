"""Measure the cost of a parse function per element.

    TFRecords of 65 536 rows → parse_single_example of 40 scalar features → batch 1024

penstock runs the function on a Block at a time. The program compares this with penstock's batched form,
`batch(1024).map(parse_example)`, and with tf.data per element. tf.data has a quarter of the rows, because its cost is
per element. Goal: at least 1 / 1.3 of the rate of the batched form, the same rate if possible.

    python benchmarks/parse_single.py [--pairs N]
"""

from __future__ import annotations

from typing import Any

from _common import click_pipelines
from _common.click_pipelines import BATCH
from _common.clicks import COUNT, SHARDS, clicks
from _common.duel import Pass, Side, checked, duel

FEWER = SHARDS // 4


def _penstock(*, batched: bool) -> Pass:
    ds = click_pipelines.penstock(batched=batched)
    return checked(lambda: sum(len(columns["label"]) for columns in ds), COUNT)


def per_element() -> Pass:
    return _penstock(batched=False)


def batched() -> Pass:
    return _penstock(batched=True)


def tf_data() -> Pass:
    import tensorflow as tf

    features = click_pipelines.features(tf.io, tf.int64, tf.float32)

    def parse(record: Any) -> Any:
        return tf.io.parse_single_example(record, features)

    ds = tf.data.TFRecordDataset(clicks()[:FEWER]).map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return checked(lambda: sum(len(columns["label"]) for columns in ds), COUNT * FEWER // SHARDS)


if __name__ == "__main__":
    duel(
        "parse 40 features, one by one",
        Side("penstock", per_element),
        Side("penstock, batched", batched, goal=1 / 1.3, hoped=1),
        Side("tf.data", tf_data, needs="tensorflow"),
        prepare=clicks,
    )
