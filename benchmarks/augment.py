"""Measure how fast photographs are augmented, with the same result to the last bit.

    500×375 JPEGs in TFRecords → shuffle 1024 → parse, decode, flips, brightness, saturation, hue, contrast at full
    size, resize 224×224 float, / 255 → batch 32

The plan is the same in penstock and tf.data. All steps use AUTOTUNE and random parameters. penstock fuses the
operations into one chain. For the same random numbers its values are equal to TensorFlow's. DALI has one operator for
the colours, which computes in another order. torch, grain and SPDL have no such operations. torchvision has them, but
the torchvision of the package index cannot be loaded with a CPU build of torch.

Goal: ≥ 3.5 times the rate of tf.data, 4.5 times if possible. On a noisy machine compare the CPU columns first.

    python benchmarks/augment.py [--pairs N]
"""

from __future__ import annotations

from _common import augment_pipelines, dali_pipelines
from _common.duel import Pass, Side, checked, duel
from _common.photographs import COUNT, photographs


def penstock() -> Pass:
    ds = augment_pipelines.penstock()
    return checked(lambda: augment_pipelines.count(ds), COUNT)


def tf_data() -> Pass:
    ds = augment_pipelines.tf_data()
    return checked(lambda: augment_pipelines.count(ds), COUNT)


if __name__ == "__main__":
    duel(
        "augmented JPEG to batches of 32",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=3.5, hoped=4.5),
        Side("DALI on the CPU", dali_pipelines.augmented, needs="nvidia.dali"),
        prepare=photographs,
    )
