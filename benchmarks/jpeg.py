"""How fast do photographs become batches?

    500×375 JPEGs in TFRecords, 4 files in turn → parse, decode, resize 224×224 float, / 255 → shuffle 1024 → batch 32

The same plan on both sides, everything AUTOTUNE. penstock decodes into the batch's memory and shuffles records instead
of decoded pictures, which gives the same order. The second tf.data row does that by hand, which takes knowing about it.
torch and grain read the same pictures from single files, as their users keep them, decode them with OpenCV and shuffle
names. Goal: ≥ 1.2 times tf.data, hoped for 1.6. On a noisy machine compare the CPU columns first.

    python benchmarks/jpeg.py [--pairs N]
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from _common import jpeg_pipelines
from _common.duel import Pass, Side, duel
from _common.jpeg_pipelines import BATCH, SIZE
from _common.photographs import COUNT, photographs, singles

WORKERS = 2


def penstock() -> Pass:
    ds = jpeg_pipelines.penstock()
    return lambda: _checked(sum(len(images) for images, _ in ds))


def tf_data() -> Pass:
    ds = jpeg_pipelines.tf_data()
    return lambda: _checked(sum(len(images) for images, _ in ds))


def tf_data_records_shuffled() -> Pass:
    ds = jpeg_pipelines.tf_data(records_shuffled=True)
    return lambda: _checked(sum(len(images) for images, _ in ds))


def torch() -> Pass:
    from torch.utils.data import DataLoader

    loader = DataLoader(_Files(singles()), BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)
    return lambda: _checked(sum(len(images) for images, _ in loader))


def grain() -> Pass:
    import grain.python as pygrain

    ds = pygrain.MapDataset.source(_Files(singles())).shuffle(seed=0).batch(BATCH)
    options = pygrain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=16)
    return lambda: _checked(sum(len(images) for images, _ in ds.to_iter_dataset(options)))


class _Files:
    """Pictures and labels by index, as torch and grain want them."""

    def __init__(self, names: list[str]) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: Any) -> Any:
        import cv2
        import numpy as np

        cv2.setNumThreads(0)
        name = self._names[index]
        image = cv2.imdecode(np.fromfile(name, np.uint8), cv2.IMREAD_COLOR_RGB)
        assert image is not None
        image = cv2.resize(image, SIZE, interpolation=cv2.INTER_LINEAR).astype(np.float32)
        return image / np.float32(255), int(Path(name).stem[-2:])


def _checked(count: int) -> int:
    assert count == COUNT, f"{count} of {COUNT} pictures"
    return count


if __name__ == "__main__":
    duel(
        "JPEG to batches of 32",
        Side("penstock", penstock),
        Side("tf.data", tf_data, needs="tensorflow", goal=1.2, hoped=1.6),
        Side("tf.data, records shuffled", tf_data_records_shuffled, needs="tensorflow"),
        Side(f"torch, {WORKERS} workers", torch, needs="torch"),
        Side(f"grain, {WORKERS} threads", grain, needs="grain"),
        prepare=photographs,
    )
