"""How many calls run, or files are read, at once: what is no such number is refused where it is given."""

import re

import numpy as np
import pytest
from tests.golden.golden import assert_golden

import penstock as ps
from penstock.errors import InvalidArgumentError, InvalidTypeError, PenstockError


def same(x):
    return x


def parsed(ds, number):
    features = {"x": ps.io.FixedLenFeature((), np.int64)}
    return ds.apply(ps.experimental.parse_example_dataset(features, number))


CALLS = {
    "map": lambda ds, number: ds.map(same, num_parallel_calls=number),
    "batch": lambda ds, number: ds.batch(2, num_parallel_calls=number),
    "interleave": lambda ds, number: ds.interleave(ps.Dataset.range, num_parallel_calls=number),
    "parse_example": parsed,
}
READS = {
    "tfrecord": lambda number: ps.TFRecordDataset("a", num_parallel_reads=number),
    "text_line": lambda number: ps.TextLineDataset("a", num_parallel_reads=number),
    "fixed_length": lambda number: ps.FixedLengthRecordDataset("a", 3, num_parallel_reads=number),
    "json_lines": lambda number: ps.JsonLinesDataset("a", num_parallel_reads=number),
    "parquet": lambda number: ps.ParquetDataset("a", num_parallel_reads=number),
    "arrow": lambda number: ps.ArrowDataset("a", num_parallel_reads=number),
    "webdataset": lambda number: ps.WebDataset("a", num_parallel_reads=number),
}


@pytest.mark.parametrize("number", [0, -5])
@pytest.mark.parametrize("name", CALLS)
def test_calls_at_once_are_at_least_one(name, number):
    with pytest.raises(InvalidArgumentError) as caught:
        CALLS[name](ps.Dataset.range(3), number)
    error = caught.value
    assert_golden(f"argument_parallel_{name}_{'0' if number == 0 else 'minus_5'}", f"{type(error).__name__}: {error}")


@pytest.mark.parametrize("number", [0, -5])
@pytest.mark.parametrize("name", READS)
def test_files_at_once_are_at_least_one(name, number):
    wanted = f"num_parallel_reads must be at least 1, or -1, got num_parallel_reads={number}."
    with pytest.raises(InvalidArgumentError, match=re.escape(wanted) + r"\n.*\bAUTOTUNE"):
        READS[name](number)


@pytest.mark.parametrize("number", [1.0, "2", True, np.float32(2), [2]])
def test_they_are_integers(number):
    for call in CALLS.values():
        with pytest.raises(InvalidTypeError, match="num_parallel_calls must be an integer"):
            call(ps.Dataset.range(3), number)
    for read in READS.values():
        with pytest.raises(InvalidTypeError, match="num_parallel_reads must be an integer"):
            read(number)


@pytest.mark.parametrize("number", [None, 1, 7, np.int64(2), ps.AUTOTUNE, np.int32(-1)])
@pytest.mark.parametrize("name", ["map", "batch"])
def test_any_other_number_gives_the_same_elements(name, number):
    ds = CALLS[name](ps.Dataset.range(5), number)
    assert np.concatenate([np.atleast_1d(x) for x in ds]).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("number", [0, -5])
def test_ahead_and_mixed_as_many_as_there_can_be(number):
    ds = ps.Dataset.range(3)
    for call in (
        lambda: ds.prefetch(number - 2),
        lambda: ds.shuffle(number),
        lambda: ds.interleave(ps.Dataset.range, cycle_length=number, num_parallel_calls=2),
    ):
        with pytest.raises(PenstockError, match=r"must be at least \d"):
            call()
