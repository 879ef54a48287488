"""KMNIST: 70,000 characters of old Japanese script."""

from __future__ import annotations

from penstock.catalog import features
from penstock.catalog.builders.mnist import MNIST


class KMNIST(MNIST):
    """Ten characters of old Japanese script in MNIST's format: 60,000 gray images for training and 10,000 for test."""

    def _label(self) -> features.ClassLabel:
        return features.ClassLabel(names=("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"))
