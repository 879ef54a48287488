"""Cifar10: 60,000 small images of ten classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from penstock.catalog import features
from penstock.catalog.builder import Examples
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

SHAPE = (32, 32, 3)
_PIXELS = 3 * 32 * 32


class Cifar10(Published):
    """Images of 32 by 32 pixels, of ten classes: 50,000 for training and 10,000 for test."""

    FOLDER: ClassVar[str] = "cifar-10-batches-bin"
    FILES: ClassVar[Mapping[str, Sequence[str]]] = {
        "train": [f"data_batch_{number}.bin" for number in range(1, 6)],
        "test": ["test_batch.bin"],
    }
    # The labels, in their order before the pixels, and the files with their names.
    LABELS: ClassVar[Mapping[str, str]] = {"label": "batches.meta.txt"}

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "id": features.Text(),
            "image": features.Image(shape=SHAPE),
            "label": features.ClassLabel(num_classes=10),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        folder = dl_manager.download_and_extract(self.URL) / self.FOLDER
        for label, file in self.LABELS.items():
            names = [name.strip() for name in (folder / file).read_text(encoding="utf-8").split("\n") if name.strip()]
            feature = self.info.features[label]
            assert isinstance(feature, features.ClassLabel)
            feature.names = names
        return {
            split: self._generate_examples(split, [folder / name for name in names])
            for split, names in self.FILES.items()
        }

    def _generate_examples(self, split: str, files: Sequence[Path]) -> Iterator[tuple[int, dict[str, Any]]]:
        number, ahead = 0, len(self.LABELS)
        for file in files:
            content = np.fromfile(file, np.uint8)
            if len(content) % (ahead + _PIXELS):
                message = f"a file of {len(content)} bytes does not hold whole images of {ahead + _PIXELS} bytes."
                raise DataLossError(message, hint="Was it cut short?", file=str(file))
            for row in content.reshape(-1, ahead + _PIXELS):
                labels = dict(zip(self.LABELS, row[:ahead].tolist(), strict=True))
                picture = np.ascontiguousarray(row[ahead:].reshape(3, 32, 32).transpose(1, 2, 0))
                yield number, {**labels, "id": f"{split}_{number:05d}", "image": picture}
                number += 1
