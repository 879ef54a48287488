"""Measure how fast a memory cache serves the epochs after the first.

    500×375 JPEGs in TFRecords → parse, decode, resize 224×224 float, / 255 → cache → shuffle 1000 → batch 32

The first epoch, which fills the caches, is not timed. In later epochs the pipeline only collects 32 images from random
places in 963 MB of memory and stacks them. The lower bound of this work is a copy of the bytes, which the `np.copyto`
rows measure. They copy neighbouring images into one batch, which stays in the processor's cache, and into three batches
in turn, which do not stay there. A pipeline that runs ahead also uses several batches. Goals: ≥ 1.2 times the rate of
tf.data, ≥ 0.8 of the copy. Without the shuffle, batches are views (last row).

    python benchmarks/cache.py [--pairs N]
"""

from __future__ import annotations

from functools import partial
from typing import Any

from _common import jpeg_pipelines
from _common.duel import Pass, Side, checked, duel
from _common.jpeg_pipelines import BATCH, SIZE
from _common.photographs import COUNT, photographs

BUFFER = 1000


def penstock() -> Pass:
    return _pass(jpeg_pipelines.penstock_images().cache().shuffle(BUFFER).batch(BATCH))


def penstock_unshuffled() -> Pass:
    return _pass(jpeg_pipelines.penstock_images().cache().batch(BATCH))


def tf_data() -> Pass:
    return _pass(jpeg_pipelines.tf_data_images().cache().shuffle(BUFFER).batch(BATCH))


def memcpy(batches: int = 1) -> Pass:
    import numpy as np

    images = np.random.default_rng(0).random((COUNT, *SIZE, 3), np.float32)
    into = [np.empty((BATCH, *SIZE, 3), np.float32) for _ in range(batches)]

    def one_pass() -> int:
        for at in range(0, COUNT, BATCH):
            np.copyto(into[at // BATCH % batches], images[at : at + BATCH])
        return COUNT

    return one_pass


def _pass(ds: Any) -> Pass:
    return checked(lambda: sum(len(images) for images, _ in ds), COUNT)


if __name__ == "__main__":
    duel(
        "cached images, shuffled",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=1.2),
        Side("np.copyto", memcpy, goal=0.8),
        Side("np.copyto, three in turn", partial(memcpy, 3)),
        Side("penstock, not shuffled", penstock_unshuffled),
        prepare=photographs,
    )
