"""FashionMNIST: 70,000 pieces of clothing."""

from __future__ import annotations

from penstock.catalog import features
from penstock.catalog.builders.mnist import MNIST
from penstock.catalog.builders.published import labels


class FashionMNIST(MNIST):
    """Pieces of clothing in MNIST's format: 60,000 gray images for training and 10,000 for test."""

    def _label(self) -> features.ClassLabel:
        return features.ClassLabel(names=labels("fashion_mnist"))
