"""DataRecipe: the description of a data set and of its examples, which a `Builder` prepares."""

from __future__ import annotations

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

from penstock.catalog.data_dir import Given, data_dirs, is_file
from penstock.catalog.data_dir import data_dir as chosen_data_dir
from penstock.catalog.download.manager import Checksum, DownloadManager
from penstock.catalog.info import FILE_NAME, DatasetInfo, read_info
from penstock.catalog.names import is_version, snake_case
from penstock.catalog.nests import each_of
from penstock.catalog.progress import Reporter
from penstock.catalog.read import ReadConfig, read_split
from penstock.catalog.spool import Key
from penstock.dataset.dataset import Dataset
from penstock.errors import FailedPreconditionError, InvalidArgumentError, InvalidTypeError
from penstock.hints import redacted


@dataclass(frozen=True, kw_only=True)
class BuilderConfig:
    """A variant of a data set. Derive from this class to add other settings of the variant.

    Attributes:
        name: Name of the variant.
        description: Description of the variant.

    Example:
        >>> BuilderConfig(name="small", description="A tenth of it.").name
        'small'
    """

    name: str
    description: str = ""


@dataclass(frozen=True)
class Skipped:
    """An input that cannot be used, in place of an example. It is counted and listed in the metadata of the data set.

    Attributes:
        name: Name of the input.
        reason: Reason why it cannot be used.

    Example:
        >>> Skipped("photo-17.jpg", "it is empty").reason
        'it is empty'
    """

    name: str
    reason: str


Made = tuple[Key, Mapping[str, Any]] | Skipped | None


@dataclass(frozen=True)
class Each:
    """Items from which a function computes examples, for `Builder._split_generators`.

    Items are computed in parallel by threads or processes, whichever is faster, or one after another if they are cheap.
    An interrupted preparation continues with the remaining items.

    Attributes:
        items: The items.
        function: A function of an item that returns a pair of key and example, a `Skipped`, or None. It depends on the
            item only.

    Example:
        >>> squares = Each(range(3), lambda x: (x, {"square": x * x}))
        >>> [squares.function(item) for item in squares.items]
        [(0, {'square': 0}), (1, {'square': 1}), (2, {'square': 4})]
    """

    items: Sequence[Any]
    function: Callable[[Any], Made]

    def __len__(self) -> int:
        return len(self.items)


Examples = Each | Iterable[tuple[Key, Mapping[str, Any]] | Skipped]


