"""Cifar100: 60,000 small images of a hundred classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from penstock.catalog import features
from penstock.catalog.builders.cifar10 import SHAPE, Cifar10


class Cifar100(Cifar10):
    """Images of 32 by 32 pixels, of 100 classes in 20 groups: 50,000 for training and 10,000 for test."""

    FOLDER: ClassVar[str] = "cifar-100-binary"
    FILES: ClassVar[Mapping[str, Sequence[str]]] = {"train": ["train.bin"], "test": ["test.bin"]}
    LABELS: ClassVar[Mapping[str, str]] = {"coarse_label": "coarse_label_names.txt", "label": "fine_label_names.txt"}

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "id": features.Text(),
            "image": features.Image(shape=SHAPE),
            "label": features.ClassLabel(num_classes=100),
            "coarse_label": features.ClassLabel(num_classes=20),
        }
