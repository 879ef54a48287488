"""The function `load` returns a Dataset by its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from penstock.catalog.data_dir import Given
from penstock.catalog.read import ReadConfig
from penstock.catalog.registry import builder

if TYPE_CHECKING:
    from penstock.dataset.dataset import Dataset


class _Settings(TypedDict, total=False):
    """The other arguments of `load`, for type checkers."""

    data_dir: Given
    batch_size: int | None
    shuffle_files: bool
    download: bool
    as_supervised: bool
    decoders: Any
    read_config: ReadConfig | None
    builder_kwargs: Mapping[str, Any] | None
    download_and_prepare_kwargs: Mapping[str, Any] | None


@overload
def load(name: str, *, split: str, with_info: Literal[False] = ..., **settings: Unpack[_Settings]) -> Dataset: ...


@overload
def load(name: str, *, split: Any = ..., with_info: bool = ..., **settings: Unpack[_Settings]) -> Any: ...


def load(
    name: str,
    *,
    split: Any = None,
    data_dir: Given = None,
    batch_size: int | None = None,
    shuffle_files: bool = False,
    download: bool = True,
    as_supervised: bool = False,
    decoders: Any = None,
    read_config: ReadConfig | None = None,
    with_info: bool = False,
    builder_kwargs: Mapping[str, Any] | None = None,
    download_and_prepare_kwargs: Mapping[str, Any] | None = None,
) -> Any:
    """Return a data set by its name. The data set is downloaded and prepared if it is not there yet.

    The elements have an index. Shards of which no example is needed are not opened.

    Args:
        name: Name of a builder (see `list_builders`) or of a prepared data set: "name", "name/config" or "name:1.*.*".
        split: "train", "train[:80%]", "train[100:200]", "train[-1shard:]", "train+test", "all" or a `ReadInstruction`.
            A list or dict of splits returns a list or dict of data sets. Default: a dict of all splits.
        data_dir: Folder of prepared data, or a list of folders, of which the first is written to. It may be a URL: data
            is prepared on this machine and uploaded. Default: $PENSTOCK_DATA_DIR, $TFDS_DATA_DIR, or
            `penstock_datasets` in the home folder; and tfds's folder, which is only read.
        batch_size: Number of examples in a batch. By default, examples are not batched.
        shuffle_files: If True, shards are read in a random order, another one in each epoch. Default: False.
        download: If True, a data set that is not there yet is prepared. If False, it is an error. Default: True.
        as_supervised: If True, elements are pairs `(input, target)`, as `supervised_keys` of the data set names them.
            If False, they are dicts. Default: False.
        decoders: `{"image": SkipDecoding()}` for features that are not decoded, `PartialDecoding([…])` to read some
            features only, or `SkipDecoding()` for whole records.
        read_config: A `ReadConfig`: the number of shards that are read in turn, and the seed of `shuffle_files`.
        with_info: If True, a pair `(dataset, info)` is returned. Default: False.
        builder_kwargs: Arguments of the builder, such as `num_examples` of `shapes`.
        download_and_prepare_kwargs: Arguments of `Builder.download_and_prepare`, such as `manual_dir`.

    Returns:
        A data set of examples, or a list or dict of data sets.

    Raises:
        InvalidArgumentError: If the name, config, version, split or slice is unknown.
        FailedPreconditionError: If the data set is not prepared and `download` is False, if the disk is full, or if you
            have to download files yourself.
        DataLossError: If a download or a shard is damaged.

    Determinism: The examples and their order are the same on every machine.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     test = load("shapes", split="test", data_dir=folder, builder_kwargs={"num_examples": 40})
        ...     len(test), sorted(next(iter(test)))
        (10, ['image', 'label'])
    """
    made = builder(name, data_dir=data_dir, **(builder_kwargs or {}))
    if download:
        made.download_and_prepare(**(download_and_prepare_kwargs or {}))
    dataset = made.as_dataset(
        split,
        batch_size=batch_size,
        shuffle_files=shuffle_files,
        decoders=decoders,
        read_config=read_config,
        as_supervised=as_supervised,
    )
    return (dataset, made.info) if with_info else dataset
