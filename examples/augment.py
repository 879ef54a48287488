"""Augment images for training: crops, RandAugment, erasing, CutMix. Print the speed, and repeat an epoch.

Run it with `python examples/augment.py`. With a
file name as argument, it writes the images of a batch: `python examples/augment.py sheet.png`.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import penstock as ps

COUNT, CLASSES, BATCH, SIZE = 256, 10, 32, (128, 128)


def jpeg_of_disc(number):
    """Return a JPEG of a disc on a gradient, and its class."""
    rng = np.random.default_rng(number)
    y, x = np.mgrid[0:180, 0:240].astype(np.float32)
    image = np.stack([x, y, 240 - x], axis=-1)
    inside = (x - rng.uniform(60, 180)) ** 2 + (y - rng.uniform(50, 130)) ** 2 < 40**2
    image[inside] = rng.integers(0, 256, 3)
    return ps.image.encode_jpeg(image.astype(np.uint8)), number % CLASSES


def augment(jpeg, label):
    image = ps.image.decode_jpeg(jpeg, channels=3)
    image = ps.image.random_resized_crop(image, SIZE, method="nearest")
    image = ps.image.random_flip_left_right(image)
    image = ps.image.rand_augment(image, num_ops=2, magnitude=9)
    image = ps.image.random_erasing(image, probability=0.25, value="random")
    return image, label


def mix(images, labels):
    images, labels = ps.image.cutmix(images, labels, num_classes=CLASSES)
    return images / np.float32(255), labels


def main():
    jpegs, labels = zip(*map(jpeg_of_disc, range(COUNT)), strict=True)
    ds = (
        ps.Dataset.from_tensor_slices((np.array(jpegs, object), np.array(labels)))
        .shuffle(ps.ALL, seed=1)
        .map(augment, num_parallel_calls=ps.AUTOTUNE)
        .batch(BATCH, drop_remainder=True)
        .map(mix)
        .prefetch(ps.AUTOTUNE)
    )
    for epoch in range(3):
        start = time.perf_counter()
        batches = [images.mean() for images, _ in ds.iterator(epoch=epoch)]
        speed = COUNT / (time.perf_counter() - start)
        print(f"epoch {epoch}: {speed:.0f} images/s, mean value {np.mean(batches):.3f}")
    (first, _), (again, _) = (next(ds.iterator(epoch=1)) for _ in range(2))
    print("the same epoch again is the same:", np.array_equal(first, again))
    if len(sys.argv) > 1:
        rows = (first[:24] * 255).astype(np.uint8).reshape(4, 6, *SIZE, 3)
        sheet = np.concatenate([np.concatenate(list(row), axis=1) for row in rows])
        Path(sys.argv[1]).write_bytes(ps.image.encode_png(sheet))


if __name__ == "__main__":
    main()
