"""`load`: from a name to a Dataset."""

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
    """Prepare the data set `name` if that has not been done, and return it as a Dataset of its examples.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     test = load("shapes", split="test", data_dir=folder, builder_kwargs={"num_examples": 40})
    ...     len(test), sorted(next(iter(test)))
    (10, ['image', 'label'])

    Its `len` is known, `ds[i]` and `shuffle(penstock.ALL)` work, and shards of which nothing is wanted are not opened.

    Args:
        name: one of `list_builders()`, or what is prepared on disk: "name", "name/config", "name:1.*.*".
        split: "train", "train[:80%]", "train[100:200]", "train[-1shard:]", "train+test", "all", a `ReadInstruction`; a
            list or dict of them for a list or dict of Datasets; None for a dict of all.
        data_dir: where prepared data lives, one folder or several to look in, of which the first is written to; by
            default $PENSTOCK_DATA_DIR, $TFDS_DATA_DIR, or `penstock_datasets` in the home folder, and tfds's own, which
            is read.
            It may be a URL of one: what is not there is prepared on this machine, and sent.
        batch_size: batches of this many examples; by default single examples.
        shuffle_files: read the shards in an order drawn from the seed, another one each epoch.
        download: prepare what is not there yet; with False that is an error.
        as_supervised: `(input, target)` as the data set's `supervised_keys` name them, in place of a dict.
        decoders: `{"image": SkipDecoding()}` for features that are to stay as they are stored, `PartialDecoding([…])`
            to read only some features, `SkipDecoding()` for whole records.
        read_config: a `ReadConfig`: how many shards are read in turn, the seed of `shuffle_files`.
        with_info: return `(dataset, info)`.
        builder_kwargs: arguments for the builder, such as `num_examples` of `shapes`.
        download_and_prepare_kwargs: arguments for `download_and_prepare`, such as `manual_dir`.

    Raises:
        InvalidArgumentError: unknown name, config, version, split or slice.
        FailedPreconditionError: not prepared, and `download=False`; the disk is full; files you must download yourself.
        DataLossError: a download or a shard is damaged.

    Deterministic: the same examples in the same order on every machine.
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
