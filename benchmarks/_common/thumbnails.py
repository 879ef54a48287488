"""PNG files of 32×32 pixels, labelled, in TFRecord shards: reduced crops of the photographs, like CIFAR's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from _common.duel import data_folder, written_once
from _common.photographs import HEIGHT, WIDTH, singles

COUNT, SHARDS = 16_384, 8
SIDE, PART = 32, 128  # a crop of PART×PART pixels becomes SIDE×SIDE; about 2.3 KB each, as in CIFAR
_VERSION = 1  # raise it when the data changes


def thumbnails() -> list[str]:
    """Return the TFRecord files, in order. The first call writes them."""
    folder = written_once(data_folder() / f"thumbnails-{_VERSION}", _write)
    return sorted(map(str, folder.iterdir()))


def _write(folder: Path) -> None:
    import penstock as ps

    names = singles()
    print(f"writing {COUNT} thumbnails", flush=True)
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    images = [ps.io.decode_jpeg(Path(name).read_bytes()) for name in names[:: len(names) // 200]]
    for shard in range(SHARDS):
        with ps.io.TFRecordWriter(folder / f"thumbnails-{shard:05d}-of-{SHARDS:05d}.tfrecord") as writer:
            for number in range(shard, COUNT, SHARDS):
                png = ps.io.encode_png(_thumbnail(images[number % len(images)], rng))
                writer.write(ps.io.encode_example({"image": png, "label": number % 10}))


def _thumbnail(image: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return a random crop, reduced to the mean of each square."""
    top, left = rng.integers(HEIGHT - PART), rng.integers(WIDTH - PART)
    squares = image[top : top + PART, left : left + PART].reshape(SIDE, PART // SIDE, SIDE, PART // SIDE, 3)
    return squares.mean(axis=(1, 3)).round().astype(np.uint8)
