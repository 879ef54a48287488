"""The images of torchvision's data sets, as bytes of pixels."""

from __future__ import annotations

from bisect import bisect_right
from importlib import import_module
from typing import Any

import numpy as np

from penstock.torch.vision.planned import Pixels, Refused

_ARRAYS = ("CIFAR10", "CIFAR100", "MNIST", "FashionMNIST", "KMNIST", "EMNIST")


class FolderImages:
    """A DatasetFolder, ImageFolder, ImageNet and the like, with torchvision's default loader. `place` is a path."""

    data = None

    def __init__(self, dataset: Any, loader: Any) -> None:
        self._dataset, self._loader = dataset, loader

    def entry(self, index: Any) -> tuple[Any, Any]:
        """Return the place of an image and its target."""
        path, target = self._dataset.samples[index]
        return path, target

    def read(self, path: Any) -> Any:
        """Return the pixels that Pillow decodes, or raise its error. A kernel decodes the usual JPEGs later."""
        from penstock.torch.vision.opened import coded_image  # it needs Pillow

        def load() -> Pixels:
            return np.asarray(self._loader(path))

        found = coded_image(path, load)
        return load() if found is None else found


class ArrayImages:
    """A data set with its images in one array. `place` is a number."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._grey = not isinstance(dataset.data, np.ndarray)  # a tensor, with targets in a tensor
        self.data: Any = dataset.data.numpy()[..., None] if self._grey else dataset.data
        if self.data.dtype != np.uint8 or self.data.ndim != 4 or self.data.shape[3] not in (1, 3):
            message = "its images are not bytes"
            raise Refused(message)
        self.data = np.ascontiguousarray(self.data)

    def entry(self, index: Any) -> tuple[int, Any]:
        """Return the place of an image and its target."""
        image, target = self._dataset.data[index], self._dataset.targets[index]
        if image.ndim != self.data.ndim - 1 - self._grey:
            message = f"An index is a number, got {index!r}."
            raise IndexError(message)
        return int(index) % len(self.data), int(target) if self._grey else target

    def read(self, number: int) -> Pixels:
        """Return the pixels."""
        found: Pixels = self.data[number]
        return found


class SubsetImages:
    """A Subset of another source."""

    def __init__(self, subset: Any, inner: Any) -> None:
        self._subset, self._inner, self.data, self.read = subset, inner, inner.data, inner.read

    def entry(self, index: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = self._inner.entry(self._subset.indices[index])
        return found


class JoinedFolders:
    """A ConcatDataset of folders."""

    data = None

    def __init__(self, dataset: Any, inner: list[Any]) -> None:
        self._dataset, self._inner, self.read = dataset, inner, inner[0].read

    def entry(self, index: Any) -> tuple[Any, Any]:
        size, ends = len(self._dataset), self._dataset.cumulative_sizes
        if index < 0:
            if -index > size:
                message = "absolute value of index should not exceed dataset length"
                raise ValueError(message)
            index += size
        number = bisect_right(ends, index)
        found: tuple[Any, Any] = self._inner[number].entry(index - (ends[number - 1] if number else 0))
        return found


def source_of(dataset: Any) -> tuple[Any, Any]:
    """Return the source of a data set, and the data set that has the transforms.

    Raises:
        Refused: If the data set is not recognised.
    """
    data, sets = import_module("torch.utils.data"), import_module("torchvision.datasets")
    kind = type(dataset)
    if kind is data.Subset:
        inner, owner = source_of(dataset.dataset)
        return SubsetImages(dataset, inner), owner
    if kind is data.ConcatDataset:
        parts = [source_of(each) for each in dataset.datasets]
        owner = parts[0][1]
        same = all(
            each.transform is owner.transform and each.target_transform is owner.target_transform for _, each in parts
        )
        if not same or any(part.data is not None for part, _ in parts):
            message = "a ConcatDataset is recognised if it joins folders with one transform"
            raise Refused(message)
        return JoinedFolders(dataset, [part for part, _ in parts]), owner
    unknown = f"{kind.__module__}.{kind.__qualname__} is not a class that penstock recognises"
    read_by = getattr(getattr(kind, "__getitem__", None), "__module__", "")  # "" for a list and other built-in classes
    if not read_by.startswith("torchvision."):
        raise Refused(unknown if hasattr(dataset, "transform") else "")
    if kind.__getitem__ is sets.DatasetFolder.__getitem__ and kind.__module__.startswith("torchvision."):
        loader = import_module("torchvision.datasets.folder").default_loader
        if dataset.loader is not loader or import_module("torchvision").get_image_backend() != "PIL":
            message = "its loader is not torchvision's default_loader with Pillow"
            raise Refused(message)
        return FolderImages(dataset, loader), dataset
    if kind in [getattr(sets, name) for name in _ARRAYS]:
        return ArrayImages(dataset), dataset
    raise Refused(unknown)
