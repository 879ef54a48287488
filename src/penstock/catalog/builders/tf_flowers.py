"""TfFlowers: 3,670 photographs of flowers."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog import features
from penstock.catalog.builder import Builder, Examples
from penstock.catalog.builders.published import checksums, citation
from penstock.catalog.download.manager import DownloadManager
from penstock.catalog.info import DatasetInfo

_URL = "http://download.tensorflow.org/example_images/flower_photos.tgz"


class TfFlowers(Builder):
    """Photographs of flowers of five kinds, of all sizes, in one split."""

    VERSION = "3.0.1"
    EXAMPLES: ClassVar[Mapping[str, int]] = {"train": 3_670}
    URL: ClassVar[str] = _URL
    CHECKSUMS = checksums(_URL)

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {
                    "image": features.Image(),
                    "label": features.ClassLabel(names=("dandelion", "daisy", "tulips", "sunflowers", "roses")),
                }
            ),
            description="Photographs of flowers of five kinds.",
            supervised_keys=("image", "label"),
            homepage="https://www.tensorflow.org/tutorials/load_data/images",
            citation=citation("tfflowers"),
        )

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        return {"train": self._generate_examples(dl_manager, dl_manager.download(self.URL))}

    def _generate_examples(self, dl_manager: DownloadManager, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, file in dl_manager.iter_archive(path):
            folder, file_name = posixpath.split(name)
            kind = posixpath.basename(folder)
            if name.endswith(".jpg"):
                yield f"{kind}/{file_name}", {"image": file.read(), "label": kind.lower()}
