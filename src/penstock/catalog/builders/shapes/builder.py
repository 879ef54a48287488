"""Shapes: drawn labelled images that resemble photographs. The data set needs no network."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from penstock import image
from penstock.catalog import features
from penstock.catalog.builder import Builder, Each, Examples
from penstock.catalog.builders.shapes.outline import LABELS
from penstock.catalog.builders.shapes.render import render
from penstock.catalog.info import DatasetInfo
from penstock.errors import InvalidArgumentError

DEFAULT_EXAMPLES = 2000
# The numbers of test images begin here, so that a larger train split never reaches them.
_TEST_START = 1 << 32
_QUALITY = 90


class Shapes(Builder):
    """JPEGs that resemble photographs, 500 by 375 pixels, each with one circle, square, triangle or star.

    The split "train" has `num_examples` images in 20 shards, and "test" a quarter of this number, at most 500. Image
    `number` depends only on `seed`, not on the number of images.

    >>> Shapes(num_examples=400).info.features["label"].int2str(3)
    'star'
    """

    VERSION = "1.0.0"
    RELEASE_NOTES = {"1.0.0": "Initial release."}  # noqa: RUF012 - read only

    def __init__(
        self,
        *,
        num_examples: int = DEFAULT_EXAMPLES,
        seed: int = 0,
        data_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(data_dir=data_dir)
        if num_examples < 1 or seed < 0:
            message = f"num_examples must be at least 1 and seed at least 0, got {num_examples=}, {seed=}."
            raise InvalidArgumentError(message, hint=f"The default is {DEFAULT_EXAMPLES} examples of seed 0.")
        self._counts = {"train": num_examples, "test": min(-(-num_examples // 4), 500)}
        self._seed = seed

    @property
    def config_name(self) -> str:
        parts = [f"{self._counts['train']}_examples"] if self._counts["train"] != DEFAULT_EXAMPLES else []
        return "_".join(parts + ([f"seed_{self._seed}"] if self._seed else []))

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            description=(
                "Drawn images that are as costly to decode as photographs and as large: one shape on a textured, "
                "unevenly lit and cluttered ground, seen by a noisy sensor. Place, size, turn and colours are random."
            ),
            features=features.FeaturesDict(
                {
                    "image": features.Image(shape=(None, None, 3), encoding_format="jpeg"),
                    "label": features.ClassLabel(names=LABELS),
                }
            ),
            supervised_keys=("image", "label"),
        )

    def _split_generators(self) -> Mapping[str, Examples]:
        starts = {"train": 0, "test": _TEST_START}
        return {
            split: Each(range(starts[split], starts[split] + count), self._draw)
            for split, count in self._counts.items()
        }

    def _draw(self, number: int) -> tuple[int, dict[str, Any]]:
        picture, label = render(number, self._seed)
        return number, {"image": image.encode_jpeg(picture, quality=_QUALITY), "label": label}

    @property
    def expected_examples(self) -> Mapping[str, int]:
        return self._counts

    def _num_shards(self, split: str) -> int:
        return 20 if split == "train" else 2
