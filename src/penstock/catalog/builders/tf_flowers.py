"""TfFlowers: 3,670 photographs of flowers."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from penstock.catalog import features
from penstock.catalog.builder import Examples
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager


class TfFlowers(Published):
    """Photographs of flowers of five kinds, of all sizes, in one split."""

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "image": features.Image(),
            "label": features.ClassLabel(names=("dandelion", "daisy", "tulips", "sunflowers", "roses")),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        return {"train": self._generate_examples(dl_manager, dl_manager.download(self.URL))}

    def _generate_examples(self, dl_manager: DownloadManager, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, file in dl_manager.iter_archive(path):
            folder, file_name = posixpath.split(name)
            kind = posixpath.basename(folder)
            if name.endswith(".jpg"):
                yield f"{kind}/{file_name}", {"image": file.read(), "label": kind.lower()}
