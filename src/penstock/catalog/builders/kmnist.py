"""KMNIST: 70,000 characters of old Japanese script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from penstock.catalog import features
from penstock.catalog.builders.mnist import MNIST
from penstock.catalog.download.manager import Checksum
from penstock.catalog.info import DatasetInfo

_URL = "http://codh.rois.ac.jp/kmnist/dataset/kmnist/"


class KMNIST(MNIST):
    """Ten characters of old Japanese script in MNIST's format: 60,000 gray images for training and 10,000 for test."""

    URL: ClassVar[str] = _URL
    CHECKSUMS: ClassVar[Mapping[str, Checksum]] = {
        f"{_URL}t10k-images-idx3-ubyte.gz": Checksum(
            3041136, "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5"
        ),
        f"{_URL}t10k-labels-idx1-ubyte.gz": Checksum(
            5120, "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"
        ),
        f"{_URL}train-images-idx3-ubyte.gz": Checksum(
            18165135, "51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4"
        ),
        f"{_URL}train-labels-idx1-ubyte.gz": Checksum(
            29497, "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17"
        ),
    }

    def _info(self) -> DatasetInfo:
        return self._described_as(
            "Kuzushiji-MNIST: cursive Japanese characters, one for each row of Hiragana, in the format of MNIST.",
            features.ClassLabel(names=("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo")),
            homepage="http://codh.rois.ac.jp/kmnist/index.html.en",
            citation=(
                "@online{clanuwat2018deep,\n  author = {Tarin Clanuwat and Mikel Bober-Irizar and Asanobu Kitamoto and "
                "Alex Lamb and Kazuaki Yamamoto and David Ha},\n"
                "  title = {Deep Learning for Classical Japanese Literature},\n  date = {2018-12-03},\n"
                "  year = {2018},\n  eprintclass = {cs.CV},\n  eprinttype = {arXiv},\n"
                "  eprint = {cs.CV/1812.01718},\n}"
            ),
        )
