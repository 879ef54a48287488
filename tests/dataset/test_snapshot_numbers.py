"""Length and numbers of a snapshot: those of its files once it is complete, whatever it was made of."""

import shutil

import numpy as np
import pytest

import penstock as ps
from penstock.testing import assert_resumes_exactly

WANTED = [0, 3, 6, 9, 12, 15, 18]


def thirds(path, **options):
    return ps.Dataset.range(20).filter(lambda x: x % 3 == 0).snapshot(path, **options)


def numbers(dataset):
    return [int(x) for x in dataset]


def test_before_the_first_complete_pass_nobody_knows(tmp_path):
    ds = thirds(tmp_path)
    with pytest.raises(TypeError, match="unknown before an iteration"):
        len(ds)
    for ask in (lambda: ds.at(2), lambda: ds[0], lambda: ds.shuffle(ps.ALL)):
        with pytest.raises(ps.errors.UnimplementedError, match="filter"):
            ask()
    assert numbers(ds.take(2)) == [0, 3]
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    assert int(ds.batch_at(3)) == 9  # runs the data set up to there


def test_a_length_that_the_steps_tell_is_known_from_the_start(tmp_path):
    ds = ps.Dataset.range(20).map(lambda x: x * x).snapshot(tmp_path)
    assert (len(ds), int(ds.at(3)), len(ds.batch(3))) == (20, 9, 7)
    assert not list(tmp_path.rglob("*.arrow"))


@pytest.mark.parametrize("again", [False, True], ids=["same object", "made anew"])
def test_a_complete_snapshot_has_a_length_and_numbers(again, tmp_path):
    ds = thirds(tmp_path)
    assert numbers(ds) == WANTED
    if again:
        ds = thirds(tmp_path)
    assert len(ds) == 7
    assert [int(ds[i]) for i in range(-7, 7)] == WANTED * 2
    assert numbers(ds[-3:]) == WANTED[-3:]
    assert (len(ds.repeat(2).batch(2)), len(ds.skip(2).map(lambda x: x + 1))) == (7, 5)
    np.testing.assert_array_equal(ds.batch(3).at(1), WANTED[3:6])
    with pytest.raises(ps.errors.OutOfRangeError, match="has 7 elements"):
        ds.at(7)


def test_a_complete_snapshot_is_shuffled_globally(tmp_path):
    assert numbers(thirds(tmp_path)) == WANTED
    ds = thirds(tmp_path).map(lambda x: x + 1).shuffle(ps.ALL, seed=1)
    passes = [numbers(ds.iterator(epoch=epoch)) for epoch in (0, 1)]
    assert [sorted(found) for found in passes] == [[x + 1 for x in WANTED]] * 2
    assert passes[0] != passes[1]
    assert [[int(ds.at(i, epoch)) for i in range(7)] for epoch in (0, 1)] == passes
    assert passes == [numbers(ps.Dataset.from_tensor_slices(WANTED).map(lambda x: x + 1).shuffle(ps.ALL, seed=1)
                              .iterator(epoch=epoch)) for epoch in (0, 1)]  # fmt: skip
    assert_resumes_exactly(ds.batch(2))


def test_numbers_are_those_of_the_order_in_which_shards_are_read(tmp_path):
    ds = thirds(tmp_path, shard_func=lambda x: x // 10)
    list(ds)
    served = numbers(ds)
    assert served == [0, 12, 3, 15, 6, 18, 9]
    assert [int(ds.at(i)) for i in range(len(ds))] == served


def test_behind_a_complete_snapshot_there_may_be_one_that_is_not(tmp_path):
    ds = thirds(tmp_path / "complete")
    list(ds)
    outer = ds.repeat(2).snapshot(tmp_path / "begun")
    assert (len(outer), int(outer.at(8))) == (14, 3)
    assert sorted(numbers(outer.shuffle(ps.ALL))) == sorted(WANTED * 2)


def test_who_reads_with_a_function_has_no_numbers(tmp_path):
    ds = thirds(tmp_path, reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    assert numbers(ds) == numbers(ds) == WANTED
    assert ds.cardinality() == ps.UNKNOWN_CARDINALITY
    with pytest.raises(ps.errors.UnimplementedError):
        ds.at(0)


def test_another_seed_is_another_snapshot(tmp_path):
    ds = thirds(tmp_path)
    list(ds)
    assert ds.with_options(ps.Options(seed=3)).cardinality() == ps.UNKNOWN_CARDINALITY


def test_a_snapshot_that_was_removed_has_no_numbers_any_more(tmp_path):
    ds = thirds(tmp_path)
    list(ds)
    shuffled = ds.shuffle(ps.ALL)
    shutil.rmtree(tmp_path)
    with pytest.raises(ps.errors.UnimplementedError, match=r"not complete.*filter") as caught:
        list(shuffled)
    assert "Run a complete iteration" in caught.value.hint
    assert numbers(ds) == WANTED
    assert sorted(numbers(shuffled)) == WANTED


def test_the_text_of_a_data_set_looks_at_no_data(tmp_path):
    ds = thirds(tmp_path)
    list(ds)
    assert "7 elements" in repr(ds)  # the pass has looked
    assert "plan (7 elements)" in ds.explain()
    assert "14 elements" in repr(ds.repeat(2))
    again = thirds(tmp_path)
    assert "unknown elements" in repr(again)
    assert len(again) == 7
    assert "7 elements" in repr(again)


def test_the_text_of_a_data_set_is_there_whatever_its_files_are(tmp_path):
    ds = thirds(tmp_path)
    list(ds)
    (manifest,) = tmp_path.rglob("manifest.json")
    manifest.write_text("[]")
    assert "unknown elements" in repr(ds)
    assert f"snapshot({tmp_path.name})" in repr(ds)
    with pytest.raises(ps.errors.DataLossError):
        len(ds)
