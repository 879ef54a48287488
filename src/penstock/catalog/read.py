"""`read_split`: the shards of a split as a Dataset of decoded examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.catalog.features import FeaturesDict
from penstock.catalog.info import FILE_NAME, SplitInfo
from penstock.dataset.dataset import Dataset
from penstock.dataset.tfrecord import TFRecordDataset
from penstock.errors import FailedPreconditionError
from penstock.plan.node import AUTOTUNE
from penstock.plan.stateful import AssertCardinality

# As TFDS reads: enough open files to mix the shards, blocks long enough to read them in stretches.
_CYCLE, _BLOCK = 16, 16


class DecodeExample:
    """From a record to the dict of its values, or to the tuple of those that `keys` name."""

    def __init__(self, features: FeaturesDict, keys: tuple[str, str] | None) -> None:
        self._features, self._keys = features, keys

    def __call__(self, record: bytes) -> Any:
        example = self._features.deserialize(record)
        return example if self._keys is None else tuple(example[key] for key in self._keys)


def read_split(
    files: Sequence[Path],
    split: SplitInfo,
    features: FeaturesDict,
    *,
    keys: tuple[str, str] | None,
    shuffle_files: bool,
) -> Dataset:
    """The examples in `files`, parsed and decoded in parallel, in an order that is fixed by the files alone.

    Raises:
        FailedPreconditionError: a shard is missing.
    """
    missing = [path.name for path in files if not path.is_file()]
    if missing:
        message = f"{len(missing)} of {len(files)} shards are missing, the first is {missing[0]}."
        hint = f"Delete {files[0].parent} and prepare again."
        raise FailedPreconditionError(message, hint=hint)
    names = Dataset.from_tensor_slices([str(path) for path in files])
    if shuffle_files:
        names = names.shuffle(len(files))
    records = names.interleave(TFRecordDataset, cycle_length=_CYCLE, block_length=_BLOCK, num_parallel_calls=AUTOTUNE)
    # Counted in front of the map, so that a batch which follows still meets the map and is filled by its workers.
    info = str(files[0].parent / FILE_NAME)
    records = records._then(AssertCardinality, expected_cardinality=split.num_examples, file=info)
    return records.map(DecodeExample(features, keys), num_parallel_calls=AUTOTUNE)
