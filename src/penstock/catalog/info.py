"""DatasetInfo and SplitInfo: the description of a data set, and `dataset_info.json` in tfds's format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

from penstock.catalog.features import FeaturesDict
from penstock.catalog.features.from_json import load_features
from penstock.catalog.splits import as_split, known
from penstock.errors import DataLossError, InvalidArgumentError
from penstock.hints import size_text
from penstock.io.writing import place

FILE_NAME = "dataset_info.json"
METADATA = "metadata.json"
TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"


class FileInstruction(NamedTuple):
    """The `take` examples of a shard after the first `skip`. The shard has `examples_in_shard` examples."""

    filename: str
    skip: int
    take: int
    examples_in_shard: int


class _Shards:
    """The shards of a split, or the shards with examples of a slice."""

    filepaths: tuple[Path, ...]
    shard_lengths: tuple[int, ...]

    @property
    def filenames(self) -> list[str]:
        """The names of the shards, in order.

        >>> SplitInfo("train", (3, 2), 100, filepaths=(Path("a/x-train-0"), Path("a/x-train-1"))).filenames
        ['x-train-0', 'x-train-1']
        """
        return [path.name for path in self.filepaths]

    @property
    def num_examples(self) -> int:
        return sum(self.shard_lengths)

    @property
    def num_shards(self) -> int:
        return len(self.shard_lengths)


@dataclass(frozen=True)
class SplitInfo(_Shards):
    """Description of a split.

    Attributes:
        name: Name of the split.
        shard_lengths: Number of examples in each shard.
        num_bytes: Number of bytes of all records.
        template: Pattern of the file names.
        filepaths: Files of the shards; empty for a data set without shards, such as a folder of images.

    Example:
        >>> SplitInfo("train", (60, 65), 1000).num_examples
        125
    """

    name: str
    shard_lengths: tuple[int, ...]
    num_bytes: int
    template: str = TEMPLATE
    filepaths: tuple[Path, ...] = ()

    @property
    def file_instructions(self) -> list[FileInstruction]:
        """All examples of each shard."""
        return self.part(0, self.num_examples)

    def part(self, start: int, stop: int) -> list[FileInstruction]:
        """Return the examples of each shard that are among the examples `start` to `stop` of the split."""
        found, begin = [], 0
        for path, length in zip(self.filepaths or repeat(""), self.shard_lengths, strict=False):
            first, last = max(start - begin, 0), min(stop - begin, length)
            if first < last:
                found.append(FileInstruction(str(path), first, last - first, length))
            begin += length
        return found

    @property
    def summary(self) -> str:
        """The size in words.

        >>> SplitInfo("train", (1200,), 81_500).summary
        '1,200 examples, 81.5 kB in 1 shard'
        """
        counts = ((self.num_examples, "example"), (self.num_shards, "shard"))
        examples, shards = (f"{count:,} {name}{'' if count == 1 else 's'}" for count, name in counts)
        return f"{examples}, {size_text(self.num_bytes)} in {shards}"

    def __repr__(self) -> str:
        return f"<SplitInfo num_examples={self.num_examples}, num_shards={self.num_shards}>"


def shard_name(
    dataset: str, split: str, number: int, count: int, template: str = TEMPLATE, file_format: str = "tfrecord"
) -> str:
    """Return the file name of shard `number` of `count`."""
    digits = max(len(str(count)), 5)
    index, of = f"{number:0{digits}d}", f"{count:0{digits}d}"
    return template.format(
        DATASET=dataset,
        SPLIT=split,
        FILEFORMAT=file_format,
        SHARD_INDEX=index,
        NUM_SHARDS=of,
        SHARD_X_OF_Y=f"{index}-of-{of}",
    )


@dataclass(frozen=True)
class SubSplitInfo(_Shards):
    """Some examples of some splits, such as `info.splits["train[:10%]"]`."""

    name: str
    shard_lengths: tuple[int, ...]
    filepaths: tuple[Path, ...]
    file_instructions: list[FileInstruction]

    def __repr__(self) -> str:
        return f"<SubSplitInfo {self.name!r} num_examples={self.num_examples}, num_shards={self.num_shards}>"


class SplitDict(Mapping[str, Any]):
    """The splits of a data set by name. A slice such as "train[:10%]" is a valid key too."""

    def __init__(self, splits: Mapping[str, SplitInfo]) -> None:
        self._splits = dict(splits)

    def __getitem__(self, name: Any) -> Any:
        if name in self._splits:
            return self._splits[name]
        parts = as_split(name).parts(self._splits)
        files = [file for part in parts for file in self._splits[part.split].part(part.start, part.stop)]
        lengths, paths = tuple(file.take for file in files), tuple(place(file.filename) for file in files)
        return SubSplitInfo(str(name), lengths, paths, files)

    def __contains__(self, name: object) -> bool:
        return name in self._splits

    def __iter__(self) -> Iterator[str]:
        return iter(self._splits)

    def __len__(self) -> int:
        return len(self._splits)

    @property
    def total_num_examples(self) -> int:
        return sum(split.num_examples for split in self._splits.values())

    def __repr__(self) -> str:
        return repr(self._splits)


@dataclass(frozen=True)
class DatasetInfo:
    """The description of a data set. `_info()` of a Builder sets the first attributes, the preparation the others.

    - `features`: A `FeaturesDict`, or a dict of features.
    - `disable_shuffling`: If True, examples are stored and read in the order of their keys, which must be numbers.
      Otherwise the order is that of the hashes of the keys.
    - `metadata`: Notes of the preparation: `skipped` lists unusable inputs and the reasons.

    Example:
        >>> import numpy as np, penstock as ps
        >>> info = ps.catalog.DatasetInfo(features={"x": np.int64, "label": np.int64}, supervised_keys=("x", "label"))
        >>> info.features
        FeaturesDict({
            'label': int64,
            'x': int64,
        })
    """

    features: FeaturesDict
    description: str = ""
    supervised_keys: tuple[Any, ...] | None = None
    homepage: str = ""
    citation: str = ""
    license: str = ""
    name: str = ""
    version: str = ""
    config_name: str = ""
    config_description: str = ""
    module_name: str = ""
    file_format: str = "tfrecord"
    download_size: int = 0
    disable_shuffling: bool = False
    release_notes: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    data_dir: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.features, FeaturesDict):
            object.__setattr__(self, "features", FeaturesDict(self.features))
        object.__setattr__(self, "splits", SplitDict(self.splits) if isinstance(self.splits, dict) else self.splits)
        for key in _names(self.supervised_keys or ()):
            if key not in self.features:
                message = f"supervised_keys must name features, got {key!r}."
                raise InvalidArgumentError(message, hint=f"The features are {', '.join(map(repr, self.features))}.")

    @property
    def full_name(self) -> str:
        """The name as `name/config/version`."""
        return "/".join(part for part in (self.name, self.config_name, self.version) if part)

    @property
    def dataset_size(self) -> int:
        """Number of bytes of the records of all splits."""
        return sum(split.num_bytes for split in self.splits.values())

    def __repr__(self) -> str:
        """Return the description in the layout of tfds."""
        splits = "".join(f"    {name!r}: {split!r},\n" for name, split in self.splits.items())
        facts = {
            "name": repr(self.name),
            "full_name": repr(self.full_name),
            "description": _quoted(self.description) if self.description else "''",
            "config_description": _quoted(self.config_description) if self.config_description else None,
            "homepage": repr(self.homepage),
            "data_dir": repr(self.data_dir),
            "file_format": self.file_format,
            "download_size": size_text(self.download_size) if self.download_size else "unknown",
            "dataset_size": size_text(self.dataset_size) if self.splits else "unknown",
            "features": repr(self.features),
            "supervised_keys": repr(self.supervised_keys),
            "disable_shuffling": self.disable_shuffling,
            "splits": f"{{\n{splits}}}",
            "citation": _quoted(self.citation) if self.citation else None,
            "license": repr(self.license) if self.license else None,
        }
        lines = [f"{name}={fact},".replace("\n", "\n    ") for name, fact in facts.items() if fact is not None]
        return "\n    ".join(["DatasetInfo(", *lines]) + "\n)"

    def to_json(self) -> dict[str, Any]:
        """Return `dataset_info.json` in the format of tfds (protocol-buffer JSON, with 64-bit integers as text)."""
        content: dict[str, Any] = {
            "citation": self.citation,
            "configDescription": self.config_description,
            "configName": self.config_name,
            "description": self.description,
            "disableShuffling": self.disable_shuffling,
            "downloadSize": str(self.download_size) if self.download_size else "",
            "fileFormat": self.file_format,
            "location": {"urls": [self.homepage]} if self.homepage else {},
            "moduleName": self.module_name,
            "name": self.name,
            "redistributionInfo": {"license": self.license} if self.license else {},
            "releaseNotes": dict(self.release_notes),
            "splits": [
                {
                    "filepathTemplate": split.template,
                    "name": split.name,
                    "numBytes": str(split.num_bytes),
                    "shardLengths": [str(length) for length in split.shard_lengths],
                }
                for split in self.splits.values()
            ],
            "version": self.version,
        }
        if self.supervised_keys is not None:
            content["supervisedKeys"] = _nest_json(self.supervised_keys)
        return {key: value for key, value in sorted(content.items()) if value or key == "splits"}

    def save(self, folder: Path) -> None:
        """Write `dataset_info.json` and the files of the features into `folder`."""
        self.features.save_metadata(folder)
        if self.metadata:
            (folder / METADATA).write_text(json.dumps(dict(self.metadata), indent=2), encoding="utf-8")
        (folder / FILE_NAME).write_text(json.dumps(self.to_json(), indent=2), encoding="utf-8")

    def with_splits_of(self, folder: Path) -> DatasetInfo:
        """Return this description with the results of the preparation in `folder`: splits, sizes, skipped inputs.

        Raises:
            DataLossError: If the file does not have the format of a preparation.
        """
        found = _read(folder)
        return replace(
            self,
            **{
                key: found[key]
                for key in ("splits", "file_format", "download_size", "metadata", "data_dir", "module_name")
            },
        )


def read_info(folder: Path) -> DatasetInfo:
    """Return the description in `dataset_info.json` and `features.json` of a prepared folder.

    Raises:
        DataLossError: If a file is missing, or does not have the format of tfds.
    """
    found = _read(folder)
    return DatasetInfo(features=load_features(folder), **found)


def _read(folder: Path) -> dict[str, Any]:
    path = folder / FILE_NAME
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        splits = [_split(split, entry, folder) for split in entry["splits"]]
        notes = folder / METADATA
        return {
            "description": entry.get("description", ""),
            "supervised_keys": _nest(entry.get("supervisedKeys")),
            "homepage": "".join(entry.get("location", {}).get("urls", [])[:1]),
            "citation": entry.get("citation", ""),
            "license": entry.get("redistributionInfo", {}).get("license", ""),
            "name": entry.get("name", ""),
            "version": entry.get("version", folder.name),
            "config_name": entry.get("configName", ""),
            "config_description": entry.get("configDescription", ""),
            "module_name": entry.get("moduleName", ""),
            "file_format": entry.get("fileFormat", "tfrecord"),
            "download_size": int(entry.get("downloadSize") or entry.get("sizeInBytes") or 0),
            "disable_shuffling": bool(entry.get("disableShuffling")),
            "release_notes": entry.get("releaseNotes", {}),
            "splits": {split.name: split for split in splits},
            "metadata": json.loads(notes.read_text(encoding="utf-8")) if notes.is_file() else {},
            "data_dir": str(folder),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{FILE_NAME} does not describe a prepared data set ({type(error).__name__}: {error})."
        raise DataLossError(message, hint="Delete its folder and prepare again.", file=str(path)) from error


def _split(entry: Any, info: Any, folder: Path) -> SplitInfo:
    lengths = tuple(map(int, entry.get("shardLengths", ())))
    if not lengths and int(entry.get("numShards") or 0):
        raise ValueError(f"split {entry['name']!r} has no shardLengths, as before tfds 3")
    template, kind = entry.get("filepathTemplate") or TEMPLATE, info.get("fileFormat", "tfrecord")
    names = (info.get("name", ""), entry["name"])
    files = (shard_name(*names, number, len(lengths), template, kind) for number in range(len(lengths)))
    paths = tuple(folder / file for file in files)
    return SplitInfo(entry["name"], lengths, int(entry.get("numBytes") or 0), template, paths)


def _quoted(text: str) -> str:
    return f'"""\n{text.strip()}\n"""'


def _names(keys: Any) -> Iterator[str]:
    if isinstance(keys, str):
        yield keys
    else:
        for key in keys.values() if isinstance(keys, Mapping) else keys:
            yield from _names(key)


def _nest_json(keys: Any) -> dict[str, Any]:
    if isinstance(keys, str):
        return {"featureKey": keys}
    if isinstance(keys, Mapping):
        return {"dict": {"dict": [{"key": key, "value": _nest_json(inner)} for key, inner in sorted(keys.items())]}}
    return {"tuple": {"items": [_nest_json(key) for key in keys]}}


def _nest(entry: Any) -> Any:
    if not entry:
        return None
    if "input" in entry:  # the format of the first versions
        return entry["input"], entry["output"]
    if "featureKey" in entry:
        return entry["featureKey"]
    if "dict" in entry:
        return {item["key"]: _nest(item["value"]) for item in entry["dict"]["dict"]}
    return tuple(_nest(item) for item in entry["tuple"]["items"])


def supervised(example: Mapping[str, Any], keys: Any) -> Any:
    """Return the values for `keys`, a nest of names."""
    if isinstance(keys, str):
        return example[keys]
    if isinstance(keys, Mapping):
        return {key: supervised(example, inner) for key, inner in keys.items()}
    return tuple(supervised(example, key) for key in keys)


__all__ = ["DatasetInfo", "SplitDict", "SplitInfo", "SubSplitInfo", "known", "read_info", "shard_name", "supervised"]
