"""`tf.data.experimental`, including names that TensorFlow has deprecated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

import penstock as ps
from penstock.compat.calling import called
from penstock.compat.dataset import Dataset, TensorIterator, adopted, ours
from penstock.compat.dtypes import DType, plain, plain_nest
from penstock.compat.op import _emptied, named
from penstock.compat.teaching import missing_in
from penstock.compat.tf.data.experimental import service
from penstock.compat.tf.lookup import DatasetInitializer, index_table_from_dataset, table_from_dataset
from penstock.compat.values import array_of, lowered
from penstock.errors import InvalidTypeError

AUTOTUNE = ps.AUTOTUNE
INFINITE_CARDINALITY = ps.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY = ps.UNKNOWN_CARDINALITY
AutotuneOptions = ps.experimental.AutotuneOptions
OptimizationOptions = ps.experimental.OptimizationOptions
ThreadingOptions = ps.ThreadingOptions

Transformation = Callable[[Any], Any]


def _default(value: Any) -> Any:
    """Return the default of a column: a dtype, or a value with TensorFlow's dtype."""
    if isinstance(value, DType):
        return plain(value)
    if isinstance(value, (int, float, str)):
        return array_of(value)
    if isinstance(value, (list, tuple)) and value:
        return array_of(list(value))
    return value


def CsvDataset(filenames: Any, record_defaults: Any, *args: Any, **kwargs: Any) -> Dataset:
    """Return the rows of CSV files as tuples of columns with the dtypes of `record_defaults`."""
    kwargs.pop("name", None)
    defaults = [_default(value) for value in record_defaults]
    return ours(ps.experimental.CsvDataset(_emptied(filenames, []), defaults, *args, **kwargs))


def make_csv_dataset(file_pattern: Any, batch_size: int, *args: Any, **kwargs: Any) -> Dataset:
    """Return batches of rows of CSV files, as dicts of columns."""
    if kwargs.get("column_defaults") is not None:
        kwargs["column_defaults"] = [_default(value) for value in kwargs["column_defaults"]]
    return ours(ps.experimental.make_csv_dataset(file_pattern, batch_size, *args, **kwargs))


