"""SvhnCropped: 630,420 digits from photographs of house numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog import features
from penstock.catalog.builder import Examples
from penstock.catalog.builders.array_files import read_mat
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

_SHAPE = (32, 32, 3)


class SvhnCropped(Published):
    """Digits of house numbers, 32 by 32 pixels: 73,257 for training, 26,032 for test, and 531,131 "extra" ones.

    The split "extra" has easier images. scipy reads the MATLAB files (`pip install 'penstock[mat]'`), one split at a
    time. The preparation of "extra" uses 1.7 GB of memory.
    """

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "id": features.Text(),
            "image": features.Image(shape=_SHAPE),
            "label": features.ClassLabel(num_classes=10),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        files = dl_manager.download({split: f"{self.URL}{split}_32x32.mat" for split in self.EXAMPLES})
        return {split: self._generate_examples(split, file) for split, file in files.items()}

    def _generate_examples(self, split: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        pictures, digits = read_mat(path, "X", "y")
        digits = digits.reshape(-1)
        if pictures.shape != (*_SHAPE, len(digits)) or not ((digits >= 1) & (digits <= 10)).all():
            message = f"there are images of shape {pictures.shape} and {len(digits)} labels."
            raise DataLossError(message, hint="Expected the images along the last axis and labels from 1 to 10.")
        for number, digit in enumerate(digits.tolist()):
            picture = np.ascontiguousarray(pictures[..., number])
            # The digit 0 has the label 10 in the file.
            yield number, {"id": f"{split}_{number:06d}", "image": picture, "label": digit % 10}
