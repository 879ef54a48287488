"""Caltech101: 9,144 images of objects of 101 classes and of a background class."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog import features
from penstock.catalog.builder import Each, Examples
from penstock.catalog.builders.published import Published, labels
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

_TRAIN = 30  # images of each class


class Caltech101(Published):
    """Images of objects: 30 random images of each class for training, and the others for test.

    The random choice uses the generator and seed of tfds on sorted names. tfds itself uses the order of the file
    system, so its splits differ from machine to machine, and from these.
    """

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "image": features.Image(),
            "image/file_name": features.Text(),
            "label": features.ClassLabel(names=labels("caltech101")),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        outer = dl_manager.download_and_extract(self.URL)
        folder = dl_manager.extract(outer / "caltech-101" / "101_ObjectCategories.tar.gz") / "101_ObjectCategories"
        drawn = dict(_drawn(folder))
        return {
            split: Each([name for name in drawn if drawn[name] == wanted], partial(_object, folder))
            for split, wanted in (("train", True), ("test", False))
        }


def _drawn(folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield each image, and True if it is for training."""
    random = np.random.RandomState(1234)  # as in tfds; its sequence will never change
    for kind in sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and _is_seen(entry.name)):
        names = sorted(entry.name for entry in os.scandir(folder / kind) if _is_seen(entry.name))
        if len(names) < _TRAIN:
            message = f"there are {len(names)} pictures of {kind!r}, and {_TRAIN} are wanted to train with."
            raise DataLossError(message, hint="Delete the folder, and it is unpacked again.", file=str(folder))
        chosen = set(random.choice(names, _TRAIN, replace=False).tolist())
        # A file that is not an image takes part in the random choice, as in tfds.
        yield from ((f"{kind}/{name}", name in chosen) for name in names if name.endswith(".jpg"))


def _is_seen(name: str) -> bool:
    """Return True if tfds would unpack a file of that name."""
    return not name.startswith(".") and not name.endswith("~")


def _object(folder: Path, name: str) -> tuple[str, dict[str, Any]]:
    kind, _, file_name = name.partition("/")
    return name, {"image": folder / name, "image/file_name": file_name, "label": kind.lower()}
