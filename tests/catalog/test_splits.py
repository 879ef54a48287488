"""Splits: parts add up exactly, percents fall where tfds puts them, and what is not a split is answered."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.golden.golden import assert_golden

from penstock.catalog import ReadInstruction, even_splits, subsplit_for_process
from penstock.catalog.info import SplitInfo
from penstock.catalog.splits import SplitRange, as_split
from penstock.errors import InvalidArgumentError, InvalidTypeError

LENGTHS = st.lists(st.integers(0, 200), min_size=1, max_size=6).map(tuple)


def splits_of(*lengths, **more):
    return {"train": SplitInfo("train", lengths, 0)} | {name: SplitInfo(name, of, 0) for name, of in more.items()}


def numbers(split, splits):
    return [(part.split, number) for part in as_split(split).parts(splits) for number in range(part.start, part.stop)]


def whole(splits):
    return [(name, number) for name, split in splits.items() for number in range(split.num_examples)]


@given(LENGTHS, st.lists(st.integers(0, 100), max_size=6))
def test_percents_add_up_to_the_whole(lengths, cuts):
    splits = splits_of(*lengths)
    edges = [0, *sorted(cuts), 100]
    parts = [f"train[{a}%:{b}%]" for a, b in pairwise(edges)]
    assert [n for part in parts for n in numbers(part, splits)] == whole(splits)
    assert numbers("+".join(parts), splits) == whole(splits)


@given(LENGTHS, st.floats(-100, 100, allow_nan=False))
def test_a_percent_is_rounded_to_the_nearest_example_half_to_even(lengths, percent):
    splits, count = splits_of(*lengths), sum(lengths)
    (part,) = ReadInstruction("train", to=percent, unit="%").parts(splits)
    edge = round(percent * count / 100.0)
    assert part.stop == (edge + count if edge < 0 else edge)


@given(LENGTHS, st.integers(1, 9), st.booleans())
def test_even_splits_add_up_and_differ_by_one(lengths, count, drop):
    splits = splits_of(*lengths, test=(11,))
    parts = [numbers(part, splits) for part in even_splits("train[3%:]+test", count, drop_remainder=drop)]
    wanted = numbers("train[3%:]+test", splits)
    for name in ("train", "test"):
        sizes = [sum(split == name for split, _ in part) for part in parts]
        assert max(sizes) - min(sizes) <= (0 if drop else 1)
    together = sorted(n for part in parts for n in part)
    assert together == sorted(wanted) if not drop else set(together) <= set(wanted)
    assert len(set(together)) == len(together)
    each = [
        numbers(subsplit_for_process("train[3%:]+test", r, count, drop_remainder=drop), splits) for r in range(count)
    ]
    assert each == parts


@given(LENGTHS)
def test_shards_add_up_to_the_whole(lengths):
    splits = splits_of(*lengths)
    assert [n for i in range(len(lengths)) for n in numbers(f"train[{i}shard]", splits)] == whole(splits)
    assert numbers("train[-1shard:]", splits) == numbers(f"train[{len(lengths) - 1}shard:]", splits)


@pytest.mark.parametrize(
    ("text", "start", "stop"),
    [
        ("train", 0, 125),
        ("train[:]", None, None),
        ("train[10:20]", 10, 20),
        ("train[1_0:2_0]", 10, 20),
        ("train[-25:]", 100, 125),
        ("train[:-25]", 0, 100),
        ("train[25%:]", 31, 125),
        ("train[:25%]", 0, 31),
        ("train[-10%:]", 113, 125),
        ("train[33.3%:66.6%]", 42, 83),
        ("train[1shard]", 60, 125),
        ("train[-1shard]", 60, 125),
        ("train[1shard:]", 60, 125),
        ("train[:1shard]", 0, 60),
        ("train[20:10]", 20, 20),
    ],
)
def test_slices(text, start, stop):
    splits = splits_of(60, 65)
    if start is None:
        with pytest.raises(InvalidArgumentError):
            as_split(text)
    else:
        assert as_split(text).parts(splits) == [SplitRange("train", start, stop)]


@pytest.mark.parametrize("text", ["train[:9000000]", "train[1234567:7654321]", "train[:33.3%]", "train[2shard:]"])
def test_a_slice_is_written_as_it_was_given(text):
    assert str(as_split(text)) == text


def test_all_and_sums():
    splits = splits_of(3, test=(2,))
    assert numbers("all", splits) == whole(splits) == numbers("train+test", splits)
    assert numbers(ReadInstruction("test") + "train[:1]", splits) == [("test", 0), ("test", 1), ("train", 0)]
    assert str(as_split("train[:50%]+test[1:]")) == "train[:50%]+test[1:]"


def test_all_percents_of_one_size():
    instruction = ReadInstruction("train", from_=10, to=20, unit="%", rounding="pct1_dropremainder")
    assert instruction.parts(splits_of(250)) == [SplitRange("train", 20, 40)]
    with pytest.raises(InvalidArgumentError, match="at least 100 examples"):
        instruction.parts(splits_of(99))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("unknown", lambda s: as_split("valid").parts(s)),
        ("range", lambda s: as_split("train[:200]").parts(s)),
        ("range_negative", lambda s: as_split("train[-200:]").parts(s)),
        ("shard_range", lambda s: as_split("train[:7shard]").parts(s)),
        ("text", lambda s: as_split("train[a:]")),
        ("percent_alone", lambda s: as_split("train[10%]")),
        ("units", lambda s: as_split("train[10%:20]")),
        ("empty", lambda s: as_split("")),
        ("all_sliced", lambda s: as_split("all[:10%]")),
        ("percent_101", lambda s: as_split("train[:101%]")),
        ("unit", lambda s: ReadInstruction("train", unit="percent")),
        ("rank", lambda s: subsplit_for_process("train", 4, 4)),
        ("type", lambda s: as_split(3)),
    ],
)
def test_what_is_no_split_is_answered(name, make):
    with pytest.raises((InvalidArgumentError, InvalidTypeError)) as raised:
        make(splits_of(60, 65, test=(10,)))
    assert_golden(f"catalog_split_{name}", str(raised.value))
