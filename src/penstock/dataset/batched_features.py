"""experimental.make_batched_features_dataset: parsed batches of Example records, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.dataset.dataset import Dataset
from penstock.dataset.tfrecord import TFRecordDataset
from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.io.batch import parse_example
from penstock.plan.node import AUTOTUNE


def parse_example_dataset(
    features: Mapping[str, Any], num_parallel_calls: int | None = 1, deterministic: bool | None = None
) -> Callable[[Dataset], Dataset]:
    """For `Dataset.apply`: batches of serialised Examples become dicts of tensors, as by `ps.io.parse_example`.

    >>> import numpy as np, penstock as ps
    >>> record = ps.io.Example({"x": [1.5]}).SerializeToString()
    >>> features = {"x": ps.io.FixedLenFeature((), np.float32)}
    >>> ds = ps.Dataset.from_tensors(record).repeat(2).batch(2)
    >>> list(ds.apply(ps.experimental.parse_example_dataset(features)))
    [{'x': array([1.5, 1.5], dtype=float32)}]

    Raises InvalidTypeError for features that are no mapping; records fail as in `parse_example`.
    """
    if not isinstance(features, Mapping):
        message = f"features is a dict from names to feature specifications, got {type(features).__name__}."
        raise InvalidTypeError(message)
    specs = dict(features)

    def parse(records: Any) -> Any:
        return parse_example(records, specs)

    return lambda dataset: dataset.map(parse, num_parallel_calls, deterministic)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Mapping[str, Any],
    reader: Callable[..., Dataset] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of parsed Example records: a dict of tensors, or with `label_key` the pair of that dict and the label.

    **It repeats for ever unless `num_epochs` is given**, and shuffles unless `shuffle=False`, as in tf.data; unlike
    there the order follows from the seed. `reader(name, *reader_args)` opens a file; of pairs that it gives the second
    is the record. `reader_num_threads` files are read in turn (1), in any order with `sloppy_ordering`;
    `parser_num_threads` batches are parsed at once (2). Without `num_epochs` all batches are full.

    >>> import pathlib, tempfile, numpy as np, penstock as ps
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.tfrecord"
    >>> with ps.io.TFRecordWriter(path) as writer:
    ...     for i in range(3):
    ...         writer.write(ps.io.Example({"x": [float(i)], "y": [i]}).SerializeToString())
    >>> features = {"x": ps.io.FixedLenFeature((), np.float32), "y": ps.io.FixedLenFeature((), np.int64)}
    >>> ds = ps.experimental.make_batched_features_dataset(
    ...     path, 2, features, label_key="y", num_epochs=1, shuffle=False)
    >>> list(ds)
    [({'x': array([0., 1.], dtype=float32)}, array([0, 1])), ({'x': array([2.], dtype=float32)}, array([2]))]

    Raises NotFoundError where no file matches and InvalidArgumentError for a `label_key` that is no feature.
    """
    if label_key is not None and label_key not in features:
        message = f"label_key names one of the features, {sorted(features)}, got label_key={label_key!r}."
        raise InvalidArgumentError(message)
    arguments = () if reader_args is None else tuple(reader_args)

    def opened(name: bytes) -> Dataset:
        return reader(name, *arguments)

    def record(*parts: Any) -> Any:
        return parts[-1]

    def labelled(row: dict[str, Any]) -> Any:
        return {name: value for name, value in row.items() if name != label_key}, row[str(label_key)]

    ds: Dataset = Dataset.list_files(file_pattern, shuffle=bool(shuffle), seed=shuffle_seed)
    readers = reader_num_threads or 1
    ds = ds.interleave(opened, readers, num_parallel_calls=readers, deterministic=not sloppy_ordering)
    ds = ds.map(record)
    if shuffle:
        ds = ds.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        ds = ds.repeat(num_epochs)
    ds = ds.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    ds = ds.apply(parse_example_dataset(features, parser_num_threads or 2))
    if label_key is not None:
        ds = ds.map(labelled)
    return ds.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)