class Reading(ABC):
    """The interface of a prepared data set, for any preparing program."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the data set."""

    @property
    @abstractmethod
    def data_path(self) -> Path:
        """The folder of the prepared data."""

    @property
    @abstractmethod
    def info(self) -> DatasetInfo:
        """The description of the data set."""

    @property
    def is_prepared(self) -> bool:
        return is_file(self.data_path / FILE_NAME)

    def download_and_prepare(  # noqa: B027 - most data sets need no preparation
        self,
        *,
        download_dir: str | os.PathLike[str] | None = None,
        manual_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        """Write the data set to disk, unless it is there already. Files that need no preparation stay as they are."""

    def as_dataset(
        self,
        split: Any = None,
        *,
        batch_size: int | None = None,
        shuffle_files: bool = False,
        decoders: Any = None,
        read_config: ReadConfig | None = None,
        as_supervised: bool = False,
    ) -> Any:
        """Return the prepared examples of one or more splits.

        Args:
            split: A split or a slice of one, such as `"train[:80%]"`, or a nest of them. None returns all splits.
            batch_size: If not None, the number of examples in each batch.
            shuffle_files: If True, read the shards in another order in each epoch.
            decoders: Features that are not decoded or not read, as in `load`.
            read_config: The number of shards that are read in turn, and the seed of `shuffle_files`.
            as_supervised: If True, elements are pairs (input, target) instead of dicts.

        Returns:
            A Dataset, or a nest of them in the structure of `split`.

        Raises:
            FailedPreconditionError: If the data set is not prepared.
            InvalidArgumentError: If `as_supervised` is True and the data set has no `supervised_keys`.
        """
        if not self.is_prepared:
            message = f"the data set {self.name!r} is not prepared in {redacted(str(self.data_path))}."
            hint = "Call download_and_prepare() first, or load(…, download=True)."
            raise FailedPreconditionError(message, hint=hint)
        info = self.info
        if as_supervised and info.supervised_keys is None:
            message = f"the data set {self.name!r} names no supervised_keys, so as_supervised=True has no meaning."
            raise InvalidArgumentError(message, hint="Leave as_supervised out and take what you need from the dict.")
        read = partial(
            self._read,
            keys=info.supervised_keys if as_supervised else None,
            decoders=decoders,
            shuffle_files=shuffle_files,
            read_config=read_config,
        )
        names = {name: name for name in info.splits} if split is None else split
        return each_of(names, read if batch_size is None else lambda one: read(one).batch(batch_size))

    def _read(
        self, split: Any, *, keys: Any, decoders: Any, shuffle_files: bool, read_config: ReadConfig | None
    ) -> Dataset:
        """Return one split, or a slice of one, as a Dataset."""
        chosen = {"decoders": decoders, "shuffle_files": shuffle_files, "read_config": read_config}
        return read_split(self.data_path, self.info, split, keys=keys, **chosen)


class DataRecipe(Reading):
    """The part of a `Builder` that describes a data set: its settings, features, splits and downloads."""

    VERSION: ClassVar[str]
    RELEASE_NOTES: ClassVar[Mapping[str, str]] = {}
    BUILDER_CONFIGS: ClassVar[Sequence[BuilderConfig]] = ()
    CHECKSUMS: ClassVar[Mapping[str, Checksum]] = {}
    EXAMPLES: ClassVar[Mapping[str, int]] = {}  # known number of examples per split, for the progress and `info`
    MANUAL_DOWNLOAD_INSTRUCTIONS: ClassVar[str | None] = None

    def __init__(self, *, data_dir: Given = None, config: str | BuilderConfig | None = None) -> None:
        version = getattr(self, "VERSION", None)
        if not is_version(version):
            message = f"{type(self).__name__} must have a VERSION of three numbers, got {version!r}."
            raise InvalidArgumentError(message, hint='For example VERSION = "1.0.0".')
        self._data_dir, self._look_in = chosen_data_dir(data_dir), data_dirs(data_dir)
        self.builder_config = self._config_of(config)
        self.downloaded_bytes = 0
        self._download_dir: Path | None = None
        self._manual_dir: Path | None = None
        self._progress: Reporter | None = None

    def _config_of(self, config: str | BuilderConfig | None) -> BuilderConfig | None:
        known = {one.name: one for one in self.BUILDER_CONFIGS}
        if config is None:
            return next(iter(known.values()), None)
        if isinstance(config, BuilderConfig):
            return config
        if config not in known:
            message = f"the data set {self.name!r} has no config {config!r}."
            hint = f"Its configs are {', '.join(map(repr, known))}." if known else "It has none."
            raise InvalidArgumentError(message, hint=hint)
        return known[config]

    # -- methods of a recipe --------------------------------------------------------------------------------------

    @abstractmethod
    def _info(self) -> DatasetInfo:
        """Return features, description, supervised keys, homepage, citation."""

    @abstractmethod
    def _split_generators(self, *arguments: Any) -> Mapping[str, Examples]:
        """Return the examples of each split: pairs of a unique key and an example, or an `Each`.

        If the method has a parameter, it gets the `DownloadManager`.
        """

    def _num_examples(self, split: str) -> int | None:
        """Return the number of examples of `split` for the progress bar, or None if it is not known yet."""
        return self.expected_examples.get(split)

    def _num_shards(self, split: str) -> int | None:
        """Return the number of shards to write. None: depends on the size."""
        return None

    def _max_skipped(self, split: str) -> int | None:
        """Return the number of inputs that may be `Skipped` without an error. None: any number."""
        return 0

    @property
    def config_name(self) -> str:
        """The part of the folder name that identifies the variant of the data set. Empty for the default."""
        return self.builder_config.name if self.builder_config else ""

    @property
    def expected_examples(self) -> Mapping[str, int]:
        """The number of examples of each split, as far as it is known before the preparation."""
        return self.EXAMPLES

    @property
    def expected_downloads(self) -> Mapping[str, Checksum]:
        """The files to download, by address."""
        return self.CHECKSUMS

    @property
    def expected_download_size(self) -> int | None:
        """The number of bytes of these files together, or None if it is not known."""
        sizes = [known.size for known in self.expected_downloads.values()]
        return sum(size for size in sizes if size is not None) if sizes and None not in sizes else None

    # -- methods for users ----------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The class name in snake case: `CatsVsDogs` is "cats_vs_dogs"."""
        return snake_case(type(self).__name__)

    @property
    def data_path(self) -> Path:
        """The folder of the prepared data: the first of several that contains it, otherwise the first."""
        below = Path(self.name, self.config_name, self.VERSION)
        for folder in self._look_in:
            if is_file(folder / below / FILE_NAME):
                return folder / below
        return self._data_dir / below

    @property
    def info(self) -> DatasetInfo:
        """The description of the data set. Its splits are known after the preparation."""
        if not self.is_prepared:
            return self._described
        found = self._described.with_splits_of(self.data_path)
        if found.module_name == self._described.module_name:
            found.features.load_metadata(self.data_path)  # names of classes that were read from a download
            return found
        return read_info(self.data_path)  # another program prepared it: its features.json describes the records

    # -- implementation ---------------------------------------------------------------------------------------------

    @property
    def arguments(self) -> dict[str, Any]:
        """The plain attributes that distinguish this builder from others of its class."""
        plain = (str, int, float, bool, tuple, list, range, type(None))
        return {key: value for key, value in vars(self).items() if isinstance(value, plain) and key[0] != "_"}

    def split_generators(self) -> Mapping[str, Examples]:
        """Return the result of `_split_generators`, called with the download manager if it has a parameter."""
        if not inspect.signature(self._split_generators).parameters:
            return self._split_generators()
        assert self._download_dir is not None
        manager = DownloadManager(
            self._download_dir,
            name=self.name,
            checksums=self.CHECKSUMS,
            manual_dir=self._manual_dir,
            instructions=self.MANUAL_DOWNLOAD_INSTRUCTIONS,
            progress=self._progress,
        )
        found = self._split_generators(manager)
        self.downloaded_bytes = manager.downloaded_bytes
        return found

    @cached_property
    def _described(self) -> DatasetInfo:
        config, info = self.builder_config, self._info()
        if not isinstance(info, DatasetInfo):
            message = f"_info() must return a DatasetInfo, got {type(info).__name__}."
            raise InvalidTypeError(message, hint='For example DatasetInfo(features={"image": features.Image()}).')
        return replace(
            info,
            name=self.name,
            version=self.VERSION,
            config_name=self.config_name,
            config_description=config.description if config else "",
            module_name=type(self).__module__,
            download_size=info.download_size or self.expected_download_size or 0,
            release_notes=dict(self.RELEASE_NOTES),
        )
