"""FolderBuilder: reads a prepared data set without its builder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.catalog.data_dir import entries, is_file
from penstock.catalog.info import FILE_NAME, DatasetInfo, SplitInfo, read_info
from penstock.catalog.names import newest
from penstock.catalog.recipe import Reading
from penstock.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from penstock.hints import redacted
from penstock.io.writing import place


class FolderBuilder(Reading):
    """Prepared folders of one kind as one data set. A split has the shards of all folders."""

    def __init__(self, *folders: str | os.PathLike[str]) -> None:
        self._folders = [place(folder) for folder in folders]
        for folder in self._folders:
            if not is_file(folder / FILE_NAME):
                message = f"there is no {FILE_NAME} in {redacted(str(folder))}."
                hint = "Name the folder of a version, such as ~/tensorflow_datasets/mnist/3.0.1."
                raise NotFoundError(message, hint=hint, file=str(folder))
        if len(self._folders) > 1:
            self._check_alike()

    def _check_alike(self) -> None:
        first, *others = self._infos
        for folder, other in zip(self._folders[1:], others, strict=True):
            if other.features.entry() != first.features.entry() or other.file_format != first.file_format:
                named = [redacted(str(each)) for each in (folder, self._folders[0])]
                message = f"the features in {named[0]} are not those in {named[1]}."
                raise InvalidArgumentError(message, hint="Only data sets of one kind can be read as one.")

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def data_path(self) -> Path:
        return self._folders[0]

    @cached_property
    def _infos(self) -> list[DatasetInfo]:
        return [read_info(folder) for folder in self._folders]

    @cached_property
    def info(self) -> DatasetInfo:
        if len(self._infos) == 1:
            return self._infos[0]
        found: dict[str, SplitInfo] = {}
        for one in self._infos:
            for name, split in one.splits.items():
                before = found.get(name, SplitInfo(name, (), 0))
                found[name] = SplitInfo(
                    name,
                    before.shard_lengths + split.shard_lengths,
                    before.num_bytes + split.num_bytes,
                    filepaths=before.filepaths + split.filepaths,
                )
        return replace(self._infos[0], splits=found)


def builder_from_directory(folder: str | os.PathLike[str]) -> FolderBuilder:
    """Return the builder of a prepared folder.

    Args:
        folder: The folder of a version, such as `~/tensorflow_datasets/mnist/3.0.1`.

    Returns:
        A builder that reads the folder.

    Raises:
        NotFoundError: If the folder contains no prepared data set.

    Example:
        >>> mnist = builder_from_directory("~/tensorflow_datasets/mnist/3.0.1")  # doctest: +SKIP
    """
    return FolderBuilder(folder)


def builder_from_directories(folders: Sequence[str | os.PathLike[str]]) -> FolderBuilder:
    """Return the builder of several prepared folders, which are read as one data set.

    Args:
        folders: The folders of versions.

    Returns:
        A builder that reads the folders.

    Raises:
        NotFoundError: If a folder contains no prepared data set.
        InvalidArgumentError: If the features of the folders differ.

    Example:
        >>> both = builder_from_directories(["photos/2024/1.0.0", "photos/2025/1.0.0"])  # doctest: +SKIP
    """
    if isinstance(folders, str | os.PathLike):
        folders = [folders]
    if not folders:
        message = "builder_from_directories needs at least one folder."
        raise InvalidArgumentError(message, hint="Each is the folder of a version.")
    return FolderBuilder(*folders)


def find_folder(dirs: Sequence[Path], name: str, config: str | None, version: str | None) -> Path | None:
    """Return the folder of the newest wanted version of a data set, in the first of `dirs` that has one, or None.

    Args:
        dirs: Folders that hold data sets.
        name: Name of the data set.
        config: Name of its config, or None.
        version: Version, also with `*` for parts of it. None stands for any version.

    Returns:
        The folder of the version, or None if no folder has one.

    Raises:
        FailedPreconditionError: If there are several configs and none was named.
    """
    for data_dir in dirs:
        home = data_dir / name / config if config else data_dir / name
        found = newest(_prepared(home), version)
        if found is None and not config:
            found_configs = [one for one in sorted(entries(home)) if newest(_prepared(one), version)]
            if len(found_configs) > 1:
                names = ", ".join(repr(f"{name}/{one.name}") for one in found_configs)
                message = f"several configs of {name!r} are prepared in {home}."
                raise FailedPreconditionError(message, hint=f"Name one of {names}.")
            if found_configs:
                home = found_configs[0]
                found = newest(_prepared(home), version)
        if found is not None:
            return home / found
    return None


def prepared_in(dirs: Sequence[Path]) -> list[str]:
    """Return the names of all data sets that are prepared in `dirs`."""
    found: set[str] = set()
    for data_dir in dirs:
        for home in entries(data_dir):
            if any(home.glob(f"*/{FILE_NAME}")) or any(home.glob(f"*/*/{FILE_NAME}")):
                found.add(home.name)
    return sorted(found)


def found_in(dirs: Sequence[Path], name: str) -> list[str]:
    """Return the prepared variants of a data set, as `name:version` and `name/config:version`."""
    found = [f"{name}:{version}" for version in versions_in(dirs, name, None)]
    for config in configs_in(dirs, name):
        found += [f"{name}/{config}:{version}" for version in versions_in(dirs, name, config)]
    return found


def _prepared(home: Path) -> list[str]:
    """Return the prepared versions of a data set."""
    return [one.name for one in entries(home) if is_file(one / FILE_NAME)]


def configs_in(dirs: Sequence[Path], name: str) -> list[str]:
    """Return the prepared configs of a data set, for error messages."""
    return sorted({one.name for data_dir in dirs for one in entries(data_dir / name) if _prepared(one)})


def versions_in(dirs: Sequence[Path], name: str, config: Any) -> list[str]:
    """Return the prepared versions, for error messages."""
    below = Path(name, config) if config else Path(name)
    return sorted({version for data_dir in dirs for version in _prepared(data_dir / below)})
