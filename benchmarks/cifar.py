"""Measure how fast small images become augmented batches.

    PNGs of 32×32 pixels in TFRecords → parse, decode, pad 4 (reflect), flip, random crop, rotate ±5°, cutout 8,
    normalise → batch 512

The plan is the same on both sides, with AUTOTUNE for all settings and random parameters for each image. In penstock the
functions are written per element, and penstock fuses the operations into one chain. tf.data runs twice: with the
operations that support batches after `batch`, and with all operations after `batch`. Goal: ≥ 4 times the faster one, 8
times if possible. On a noisy machine compare the CPU columns first.

    python benchmarks/cifar.py [--pairs N]
"""

from __future__ import annotations

from _common import thumbnail_pipelines
from _common.duel import Pass, Side, checked, duel
from _common.thumbnails import COUNT, thumbnails


def penstock() -> Pass:
    ds = thumbnail_pipelines.penstock()
    return checked(lambda: sum(len(images) for images, _ in ds), COUNT)


def tf_data() -> Pass:
    ds = thumbnail_pipelines.tf_data(whole_batches=False)
    return checked(lambda: sum(len(images) for images, _ in ds), COUNT)


def tf_data_by_batch() -> Pass:
    ds = thumbnail_pipelines.tf_data(whole_batches=True)
    return checked(lambda: sum(len(images) for images, _ in ds), COUNT)


if __name__ == "__main__":
    duel(
        "augmented PNG to batches of 512",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=4, hoped=8),
        Side("tf.data, batched first", tf_data_by_batch, needs="tensorflow", goal=4, hoped=8),
        prepare=thumbnails,
    )