def SqlDataset(driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> Dataset:
    """Return the rows of a query."""
    types = plain_nest(output_types)
    return ours(ps.experimental.SqlDataset(driver_name, data_source_name, query, types))


def Counter(start: Any = 0, step: Any = 1, dtype: Any = np.int64) -> Dataset:
    """Return the numbers from `start` on, without end."""
    return ours(ps.Dataset.counter(start, step, plain(dtype)))


def RandomDataset(seed: Any = None, rerandomize_each_iteration: Any = None) -> Dataset:
    """Return random integers without end."""
    return ours(ps.Dataset.random(seed, rerandomize_each_iteration))


def make_batched_features_dataset(
    file_pattern: Any, batch_size: int, features: Any, *args: Any, **kwargs: Any
) -> Dataset:
    """Return batches of parsed examples from files."""
    if "reader" in kwargs:
        kwargs["reader"] = getattr(kwargs["reader"], "__penstock_opens__", kwargs["reader"])
    return ours(ps.experimental.make_batched_features_dataset(file_pattern, batch_size, features, *args, **kwargs))


class Reducer(ps.experimental.Reducer):
    """The three functions of `group_by_reducer`."""

    def __init__(self, init_func: Any, reduce_func: Any, finalize_func: Any) -> None:
        super().__init__(called(init_func), called(reduce_func), called(finalize_func))


class AutoShardPolicy(IntEnum):
    """The policy of TensorFlow's strategies for sharding. Here `ds.shard(num_shards, index)` shards a data set."""

    OFF, AUTO, FILE, DATA, HINT = -1, 0, 1, 2, 3


class AutotuneAlgorithm(IntEnum):
    """The algorithm of TensorFlow's AUTOTUNE. penstock has only one."""

    DEFAULT, HILL_CLIMB, GRADIENT_DESCENT, MAX_PARALLELISM, STAGE_BASED = range(5)


class ExternalStatePolicy(IntEnum):
    """The policy of TensorFlow for state outside checkpoints. penstock's checkpoints never contain such state."""

    WARN, IGNORE, FAIL = range(3)


@dataclass
class DistributeOptions:
    """The settings of TensorFlow's strategies. penstock never shards a data set by itself."""

    auto_shard_policy: Any = AutoShardPolicy.AUTO
    num_devices: Any = None


SHARD_HINT = -1  # for `ds.shard(SHARD_HINT, SHARD_HINT)` under a strategy


class TFRecordWriter:
    """Writes a data set of byte strings to a TFRecord file."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename, self._compression = lowered(filename), compression_type

    def write(self, dataset: Dataset) -> None:
        """Write the elements in order. Raises InvalidTypeError if they are no byte strings."""
        with ps.io.TFRecordWriter(self._filename, self._compression) as writer:
            for record in dataset.as_numpy_iterator():
                if not isinstance(record, bytes):
                    message = f"A TFRecord file has byte strings as records, and the data set {type(record).__name__}."
                    raise InvalidTypeError(message, hint="Map tf.io.serialize_tensor, or tf.train.Example, before.")
                writer.write(record)


# The methods of a data set as functions.
at, cardinality, get_single_element, load = Dataset.at, Dataset.cardinality, Dataset.get_single_element, Dataset.load
choose_from_datasets, sample_from_datasets = Dataset.choose_from_datasets, Dataset.sample_from_datasets
from_list, get_next_as_optional = Dataset.from_list, TensorIterator.get_next_as_optional


def get_structure(dataset_or_iterator: Any) -> Any:
    """Return the spec of an element."""
    return dataset_or_iterator.element_spec


def _method(name: str) -> Any:
    def transformation(*args: Any, **kwargs: Any) -> Transformation:
        return lambda dataset: getattr(adopted(dataset), name)(*args, **kwargs)

    return named(transformation, name, f"`Dataset.{name}` as a function for `Dataset.apply`.")


for _name in (
    *("assert_cardinality", "bucket_by_sequence_length", "group_by_window", "ignore_errors", "pad_to_cardinality"),
    *("rejection_resample", "scan", "take_while", "unbatch", "unique"),
):
    globals()[_name] = _method(_name)
dense_to_ragged_batch, dense_to_sparse_batch = _method("ragged_batch"), _method("sparse_batch")
enumerate_dataset, filter_for_shard = _method("enumerate"), _method("shard")
index_shuffle = ps.experimental.index_shuffle


def map_and_batch(
    map_func: Any,
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: bool = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Return `map` and `batch` as one function. penstock fuses them automatically."""
    parallel = num_parallel_calls or (AUTOTUNE if num_parallel_batches else None)
    return lambda dataset: adopted(dataset).map(map_func, parallel).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """Return `shuffle` and `repeat` as one function. penstock fuses them automatically."""
    return lambda dataset: adopted(dataset).shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func: Any,
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """Return an `interleave` that reads its inputs ahead. With `sloppy`, the options decide the order."""
    given = (map_func, cycle_length, block_length, cycle_length)
    return lambda dataset: adopted(dataset).interleave(*given, deterministic=None if sloppy else True)


def group_by_reducer(key_func: Any, reducer: Any) -> Transformation:
    """Return a function that reduces the elements of each key."""
    made = ps.experimental.group_by_reducer(called(key_func), reducer)
    return lambda dataset: adopted(made(dataset))


def parse_example_dataset(features: Any, num_parallel_calls: Any = 1, deterministic: Any = None) -> Transformation:
    """Return `tf.io.parse_example` of batches as a function for `Dataset.apply`."""
    made = ps.experimental.parse_example_dataset(features, num_parallel_calls, deterministic)
    return lambda dataset: adopted(made(dataset))


def snapshot(
    path: Any, compression: Any = "AUTO", reader_func: Any = None, shard_func: Any = None, **old: Any
) -> Transformation:
    """Return `Dataset.snapshot` as a function for `Dataset.apply`."""
    given = {"reader_func": reader_func, "shard_func": shard_func}
    named = {name: item for name, item in given.items() if item is not None}
    return lambda dataset: adopted(dataset).snapshot(path, compression or "NONE", **named)


def copy_to_device(target_device: Any, source_device: Any = "/cpu:0") -> Transformation:
    """Return the data set unchanged, because the training framework copies batches (`to_torch`, `to_jax`, `fit`)."""
    return adopted


def prefetch_to_device(device: Any, buffer_size: Any = None) -> Transformation:
    """Return a prefetch. The training framework copies batches (`to_torch(device=...)`, `to_jax`, `model.fit`)."""
    return lambda dataset: adopted(dataset).prefetch(AUTOTUNE if buffer_size is None else buffer_size)


def save(
    dataset: Dataset, path: Any, compression: Any = None, shard_func: Any = None, checkpoint_args: Any = None
) -> None:
    """Call `Dataset.save`."""
    dataset.save(path, compression, shard_func and called(shard_func))


def distributed_save(dataset: Dataset, path: Any, dispatcher_address: Any, compression: Any = "AUTO") -> None:
    """Let the workers of a service write a saved data set."""
    ps.service.distributed_save(dataset, path, service._address(dispatcher_address))


__getattr__ = missing_in(
    "tf.data.experimental",
    globals(),
    {
        "CheckpointInputPipelineHook": "Write iterator.state_dict().",
        "make_saveable_from_iterator": "Write iterator.state_dict(), or tf.train.Checkpoint(iterator=iterator).",
        "Optional": "Use Python's None.",
        "bytes_produced_stats": "Write ds.explain(analyze=True).",
        "latency_stats": "Write ds.explain(analyze=True).",
        "from_variant": "There are no variants: a data set is a value.",
        "to_variant": "There are no variants: a data set is a value.",
        **{
            f"{kind}Structure": "ds.element_spec describes the elements."
            for kind in ("Dataset", "Optional", "SparseTensor", "TensorArray", "Tensor", "RaggedTensor")
        },
        "enable_debug_mode": "Leave it out: functions always run as Python.",
        "StatsAggregator": "Write ds.explain(analyze=True), or ps.profiler.Profiler.",
    },
)
