"""ImageFolder: images in a folder for each split and class."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from penstock.catalog import features
from penstock.catalog.data_dir import Given
from penstock.catalog.in_place import Items
from penstock.catalog.info import DatasetInfo
from penstock.errors import NotFoundError

_ENDINGS = (".jpg", ".jpeg", ".png")


class ImageFolder(Items):
    """Builder of the images in `data_dir/train/cat/1.jpg` and so on: a split, a class, a file.

    It reads the same folders as tfds's ImageFolder.

    Examples have "image", "label" and "image/filename", the path. Classes are numbered in the order of their names. The
    order of the examples is random, and depends on the name of the split only.

    Args:
        data_dir: The folder.
        shape: Shape of the images, with None for a dimension that differs.
        dtype: Dtype of the images. Default: uint8.

    Raises:
        NotFoundError: If there is no such folder, or if it contains no images.

    Example:
        >>> import tempfile, numpy as np
        >>> from pathlib import Path
        >>> from penstock import catalog, image
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("train/cat/1.png", "train/dog/1.png", "test/dog/2.png"):
        ...     (folder / name).parent.mkdir(parents=True, exist_ok=True)
        ...     _ = (folder / name).write_bytes(image.encode_png(np.zeros((4, 6, 3), np.uint8)))
        >>> train, info = catalog.load("image_folder", data_dir=folder, split="train", with_info=True)
        >>> len(train), train[0]["image"].shape, info.features["label"].names
        (2, (4, 6, 3), ['cat', 'dog'])
    """

    def __init__(
        self, data_dir: Given = None, *, shape: tuple[int | None, ...] | None = None, dtype: Any = np.uint8
    ) -> None:
        super().__init__(data_dir)
        self._image = features.Image(shape=shape, dtype=dtype)
        self._classes = sorted({path.parent.name for paths in self._pictures.values() for path in paths})

    @cached_property
    def _pictures(self) -> dict[str, list[Path]]:
        found = {split.name: list(_pictures(split)) for split in _folders(self._folder)}
        if not any(found.values()):
            message = f"there are no images split/class/name{_ENDINGS[0]} in {str(self._folder)!r}."
            hint = f"Names end in {', '.join(_ENDINGS)}."
            if any(_files(folder) for folder in _folders(self._folder)):
                hint = (
                    "There are some one level higher: are these classes? Put them into a folder named after a split, "
                    "such as train, or read them with penstock.ImageFolderDataset."
                )
            raise NotFoundError(message, hint=hint, file=str(self._folder))
        for split, paths in found.items():
            random.Random(split).shuffle(paths)  # as tfds does
        return {split: paths for split, paths in found.items() if paths}

    def _info(self) -> DatasetInfo:
        return DatasetInfo(
            features=features.FeaturesDict(
                {
                    "image": self._image,
                    "image/filename": features.Text(),
                    "label": features.ClassLabel(names=self._classes),
                }
            ),
            description="Images in a folder for each split and class.",
            supervised_keys=("image", "label"),
        )

    def _items(self) -> Mapping[str, Sequence[str]]:
        return {split: [str(path) for path in paths] for split, paths in self._pictures.items()}

    def _function(self) -> Callable[[str], Mapping[str, Any]]:
        return _picture


def _picture(path: str) -> dict[str, Any]:
    return {"image": path, "image/filename": path, "label": Path(path).parent.name}


def _pictures(split: Path) -> Iterator[Path]:
    for kind in _folders(split):
        yield from _files(kind)


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.iterdir() if path.name.lower().endswith(_ENDINGS) and not path.name.startswith(".")
    )
