"""Each random function's errors carry its own name, whatever is wrong and however deep that is found."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError

IMAGE = np.full((8, 9, 3), 100, np.uint8)
JPEG = ps.io.encode_jpeg(IMAGE)
GOOD: dict[str, Any] = {
    "image": IMAGE,
    "images": IMAGE,
    "value": IMAGE,
    "contents": JPEG,
    "image_size": (8, 9, 3),
    "bounding_boxes": [[[0.1, 0.1, 0.9, 0.9]]],
    "seed": (1, 2),
    "size": (4, 4, 3),
    "mask_size": 2,
    "max_angle": 0.1,
    "max_delta": 0.1,
    "lower": 0.5,
    "upper": 1.5,
    "min_jpeg_quality": 50,
    "max_jpeg_quality": 90,
    "alpha": 1.0,
    "labels": np.array([[0.0, 1.0]] * 2, np.float32),
}
WRONG: list[Any] = [None, "no such thing", -1, -1.5, np.nan, 1e40, (1, 2), (1, 2, 3, 4, 5), [[1], 2], np.zeros(3),
                    object(), IMAGE[0], IMAGE[:0], IMAGE[None, :, :0], IMAGE[..., :2], IMAGE > 0]  # fmt: skip
NAMES = [name for name in sorted(vars(ps.image)) if name.startswith(("random_", "stateless_"))]
NAMES += ["sample_distorted_bounding_box", "mixup", "cutmix", "rand_augment", "trivial_augment"]


def arguments(function: Any) -> dict[str, Any]:
    """Something good for each argument without a default; parts and mixtures have shapes of their own."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    found = {key: GOOD[key] for key, known in parameters.items() if known.default is known.empty}
    if "resized_crop" in name:
        found["size"] = (4, 4)
    if "mixup" in name or "cutmix" in name:
        found["images"] = np.stack([IMAGE, IMAGE])
    return found


def complaints(function: Any) -> Iterator[tuple[str, Any, str]]:
    """Which argument, what was given for it, what was said."""
    good = arguments(function)
    function(**good)
    free = {"antialias", "per_image"} | ({"seed"} - good.keys())  # any truth; any integer, else a TypeError
    for key in inspect.signature(function).parameters.keys() - free:
        for wrong in WRONG:
            try:
                function(**(good | {key: wrong}))
            except (InvalidArgumentError, InvalidTypeError) as error:
                yield key, wrong, str(error)


@pytest.mark.parametrize("name", NAMES)
def test_its_errors_name_it(name: str) -> None:
    said = list(complaints(getattr(ps.image, name)))
    others = [one for one in said if not one[2].startswith((f"{name}:", f"{name} "))]
    assert others == []
    assert {key for key, _, _ in said} >= set(arguments(getattr(ps.image, name)))  # each of them can be wrong
