"""`load`: from a name to a Dataset."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from penstock.catalog.registry import builder


def load(
    name: str,
    *,
    split: Any = None,
    data_dir: str | os.PathLike[str] | None = None,
    batch_size: int | None = None,
    shuffle_files: bool = False,
    download: bool = True,
    as_supervised: bool = False,
    with_info: bool = False,
    builder_kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Prepare the data set `name` if that has not been done, and return it as a Dataset of its examples.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     test = load("shapes", split="test", data_dir=folder, builder_kwargs={"num_examples": 40})
    ...     len(test), sorted(next(iter(test)))
    (10, ['image', 'label'])

    Args:
        name: one of `list_builders()`.
        split: a name ("train"), a list or dict of names for a list or dict of Datasets; None for a dict of all.
        data_dir: where prepared data lives; by default $PENSTOCK_DATA_DIR, else `penstock_datasets` in the home folder.
        batch_size: batches of this many examples; by default single examples.
        shuffle_files: read the shards in an order drawn from the seed, another one each epoch.
        download: prepare what is not there yet; with False that is an error.
        as_supervised: `(input, target)` as the data set's `supervised_keys` name them, in place of a dict.
        with_info: return `(dataset, info)`.
        builder_kwargs: arguments for the builder, such as `num_examples` of `shapes`.

    Raises:
        InvalidArgumentError: unknown name or split. FailedPreconditionError: not prepared, and `download=False`.

    Deterministic: the same examples in the same order on every machine.
    """
    made = builder(name, data_dir=data_dir, **(builder_kwargs or {}))
    if download:
        made.download_and_prepare()
    dataset = made.as_dataset(split, batch_size=batch_size, shuffle_files=shuffle_files, as_supervised=as_supervised)
    return (dataset, made.info) if with_info else dataset
