"""The pipelines of photographs in DALI, on the CPU: TFRecords by their index, shuffled records, batches of 32."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _common.duel import Pass
from _common.jpeg_pipelines import BATCH, BUFFER, SIZE
from _common.photographs import COUNT, photographs, shards


def jpeg(*, floats: bool) -> Pass:
    """Decode and resize. With `floats` the values are from 0 to 1, otherwise they are bytes."""
    return _passes(lambda encoded: _resized(_decoded(encoded), floats=floats))


def augmented() -> Pass:
    """Flip, then change brightness, saturation, hue and contrast at full size with DALI's one operator for colours."""

    def images(encoded: Any) -> Any:
        from nvidia.dali import fn

        image = fn.flip(_decoded(encoded), horizontal=fn.random.coin_flip(), vertical=fn.random.coin_flip())
        image = fn.color_twist(
            image,
            brightness=fn.random.uniform(range=(0.9, 1.1)),
            saturation=fn.random.uniform(range=(0.75, 1.5)),
            hue=fn.random.uniform(range=(-54.0, 54.0)),
            contrast=fn.random.uniform(range=(0.75, 1.5)),
        )
        return _resized(image, floats=True)

    return _passes(images)


def _decoded(encoded: Any) -> Any:
    from nvidia.dali import fn

    return fn.decoders.image(encoded, device="cpu", use_fast_idct=True)  # the inverse DCT that tf.data uses


def _resized(image: Any, *, floats: bool) -> Any:
    from nvidia.dali import fn, types

    image = fn.resize(image, size=SIZE, interp_type=types.INTERP_LINEAR, antialias=False)
    if not floats:
        return image
    return fn.crop_mirror_normalize(image, dtype=types.FLOAT, mean=[0.0] * 3, std=[255.0] * 3, output_layout="HWC")


def _passes(images: Callable[[Any], Any]) -> Pass:
    from nvidia.dali import fn, pipeline_def, tfrecord

    files = shards()
    indices = [_index(file) for file in files]

    @pipeline_def(batch_size=BATCH, num_threads=os.cpu_count(), device_id=None)
    def define() -> Any:
        features = {
            "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
            "label": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
        }
        rows = fn.readers.tfrecord(
            path=files, index_path=indices, features=features, random_shuffle=True, initial_fill=BUFFER
        )
        return images(rows["image"]), rows["label"]

    pipeline = define()
    pipeline.build()
    assert COUNT % BATCH == 0, "an iteration has whole batches only"

    def one_pass() -> int:
        count = 0
        for _ in range(COUNT // BATCH):
            images, _ = pipeline.run()
            count += images.as_tensor().shape()[0]
        return count

    return one_pass


def _index(file: str) -> str:
    """Write a file with offset and size of each record, like tfrecord2idx, and return its name."""
    index = photographs() / "dali" / f"{Path(file).name}.idx"
    if not index.exists():
        index.parent.mkdir(exist_ok=True)
        contents, at, lines = Path(file).read_bytes(), 0, []
        while at < len(contents):
            size = 16 + struct.unpack_from("<Q", contents, at)[0]
            lines.append(f"{at} {size}\n")
            at += size
        index.write_text("".join(lines))
    return str(index)
