"""CatsVsDogs: 23,262 photographs, without 1,738 unusable ones."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock import image
from penstock.catalog import features
from penstock.catalog.builder import Each, Examples, Made, Skipped
from penstock.catalog.builders.published import Published
from penstock.catalog.download.manager import DownloadManager

_NAME = re.compile(r"PetImages[\\/](Cat|Dog)[\\/]\d+\.jpg")
_CORRUPT = 1738
# tfds searches "JFIF" in this many bytes, the size of a peek into a zip. Another size would exclude other images.
_HEAD = 512


class CatsVsDogs(Published):
    """Photographs of cats and dogs of all sizes. They are encoded as JPEG again, as in tfds since 4.0.1."""

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "image": features.Image(),
            "image/filename": features.Text(),
            "label": features.ClassLabel(names=("cat", "dog")),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        pictures = _Pictures(dl_manager.download(self.URL))
        return {"train": Each(pictures.names(), pictures)}

    def _max_skipped(self, split: str) -> int | None:
        return _CORRUPT


class _Pictures:
    """Makes the example of a file in the archive from its name."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @cached_property
    def _archive(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self._path)  # several threads may read it

    def names(self) -> list[str]:
        return [name for name in self._archive.namelist() if _NAME.fullmatch(posixpath.normpath(name))]

    def __call__(self, name: str) -> Made:
        content = self._archive.read(name)
        path = posixpath.normpath(name)
        if b"JFIF" not in content[:_HEAD]:
            return Skipped(path, "it is no JPEG file (JFIF)")
        found = _NAME.fullmatch(path)
        assert found is not None
        # Decoding and encoding repairs files with warnings; 95 is the quality of TensorFlow.
        recoded = image.encode_jpeg(image.decode_image(content), quality=95)
        return path, {"image": recoded, "image/filename": path, "label": found[1].lower()}

    def __getstate__(self) -> dict[str, Any]:
        """Drop the open archive, because each process opens its own."""
        return {"_path": self._path}
