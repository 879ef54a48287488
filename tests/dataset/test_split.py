"""`Dataset.split`: parts that have no element in common, exact in size, the same in each epoch."""

import collections
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import InvalidArgumentError, UnimplementedError
from penstock.testing import assert_resumes_exactly, assert_same_on_all_executors


def label_of(row):
    return row["label"]


def rows(labels):
    return ps.Dataset.from_tensor_slices({"x": np.arange(len(labels)), "label": np.array(labels, np.int64)})


def numbers(ds):
    return [int(row["x"]) for row in ds]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=60),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.booleans(),
    st.integers(0, 99),
)
def test_parts_are_exact_and_have_nothing_in_common(labels, weights, stratified, seed):
    fractions = [weight / sum(weights) for weight in weights]
    parts = rows(labels).split(fractions, seed=seed, stratify=label_of if stratified else None)
    found = [numbers(part) for part in parts]
    assert sorted(itertools.chain(*found)) == list(range(len(labels)))
    assert [numbers(part) for part in parts] == found  # in the next epoch
    assert [len(part) for part in parts] == [len(part) for part in found]
    assert all(abs(len(part) - share * len(labels)) <= 1 for part, share in zip(found, fractions, strict=True))
    if stratified:
        for kind, count in collections.Counter(labels).items():
            of_kind = [sum(labels[number] == kind for number in part) for part in found]
            assert all(abs(of - share * count) <= 2 for of, share in zip(of_kind, fractions, strict=True))


def test_each_part_of_sorted_labels_has_each_label():
    train, validation = rows(np.repeat(np.arange(10), 50)).split((0.8, 0.2), stratify=label_of)
    assert set(collections.Counter(int(row["label"]) for row in validation).values()) == {10}
    labels = [int(row["label"]) for row in train]
    assert labels != sorted(labels)


def test_another_seed_gives_other_parts():
    ds = ps.Dataset.range(100)
    one, same, other = (list(ds.split((0.5, 0.5), seed=seed)[0]) for seed in (1, 1, 2))
    assert one == same != other


def test_parts_resume_and_are_read_by_number():
    ds = ps.Dataset.range(40).map(lambda x: x * 2, num_parallel_calls=2)
    train, _ = ds.split((0.7, 0.3))
    assert_resumes_exactly(train.batch(3))
    assert_resumes_exactly(train.shuffle(ps.ALL, seed=1))
    assert_same_on_all_executors(train.batch(4))
    assert train[3] == list(train)[3]
    assert [int(x) for x in pickle.loads(pickle.dumps(train))] == [int(x) for x in train]
    assert train.fingerprint() != ds.split((0.7, 0.3), seed=1)[0].fingerprint()


def test_labels_are_read_in_order_where_the_order_is_free():
    ds = rows(np.arange(200) // 100).with_options(ps.Options(deterministic=False))
    _, validation = ds.map(lambda row: row, num_parallel_calls=2).split((0.9, 0.1), stratify=label_of)
    assert collections.Counter(int(row["label"]) for row in validation) == {0: 10, 1: 10}


@pytest.mark.parametrize(
    ("ds", "fractions", "error", "match"),
    [
        (ps.Dataset.range(4), (0.5, 0.4), InvalidArgumentError, "sum to 1"),
        (ps.Dataset.range(4), (), InvalidArgumentError, "sum to 1"),
        (ps.Dataset.range(4), (1.5, -0.5), InvalidArgumentError, "positive"),
        (ps.Dataset.range(4).repeat(2), (0.5, 0.5), InvalidArgumentError, "in common"),
        (ps.Dataset.range(4).shuffle(ps.ALL), (0.5, 0.5), InvalidArgumentError, "in common"),
        (ps.Dataset.range(4).shuffle(2), (0.5, 0.5), UnimplementedError, "only in order"),
        (ps.Dataset.from_generator(lambda: range(4)), (0.5, 0.5), UnimplementedError, "no index"),
    ],
)
def test_what_cannot_be_split_is_refused(ds, fractions, error, match):
    with pytest.raises(error, match=match):
        ds.split(fractions)
