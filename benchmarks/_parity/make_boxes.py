"""Write TensorFlow's drawings of boxes on seeded images to tests/data/tensorflow/boxes.npz, for the tests.

.venv-bench/bin/python benchmarks/_parity/make_boxes.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

CASES = [  # shape of the images, boxes per image, colours
    ((2, 13, 17, 3), 4, 0),
    ((1, 9, 8, 1), 12, 0),
    ((3, 11, 5, 4), 3, 2),
    ((2, 10, 10, 3), 15, 7),
    ((1, 1, 1, 3), 2, 1),
    ((2, 6, 7, 1), 0, 1),
    ((1, 40, 30, 3), 30, 0),
]


def boxes(random: np.random.Generator, count: int, number: int) -> np.ndarray:
    """Return boxes inside, partly outside and outside of the image, some inverted, some with integer corners."""
    found = random.uniform(-0.4, 1.4, (count, number, 4)).astype(np.float32)
    ordered = random.random((count, number)) < 0.7
    found[ordered] = np.concatenate([np.sort(found[ordered][:, 0::2], 1), np.sort(found[ordered][:, 1::2], 1)], 1)[
        :, [0, 2, 1, 3]
    ]
    whole = random.random((count, number)) < 0.2
    found[whole] = np.round(found[whole])
    return found


def results() -> dict[str, np.ndarray]:
    """Return images, boxes, colours and results of each case, by its number."""
    found: dict[str, np.ndarray] = {"version": np.array(tf.__version__)}
    random = np.random.default_rng(5)
    for number, (shape, many, colors) in enumerate(CASES):
        images = found[f"images/{number}"] = random.random(shape).astype(np.float32)
        corners = found[f"boxes/{number}"] = boxes(random, shape[0], many)
        table = found[f"colors/{number}"] = random.random((colors, 4)).astype(np.float32)
        drawn = tf.image.draw_bounding_boxes(images, corners, table if colors else None)
        found[f"drawn/{number}"] = drawn.numpy()
    return found


if __name__ == "__main__":
    target = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "boxes.npz"
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, **results())
    print(target, target.stat().st_size)
