"""MNIST: 70,000 handwritten digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.catalog import features
from penstock.catalog.builder import Examples
from penstock.catalog.builders.array_files import read_idx
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

_PREFIXES = {"train": "train", "test": "t10k"}  # of the names of the files
_FILES = ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz")


class MNIST(Published):
    """Handwritten digits, 28 by 28 pixels, gray: 60,000 for training and 10,000 for test."""

    def _label(self) -> features.ClassLabel:
        return features.ClassLabel(num_classes=10)

    def _features(self) -> Mapping[str, features.Feature]:
        return {"image": features.Image(shape=(28, 28, 1)), "label": self._label()}

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        urls = {split: [f"{self.URL}{prefix}-{file}" for file in _FILES] for split, prefix in _PREFIXES.items()}
        return {split: self._generate_examples(*files) for split, files in dl_manager.download(urls).items()}

    def _generate_examples(self, images: Path, labels: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        pictures, classes = read_idx(images), read_idx(labels)
        if pictures.shape[1:] != (28, 28) or classes.shape != pictures.shape[:1]:
            message = f"there are images of shape {pictures.shape} and labels of shape {classes.shape}."
            raise DataLossError(message, hint="28 by 28 pixels, and a label for each, were expected.", file=str(images))
        for number, (picture, label) in enumerate(zip(pictures, classes, strict=True)):
            yield number, {"image": picture[:, :, None], "label": int(label)}
