"""Single files decoded and resized with OpenCV, for loaders that bring no codecs of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from _common.duel import Pass
from _common.jpeg_pipelines import BATCH, SIZE
from _common.photographs import singles

WORKERS = os.cpu_count() or 1


class Pictures:
    """Pictures and labels by index, as torch and grain want them; `floats` are from 0 to 1, otherwise bytes come."""

    def __init__(self, names: list[str], *, floats: bool) -> None:
        self._names = names
        self._floats = floats

    def __len__(self) -> int:
        return len(self._names)

    def __getitem__(self, index: Any) -> Any:
        return picture(self._names[index], floats=self._floats)


def picture(name: str, *, floats: bool) -> Any:
    """The picture of one file, and its label."""
    import cv2
    import numpy as np

    cv2.setNumThreads(0)
    image = cv2.imdecode(np.fromfile(name, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    image = cv2.resize(image, SIZE, interpolation=cv2.INTER_LINEAR)
    label = int(Path(name).stem[-2:])
    return (image.astype(np.float32) / np.float32(255), label) if floats else (image, label)


def torch(*, floats: bool) -> Pass:
    """A DataLoader with worker processes."""
    from torch.utils.data import DataLoader

    pictures = Pictures(singles(), floats=floats)
    loader = DataLoader(pictures, BATCH, shuffle=True, num_workers=WORKERS, persistent_workers=True)
    return lambda: sum(len(images) for images, _ in loader)


def grain(*, floats: bool) -> Pass:
    """A MapDataset read by threads."""
    import grain.python as pygrain

    ds = pygrain.MapDataset.source(Pictures(singles(), floats=floats)).shuffle(seed=0).batch(BATCH)
    options = pygrain.ReadOptions(num_threads=WORKERS, prefetch_buffer_size=16)
    return lambda: sum(len(images) for images, _ in ds.to_iter_dataset(options))


def spdl(*, floats: bool) -> Pass:
    """A Pipeline whose stages run in threads; a new one per pass, as SPDL's do not begin again."""
    import numpy as np
    from spdl.pipeline import PipelineBuilder

    names = singles()
    rng = np.random.default_rng(0)

    def stacked(rows: list[Any]) -> Any:
        return np.stack([image for image, _ in rows]), np.array([label for _, label in rows])

    def one_pass() -> int:
        builder = PipelineBuilder().add_source([names[i] for i in rng.permutation(len(names))])
        builder = builder.pipe(lambda name: picture(name, floats=floats), concurrency=WORKERS)
        pipeline = builder.aggregate(BATCH).pipe(stacked).add_sink(3).build(num_threads=WORKERS)
        with pipeline.auto_stop():
            return sum(len(images) for images, _ in pipeline.get_iterator())

    return one_pass


def decode_alone() -> Pass:
    """libjpeg-turbo as tf.data calls it, in threads, into memory that each thread keeps: the floor of every loader."""
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

    shares = [files[i : i + BATCH] for i in range(0, len(files), BATCH)]
    return lambda: sum(threads.map(decode, shares))
