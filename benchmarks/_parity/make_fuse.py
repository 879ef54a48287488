"""Write TensorFlow's results of chains of image operations on some JPEGs to tests/data/tensorflow/fuse.npz.

python benchmarks/_parity/make_fuse.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

PLACE = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "fuse.npz"
SIZES = [(96, 128), (75, 100), (150, 61), (33, 47)]
ORDERS = ["bshc", "cbhs", "hcsb", "schc"]


def waves_image(height: int, width: int, rng: np.random.Generator) -> Any:
    """Return waves with a sharp edge and noise."""
    y, x = np.mgrid[:height, :width] / 20
    waves = [128 + 90 * np.sin(x * rng.uniform(0.5, 2) + y * rng.uniform(0.5, 2) + rng.uniform(0, 6)) for _ in range(3)]
    image = np.stack(waves, axis=-1) + 80 * (x > y)[..., None] + rng.normal(0, 8, (height, width, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def main() -> None:
    rng = np.random.default_rng(0)
    made: dict[str, Any] = {"tensorflow": tf.__version__}
    for number, size in enumerate(SIZES):
        jpeg = tf.io.encode_jpeg(waves_image(*size, rng), quality=92)
        made[f"jpeg_{number}"] = np.frombuffer(jpeg.numpy(), np.uint8)
        for order in ORDERS:
            image = tf.image.flip_left_right(tf.io.decode_jpeg(jpeg, channels=3))
            args = []
            for letter in order:
                low, high = {"b": (-0.1, 0.1), "h": (-0.15, 0.15)}.get(letter, (0.75, 1.5))
                args.append(np.float32(rng.uniform(low, high)))
                image = OPERATIONS[letter](image, args[-1])
            image = tf.image.flip_up_down(tf.image.resize(image, (40, 32))) / 255.0
            made[f"args_{number}_{order}"] = np.array(args)
            made[f"result_{number}_{order}"] = image.numpy()
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(PLACE, **made)
    print(f"{PLACE.name}: {PLACE.stat().st_size} bytes, TensorFlow {tf.__version__}")


OPERATIONS = {
    "b": tf.image.adjust_brightness,
    "s": tf.image.adjust_saturation,
    "h": tf.image.adjust_hue,
    "c": tf.image.adjust_contrast,
}

if __name__ == "__main__":
    main()
