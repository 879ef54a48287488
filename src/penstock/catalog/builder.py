"""Builder: the recipe of a data set, from nothing to shards on disk to a Dataset."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog.data_dir import data_dir as chosen_data_dir
from penstock.catalog.info import FILE_NAME, DatasetInfo, SplitInfo
from penstock.catalog.progress import Progress, Stopwatch
from penstock.catalog.read import read_split
from penstock.catalog.writer import Key, SplitWriter
from penstock.errors import FailedPreconditionError, InvalidArgumentError

Examples = Iterable[tuple[Key, Mapping[str, Any]]]


class Builder(ABC):
    """The recipe of a data set; one of your own gives `VERSION`, `_info` and `_split_generators`.

    >>> import numpy as np, tempfile
    >>> from penstock.catalog import Builder, DatasetInfo, features
    >>> class Squares(Builder):
    ...     VERSION = "1.0.0"
    ...     def _info(self):
    ...         scalar = features.Scalar(dtype=np.int64)
    ...         return DatasetInfo(features=features.FeaturesDict({"x": scalar, "y": scalar}))
    ...     def _split_generators(self):
    ...         return {"train": self._generate_examples(range(8))}
    ...     def _generate_examples(self, numbers):
    ...         for x in numbers:
    ...             yield x, {"x": x, "y": x * x}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     squares = Squares(data_dir=folder)
    ...     squares.download_and_prepare()
    ...     sorted(int(row["y"]) for row in squares.as_dataset("train"))
    [0, 1, 4, 9, 16, 25, 36, 49]

    Prepared data lies in `<data_dir>/<name>/[<config_name>/]<version>/` as TFDS lays it out. What is written depends
    on the examples and their keys, not on the order or speed in which they are generated.
    """

    VERSION: ClassVar[str]
    RELEASE_NOTES: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *, data_dir: str | os.PathLike[str] | None = None) -> None:
        self._data_dir = chosen_data_dir(data_dir)

    # -- what a data set gives ------------------------------------------------------------------------------------

    @abstractmethod
    def _info(self) -> DatasetInfo:
        """Features, description, supervised keys, homepage, citation."""

    @abstractmethod
    def _split_generators(self) -> Mapping[str, Examples]:
        """For each split its examples, usually `self._generate_examples(…)`: pairs of a unique key and an example."""

    def _num_examples(self, split: str) -> int | None:
        """How many examples `split` will have, for the progress bar, where that is known before."""
        return None

    def _num_shards(self, split: str) -> int | None:
        """How many shards to write; None leaves it to the size."""
        return None

    @property
    def config_name(self) -> str:
        """Tells variants of the data set apart on disk; empty for the usual one."""
        return ""

    # -- what users call ------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The class name in snake case: `CatsVsDogs` is "cats_vs_dogs"."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def data_path(self) -> Path:
        """The folder of the prepared data."""
        return self._home / self.VERSION

    @property
    def info(self) -> DatasetInfo:
        """What is known about the data set; its splits once it is prepared."""
        return self._described.with_splits_of(self.data_path) if self.is_prepared else self._described

    @property
    def is_prepared(self) -> bool:
        return (self.data_path / FILE_NAME).is_file()

    def download_and_prepare(self) -> None:
        """Write the data set to disk, unless it is there: into a folder `incomplete.…`, renamed when it is whole.

        Shows its progress on stderr. Whatever ends it early leaves nothing behind.

        Raises:
            InvalidArgumentError: a key came twice, or an example does not fit the features.
        """
        if self.is_prepared:
            return
        self._home.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="incomplete.", suffix=f"_{self.VERSION}", dir=self._home))
        try:
            folder.chmod(0o777 & ~_umask())  # mkdtemp keeps others out; data is for sharing
            progress = Progress()
            generators = self._split_generators()
            splits = {split: self._write(folder, split, generators[split], progress) for split in generators}
            replace(self._described, splits=splits).save(folder)
            try:
                folder.rename(self.data_path)
            except OSError:
                # Another process was faster and has written the same.
                if not self.is_prepared:
                    raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def as_dataset(
        self,
        split: Any = None,
        *,
        batch_size: int | None = None,
        shuffle_files: bool = False,
        as_supervised: bool = False,
    ) -> Any:
        """The examples of `split` as a Dataset; `load` describes the arguments.

        Raises:
            FailedPreconditionError: the data set is not prepared.
        """
        if not self.is_prepared:
            message = f"the data set {self.name!r} is not prepared in {self.data_path}."
            hint = "Call download_and_prepare() first, or load(…, download=True)."
            raise FailedPreconditionError(message, hint=hint)
        info = self.info
        if split is None:
            split = {name: name for name in info.splits}
        read = partial(
            self._read, info, batch_size=batch_size, shuffle_files=shuffle_files, as_supervised=as_supervised
        )
        if isinstance(split, Mapping):
            return {key: read(one) for key, one in split.items()}
        return [read(one) for one in split] if isinstance(split, list | tuple) else read(split)

    # -- how --------------------------------------------------------------------------------------------------------

    def _read(
        self, info: DatasetInfo, split: str, *, batch_size: int | None, shuffle_files: bool, as_supervised: bool
    ) -> Any:
        if split not in info.splits:
            message = f"the data set {self.name!r} has no split {split!r}."
            raise InvalidArgumentError(message, hint=f"Its splits are {', '.join(map(repr, info.splits))}.")
        if as_supervised and info.supervised_keys is None:
            message = f"the data set {self.name!r} names no supervised_keys, so as_supervised=True has no meaning."
            raise InvalidArgumentError(message, hint="Leave as_supervised out and take what you need from the dict.")
        files = [self.data_path / name for name in info.splits[split].filenames(self.name)]
        keys = info.supervised_keys if as_supervised else None
        dataset = read_split(files, info.splits[split], info.features, keys=keys, shuffle_files=shuffle_files)
        return dataset if batch_size is None else dataset.batch(batch_size)

    def _write(self, folder: Path, split: str, examples: Examples, progress: Progress) -> SplitInfo:
        watch = Stopwatch()
        features = self._described.features
        title = f"Generating {split} examples..."
        with (
            SplitWriter(folder, self.name, split, self._num_shards(split)) as writer,
            _closing(examples),
            progress.follow(examples, title, self._num_examples(split)) as counted,
        ):
            for key, example in counted:
                writer.write(key, features.serialize(example))
            info = writer.finish()
        megabytes = info.num_bytes / 1e6
        counts = f"{info.num_examples} examples, {megabytes:.1f} MB in {info.num_shards} shards"
        progress.say(f"{self.name}: {split}: {counts}, {watch.seconds:.1f} s")
        return info

    @property
    def _home(self) -> Path:
        return self._data_dir / self.name / self.config_name

    @cached_property
    def _described(self) -> DatasetInfo:
        return replace(
            self._info(),
            name=self.name,
            version=self.VERSION,
            config_name=self.config_name,
            module_name=type(self).__module__,
            release_notes=dict(self.RELEASE_NOTES),
        )


def _closing(examples: Examples) -> AbstractContextManager[Any]:
    """Ends a generator, and with it the workers it has started, when the loop over it ends early."""
    return closing(examples) if isinstance(examples, Generator) else nullcontext()


def _umask() -> int:
    """The mask of new files; reading it takes setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
