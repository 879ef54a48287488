"""MNIST: 70,000 handwritten digits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, Examples
from penstock.catalog.builders.array_files import read_idx
from penstock.catalog.download.manager import Checksum, DownloadManager
from penstock.catalog.info import DatasetInfo
from penstock.errors import DataLossError

_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"


def file_names(split: str) -> tuple[str, str]:
    """Return the names of the files with the images and the labels of a split of MNIST or a similar data set."""
    prefix = "train" if split == "train" else "t10k"
    return f"{prefix}-images-idx3-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz"


class MNIST(Builder):
    """Handwritten digits, 28 by 28 pixels, gray: 60,000 for training and 10,000 for test."""

    VERSION = "3.0.1"
    EXAMPLES: ClassVar[Mapping[str, int]] = {"train": 60_000, "test": 10_000}
    URL: ClassVar[str] = _URL
    CHECKSUMS: ClassVar[Mapping[str, Checksum]] = {
        f"{_URL}t10k-images-idx3-ubyte.gz": Checksum(
            1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
        ),
        f"{_URL}t10k-labels-idx1-ubyte.gz": Checksum(
            4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"
        ),
        f"{_URL}train-images-idx3-ubyte.gz": Checksum(
            9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
        ),
        f"{_URL}train-labels-idx1-ubyte.gz": Checksum(
            28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"
        ),
    }

    def _info(self) -> DatasetInfo:
        return self._described_as(
            "Handwritten digits, each a gray image of 28 by 28 pixels.",
            features.ClassLabel(num_classes=10),
            homepage="http://yann.lecun.com/exdb/mnist/",
            citation=(
                "@article{lecun2010mnist,\n  title={MNIST handwritten digit database},\n"
                "  author={LeCun, Yann and Cortes, Corinna and Burges, CJ},\n"
                "  journal={ATT Labs [Online]. Available: http://yann.lecun.com/exdb/mnist},\n"
                "  volume={2},\n  year={2010}\n}"
            ),
        )

    def _described_as(
        self, description: str, label: features.ClassLabel, *, homepage: str, citation: str
    ) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict({"image": features.Image(shape=(28, 28, 1)), "label": label}),
            description=description,
            supervised_keys=("image", "label"),
            homepage=homepage,
            citation=citation,
        )

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        names = {split: [self.URL + name for name in file_names(split)] for split in ("train", "test")}
        files = dl_manager.download(names)
        return {split: self._generate_examples(*files[split]) for split in names}

    def _generate_examples(self, images: Path, labels: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        pictures, classes = read_idx(images), read_idx(labels)
        if pictures.shape[1:] != (28, 28) or classes.shape != pictures.shape[:1]:
            message = f"there are images of shape {pictures.shape} and labels of shape {classes.shape}."
            raise DataLossError(message, hint="28 by 28 pixels, and a label for each, were expected.", file=str(images))
        for number, (picture, label) in enumerate(zip(pictures, classes, strict=True)):
            yield number, {"image": picture[:, :, None], "label": int(label)}
