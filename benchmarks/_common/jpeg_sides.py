"""The sides of `jpeg.py` and `jpeg_uint8.py`: one list for both kinds of output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from _common import dali_pipelines, jpeg_pipelines, opencv_images
from _common.duel import Pass, Side, checked
from _common.opencv_images import WORKERS
from _common.photographs import COUNT


def sides(*, floats: bool) -> list[Side]:
    """Return all sides, penstock first."""

    def tf_data() -> Pass:
        return _counted(jpeg_pipelines.tf_data(floats=floats))

    def tf_data_records_shuffled() -> Pass:
        return _counted(jpeg_pipelines.tf_data(floats=floats, records_shuffled=True))

    def whole(build: Callable[..., Pass]) -> Callable[[], Pass]:
        return lambda: checked(build(floats=floats), COUNT)

    return [
        Side("penstock", lambda: _counted(jpeg_pipelines.penstock(floats=floats))),
        Side("tf.data", tf_data, needs="tensorflow", goal=1.5, hoped=1.7),
        Side("decode alone", lambda: checked(opencv_images.decode_alone(), COUNT), goal=0.8, hoped=0.9),
        Side("tf.data, records shuffled", tf_data_records_shuffled, needs="tensorflow"),
        Side("DALI on the CPU", whole(dali_pipelines.jpeg), needs="nvidia.dali"),
        Side(f"torch, {WORKERS} workers", whole(opencv_images.torch), needs="torch"),
        Side(f"grain, {WORKERS} threads", whole(opencv_images.grain), needs="grain"),
        Side(f"SPDL, {WORKERS} threads", whole(opencv_images.spdl), needs="spdl"),
    ]


def _counted(ds: Any) -> Pass:
    return checked(lambda: sum(len(images) for images, _ in ds), COUNT)
