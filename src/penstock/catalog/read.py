"""The function `read_split` returns the examples of a prepared folder as a Dataset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.block.spec import TensorSpec
from penstock.catalog.features import FeaturesDict
from penstock.catalog.features.decoders import PartialDecoding, SkipDecoding
from penstock.catalog.features.feature import Feature, Stored
from penstock.catalog.info import DatasetInfo, FileInstruction, supervised
from penstock.catalog.shards import ShardsSource, Stretch, check_format
from penstock.dataset.dataset import Dataset
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.hints import redacted
from penstock.io.writing import place
from penstock.plan.inputs import Scan
from penstock.plan.node import AUTOTUNE, check_int


@dataclass
class ReadConfig:
    """Settings of reading shards, with tfds's names.

    Attributes:
        interleave_cycle_length: Number of shards that are read in turn. 1 reads one shard after another.
        interleave_block_length: Number of consecutive examples of each shard.
        shuffle_seed: Seed of the order of `shuffle_files`.
        shuffle_reshuffle_each_iteration: If True, each epoch has another order.
        add_tfds_id: If True, examples have "tfds_id": the file, and the number of the example in it.

    Example:
        >>> ReadConfig(interleave_cycle_length=1).interleave_block_length
        16
    """

    interleave_cycle_length: int | None = None
    interleave_block_length: int = 16
    shuffle_seed: int | None = None
    shuffle_reshuffle_each_iteration: bool = True
    add_tfds_id: bool = False

    def __post_init__(self) -> None:
        if self.interleave_cycle_length is not None:
            hint = "1 reads one shard after the other."
            check_int("interleave_cycle_length", self.interleave_cycle_length, least=1, hint=hint)
        hint = "So many examples of a shard come before those of the next."
        check_int("interleave_block_length", self.interleave_block_length, least=1, hint=hint)

    def files(self, found: list[FileInstruction]) -> list[FileInstruction]:
        """Return the data set of a split from `found`, its whole data. A subclass selects and orders."""
        return found


class DecodeExample:
    """Decodes a record to the dict of its values, or to the nest of values that `keys` name."""

    def __init__(self, features: FeaturesDict, keys: Any, decoders: Mapping[str, Any] | None) -> None:
        self._features, self._keys, self._decoders = features, keys, decoders

    @property
    def label_names(self) -> list[str] | None:
        """The names of the classes, if the examples have one label. `viz` writes them below images."""
        labels: list[Any] = [one for one in self._features.values() if getattr(one, "has_names", False)]
        return labels[0].names if len(labels) == 1 else None

    def __penstock_spec__(self, record: Any) -> Any:
        """Return the nest of specs of the result by the features, or None if a feature has no fixed spec."""
        using = self._decoders or {}
        found = {name: _spec(feature, using.get(name)) for name, feature in self._features.items()}
        if None in found.values():
            return None
        found |= {"tfds_id": record[1]} if isinstance(record, tuple) else {}
        return found if self._keys is None else supervised(found, self._keys)

    def __call__(self, record: bytes, tfds_id: Any = None) -> Any:
        example = self._features.deserialize(record, self._decoders)
        example |= {} if tfds_id is None else {"tfds_id": tfds_id}
        return example if self._keys is None else supervised(example, self._keys)


def _spec(feature: Feature, decoder: Any) -> Any:
    """Return the spec of a feature that is decoded by `decoder`, or by itself."""
    if decoder is None:
        return feature.spec()
    stored = feature.stored() if isinstance(decoder, SkipDecoding) else None
    return TensorSpec(stored.shape, stored.dtype) if isinstance(stored, Stored) and not stored.shape else None


class _ShardRecords:
    """The records of shard number `number`, for shards in random order."""

    def __init__(self, source: ShardsSource, config: ReadConfig) -> None:
        self._source, self._config = source, config

    def __call__(self, number: Any) -> Dataset:
        return _scan(replace(self._source, stretches=(self._source.stretches[int(number)],)), self._config)


def read_split(
    folder: Path,
    info: DatasetInfo,
    split: Any,
    *,
    keys: Any = None,
    decoders: Any = None,
    shuffle_files: bool = False,
    read_config: ReadConfig | None = None,
) -> Dataset:
    """Return the examples of `split`, decoded in parallel. The order depends only on the files.

    Raises:
        InvalidArgumentError: If there is no such split, or if it has no such examples.
        FailedPreconditionError: If a needed shard is missing.
    """
    config = read_config or ReadConfig()
    check_format(info.file_format)
    source = ShardsSource(
        _stretches(folder, config.files(info.splits[split].file_instructions)),
        info.file_format,
        cycle=config.interleave_cycle_length or (1 if info.disable_shuffling else 16),
        block=config.interleave_block_length,
    )
    records = _scan(source, config)
    if shuffle_files and len(source.stretches) > 1:
        numbers = Dataset.range(len(source.stretches)).shuffle(
            len(source.stretches), config.shuffle_seed, config.shuffle_reshuffle_each_iteration
        )
        records = numbers.interleave(
            _ShardRecords(source, config),
            cycle_length=source.cycle,
            block_length=source.block,
            num_parallel_calls=AUTOTUNE,
        ).apply(_counted(source.cardinality, folder))
    return decoded(records, info.features, keys, decoders)


def _counted(count: int, folder: Path) -> Any:
    from penstock.plan.stateful import AssertCardinality

    # This step comes before the map, so that the workers of a following batch also run the map.
    return lambda records: records._then(AssertCardinality, expected_cardinality=count, file=str(folder))


def decoded(records: Dataset, features: FeaturesDict, keys: Any, decoders: Any) -> Dataset:
    """Return the examples in `records`, or the nest of values that `keys` name."""
    if isinstance(decoders, SkipDecoding):
        return records
    if isinstance(decoders, PartialDecoding):
        features, decoders = decoders.of(features), decoders.decoders
    if decoders is not None and not isinstance(decoders, Mapping):
        message = f"decoders must be a dict of feature names, PartialDecoding or SkipDecoding, got {decoders!r}."
        raise InvalidArgumentError(message, hint='For example {"image": SkipDecoding()}.')
    for name in decoders or ():
        if name not in features:
            message = f"decoders name {name!r}, which is not a feature."
            raise InvalidArgumentError(message, hint=f"The features are {', '.join(map(repr, features))}.")
    _ = features.codec  # raises an error about unreadable features once, instead of for each element
    return records.map(DecodeExample(features, keys, decoders), num_parallel_calls=AUTOTUNE)


def _stretches(folder: Path, files: list[FileInstruction]) -> tuple[Stretch, ...]:
    paths = [place(file.filename) for file in files]
    there = {entry for home in {path.parent for path in paths} for entry in home.iterdir()}
    missing = [path.name for path in paths if path not in there]
    if missing:
        message = f"{len(missing)} of {len(files)} shards are missing, the first is {missing[0]}."
        raise FailedPreconditionError(message, hint=f"Delete {redacted(str(folder))} and prepare again.")
    return tuple(Stretch(name, skip, skip + take, length) for name, skip, take, length in files)


def _scan(source: ShardsSource, config: ReadConfig) -> Dataset:
    records = Dataset._of(Scan(source=source))
    if not config.add_tfds_id:
        return records
    return Dataset.zip(
        records, Dataset.from_tensor_slices([f"{Path(file).name}__{row}" for file, row in source.places()])
    )
