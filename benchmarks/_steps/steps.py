"""The steps as functions of the library: `data` is the module penstock or `tf.data`, whose names are the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

BATCH = 1024
LENGTH = 8  # longest sequence

Data = Any
Dataset = Any


@dataclass(frozen=True, slots=True)
class Step:
    """`add` appends a step to the data set that `base` builds. tf.data has the steps that are not `ours_alone`.

    The elements of `base` have `columns` columns. The figure is per element and column.
    """

    name: str
    base: Callable[[Data, int], Dataset]
    add: Callable[[Data, Dataset, int], Dataset]
    ours_alone: bool = False
    columns: int = 1


# -- data sets before the steps; each is cheap, and no rewrite moves a step before it


def numbers(data: Data, count: int) -> Dataset:
    return batches(data, count).unbatch()


def batches(data: Data, count: int) -> Dataset:
    return data.Dataset.range(count).batch(BATCH)


def rows(data: Data, count: int) -> Dataset:
    """Build dicts of one number, for steps that add a component."""
    return data.Dataset.from_tensor_slices({"x": np.arange(count)})


def sequences(data: Data, count: int) -> Dataset:
    """Build arrays of 1 to `LENGTH` numbers, cached in the first iteration."""
    return data.Dataset.range(count).map(arange(data)).cache()


def wide(data: Data, count: int, *, columns: int) -> Dataset:
    """Build dicts of `columns` numbers."""
    return data.Dataset.from_tensor_slices({f"c{number}": np.arange(count) for number in range(columns)})


def records(data: Data, count: int, *, columns: int) -> Dataset:
    """Build batches of 1024 serialized examples of `columns` numbers each."""
    from penstock.io import encode_example

    record = encode_example({f"c{number}": number for number in range(columns)})
    return data.Dataset.from_tensors(np.array([record] * BATCH, object)).repeat(count // BATCH)


def arange(data: Data) -> Callable[[Any], Any]:
    if data.__name__ == "penstock":
        return lambda n: np.arange(n % LENGTH + 1)
    import tensorflow as tf

    return lambda n: tf.range(n % LENGTH + 1)


# -- steps that need more than a line


def inputs(data: Data, ds: Dataset, count: int, *, size: int, step: Callable[[Dataset, Any], Dataset]) -> Dataset:
    """Build the same numbers from `count // size` data sets."""
    return step(data.Dataset.range(count // size), lambda number: data.Dataset.range(size))


def halves(data: Data, ds: Dataset, count: int) -> list[Dataset]:
    return [data.Dataset.range(count // 2), data.Dataset.range(count // 2)]


def choices(data: Data, ds: Dataset, count: int) -> Dataset:
    picked = data.Dataset.from_tensor_slices(np.arange(count) % 2)
    return data.Dataset.choose_from_datasets(halves(data, ds, count), picked)


def reduced(data: Data, ds: Dataset, count: int) -> Dataset:
    reducer = data.experimental.Reducer(lambda key: key, lambda state, x: x, lambda state: state)
    return ds.apply(data.experimental.group_by_reducer(lambda x: x % 4, reducer))


def not_vectorised(data: Data, ds: Dataset, count: int) -> Dataset:
    options = data.Options()
    options.experimental_optimization.map_vectorization = False
    return ds.map(lambda x: x).with_options(options)


def buckets(data: Data, ds: Dataset, count: int) -> Dataset:
    if data.__name__ == "penstock":
        return ds.bucket_by_sequence_length(len, [LENGTH // 2], [64, 64])
    import tensorflow as tf

    return ds.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [LENGTH // 2], [64, 64])


def padded_to(data: Data, ds: Dataset, count: int) -> Dataset:
    return ds.apply(data.experimental.pad_to_cardinality(count + 1))


def parsed(data: Data, ds: Dataset, count: int, *, columns: int) -> Dataset:
    if data.__name__ == "penstock":
        from penstock import io
    else:
        from tensorflow import io

    features = {f"c{number}": io.FixedLenFeature((), np.int64) for number in range(columns)}
    return ds.map(lambda batch: io.parse_example(batch, features))


def widened(data: Data, ds: Dataset, count: int) -> Dataset:
    return ds.map(lambda row: {**row, "sum": row["c0"] + row["c1"]})


def steps_of_wide_elements(columns: int) -> tuple[Step, ...]:
    base, name = partial(wide, columns=columns), f"per column of {columns}"
    parse = partial(parsed, columns=columns)
    return (
        Step(f"map to {{**row}}, {name}", base, widened, columns=columns),
        Step(f"filter, {name}", base, lambda data, ds, count: ds.filter(lambda row: row["c0"] >= 0), columns=columns),
        Step(f"shuffle(1000), {name}", base, lambda data, ds, count: ds.shuffle(1000), columns=columns),
        Step(f"zip, {name}", base, lambda data, ds, count: data.Dataset.zip((ds, ds)), columns=columns),
        Step(f"batch(32), {name}", base, lambda data, ds, count: ds.batch(32), columns=columns),
        Step(f"parse_example, {name}", partial(records, columns=columns), parse, columns=columns),
    )


STEPS = (
    Step("map", numbers, lambda data, ds, count: ds.map(lambda x: x + 1)),
    Step("map, parallel", numbers, lambda data, ds, count: ds.map(lambda x: x + 1, num_parallel_calls=2)),
    Step("map, one call per element", numbers, not_vectorised, ours_alone=True),
    Step("filter", numbers, lambda data, ds, count: ds.filter(lambda x: x >= 0)),
    Step("take", numbers, lambda data, ds, count: ds.take(count - 1)),
    Step("skip", numbers, lambda data, ds, count: ds.skip(1)),
    Step("shard(2, 0)", numbers, lambda data, ds, count: ds.shard(2, 0)),
    Step("enumerate", numbers, lambda data, ds, count: ds.enumerate()),
    Step("zip, of two", numbers, lambda data, ds, count: data.Dataset.zip((ds, data.Dataset.range(count)))),
    Step("concatenate", numbers, lambda data, ds, count: ds.take(count // 2).concatenate(ds.take(count // 2))),
    Step("repeat", numbers, lambda data, ds, count: ds.take(count // 4).repeat(4)),
    Step("cache, filled", numbers, lambda data, ds, count: ds.cache()),
    Step("prefetch", numbers, lambda data, ds, count: ds.prefetch(data.AUTOTUNE)),
    Step("shuffle(10000)", numbers, lambda data, ds, count: ds.shuffle(10_000)),
    Step(
        "shuffle(ALL)",
        lambda data, count: data.Dataset.range(count),
        lambda data, ds, count: ds.shuffle(data.ALL),
        ours_alone=True,
    ),
    Step("batch(32)", numbers, lambda data, ds, count: ds.batch(32)),
    Step("batch(1024)", numbers, lambda data, ds, count: ds.batch(BATCH)),
    Step("unbatch", batches, lambda data, ds, count: ds.unbatch()),
    Step("rebatch(100)", batches, lambda data, ds, count: ds.rebatch(100)),
    Step("padded_batch(32)", sequences, lambda data, ds, count: ds.padded_batch(32)),
    Step("padded_batch(32), numbers", numbers, lambda data, ds, count: ds.padded_batch(32)),
    Step("ragged_batch(32)", sequences, lambda data, ds, count: ds.ragged_batch(32)),
    Step("sparse_batch(32)", sequences, lambda data, ds, count: ds.sparse_batch(32, [LENGTH])),
    Step("pad_to_cardinality", rows, padded_to),
    Step("flat_map, of 1024", numbers, partial(inputs, size=1024, step=lambda ds, f: ds.flat_map(f))),
    Step("interleave, of 1024", numbers, partial(inputs, size=1024, step=lambda ds, f: ds.interleave(f, 16))),
    Step(
        "interleave, of 1024, blocks of 16",
        numbers,
        partial(inputs, size=1024, step=lambda ds, f: ds.interleave(f, 16, 16)),
    ),
    Step(
        "interleave, of 1024, parallel",
        numbers,
        partial(inputs, size=1024, step=lambda ds, f: ds.interleave(f, 16, 16, 2)),
    ),
    Step("window(32)", numbers, lambda data, ds, count: ds.window(32)),
    Step("window(32, shift 16)", numbers, lambda data, ds, count: ds.window(32, 16)),
    Step(
        "window(32), batched", numbers, lambda data, ds, count: ds.window(32).flat_map(lambda window: window.batch(32))
    ),
    Step(
        "group_by_window(32)",
        numbers,
        lambda data, ds, count: ds.group_by_window(lambda x: x % 4, lambda key, window: window.batch(32), 32),
    ),
    Step("group_by_reducer", numbers, reduced),
    Step("bucket_by_sequence_length(64)", sequences, buckets),
    Step(
        "sample_from_datasets",
        numbers,
        lambda data, ds, count: data.Dataset.sample_from_datasets(halves(data, ds, count), [0.5, 0.5]),
    ),
    Step("choose_from_datasets", numbers, choices),
    Step(
        "rejection_resample",
        numbers,
        lambda data, ds, count: ds.rejection_resample(lambda x: x % 2, [0.4, 0.6], [0.5, 0.5]),
    ),
    Step("scan", numbers, lambda data, ds, count: ds.scan(np.int64(0), lambda state, x: (state, x))),
    Step("take_while", numbers, lambda data, ds, count: ds.take_while(lambda x: x >= 0)),
    Step("unique", numbers, lambda data, ds, count: ds.unique()),
    Step("ignore_errors", numbers, lambda data, ds, count: ds.ignore_errors()),
    Step(
        "assert_cardinality",
        numbers,
        lambda data, ds, count: ds.apply(data.experimental.assert_cardinality(count)),
    ),
    Step("random", numbers, lambda data, ds, count: data.Dataset.random(seed=1).take(count)),
    Step("counter", numbers, lambda data, ds, count: data.Dataset.counter().take(count)),
    Step("pack(64)", sequences, lambda data, ds, count: ds.pack(64), ours_alone=True),
    Step("batch_by_tokens(256)", sequences, lambda data, ds, count: ds.batch_by_tokens(256), ours_alone=True),
    Step(
        "batch_by_tokens(256), sorted",
        sequences,
        lambda data, ds, count: ds.batch_by_tokens(256, sort_window=4096),
        ours_alone=True,
    ),
    Step("with_provenance", rows, lambda data, ds, count: ds.with_provenance(), ours_alone=True),
    *steps_of_wide_elements(100),
    *steps_of_wide_elements(500),
)
