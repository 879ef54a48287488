"""How much faster are large photographs made small when it may be approximate?

    1600×1200 JPEGs of some 420 KB in memory → decode, resize 224×224 float, / 255 → batch 32

The same plan with `experimental_optimization.approximate_image = True` and without: the first decodes a picture at a
quarter of its size. Goal: ≥ 2 times the exact way. That is our own decoder, too; beside it stand exact ways with
libjpeg-turbo: OpenCV's in a parallel map, and tf.data's.

    python benchmarks/photographs.py [--pairs N]
"""

from __future__ import annotations

from typing import Any

from _common.duel import Pass, Side, duel
from _common.photographs import large

SIZE, BATCH, PASSES = (224, 224), 32, 4


def _files() -> list[bytes]:
    return [path.read_bytes() for path in sorted(large().iterdir())]


def _data(*, approximate: bool) -> Any:
    import numpy as np

    import penstock as ps

    def prepare(contents: bytes) -> Any:
        return ps.image.resize(ps.image.decode_jpeg(contents, channels=3), SIZE) / np.float32(255)

    options = ps.Options()
    options.experimental_optimization.approximate_image = approximate
    ds = ps.Dataset.from_tensor_slices(_files() * PASSES).map(prepare, num_parallel_calls=ps.AUTOTUNE)
    return ds.batch(BATCH).prefetch(ps.AUTOTUNE).with_options(options)


def approximate() -> Pass:
    ds = _data(approximate=True)
    return lambda: sum(len(images) for images in ds)


def exact() -> Pass:
    ds = _data(approximate=False)
    return lambda: sum(len(images) for images in ds)


def opencv() -> Pass:
    import cv2
    import numpy as np

    import penstock as ps

    def prepare(contents: bytes) -> Any:
        picture = cv2.imdecode(np.frombuffer(contents, np.uint8), cv2.IMREAD_COLOR)
        small = cv2.resize(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB), SIZE, interpolation=cv2.INTER_LINEAR)
        return small.astype(np.float32) / np.float32(255)

    ds = ps.Dataset.from_tensor_slices(_files() * PASSES).map(prepare, num_parallel_calls=ps.AUTOTUNE)
    ds = ds.batch(BATCH).prefetch(ps.AUTOTUNE)
    return lambda: sum(len(images) for images in ds)


def tf_data() -> Pass:
    import tensorflow as tf

    def prepare(contents: Any) -> Any:
        return tf.image.resize(tf.image.decode_jpeg(contents, channels=3), SIZE) / 255.0

    ds = tf.data.Dataset.from_tensor_slices(_files() * PASSES).map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    return lambda: sum(len(images) for images in ds)


if __name__ == "__main__":
    duel(
        "1600×1200 JPEG to 224×224, approximately",
        Side("penstock", approximate),
        Side("penstock, exact", exact, goal=2.0),
        Side("OpenCV, exact", opencv, needs="cv2"),
        Side("tf.data, exact", tf_data, needs="tensorflow"),
        prepare=large,
    )
