"""InPlace: a folder of the user's files as a data set. Nothing is prepared or copied."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from penstock.catalog.data_dir import Given
from penstock.catalog.features import FeaturesDict
from penstock.catalog.info import DatasetInfo, SplitInfo
from penstock.catalog.names import snake_case
from penstock.catalog.read import ReadConfig, decoded
from penstock.catalog.recipe import Reading
from penstock.catalog.splits import as_split
from penstock.dataset.dataset import Dataset
from penstock.errors import InvalidArgumentError, NotFoundError
from penstock.io.writing import local
from penstock.plan.indexing import ALL
from penstock.plan.node import AUTOTUNE


class InPlace(Reading):
    """A data set of the files in `data_dir`. `load` returns it like a prepared data set.

    A derived class defines `_info` and, for each split, the examples: `_rows` returns a Dataset whose elements have
    indices.
    """

    VERSION: ClassVar[str] = "1.0.0"

    def __init__(self, data_dir: Given = None) -> None:
        hint = f'For example load("{self.name}", data_dir="my_files", split="train").'
        if data_dir is None or not isinstance(data_dir, str | os.PathLike):
            message = f"{self.name!r} is a folder of yours, and data_dir must say which, got {data_dir!r}."
            raise InvalidArgumentError(message, hint=hint)
        self._folder = local(data_dir, "data_dir")
        if not self._folder.is_dir():
            raise NotFoundError(f"there is no folder {str(self._folder)!r}.", hint=hint, file=str(self._folder))

    # -- methods of a derived class -------------------------------------------------------------------------------

    @abstractmethod
    def _info(self) -> DatasetInfo:
        """Return features, description, supervised keys."""

    @abstractmethod
    def _lengths(self) -> Mapping[str, int]:
        """Return the number of examples of each split."""

    @abstractmethod
    def _rows(self, split: str) -> Dataset:
        """Return all rows of a split, with indices, for `_read_rows`."""

    @abstractmethod
    def _read_rows(self, rows: Dataset, keys: Any, decoders: Any) -> Dataset:
        """Return the examples of some rows, or the values that `keys` name."""

    # -- methods for users ----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The class name in snake case: `ImageFolder` is "image_folder"."""
        return snake_case(type(self).__name__)

    @property
    def data_path(self) -> Path:
        return self._folder

    @cached_property
    def info(self) -> DatasetInfo:
        splits = {name: SplitInfo(name, (length,), 0) for name, length in self._lengths().items()}
        return replace(
            self._info(),
            name=self.name,
            version=self.VERSION,
            module_name=type(self).__module__,
            splits=splits,
            data_dir=str(self._folder),
        )

    @property
    def is_prepared(self) -> bool:
        return True

    def _read(
        self, split: Any, *, keys: Any, decoders: Any, shuffle_files: bool, read_config: ReadConfig | None
    ) -> Dataset:
        config = read_config or ReadConfig()
        parts = [
            self._rows(part.split).skip(part.start).take(len(part)) for part in as_split(split).parts(self.info.splits)
        ]
        rows = reduce(lambda left, right: left.concatenate(right), parts)
        if shuffle_files and len(rows):
            rows = rows.shuffle(ALL, config.shuffle_seed, config.shuffle_reshuffle_each_iteration)
        return self._read_rows(rows, keys, decoders)


class Items(InPlace):
    """Examples that a function computes from items. They pass through records, like those of a prepared data set."""

    @abstractmethod
    def _items(self) -> Mapping[str, Sequence[Any]]:
        """Return the items of each split. Called once."""

    @abstractmethod
    def _function(self) -> Callable[[Any], Mapping[str, Any]]:
        """Return the function that makes the example of an item. It runs in the workers."""

    @cached_property
    def _found(self) -> dict[str, tuple[Any, ...]]:
        return {split: tuple(items) for split, items in self._items().items()}

    def _lengths(self) -> Mapping[str, int]:
        return {split: len(items) for split, items in self._found.items()}

    def _rows(self, split: str) -> Dataset:
        numbers = np.arange(len(self._found[split]))
        record = _Record(self._found[split], self._function(), self.info.features)
        return Dataset.from_tensor_slices(numbers).map(record, num_parallel_calls=AUTOTUNE)

    def _read_rows(self, rows: Dataset, keys: Any, decoders: Any) -> Dataset:
        return decoded(rows, self.info.features, keys, decoders)


class _Record:
    """Makes the record of an item from its number."""

    def __init__(self, items: tuple[Any, ...], function: Any, features: FeaturesDict) -> None:
        self._items, self._function, self._features = items, function, features

    def __call__(self, number: Any) -> bytes:
        return self._features.serialize(self._function(self._items[int(number)]))
