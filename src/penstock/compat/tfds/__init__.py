"""`tfds`: the catalog of named data sets under tensorflow_datasets' names.

>>> list(Split.TRAIN + "[:10%]")[:5]
['t', 'r', 'a', 'i', 'n']
"""

from __future__ import annotations

from typing import Any

import penstock as ps
from penstock import catalog
from penstock.block.structure import map_leaves
from penstock.catalog import (
    ReadConfig,
    disable_progress_bar,
    enable_progress_bar,
    even_splits,
    features,
    list_builders,
)
from penstock.compat.dataset import Dataset, adopted
from penstock.compat.teaching import missing_in
from penstock.compat.tfds import core, decode
from penstock.compat.values import lowered

__all__ = [
    "ReadConfig",
    "Split",
    "as_numpy",
    "builder",
    "builder_from_directories",
    "builder_from_directory",
    "core",
    "decode",
    "disable_progress_bar",
    "enable_progress_bar",
    "even_splits",
    "features",
    "list_builders",
    "load",
    "split_for_jax_process",
]


class Split(str):
    """The name of a split; `Split.TRAIN` is "train"."""

    __slots__ = ()

    TRAIN: Split
    TEST: Split
    VALIDATION: Split
    ALL: Split


Split.TRAIN, Split.TEST, Split.VALIDATION, Split.ALL = map(Split, ("train", "test", "validation", "all"))

_NOT_HERE = ("try_gcs", "file_format")


class _Builder:
    """A builder of the catalog, whose data sets are those of `tf.data` here."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def as_dataset(self, split: Any = None, **kwargs: Any) -> Any:
        """The examples of a split."""
        batch_size = kwargs.pop("batch_size", None)
        whole = batch_size == -1
        found = adopted(self._builder.as_dataset(split, batch_size=None if whole else batch_size, **kwargs))
        return map_leaves(_whole, found) if whole else found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, name)

    def __repr__(self) -> str:
        return repr(self._builder)


def _whole(dataset: Dataset) -> Any:
    """All examples as one batch: what `batch_size=-1` asks for."""
    return dataset.batch(max(len(dataset), 1)).get_single_element()


def builder(name: str, *, try_gcs: Any = False, **builder_kwargs: Any) -> Any:
    """The builder of the data set `name`."""
    return _Builder(catalog.builder(name, **builder_kwargs))


def builder_from_directory(builder_dir: Any) -> Any:
    """The builder of a data set that was prepared in a folder."""
    return _Builder(catalog.builder_from_directory(builder_dir))


def builder_from_directories(builder_dirs: Any, **kwargs: Any) -> Any:
    """The builder of a data set whose parts lie in several folders."""
    return _Builder(catalog.builder_from_directories(builder_dirs, **kwargs))


def load(
    name: str,
    *,
    split: Any = None,
    data_dir: Any = None,
    batch_size: Any = None,
    shuffle_files: Any = False,
    download: Any = True,
    as_supervised: Any = False,
    decoders: Any = None,
    read_config: Any = None,
    with_info: Any = False,
    builder_kwargs: Any = None,
    download_and_prepare_kwargs: Any = None,
    as_dataset_kwargs: Any = None,
    try_gcs: Any = False,
    file_format: Any = None,
) -> Any:
    """Prepare the data set `name` if that has not been done, and return it as a `tf.data.Dataset`."""
    made = builder(name, data_dir=data_dir, **(builder_kwargs or {}))
    if download:
        made.download_and_prepare(**(download_and_prepare_kwargs or {}))
    found = made.as_dataset(
        split,
        batch_size=batch_size,
        shuffle_files=shuffle_files,
        decoders=decoders,
        read_config=read_config,
        as_supervised=as_supervised,
        **(as_dataset_kwargs or {}),
    )
    return (found, made.info) if with_info else found


def as_numpy(dataset: Any) -> Any:
    """The elements of a data set as numpy values, and tensors as arrays; in a nest as well."""
    if isinstance(dataset, ps.Dataset):
        return _Numpy(dataset)
    if isinstance(dataset, (tuple, list)):
        return type(dataset)(map(as_numpy, dataset))
    if isinstance(dataset, dict):
        return {name: as_numpy(item) for name, item in dataset.items()}
    return lowered(dataset)


class _Numpy:
    """Passes over a data set that give numpy values."""

    def __init__(self, dataset: ps.Dataset) -> None:
        self._dataset = dataset

    def __iter__(self) -> Any:
        return self._dataset.iterator()

    def __len__(self) -> int:
        return len(self._dataset)


def split_for_jax_process(
    split: Any, *, process_index: int | None = None, process_count: int | None = None, drop_remainder: bool = False
) -> Any:
    """The part of a split that this process of JAX reads."""
    if process_index is None or process_count is None:
        from penstock.adaptors.framework import framework

        jax = framework("jax", "split_for_jax_process", "jax")
        process_index = jax.process_index() if process_index is None else process_index
        process_count = jax.process_count() if process_count is None else process_count
    return catalog.subsplit_for_process(split, process_index, process_count, drop_remainder=drop_remainder)


__getattr__ = missing_in(
    "tfds",
    globals(),
    {
        "data_source": "Write tfds.load(name, split=...), whose elements have numbers: ds.at(i), len(ds).",
        "benchmark": "Write ds.explain(analyze=True).",
        "show_examples": "Write ds.show().",
        "as_dataframe": "Write pandas.DataFrame(tfds.as_numpy(ds)).",
        "deprecated": "Text encoders are not there; tokenise in a map.",
        "dataset_builders": "Derive from tfds.core.GeneratorBasedBuilder.",
        "testing": "penstock.testing has suites for builders.",
        "folder_dataset": "Write ps.ImageFolderDataset(folder).",
        "ImageFolder": "Write ps.ImageFolderDataset(folder).",
        "visualization": "Write ds.show().",
    },
)
