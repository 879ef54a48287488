"""DatasetInfo and SplitInfo: what is known about a data set, and `dataset_info.json` in TFDS's format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.catalog.features import FeaturesDict
from penstock.errors import DataLossError, InvalidArgumentError

FILE_NAME = "dataset_info.json"
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


@dataclass(frozen=True)
class SplitInfo:
    """One split: how many examples lie in each shard, and how many bytes the records hold."""

    name: str
    shard_lengths: tuple[int, ...]
    num_bytes: int

    @property
    def num_examples(self) -> int:
        return sum(self.shard_lengths)

    @property
    def num_shards(self) -> int:
        return len(self.shard_lengths)

    def filenames(self, dataset: str) -> list[str]:
        """Names of the shards in order.

        >>> SplitInfo("train", (3, 2), 100).filenames("shapes")
        ['shapes-train.tfrecord-00000-of-00002', 'shapes-train.tfrecord-00001-of-00002']
        """
        return [shard_name(dataset, self.name, number, self.num_shards) for number in range(self.num_shards)]


def shard_name(dataset: str, split: str, number: int, count: int) -> str:
    """The file name of shard `number` of `count`."""
    return f"{dataset}-{split}.tfrecord-{number:05d}-of-{count:05d}"


@dataclass(frozen=True)
class DatasetInfo:
    """What is known about a data set; a Builder's `_info()` gives the first five, preparing it the rest."""

    features: FeaturesDict
    description: str = ""
    supervised_keys: tuple[str, str] | None = None
    homepage: str = ""
    citation: str = ""
    name: str = ""
    version: str = ""
    config_name: str = ""
    module_name: str = ""
    release_notes: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, SplitInfo] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in self.supervised_keys or ():
            if key not in self.features:
                message = f"supervised_keys must name features, got {key!r}."
                raise InvalidArgumentError(message, hint=f"The features are {', '.join(map(repr, self.features))}.")

    def to_json(self) -> dict[str, Any]:
        """`dataset_info.json` as TFDS writes it (protocol-buffer JSON: 64-bit integers are text)."""
        content: dict[str, Any] = {
            "citation": self.citation,
            "configName": self.config_name,
            "description": self.description,
            "fileFormat": "tfrecord",
            "location": {"urls": [self.homepage]} if self.homepage else {},
            "moduleName": self.module_name,
            "name": self.name,
            "releaseNotes": dict(self.release_notes),
            "splits": [
                {
                    "filepathTemplate": _TEMPLATE,
                    "name": split.name,
                    "numBytes": str(split.num_bytes),
                    "shardLengths": [str(length) for length in split.shard_lengths],
                }
                for split in self.splits.values()
            ],
            "version": self.version,
        }
        if self.supervised_keys is not None:
            items = [{"featureKey": key} for key in self.supervised_keys]
            content["supervisedKeys"] = {"tuple": {"items": items}}
        return {key: value for key, value in sorted(content.items()) if value or key == "splits"}

    def save(self, folder: Path) -> None:
        """Write `dataset_info.json`, and what belongs to the features, into `folder`."""
        self.features.save_metadata(folder)
        (folder / FILE_NAME).write_text(json.dumps(self.to_json(), indent=2), encoding="utf-8")

    def with_splits_of(self, folder: Path) -> DatasetInfo:
        """This, with the splits that `dataset_info.json` in `folder` lists.

        Raises:
            DataLossError: the file is not what a preparation writes.
        """
        path = folder / FILE_NAME
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))["splits"]
            splits = [
                SplitInfo(entry["name"], tuple(map(int, entry["shardLengths"])), int(entry["numBytes"]))
                for entry in entries
            ]
        except (ValueError, KeyError, TypeError) as error:
            message = f"{FILE_NAME} does not describe a prepared data set ({type(error).__name__}: {error})."
            raise DataLossError(message, hint="Delete its folder and prepare again.", file=str(path)) from error
        return replace(self, splits={split.name: split for split in splits})
