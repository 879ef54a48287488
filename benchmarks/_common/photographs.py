"""JPEG files of 500×375 pixels that compress like photographs, labelled, in TFRecord shards and as single files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from _common.duel import data_folder, written_once

COUNT, SHARDS = 1600, 16
HEIGHT, WIDTH = 375, 500
TIMES = 1  # number of times that each file is listed: more cores need longer iterations
QUALITY = 85  # about 45 KB per image with the noise of `_snapshot`
_SCENES = 24
_VERSION = 1  # raise it when the data changes


def photographs() -> Path:
    """Return the folder of the data: shards and `single/00000-LABEL.jpg`. The first call writes it (ten seconds)."""
    return written_once(data_folder() / f"photographs-{_VERSION}", _write)


def shards() -> list[str]:
    """Return the TFRecord files, in order."""
    return sorted(map(str, photographs().glob("photographs-*.tfrecord"))) * TIMES


def singles() -> list[str]:
    """Return the single files of the same images, in order."""
    return sorted(map(str, (photographs() / "single").iterdir())) * TIMES


def _write(folder: Path) -> None:
    import penstock as ps

    print(f"writing {COUNT} photographs", flush=True)
    (folder / "single").mkdir(parents=True)
    rng = np.random.default_rng(0)
    scenes = [_scene(rng) for _ in range(_SCENES)]
    per_shard = COUNT // SHARDS
    for shard in range(SHARDS):
        with ps.io.TFRecordWriter(folder / f"photographs-{shard:05d}-of-{SHARDS:05d}.tfrecord") as writer:
            for number in range(shard * per_shard, (shard + 1) * per_shard):
                label = number % _SCENES
                jpeg = ps.io.encode_jpeg(_snapshot(scenes[label], rng), quality=QUALITY)
                writer.write(ps.io.encode_example({"image": jpeg, "label": label}))
                (folder / "single" / f"{number:05d}-{label:02d}.jpg").write_bytes(jpeg)


def _scene(rng: np.random.Generator) -> NDArray[np.float32]:
    """Compute an image of twice the size: gradients of light, stripes as texture, discs with hard edges."""
    y, x = np.mgrid[: 2 * HEIGHT, : 2 * WIDTH].astype(np.float32) / WIDTH
    scene = np.zeros((2 * HEIGHT, 2 * WIDTH, 3), np.float32)
    for channel in range(3):
        for _ in range(6):
            wave, turn = rng.uniform(1, 60), rng.uniform(0, np.pi)
            stripes = np.sin(wave * (x * np.cos(turn) + y * np.sin(turn)) + rng.uniform(0, 6))
            scene[..., channel] += rng.uniform(5, 30) * stripes
    for _ in range(60):
        inside = (x - rng.uniform(0, 2)) ** 2 + (y - rng.uniform(0, 1.5)) ** 2 < rng.uniform(0.01, 0.15) ** 2
        scene[inside] += rng.uniform(-70, 70, 3).astype(np.float32)
    return scene + 128


def _snapshot(scene: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Cut an image out of the scene, with random brightness and sensor noise."""
    top, left = rng.integers(HEIGHT), rng.integers(WIDTH)
    part = scene[top : top + HEIGHT, left : left + WIDTH] * rng.uniform(0.7, 1.1)
    grain = rng.standard_normal((HEIGHT, WIDTH, 1), np.float32) * rng.uniform(4, 9)
    return np.clip(part + grain, 0, 255).astype(np.uint8)
