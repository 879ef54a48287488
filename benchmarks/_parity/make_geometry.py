"""Store results of TensorFlow's geometric image functions, for tests/image/geometry.

    python benchmarks/_parity/make_geometry.py       # in the environment of the benchmarks

The file is tests/data/tensorflow/geometry.npz. The inputs are stored under their names. "calls" is JSON: function,
input, arguments, options, shape and dtype of the result. "results" has the bytes of the results one after the other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

TARGET = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "geometry.npz"
MODES = ("constant", "reflect", "wrap", "nearest")

Call = tuple[str, str, list[Any], dict[str, Any]]


def inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "photo": rng.integers(0, 256, (11, 14, 3), dtype=np.uint8),
        "grey": rng.integers(0, 256, (7, 6, 1), dtype=np.uint8),
        "alpha": rng.integers(0, 256, (9, 5, 4), dtype=np.uint8),
        "float": rng.random((8, 10, 3), dtype=np.float32),
        "batch": rng.integers(0, 256, (3, 12, 12, 3), dtype=np.uint8),
        "floats": rng.random((2, 9, 7, 2), dtype=np.float32),
        "line": rng.integers(0, 256, (2, 1, 9, 3), dtype=np.uint8),
        "pixel": rng.integers(0, 256, (1, 1, 3), dtype=np.uint8),
        "int32": rng.integers(-1000, 1000, (6, 7, 2), dtype=np.int32),
        "float64": rng.random((6, 7, 2)),
        "float16": rng.random((6, 7, 2)).astype(np.float16),
        "cube": rng.integers(-9, 9, (3, 4, 5)).astype(np.int64),
        "vector": rng.random(6, dtype=np.float32),
    }


def projections(count: int, seed: int, *, tilted: bool) -> list[list[float]]:
    """Return random rotations, scales and shifts. With `tilted`, parallel lines meet."""
    rng = np.random.default_rng(seed)
    angle, scale = rng.uniform(-4, 4, count), rng.uniform(0.3, 3, count)
    way, tilt = rng.uniform(-9, 9, (2, count)), rng.uniform(-0.1, 0.1, (2, count)) * tilted
    cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
    numbers = np.stack([cosine, -sine, way[0], sine, cosine, way[1], *tilt], axis=1)
    return numbers.astype(np.float32).tolist()


def calls(images: dict[str, np.ndarray]) -> Iterator[Call]:
    """Yield functions with their arguments, by penstock's names."""
    for name in ("photo", "batch", "float"):
        yield from ((op, name, [], {}) for op in ("flip_left_right", "flip_up_down", "transpose"))
        yield from (("rot90", name, [k], {}) for k in (-1, 0, 1, 2, 3, 6))
        yield from (("central_crop", name, [share], {}) for share in (0.1, 0.33, 0.5, 0.7, 0.875, 1.0))
        yield "crop_to_bounding_box", name, [2, 1, 5, 6], {}
        yield "pad_to_bounding_box", name, [2, 1, 20, 17], {}
        yield from (
            ("resize_with_crop_or_pad", name, [h, w], {}) for h, w in product((1, 4, 8, 11, 12, 19), (5, 10, 13, 14))
        )
    paddings = {"photo": [[2, 3], [4, 0], [0, 2]], "cube": [[1, 2], [3, 0], [0, 4]], "vector": [[5, 5]]}
    for name, mode in product(paddings, ("CONSTANT", "REFLECT", "SYMMETRIC")):
        yield "pad", name, [paddings[name], mode], {}
    yield "pad", "photo", [paddings["photo"]], {"constant_values": 7}
    moved: list[list[list[float]]] = [
        [[1, 0, 0.5, 0, 1, -0.5, 0, 0]],  # halves, which are rounded away from zero
        [[1, 0, 0, 0, 1, 0, -0.5, 0]],  # x = 2 has no source pixel
        [[0.5, 0, -0.75, 0, 0.5, -2.25, 0, 0]],
        [[1e9, 0, 5, 0, 1, 3, 0, 0]],
    ]
    for number, name in enumerate(name for name in images if images[name].ndim > 2 and name != "cube"):
        count = len(images[name]) if images[name].ndim == 4 else 1
        tried = [projections(count, number, tilted=False), projections(count, number, tilted=True), *moved]
        for transforms, way, mode in product(tried, ("nearest", "bilinear"), MODES):
            if transforms[0][0] == 1e9 and mode == "wrap":
                continue  # larger than TensorFlow's integers
            how = {"interpolation": way, "fill_mode": mode, "fill_value": 0.0 if transforms is tried[0] else 100.0}
            size = [7, 13] if transforms is tried[1] else None
            yield "transform", name, [transforms], {**how, "output_shape": size}
    for name, way, mode in product(("photo", "float", "batch"), ("nearest", "bilinear"), MODES):
        angles: Any = [0.3, -2.0, 5.0] if name == "batch" else 0.3
        yield "rotate", name, [angles], {"interpolation": way, "fill_mode": mode}


def result(op: str, image: np.ndarray, arguments: list[Any], options: dict[str, Any]) -> np.ndarray:
    if op == "pad":
        return tf.pad(image, *arguments, **options).numpy()
    if op == "rotate":
        numbers = rotations(arguments[0], *image.shape[-3:-1])
        return result("transform", image, [numbers], {**options, "fill_value": 0.0})
    if op != "transform":
        return getattr(tf.image, op)(image, *arguments, **options).numpy()
    batch = image if image.ndim == 4 else image[None]
    found = tf.raw_ops.ImageProjectiveTransformV3(
        images=batch,
        transforms=np.array(arguments[0], np.float32),
        output_shape=options.get("output_shape") or batch.shape[1:3],
        interpolation=options["interpolation"].upper(),
        fill_mode=options["fill_mode"].upper(),
        fill_value=options["fill_value"],
    ).numpy()
    return found if image.ndim == 4 else found[0]


def rotations(angles: Any, height: int, width: int) -> np.ndarray:
    """Compute TensorFlow Addons' angles_to_projective_transforms with TensorFlow."""
    angles = tf.reshape(tf.constant(angles, tf.float32), [-1])
    cosine, sine = tf.math.cos(angles), tf.math.sin(angles)
    x = ((width - 1) - (cosine * (width - 1) - sine * (height - 1))) / 2.0
    y = ((height - 1) - (sine * (width - 1) + cosine * (height - 1))) / 2.0
    zero = tf.zeros_like(angles)
    return tf.stack([cosine, -sine, x, sine, cosine, y, zero, zero], axis=1).numpy()


def main() -> None:
    images = inputs()
    made = list(calls(images))
    results = [result(op, images[name], *how) for op, name, *how in made]
    described = [(*call, found.shape, found.dtype.name) for call, found in zip(made, results, strict=True)]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        TARGET,
        version=np.array(tf.__version__),
        calls=np.array(json.dumps(described)),
        results=np.frombuffer(b"".join(found.tobytes() for found in results), np.uint8),
        **images,
    )
    print(f"{len(made)} calls, {TARGET.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
