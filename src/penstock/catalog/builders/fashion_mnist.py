"""FashionMNIST: 70,000 pieces of clothing."""

from __future__ import annotations

from typing import ClassVar

from penstock.catalog import features
from penstock.catalog.builders.mnist import MNIST
from penstock.catalog.builders.published import checksums, citation, labels
from penstock.catalog.info import DatasetInfo

_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"


class FashionMNIST(MNIST):
    """Pieces of clothing in MNIST's format: 60,000 gray images for training and 10,000 for test."""

    URL: ClassVar[str] = _URL
    CHECKSUMS = checksums(_URL)

    def _info(self) -> DatasetInfo:
        return self._described_as(
            "Images of Zalando's articles in the format of MNIST: gray, 28 by 28 pixels, of 10 classes.",
            features.ClassLabel(names=labels("fashion_mnist")),
            homepage="https://github.com/zalandoresearch/fashion-mnist",
            citation=citation("DBLP:journals/corr/abs-1708-07747"),
        )
