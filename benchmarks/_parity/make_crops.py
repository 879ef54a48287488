"""Store results of tf.image.crop_and_resize and psnr, for tests/image/test_crop_and_resize.py and test_measures.py.

    python benchmarks/_parity/make_crops.py       # in the environment of the benchmarks

In tests/data/tensorflow/crops.npz, image n is "image<n>", and its boxes, indices and results are "boxes<n>" and so on.
"sizes" and "methods" are in the order of n. "psnr" compares each image with the image shifted by one column.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

TARGET = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "crops.npz"
DTYPES = (np.uint8, np.float32, np.uint16, np.float64)
OUTSIDE = 7.5


def main() -> None:
    rng = np.random.default_rng(0)
    stored: dict[str, Any] = {}
    sizes, methods, ratios = [], [], []
    for n in range(24):
        height, width = (1, 1) if n == 23 else rng.integers(2, 16, 2)
        image = rng.integers(0, 256, (3, height, width, 1 + 2 * (n % 2))).astype(DTYPES[n % 4])
        boxes = rng.uniform(-0.3, 1.3, (5, 4)).astype(np.float32)
        if n % 3 == 0:
            boxes = np.round(boxes * 4) / 4
        boxes[0] = 0, 0, 1, 1
        indices = rng.integers(0, 3, 5)
        sizes.append([1, 1] if n == 22 else rng.integers(1, 12, 2).tolist())
        methods.append(("bilinear", "nearest")[n // 4 % 2])
        result = tf.image.crop_and_resize(image, boxes, indices, sizes[-1], methods[-1], OUTSIDE).numpy()
        stored |= {f"image{n}": image, f"boxes{n}": boxes, f"indices{n}": indices, f"result{n}": result}
        largest = float(np.iinfo(image.dtype).max) if image.dtype.kind == "u" else 255.0
        ratios.append([largest, *tf.image.psnr(image, np.roll(image, 1, 2), largest).numpy().tolist()])
    stored |= {"sizes": np.array(sizes), "methods": np.array(methods), "psnr": np.array(ratios), "outside": OUTSIDE}
    np.savez_compressed(TARGET, version=np.array(tf.__version__), **stored)
    print(f"{len(sizes)} images, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
