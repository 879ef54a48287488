"""Food101: 101,000 photographs of food."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from penstock.catalog import features
from penstock.catalog.builder import Each, Examples
from penstock.catalog.builders.published import Published, labels
from penstock.catalog.download.manager import DownloadManager

_LISTS = {"train": "train.json", "validation": "test.json"}


class Food101(Published):
    """Photographs of 101 dishes: 750 of each for training, with some wrong labels, and 250 for validation."""

    def _features(self) -> Mapping[str, features.Feature]:
        return {"image": features.Image(), "label": features.ClassLabel(names=labels("food101"))}

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
