"""LabeledImage: a picture whose pixels are numbers of classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog.features.class_label import ClassLabel
from penstock.catalog.features.image import Image


class LabeledImage(Image):
    """A mask: a picture of one channel, each pixel the number of a class; `labels` are their names or how many.

    >>> mask = LabeledImage(labels=["ground", "cat"], shape=(None, None, 1))
    >>> mask.num_classes, mask.names
    (2, ('ground', 'cat'))
    """

    tfds_class = "tensorflow_datasets.core.features.labeled_image.LabeledImage"

    def __init__(
        self,
        *,
        labels: Sequence[str] | int | None,
        shape: tuple[int | None, ...] | None = None,
        dtype: Any = np.uint8,
        encoding_format: str | None = None,
    ) -> None:
        super().__init__(
            shape=(None, None, 1) if shape is None else shape,
            dtype=dtype,
            encoding_format=encoding_format,
            use_colormap=True,
        )
        count = labels if isinstance(labels, int) else 0 if labels is None else None
        self._label = ClassLabel(num_classes=count, names=labels if isinstance(labels, Sequence) else None)

    @property
    def num_classes(self) -> int:
        return self._label.num_classes

    @property
    def names(self) -> tuple[str, ...] | None:
        return self._label.names

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "num_classes": self.num_classes}

    def to_json(self) -> dict[str, Any]:
        return {"image": super().to_json()["image"] | {"label": self._label.to_json()["classLabel"]}}

    def save_metadata(self, folder: Path, name: str) -> None:
        self._label.save_metadata(folder, name)

    def load_metadata(self, folder: Path, name: str) -> None:
        self._label.load_metadata(folder, name)
