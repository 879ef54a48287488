"""`tfds`: the catalog of named data sets under tensorflow_datasets' names.

>>> list(Split.TRAIN + "[:10%]")[:5]
['t', 'r', 'a', 'i', 'n']
"""

from __future__ import annotations

import operator
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

import penstock as ps
from penstock import catalog
from penstock.block.structure import flatten, map_leaves
from penstock.catalog import disable_progress_bar, enable_progress_bar, even_splits, features, list_builders
from penstock.compat.dtypes import plain
from penstock.compat.teaching import Namespace, missing_in
from penstock.compat.tfds import core, decode, testing
from penstock.compat.tfds.core import ReadConfig
from penstock.compat.values import lowered
from penstock.errors import InvalidArgumentError, optional_package

__all__ = [
    "BenchmarkResult",
    "ImageFolder",
    "ReadConfig",
    "Split",
    "as_dataframe",
    "as_numpy",
    "benchmark",
    "builder",
    "builder_from_directories",
    "builder_from_directory",
    "core",
    "data_source",
    "decode",
    "disable_progress_bar",
    "display_progress_bar",
    "download",
    "enable_progress_bar",
    "even_splits",
    "features",
    "folder_dataset",
    "is_dataset_on_gcs",
    "list_builders",
    "load",
    "show_examples",
    "split_for_jax_process",
    "testing",
    "visualization",
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


class _Builder(core.TensorMethods):
    """A builder of the catalog whose data sets are those of `tf.data`."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def download_and_prepare(
        self, *, download_dir: Any = None, download_config: Any = None, file_format: Any = None, **kwargs: Any
    ) -> None:
        """Write the data set to disk, unless it is there."""
        if download_config is not None and download_config.manual_dir is not None:
            kwargs.setdefault("manual_dir", download_config.manual_dir)
        self._builder.download_and_prepare(download_dir=download_dir, **kwargs)

    def as_data_source(self, split: Any = None, *, decoders: Any = None, **kwargs: Any) -> Any:
        """Return the examples of a split, or of each split, as sequences of numpy values."""
        read = partial(self._builder.as_dataset, decoders=decoders)
        names = {name: name for name in self._builder.info.splits} if split is None else split
        return map_leaves(lambda one: _Source(read(one), self._builder.info), names)

    def as_dataset(self, split: Any = None, **kwargs: Any) -> Any:
        """Return the examples of a split."""
        mock = testing.mocked()
        if mock is not None and mock.as_dataset_fn is not None:
            return mock.as_dataset_fn(self, split, **kwargs)
        return super().as_dataset(split, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builder, name)

    def __repr__(self) -> str:
        return repr(self._builder)


def builder(name: str, *, try_gcs: Any = False, **builder_kwargs: Any) -> Any:
    """Return the builder of the data set `name`."""
    made, mock = catalog.builder(name, **builder_kwargs), testing.mocked()
    return _Builder(made if mock is None else mock.prepared(made))


def builder_from_directory(builder_dir: Any) -> Any:
    """Return the builder of a data set that was prepared in a folder."""
    return _Builder(catalog.builder_from_directory(builder_dir))


def builder_from_directories(builder_dirs: Any, **kwargs: Any) -> Any:
    """Return the builder of a data set in several folders."""
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
    """Return the elements of a data set as numpy values, and tensors as arrays, also in a nest."""
    if isinstance(dataset, ps.Dataset):
        return _Numpy(dataset)
    if isinstance(dataset, (tuple, list)):
        return type(dataset)(map(as_numpy, dataset))
    if isinstance(dataset, dict):
        return {name: as_numpy(item) for name, item in dataset.items()}
    return lowered(dataset)


class _Numpy:
    """Iterations over a data set that return numpy values."""

    def __init__(self, dataset: ps.Dataset) -> None:
        self._dataset = dataset

    def __iter__(self) -> Any:
        return self._dataset.iterator()

    def __len__(self) -> int:
        return len(self._dataset)


class _Source(Sequence[Any]):
    """The examples of a split by index, as numpy values."""

    def __init__(self, dataset: ps.Dataset, info: Any) -> None:
        self._dataset, self.dataset_info = dataset, info

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, record_key: Any) -> Any:
        return self._dataset.at(operator.index(record_key))

    def __getitems__(self, record_keys: Any) -> list[Any]:
        return [self[key] for key in record_keys]

    def __iter__(self) -> Any:
        return self._dataset.iterator()

    @property
    def element_spec(self) -> Any:
        return self._dataset.element_spec

    def __repr__(self) -> str:
        return f"DataSource(name={self.dataset_info.name}, length={len(self)})"


def data_source(
    name: str,
    *,
    split: Any = None,
    data_dir: Any = None,
    download: Any = True,
    decoders: Any = None,
    deserialize_method: Any = None,
    builder_kwargs: Any = None,
    download_and_prepare_kwargs: Any = None,
    try_gcs: Any = False,
) -> Any:
    """Prepare the data set `name` if needed, and return sequences: `source[i]`, `len(source)`.

    torch's DataLoader, Grain and `ps.Dataset.from_sequence` accept these sequences, in any order of access.
    """
    made = builder(name, data_dir=data_dir, **(builder_kwargs or {}))
    if download:
        made.download_and_prepare(**(download_and_prepare_kwargs or {}))
    return made.as_data_source(split, decoders=decoders)


def ImageFolder(root_dir: Any, *, shape: Any = None, dtype: Any = None) -> Any:
    """Return the builder of images in folders: `root_dir/split/class/name.jpg`."""
    return _Builder(catalog.ImageFolder(root_dir, shape=shape, dtype=np.uint8 if dtype is None else plain(dtype)))


def as_dataframe(ds: Any, ds_info: Any = None) -> Any:
    """Return the examples as a `pandas.DataFrame`: a column for each leaf, named `outer/inner` for nested dicts.

    Raises MissingDependencyError without pandas.
    """
    rows = [dict(_named(element, "")) for element in as_numpy(ds)]
    return optional_package("pandas", "tfds.as_dataframe", "pandas").DataFrame(rows)


def _named(value: Any, name: str) -> Any:
    """Yield the leaves of an element with their paths."""
    if isinstance(value, (dict, tuple)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _named(inner, f"{name}/{key}" if name else str(key))
    else:
        yield name, value.to_list() if isinstance(value, (ps.RaggedTensor, ps.SparseTensor)) else value


def show_examples(
    ds: Any, ds_info: Any = None, *, rows: int = 3, cols: int = 3, image_key: Any = None, **other: Any
) -> Any:
    """Show the first examples: images with their labels as a grid, other examples as a table."""
    if not isinstance(ds, ps.Dataset):  # the order of arguments in old versions of tfds
        ds, ds_info = ds_info, ds
    kind = None if ds_info is None else ds_info.features.get("label")
    names = getattr(kind, "names", None)
    settings = {"image": image_key, "label_names": names, "columns": cols if image_key or _has_picture(ds) else None}
    return ds.show(rows * cols, **{name: item for name, item in settings.items() if item is not None})


def _has_picture(ds: Any) -> bool:
    leaves = [spec for spec in flatten(ds.element_spec)[0] if isinstance(spec, ps.TensorSpec)]
    return any(len(spec.shape or ()) == 3 and spec.dtype == np.uint8 for spec in leaves)


class BenchmarkResult(NamedTuple):
    """The measurements of an iteration: `stats` has rows for the first batch, the other batches, and all."""

    stats: Any
    raw_stats: Any


def benchmark(ds: Any, *, num_iter: int | None = None, batch_size: int = 1) -> BenchmarkResult:
    """Read `num_iter` batches, by default all, and print the number of examples per second.

    `ds.explain(analyze=True)` shows which step takes the time. Raises MissingDependencyError without pandas.
    """
    pandas = optional_package("pandas", "tfds.benchmark", "pandas")
    begun = time.perf_counter()
    ended = [time.perf_counter() for _ in islice(iter(ds), num_iter)]
    if not ended:
        raise InvalidArgumentError("benchmark of a data set without elements.")
    spans = {"first+lasts": (ended[-1] - begun, len(ended)), "first": (ended[0] - begun, 1),
             "lasts": (ended[-1] - ended[0], len(ended) - 1)}  # fmt: skip
    rows = [(span, count * batch_size, count * batch_size / span if span else 0.0) for span, count in spans.values()]
    stats = pandas.DataFrame(rows, index=list(spans), columns=["duration", "num_examples", "avg"])
    sys.stdout.write("\n************ Summary ************\n\n")
    for name, (span, examples, rate) in zip(spans, rows, strict=True):
        sys.stdout.write(f"Examples/sec ({name}) {rate:.2f} ex/sec (total: {examples} ex, {span:.2f} sec)\n")
    return BenchmarkResult(stats, pandas.DataFrame({"end_time": [end - begun for end in ended]}))


@dataclass
class DownloadConfig:
    """Settings of a download. `manual_dir` is the folder of your own files.

    Checksums are always compared, and statistics are always known.
    """

    manual_dir: Any = None
    extract_dir: Any = None
    download_mode: Any = None
    compute_stats: Any = None
    max_examples_per_split: Any = None
    register_checksums: bool = False
    force_checksums_validation: bool = False
    verify_ssl: bool = True

    def __post_init__(self) -> None:
        if self.max_examples_per_split is not None or not self.verify_ssl:
            message = "DownloadConfig takes no max_examples_per_split, and no verify_ssl=False."
            raise InvalidArgumentError(message, hint="A slice reads a part: split='train[:100]'.")


def display_progress_bar(enable: bool = True) -> None:
    """Show or hide progress bars while data sets are prepared."""
    (enable_progress_bar if enable else disable_progress_bar)()


def is_dataset_on_gcs(dataset_name: str) -> bool:
    """Return False, because nothing is read from TensorFlow's bucket."""
    return False


folder_dataset = Namespace(
    "tfds.folder_dataset",
    {"TranslateFolder": "Write tf.data.TextLineDataset for each language, and tf.data.Dataset.zip."},
    ImageFolder=ImageFolder,
)
visualization = Namespace("tfds.visualization", {"show_statistics": "Write info.splits."}, show_examples=show_examples)
download = Namespace("tfds.download", DownloadConfig=DownloadConfig, DownloadManager=catalog.DownloadManager)


def split_for_jax_process(
    split: Any, *, process_index: int | None = None, process_count: int | None = None, drop_remainder: bool = False
) -> Any:
    """Return the shard of a split that this process of JAX reads."""
    if process_index is None or process_count is None:
        jax = optional_package("jax", "split_for_jax_process", "jax")
        process_index = jax.process_index() if process_index is None else process_index
        process_count = jax.process_count() if process_count is None else process_count
    return catalog.subsplit_for_process(split, process_index, process_count, drop_remainder=drop_remainder)


__getattr__ = missing_in(
    "tfds",
    globals(),
    {
        "deprecated": "Text encoders are not there; tokenise in a map.",
        "dataset_builders": "Derive from tfds.core.GeneratorBasedBuilder.",
        "beam": "Derive from tfds.core.GeneratorBasedBuilder; penstock.catalog.Each makes examples in parallel.",
        "subsplit_by_process": "Write tfds.split_for_jax_process, or tfds.even_splits(split, n)[index].",
        "typing": "Annotate with typing.Any.",
        "rlds": "Episodes are data sets in an element: features.Dataset.",
    },
)
