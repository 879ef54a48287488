"""Store results of TensorFlow's JPEG functions, for tests/image/test_jpeg_parity.py: tests/data/tensorflow/jpeg.npz.

    python benchmarks/_parity/make_jpeg.py       # in the environment of the benchmarks

Files and images are stored under their names. "calls" is JSON: function, input, arguments, options, shape and dtype of
the result. "results" has the bytes of the results one after the other.
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

TARGET = Path(__file__).parents[2] / "tests" / "data" / "tensorflow" / "jpeg.npz"

Call = tuple[str, str, list[Any], dict[str, Any]]


def photo(height: int, width: int, channels: int, seed: int) -> np.ndarray:
    """Return gradients, waves and noise, which compress like a photograph."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    waves = [128 + 80 * np.sin(x / (9 + 4 * c) + y / (13 + 3 * c) + c) for c in range(channels)]
    return np.clip(np.stack(waves, axis=-1) + rng.normal(0, 9, (height, width, channels)), 0, 255).astype(np.uint8)


def images() -> dict[str, np.ndarray]:
    colour, grey = photo(37, 45, 3, 1), photo(21, 18, 1, 2)
    return {
        "colour": colour,
        "grey": grey,
        "float": (colour / np.float32(255)).astype(np.float32),
        "uint16": (colour.astype(np.uint16) << 8),
    }


def files() -> dict[str, bytes]:
    colour, grey = photo(53, 70, 3, 3), photo(33, 41, 1, 4)
    made = {
        "plain": tf.io.encode_jpeg(colour, quality=90),
        "coarse": tf.io.encode_jpeg(colour, quality=20),
        "full_colour": tf.io.encode_jpeg(colour, quality=95, chroma_downsampling=False),
        "optimised": tf.io.encode_jpeg(colour, quality=80, optimize_size=True),
        "progressive": tf.io.encode_jpeg(colour, quality=80, progressive=True),
        "one_channel": tf.io.encode_jpeg(grey, quality=85),
        "small": tf.io.encode_jpeg(photo(7, 5, 3, 5), quality=85),
    }
    return {name: bytes(file.numpy()) for name, file in made.items()}


def calls(names: list[str]) -> Iterator[Call]:
    """Yield functions with their arguments, by penstock's names."""
    for name in names:
        for channels in (0, 1, 3):
            yield "decode_jpeg", name, [], {"channels": channels}
        yield "decode_jpeg", name, [], {"channels": 3, "fancy_upscaling": False}
        yield "decode_jpeg", name, [], {"channels": 3, "dct_method": "INTEGER_ACCURATE"}
    for name in ("plain", "full_colour", "progressive"):
        for window in (
            [0, 0, 53, 70],
            [5, 7, 20, 31],
            [16, 32, 17, 16],
            [52, 69, 1, 1],
            [0, 0, 1, 70],
            [33, 3, 20, 67],
        ):
            yield "decode_and_crop_jpeg", name, [window], {"channels": 3}
        yield "decode_and_crop_jpeg", name, [[3, 4, 10, 20]], {"channels": 1}
        yield "decode_and_crop_jpeg", name, [[3, 4, 10, 20]], {"channels": 3, "ratio": 2}
    for name in images():
        for quality in (0, 10, 50, 75, 95, 100):
            yield "adjust_jpeg_quality", name, [quality], {}
        yield "adjust_jpeg_quality", name, [60], {"dct_method": "INTEGER_ACCURATE"}


def call(function: str, value: Any, args: list[Any], options: dict[str, Any]) -> np.ndarray:
    where = tf.image if function == "adjust_jpeg_quality" else tf.io
    return getattr(where, function)(value, *args, **options).numpy()


def main() -> None:
    given: dict[str, Any] = {**images(), **files()}
    listed, results = [], []
    for function, name, args, options in calls(list(files())):
        result = call(function, given[name], args, options)
        listed.append([function, name, args, options, list(result.shape), str(result.dtype)])
        results.append(result.tobytes())
    stored = {k: np.frombuffer(v, np.uint8) if isinstance(v, bytes) else v for k, v in given.items()}
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        TARGET,
        version=np.array(tf.__version__),
        calls=np.array(json.dumps(listed)),
        results=np.frombuffer(b"".join(results), np.uint8),
        **stored,
    )
    print(f"{len(listed)} calls, {TARGET.stat().st_size} bytes")


if __name__ == "__main__":
    main()
