"""Write TensorFlow's results of resizing seeded images to tests/data/tensorflow/resize.npz, for the tests.

    .venv-bench/bin/python benchmarks/_parity/make_resize.py

The names of the arrays describe the calls; the test parses them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tensorflow as tf

METHODS = ["bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]
SIZES = [
    ((17, 23, 3), (8, 13)),  # smaller, by an uneven factor
    ((9, 8, 4), (14, 11)),  # larger
    ((12, 40, 1), (12, 7)),  # one axis does not change
    ((6, 6, 3), (2, 3)),  # whole factors
    ((1, 5, 2), (3, 1)),  # one pixel
    ((17, 3, 5), (4, 9)),  # smaller and larger
]
PADDED = [((20, 31, 3), (16, 16)), ((31, 20, 1), (40, 24)), ((7, 50, 3), (9, 33)), ((2, 9, 12, 3), (10, 11))]
KINDS = ["uint8", "float32", "int16", "float64"]


def image(shape: tuple[int, ...], kind: str, seed: int) -> np.ndarray:
    """Return values over the range of uint8, with negative ones for kinds that have them."""
    values = np.random.default_rng(seed).uniform(0 if kind == "uint8" else -255, 255, shape)
    return values.astype(kind)


def results() -> dict[str, np.ndarray]:
    """Return each image under "in/number", and each result under "out/number/arguments"."""
    found: dict[str, np.ndarray] = {"version": np.array(tf.__version__)}
    for number, (shape, size) in enumerate(SIZES):
        kinds = KINDS if number == 0 else KINDS[:2]
        for kind in kinds:
            name = f"{number}{kind}"
            pixels = found[f"in/{name}"] = image(shape, kind, number)
            for method in METHODS:
                for antialias in (False, True):
                    result = tf.image.resize(pixels, size, method, antialias=antialias).numpy()
                    found[f"resize/{name}/{size[0]}x{size[1]}/{method}/{int(antialias)}/0"] = result
        if shape[0] == 1:
            continue  # TensorFlow refuses to preserve the aspect ratio if the result has less than a pixel
        kept = tf.image.resize(found[f"in/{number}uint8"], size, preserve_aspect_ratio=True).numpy()
        found[f"resize/{number}uint8/{size[0]}x{size[1]}/bilinear/0/1"] = kept
    batch = found["in/batchuint8"] = image((3, 10, 14, 3), "uint8", 99)
    for method in METHODS:
        found[f"resize/batchuint8/7x19/{method}/1/0"] = tf.image.resize(batch, (7, 19), method, antialias=True).numpy()
    for number, (shape, size) in enumerate(PADDED):
        pixels = found[f"in/pad{number}"] = image(shape, "uint8", 50 + number)
        for method, antialias in (("bilinear", False), ("bilinear", True), ("nearest", False), ("bicubic", True)):
            result = tf.image.resize_with_pad(pixels, *size, method, antialias).numpy()
            found[f"resize_with_pad/pad{number}/{size[0]}x{size[1]}/{method}/{int(antialias)}"] = result
    return found


if __name__ == "__main__":
    target = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "resize.npz"
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target, **results())
    print(target, target.stat().st_size)
