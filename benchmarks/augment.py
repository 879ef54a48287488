"""How fast are photographs augmented, with the same result to the last bit?

    500×375 JPEGs in TFRecords → shuffle 1024 → parse, decode, flips, brightness, saturation, hue, contrast at full
    size, resize 224×224 float, / 255 → batch 32

The same plan in penstock and tf.data, everything AUTOTUNE; all draw at random. penstock makes one chain of the
operations, and its values are TensorFlow's for the numbers drawn. DALI has one operator for the colours, which works in
another order. torch, grain and SPDL bring no such operations: the torchvision of the package index, which has them,
does not load beside a torch for CPUs.

Goal: ≥ 3.5 times tf.data, hoped for 4.5. On a noisy machine compare the CPU columns first.

    python benchmarks/augment.py [--pairs N]
"""

from __future__ import annotations

from _common import augment_pipelines, dali_pipelines
from _common.duel import Pass, Side, duel
from _common.photographs import COUNT, photographs


def penstock() -> Pass:
    ds = augment_pipelines.penstock()
    return lambda: _checked(augment_pipelines.count(ds))


def tf_data() -> Pass:
    ds = augment_pipelines.tf_data()
    return lambda: _checked(augment_pipelines.count(ds))


def _checked(count: int) -> int:
    assert count == COUNT, f"{count} of {COUNT} pictures"
    return count


if __name__ == "__main__":
    duel(
        "augmented JPEG to batches of 32",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=3.5, hoped=4.5),
        Side("DALI on the CPU", dali_pipelines.augmented, needs="nvidia.dali"),
        prepare=photographs,
    )
