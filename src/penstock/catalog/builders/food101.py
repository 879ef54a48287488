"""Food101: 101,000 photographs of food."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, Each, Examples
from penstock.catalog.builders.published import checksums, citation, labels
from penstock.catalog.download.manager import DownloadManager
from penstock.catalog.info import DatasetInfo

_URL = "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz"
_LISTS = {"train": "train.json", "validation": "test.json"}


class Food101(Builder):
    """Photographs of 101 dishes: 750 of each for training, with some wrong labels, and 250 for validation."""

    VERSION = "2.0.0"
    EXAMPLES: ClassVar[Mapping[str, int]] = {"train": 75_750, "validation": 25_250}
    URL: ClassVar[str] = _URL
    CHECKSUMS = checksums(_URL)

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {"image": features.Image(), "label": features.ClassLabel(names=labels("food101"))}
            ),
            description=(
                "Photographs of 101 dishes, 1,000 of each, of 512 pixels at most. Among those to train some have "
                "glaring colours or a wrong label."
            ),
            supervised_keys=("image", "label"),
            homepage="https://data.vision.ee.ethz.ch/cvl/datasets_extra/food-101/",
            citation=citation("bossard14"),
        )

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        folder = dl_manager.download_and_extract(self.URL) / "food-101"
        return {
            split: Each(_pictures(folder / "meta" / name), partial(_dish, folder / "images"))
            for split, name in _LISTS.items()
        }


def _pictures(path: Path) -> list[tuple[str, str]]:
    """Return the label and the name of each image in a list."""
    listed = json.loads(path.read_text(encoding="utf-8"))
    return [(label, name) for label, names in listed.items() for name in names]


def _dish(folder: Path, item: tuple[str, str]) -> tuple[str, dict[str, Any]]:
    label, name = item
    return name, {"image": folder / f"{name}.jpg", "label": label}
