"""Single files decoded and resized with OpenCV, for loaders without codecs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from _common.duel import Pass
from _common.jpeg_pipelines import BATCH, SIZE
from _common.photographs import singles

WORKERS = os.cpu_count() or 1


class ImageFiles:
    """Images and labels by index, for torch and grain. With `floats` the values are from 0 to 1, otherwise bytes."""

    def __init__(self, names: list[str], *, floats: bool) -> None:
        self._names = names
        self._floats = floats

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: Any) -> Any:
        return image_of(self._names[index], floats=self._floats)


def image_of(name: str, *, floats: bool) -> Any:
    """Return the image of one file, and its label."""
    import cv2
    import numpy as np

    cv2.setNumThreads(0)
    image = cv2.imdecode(np.fromfile(name, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    image = cv2.resize(image, SIZE, interpolation=cv2.INTER_LINEAR)
    label = int(Path(name).stem[-2:])
    return (image.astype(np.float32) / np.float32(255), label) if floats else (image, label)


def torch(*, floats: bool) -> Pass:
    """Build a DataLoader with worker processes."""
    from torch.utils.data import DataLoader

    images = ImageFiles(singles(), floats=floats)
    loader = DataLoader(images, BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)
    return lambda: sum(len(images) for images, _ in loader)


def grain(*, floats: bool) -> Pass:
    """Build a MapDataset that threads read."""
    import grain.python as pygrain

    ds = pygrain.MapDataset.source(ImageFiles(singles(), floats=floats)).shuffle(seed=0).batch(BATCH)
    options = pygrain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=16)
    return lambda: sum(len(images) for images, _ in ds.to_iter_dataset(options))


def spdl(*, floats: bool) -> Pass:
    """Build a Pipeline whose stages run in threads. Each iteration needs a new one, because SPDL's cannot restart."""
    import numpy as np
    from spdl.pipeline import PipelineBuilder

    names = singles()
    rng = np.random.default_rng(0)

    def stacked(rows: list[Any]) -> Any:
        return np.stack([image for image, _ in rows]), np.array([label for _, label in rows])

    def one_pass() -> int:
        builder = PipelineBuilder().add_source([names[i] for i in rng.permutation(len(names))])
        builder = builder.pipe(lambda name: image_of(name, floats=floats), concurrency=WORKERS)
        pipeline = builder.aggregate(BATCH).pipe(stacked).add_sink(3).build(num_threads=WORKERS)
        with pipeline.auto_stop():
            return sum(len(images) for images, _ in pipeline.get_iterator())

    return one_pass


def decode_alone() -> Pass:
    """Decode with libjpeg-turbo as tf.data calls it, in threads, into memory of each thread: the upper limit."""
    import threading
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    import simplejpeg

    from _common.photographs import HEIGHT, WIDTH

    files = [Path(name).read_bytes() for name in singles()]
    threads, scratch = ThreadPoolExecutor(WORKERS), threading.local()

    def decode(some: list[bytes]) -> int:
        if not hasattr(scratch, "pixels"):
            scratch.pixels = np.empty(HEIGHT * WIDTH * 3, np.uint8)
        for contents in some:
            simplejpeg.decode_jpeg(contents, "RGB", fastdct=True, buffer=scratch.pixels)
        return len(some)

    chunks = [files[i : i + BATCH] for i in range(0, len(files), BATCH)]
    return lambda: sum(threads.map(decode, chunks))
