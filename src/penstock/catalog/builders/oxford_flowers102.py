"""OxfordFlowers102: 8,189 photographs of flowers of 102 kinds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from penstock.catalog import features
from penstock.catalog.builder import Each, Examples
from penstock.catalog.builders.array_files import read_mat
from penstock.catalog.builders.published import Published, labels
from penstock.catalog.download.manager import DownloadManager
from penstock.errors import DataLossError

# The arrays with the numbers of the images of each split.
_SPLITS = {"train": "trnid", "test": "tstid", "validation": "valid"}


class OxfordFlowers102(Published):
    """Photographs of flowers: ten of each kind for training and ten for validation, and 6,149 for test.

    The splits are in MATLAB files, which scipy reads: `pip install 'penstock[mat]'`.
    """

    def _features(self) -> Mapping[str, features.Feature]:
        return {
            "file_name": features.Text(),
            "image": features.Image(),
            "label": features.ClassLabel(names=labels("oxford_flowers102")),
        }

    def _split_generators(self, dl_manager: DownloadManager) -> Mapping[str, Examples]:
        names = ("102flowers.tgz", "imagelabels.mat", "setid.mat")
        archive, labels, splits = dl_manager.download([self.URL + name for name in names])
        (kinds,) = (found.reshape(-1).tolist() for found in read_mat(labels, "labels"))
        numbers = [found.reshape(-1).tolist() for found in read_mat(splits, *_SPLITS.values())]
        if not all(1 <= number <= len(kinds) for part in numbers for number in part):
            message = f"a split names an image that is none of 1 to {len(kinds)}."
            raise DataLossError(message, hint="Delete the file, and it is downloaded again.", file=str(splits))
        folder = dl_manager.extract(archive) / "jpg"
        return {
            split: Each([(number, kinds[number - 1] - 1) for number in part], partial(_flower, folder))
            for split, part in zip(_SPLITS, numbers, strict=True)
        }


def _flower(folder: Path, item: tuple[int, int]) -> tuple[str, dict[str, Any]]:
    number, label = item
    name = f"image_{number:05d}.jpg"
    return name, {"file_name": name, "image": folder / name, "label": label}
