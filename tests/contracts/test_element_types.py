"""What type checkers know of elements: `make check` has mypy read this file, and each line also runs."""

import pickle
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest

import penstock as ps


def halved(x: np.int64) -> float:
    return float(x) / 2


def added(a: np.int64, b: float) -> str:
    return f"{a} {b}"


def test_numbers_are_known() -> None:
    numbers = ps.Dataset.range(5)
    assert_type(numbers, ps.Dataset[np.int64])
    assert_type(numbers[2], np.int64)
    assert_type(numbers.at(2), np.int64)
    assert_type(numbers[1:3], ps.Dataset[np.int64])
    assert_type(next(iter(numbers)), np.int64)
    for number in numbers:
        assert_type(number, np.int64)
    assert_type(ps.Dataset.range(5, output_type=np.float32), ps.Dataset[Any])


def test_steps_that_keep_elements_keep_their_type() -> None:
    numbers = ps.Dataset.range(5)
    assert_type(numbers.filter(lambda x: x > 1).take(3).skip(1).shard(2, 0), ps.Dataset[np.int64])
    assert_type(numbers.shuffle(3).repeat(2).prefetch(1).cache(), ps.Dataset[np.int64])
    assert_type(numbers.take_while(lambda x: x < 3).unique().ignore_errors(), ps.Dataset[np.int64])
    assert_type(numbers.with_options(ps.Options(seed=3)).assert_cardinality(5), ps.Dataset[np.int64])


def test_a_function_decides() -> None:
    numbers = ps.Dataset.range(5)
    assert_type(numbers.map(halved), ps.Dataset[float])
    assert_type(numbers.map(halved, num_parallel_calls=2).batch(2), ps.Dataset[Any])
    pairs = numbers.map(lambda x: (x, halved(x)))
    assert_type(pairs, ps.Dataset[tuple[np.int64, float]])
    assert_type(pairs.map(added), ps.Dataset[str])
    assert_type(pairs.map(lambda a, b: b), ps.Dataset[Any])  # two parameters fit, whose types mypy does not find
    assert_type(numbers.flat_map(lambda x: ps.Dataset.range(int(x))), ps.Dataset[np.int64])
    assert_type(numbers.interleave(lambda x: ps.Dataset.range(int(x))), ps.Dataset[np.int64])


def test_a_split_of_the_catalog_is_a_data_set(tmp_path: Path) -> None:
    settings: dict[str, int] = {"num_examples": 40}
    digits = ps.catalog.load("shapes", split="test", data_dir=tmp_path, builder_kwargs=settings)
    assert_type(digits, ps.Dataset[Any])
    assert len(digits) == 10
    both = ps.catalog.load("shapes", split="test", data_dir=tmp_path, builder_kwargs=settings, with_info=True)
    assert_type(both, Any)
    assert_type(ps.catalog.load("shapes", data_dir=tmp_path, builder_kwargs=settings), Any)
    with pytest.raises(TypeError):
        ps.catalog.load("shapes", split="test", shuffle_file=True)  # type: ignore[call-overload]


def test_data_sets_beside_each_other() -> None:
    numbers, halves = ps.Dataset.range(5), ps.Dataset.range(5).map(halved)
    assert_type(numbers.enumerate(), ps.Dataset[tuple[np.int64, np.int64]])
    assert_type(ps.Dataset.zip(numbers, halves), ps.Dataset[tuple[np.int64, float]])
    assert_type(ps.Dataset.zip((numbers, halves)), ps.Dataset[tuple[np.int64, float]])
    assert_type(ps.Dataset.zip(numbers, halves).map(added), ps.Dataset[str])
    assert_type(ps.Dataset.zip({"a": numbers}), ps.Dataset[Any])
    assert_type(numbers.concatenate(ps.Dataset.range(3)), ps.Dataset[np.int64])
    assert_type(ps.Dataset.sample_from_datasets([numbers, numbers]), ps.Dataset[np.int64])
    assert_type(ps.Dataset.choose_from_datasets([numbers, numbers], ps.Dataset.range(2)), ps.Dataset[np.int64])


def test_elements_of_any_type_are_no_trouble() -> None:
    anything: ps.Dataset = ps.Dataset.from_tensor_slices(([1, 2], [3, 4]))
    assert_type(anything.map(lambda a, b: (a, b)).take(1)[0][0], Any)
    assert_type(anything.batch(2).map(lambda x, y: {"x": x, "y": y}), ps.Dataset[dict[str, Any]])


def test_what_does_not_fit_is_found() -> None:
    """An ignore that silences nothing is an error itself, under mypy's strict settings."""
    numbers = ps.Dataset.range(3)
    numbers.map(added)  # type: ignore[arg-type]
    ps.Dataset.range(3).map(halved).map(lambda x: x.no_such_thing)  # type: ignore[attr-defined]
    wrong: ps.Dataset[bytes] = numbers  # type: ignore[assignment]
    assert len(wrong) == 3


def test_brackets_do_nothing_at_run_time() -> None:
    assert isinstance(ps.Dataset[int].range(3), ps.Dataset)
    assert type(ps.Dataset.range(3)) is ps.Dataset
    copy = pickle.loads(pickle.dumps(ps.Dataset[np.int64].range(3)))
    assert [int(x) for x in copy] == [0, 1, 2]
