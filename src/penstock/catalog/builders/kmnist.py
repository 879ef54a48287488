"""KMNIST: 70,000 characters of old Japanese script."""

from __future__ import annotations

from typing import ClassVar

from penstock.catalog import features
from penstock.catalog.builders.mnist import MNIST
from penstock.catalog.builders.published import checksums, citation
from penstock.catalog.info import DatasetInfo

_URL = "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"


class KMNIST(MNIST):
    """Ten characters of old Japanese script in MNIST's format: 60,000 gray images for training and 10,000 for test."""

    URL: ClassVar[str] = _URL
    CHECKSUMS = checksums(_URL)

    def _info(self) -> DatasetInfo:
        return self._described_as(
            "Kuzushiji-MNIST: cursive Japanese characters, one for each row of Hiragana, in the format of MNIST.",
            features.ClassLabel(names=("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")),
            homepage="http://codh.rois.ac.jp/kmnist/index.html.en",
            citation=citation("clanuwat2018deep"),
        )
