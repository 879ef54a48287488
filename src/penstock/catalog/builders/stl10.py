"""Stl10: 113,000 images of ten classes, most of them without a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog import features
from penstock.catalog.builder import Examples
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

_SIDE = 96


class Stl10(Published):
    """Images of 96 by 96 pixels: 5,000 for training, 8,000 for test, and 100,000 "unlabelled", with the label -1."""

    def _features(self) -> Mapping[str, features.Feature]:
        return {"image": features.Image(shape=(_SIDE, _SIDE, 3)), "label": features.ClassLabel(num_classes=10)}

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        folder = dl_manager.download_and_extract(self.URL) / "stl10_binary"
        names = (folder / "class_names.txt").read_text(encoding="utf-8").split()
        label = self.info.features["label"]
        assert isinstance(label, features.ClassLabel)
        label.names = names
        return {
            "train": self._generate_examples(folder / "train_X.bin", folder / "train_y.bin"),
            "test": self._generate_examples(folder / "test_X.bin", folder / "test_y.bin"),
            "unlabelled": self._generate_examples(folder / "unlabeled_X.bin", None),
        }

    def _generate_examples(self, path: Path, labels_path: Path | None) -> Iterator[tuple[int, dict[str, Any]]]:
        count, over = divmod(path.stat().st_size, 3 * _SIDE * _SIDE)
        labels = np.zeros(count, np.uint8) if labels_path is None else np.fromfile(labels_path, np.uint8)
        if over or len(labels) != count:
            message = f"there are {count} pictures and {over} bytes, and {len(labels)} labels."
            raise DataLossError(message, hint="Delete the folder, and it is unpacked again.", file=str(path))
        pictures = np.memmap(path, np.uint8, "r", shape=(count, 3, _SIDE, _SIDE))  # channel, column, row
        for number, label in enumerate(labels.tolist()):
            yield number, {"image": np.ascontiguousarray(pictures[number].transpose(2, 1, 0)), "label": label - 1}
