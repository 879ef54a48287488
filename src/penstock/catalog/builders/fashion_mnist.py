"""FashionMNIST: 70,000 pieces of clothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from penstock.catalog import features
from penstock.catalog.builders.mnist import MNIST
from penstock.catalog.download.manager import Checksum
from penstock.catalog.info import DatasetInfo

_URL = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)


class FashionMNIST(MNIST):
    """Pieces of clothing in MNIST's format: 60,000 gray images for training and 10,000 for test."""

    URL: ClassVar[str] = _URL
    CHECKSUMS: ClassVar[Mapping[str, Checksum]] = {
        f"{_URL}t10k-images-idx3-ubyte.gz": Checksum(
            4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"
        ),
        f"{_URL}t10k-labels-idx1-ubyte.gz": Checksum(
            5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"
        ),
        f"{_URL}train-images-idx3-ubyte.gz": Checksum(
            26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"
        ),
        f"{_URL}train-labels-idx1-ubyte.gz": Checksum(
            29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"
        ),
    }

    def _info(self) -> DatasetInfo:
        return self._described_as(
            "Images of Zalando's articles in the format of MNIST: gray, 28 by 28 pixels, of 10 classes.",
            features.ClassLabel(names=_NAMES),
            homepage="https://github.com/zalandoresearch/fashion-mnist",
            citation=(
                "@article{DBLP:journals/corr/abs-1708-07747,\n"
                "  author    = {Han Xiao and Kashif Rasul and Roland Vollgraf},\n"
                "  title     = {Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms},\n"
                "  journal   = {CoRR},\n  volume    = {abs/1708.07747},\n  year      = {2017},\n"
                "  url       = {http://arxiv.org/abs/1708.07747},\n  archivePrefix = {arXiv},\n"
                "  eprint    = {1708.07747},\n  timestamp = {Mon, 13 Aug 2018 16:47:27 +0200},\n"
                "  biburl    = {https://dblp.org/rec/bib/journals/corr/abs-1708-07747},\n"
                "  bibsource = {dblp computer science bibliography, https://dblp.org}\n}"
            ),
        )
