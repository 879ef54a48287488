"""Store results of TensorFlow's colour functions, for tests/image/colour: tests/data/tensorflow/colour.npz.

    python benchmarks/_parity/make_colour.py       # in the environment of the benchmarks

The inputs are stored under their names. "calls" is JSON: function, input, arguments, shape and dtype of the result.
"results" has the bytes of the results one after the other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

TARGET = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "colour.npz"

Call = tuple[str, str, list[float]]


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(11)
    steps = np.array([0, 1, 2, 63, 64, 127, 128, 129, 200, 253, 254, 255], np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(48, 36, 3)
    return {
        "cube": cube,
        "photo": rng.integers(0, 256, (23, 31, 3), dtype=np.uint8),
        "batch": rng.integers(0, 256, (3, 17, 9, 3), dtype=np.uint8),
        "float": rng.random((13, 19, 3), dtype=np.float32),
        "floats": rng.random((2, 7, 11, 3), dtype=np.float32),
        "wild": rng.normal(0, 2, (13, 17, 3)).astype(np.float32),
        "flat": np.full((5, 6, 3), 77, np.uint8),
        "pixel": rng.integers(0, 256, (1, 1, 3), dtype=np.uint8),
        "line": rng.integers(0, 256, (1, 9, 3), dtype=np.uint8),
        "levels": np.arange(256, dtype=np.uint8).reshape(16, 16, 1),
        "grey": rng.integers(0, 256, (7, 6, 1), dtype=np.uint8),
        "alpha": rng.integers(0, 256, (9, 5, 4), dtype=np.uint8),
        "int16": rng.integers(-1000, 32767, (6, 7, 3), dtype=np.int16),
        "uint16": rng.integers(0, 65536, (6, 7, 3), dtype=np.uint16),
        "float64": rng.random((6, 7, 3)),
    }


COLOURS = ("cube", "photo", "batch", "float", "floats", "wild", "flat", "pixel", "line", "int16", "uint16", "float64")
ALL = (*COLOURS, "levels", "grey", "alpha")
FLOATS = ("float", "floats", "wild", "float64")


def calls() -> Iterator[Call]:
    """Yield functions with their arguments, by penstock's names."""
    for name in ALL:
        yield from (("adjust_brightness", name, [delta]) for delta in (-0.6, -0.117, 0.0, 0.1, 0.5))
        yield from (("adjust_contrast", name, [factor]) for factor in (-0.5, 0.0, 0.3, 1.0, 1.77, 5.0))
    for name in COLOURS:
        yield from (("adjust_saturation", name, [factor]) for factor in (-1.0, 0.0, 0.3, 1.0, 1.77, 20.0))
        yield from (("adjust_hue", name, [delta]) for delta in (-1.0, -0.77, -0.1, 0.0, 0.03, 0.5, 1.0))
        yield "rgb_to_grayscale", name, []
    for name in ("levels", "cube", "float", "float64", "uint16"):
        for gamma, gain in ((0.0, 1.0), (0.4, 1.0), (1.0, 1.0), (2.2, 1.0), (2.2, 1.7), (3.0, 0.5)):
            yield "adjust_gamma", name, [gamma, gain]
    for name in ("photo", "batch", "floats", "wild", "flat", "pixel", "alpha", "int16", "float64"):
        yield "per_image_standardization", name, []
    for name in FLOATS:
        yield "rgb_to_hsv", name, []
        yield "hsv_to_rgb", name, []
    for name in ("levels", "grey"):
        yield "grayscale_to_rgb", name, []


def main() -> None:
    images = inputs()
    made: list[list[Any]] = []
    results: list[np.ndarray] = []
    for op, name, arguments in calls():
        result = getattr(tf.image, op)(tf.constant(images[name]), *arguments).numpy()
        made.append([op, name, arguments, result.shape, result.dtype.name])
        results.append(np.frombuffer(result.tobytes(), np.uint8))
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        TARGET, calls=json.dumps(made), results=np.concatenate(results), tensorflow=tf.__version__, **images
    )
    print(f"{TARGET}: {len(made)} calls, {TARGET.stat().st_size / 1024:.0f} KiB, TensorFlow {tf.__version__}")


if __name__ == "__main__":
    main()
