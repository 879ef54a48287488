"""The image work of the guides in plain penstock: phrasings of one result, and the best of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import penstock as ps
from _common import photographs
from penstock import AUTOTUNE

FEATURES = {"image": ps.io.FixedLenFeature((), bytes), "label": ps.io.FixedLenFeature((), np.int64)}
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
STD = np.array([0.229, 0.224, 0.225], np.float32)
SIZE = (224, 224)


def read_record(record: bytes) -> Any:
    """Parse a record and decode its image."""
    row = ps.io.parse_single_example(record, FEATURES)
    return ps.image.decode_jpeg(row["image"], channels=3), row["label"]


def _from_records(function: Callable[[Any], Any]) -> Callable[[], tuple[Any, int]]:
    def build() -> tuple[Any, int]:
        ds = ps.TFRecordDataset(photographs.shards()).map(read_record, num_parallel_calls=AUTOTUNE)
        ds = ds.map(lambda image, label: (function(image), label), num_parallel_calls=AUTOTUNE)
        return ds.batch(32).prefetch(AUTOTUNE), photographs.COUNT

    return build


def resize_divide(image: Any) -> Any:
    """Resize, then scale: the best phrasing."""
    return ps.image.resize(image, SIZE) / 255.0


def cast_first(image: Any) -> Any:
    """Cast before the resize."""
    return ps.image.resize(image.astype(np.float32), SIZE) / 255.0


def cast_first_by_name(image: Any) -> Any:
    """Cast by `ps.image.cast` before the resize."""
    return ps.image.resize(ps.image.cast(image, np.float32), SIZE) / 255.0


def in_place(image: Any) -> Any:
    """Scale in place."""
    image = ps.image.resize(image, SIZE)
    image /= 255.0
    return image


def scale_first(image: Any) -> Any:
    """Scale before the resize."""
    return ps.image.resize(image / np.float32(255), SIZE)


def convert_first(image: Any) -> Any:
    """Convert before the resize."""
    return ps.image.resize(ps.image.convert_image_dtype(image, np.float32), SIZE)


def normalise(image: Any) -> Any:
    """Resize and normalise by one operation: the best phrasing."""
    return ps.image.normalize(ps.image.resize(image, SIZE) / 255.0, MEAN, STD)


def normalise_by_hand(image: Any) -> Any:
    """Resize, then the mean and standard deviation of each channel by operators."""
    return (ps.image.resize(image, SIZE) / 255.0 - MEAN) / STD


def normalise_in_place(image: Any) -> Any:
    """Resize, then in-place operators."""
    image = ps.image.resize(image, SIZE)
    image /= 255.0
    image -= MEAN
    image /= STD
    return image


BEST = {
    "astype, resize, / 255": "resize, / 255",
    "cast, resize, / 255": "resize, / 255",
    "resize, /= 255": "resize, / 255",
    "/ 255, resize": "resize, / 255",
    "convert_image_dtype, resize": "resize, / 255",
    "resize, (x / 255 - mean) / std": "resize, / 255, normalize",
    "resize, /= 255, -= mean, /= std": "resize, / 255, normalize",
}
PROGRAMS = {
    "resize, / 255": _from_records(resize_divide),
    "astype, resize, / 255": _from_records(cast_first),
    "cast, resize, / 255": _from_records(cast_first_by_name),
    "resize, /= 255": _from_records(in_place),
    "/ 255, resize": _from_records(scale_first),
    "convert_image_dtype, resize": _from_records(convert_first),
    "resize, / 255, normalize": _from_records(normalise),
    "resize, (x / 255 - mean) / std": _from_records(normalise_by_hand),
    "resize, /= 255, -= mean, /= std": _from_records(normalise_in_place),
}
