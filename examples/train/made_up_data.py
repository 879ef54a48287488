"""Small generated data for the training examples, the same in each run.

In your own program, files take its place. You do not need this module to understand the examples: it draws images,
writes sentences and fills a table.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import penstock as ps


def cats_and_dogs(folder, count, shards=4):
    """Write TFRecord files like those of cats_vs_dogs: JPEGs of different sizes, and labels 0 and 1.

    A cat has pointed ears, a dog has hanging ears. A test set with a quarter of the images is written to the same
    folder.
    """
    folder = Path(folder)
    for split, first, many in (("train", 0, count), ("test", count, count // 4)):
        writers = [ps.io.TFRecordWriter(folder / f"{split}.tfrecord-{i:05d}-of-{shards:05d}") for i in range(shards)]
        for number in range(first, first + many):
            image, label = _animal(np.random.default_rng(number))
            record = ps.io.encode_example({"image": ps.io.encode_jpeg(image), "label": label})
            writers[number % shards].write(record)
        for writer in writers:
            writer.close()


def _animal(rng):
    height, width, label = int(rng.integers(120, 200)), int(rng.integers(120, 240)), int(rng.integers(2))
    y, x = np.mgrid[0:height, 0:width]
    image = rng.uniform(60, 120, 3) + rng.normal(0, 12, (height, width, 3))
    row, column, size = height * rng.uniform(0.5, 0.6), width * rng.uniform(0.4, 0.6), min(height, width) * 0.3
    fur = rng.uniform(150, 230, 3)
    image[(y - row) ** 2 + (x - column) ** 2 < size**2] = fur
    for side in (-1, 1):
        ear = column + side * size * 0.8
        if label == 0:  # a triangle on the head
            above = row - size * 0.5 - y
            image[(above > 0) & (above < size) & (abs(x - ear) < (size - above) * 0.5)] = fur
        else:  # a hanging ellipse at the side
            image[((x - ear - side * size * 0.4) / 0.35) ** 2 + (y - row - size * 0.2) ** 2 < size**2] = fur
    return np.clip(image, 0, 255).astype(np.uint8), label


def thumbnails(count, seed=0):
    """Return uint8 images of 32 × 32 pixels and labels from 0 to 3: bars, horizontal or vertical, narrow or wide."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, count)
    angles = (labels % 2) * np.pi / 2 + rng.normal(0, 0.15, count)
    widths = np.where(labels < 2, 0.5, 1.0) * rng.uniform(0.9, 1.1, count)
    y, x = np.mgrid[-16:16, -16:16]
    across = np.cos(angles)[:, None, None] * x + np.sin(angles)[:, None, None] * y
    waves = np.sin(across * widths[:, None, None] + rng.uniform(0, 6, count)[:, None, None])
    colours = rng.uniform(0.4, 1, (count, 1, 1, 3))
    images = 128 + 80 * waves[..., None] * colours + rng.normal(0, 15, (count, 32, 32, 3))
    return np.clip(images, 0, 255).astype(np.uint8), labels


def sentences(path, count):
    """Write a text file with a sentence on each line. The first words of a sentence determine the others."""
    rng = np.random.default_rng(0)
    words = {"the cat": "sleeps on the warm stone", "a dog": "runs after every ball", "my bird": "sings at dawn"}
    lines = []
    for _ in range(count):
        subject = list(words)[rng.integers(len(words))]
        follows = words[subject].split()[: rng.integers(2, 6)]
        lines.append(" ".join([subject, *follows]))
    Path(path).write_text("\n".join(lines) + "\n")


def table(count):
    """Return the columns of a table of customers: numbers, a category, and 1 if they left."""
    rng = np.random.default_rng(0)
    months, bill = rng.integers(1, 72, count), rng.normal(60, 20, count).astype(np.float32)
    contract = rng.choice(["monthly", "yearly", "two years"], count)
    score = (bill - 60) / 20 - (months - 36) / 20 + 1.5 * (contract == "monthly") + rng.normal(0, 0.3, count)
    return {"months": months, "bill": bill, "contract": contract, "left": (score > 0.5).astype(np.int64)}
