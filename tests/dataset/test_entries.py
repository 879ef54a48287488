"""Entries: parts of passes that are used, and what fails while they are written."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.dataset.entries import (
    COUNT,
    KINDS,
    RANGE,
    WANTED,
    begin,
    by_kind,
    committed,
    entry_of,
    is_complete,
    square,
    squares,
    values,
)
from tests.positions import assert_continues_everywhere, given, positions, stage_of

import penstock as ps
from penstock import errors
from penstock.testing import resumed


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1)


# -- parts of passes


@by_kind
def test_a_pass_goes_on_behind_what_others_have_left(kind, tmp_path):
    for count in (3, 9, 14):
        assert begin(KINDS[kind](tmp_path), count) == WANTED[:count]
    before = committed(tmp_path)
    assert values(KINDS[kind](tmp_path)) == WANTED
    assert is_complete(tmp_path)
    after = committed(tmp_path)
    assert after[: len(before)] == before
    assert sum(chunk["elements"] for chunk in after) == COUNT
    assert values(KINDS[kind](tmp_path)) == WANTED


def test_what_is_committed_is_not_made_again(tmp_path):
    made = []

    def seen(x):
        made.append(int(x))
        return x

    ds = RANGE(COUNT).map(seen).cache(tmp_path)
    begin(ds, 8)
    there = sum(chunk["elements"] for chunk in committed(tmp_path))
    made.clear()
    assert values(ds) == list(range(COUNT))
    assert made == list(range(there, COUNT))


def test_what_nobody_knows_of_is_removed(tmp_path):
    begin(squares().cache(tmp_path), 5)
    folder = entry_of(tmp_path)
    strays = [
        folder / "chunks" / "000009_00000_0.arrow",
        folder / "chunks" / "x.1.part",
        folder / "manifest.json.1.part",
    ]
    for stray in strays:
        stray.write_bytes(b"torn")
    with (folder / "journal.jsonl").open("ab") as journal:
        journal.write(b'["0000')
    assert values(squares().cache(tmp_path)) == WANTED
    assert not any(stray.exists() and stray.read_bytes() == b"torn" for stray in strays)
    assert sum(chunk["elements"] for chunk in committed(tmp_path)) == COUNT


def test_a_journal_that_is_damaged_holds_up_to_there(tmp_path):
    begin(squares().cache(tmp_path), 12)
    journal = entry_of(tmp_path) / "journal.jsonl"
    content = bytearray(journal.read_bytes())
    content[len(content) // 2] ^= 4
    journal.write_bytes(content)
    assert values(squares().cache(tmp_path)) == WANTED
    assert values(squares().cache(tmp_path)) == WANTED
    assert sum(chunk["elements"] for chunk in committed(tmp_path)) == COUNT


def test_states_of_other_rewrites_are_not_used_but_the_elements_are(tmp_path):
    ds = RANGE(COUNT).map(lambda x: x + 1).map(lambda x: x - 1).map(square).cache(tmp_path)
    begin(ds, 7)
    options = ps.Options()
    options.experimental_optimization.map_fusion = False
    assert values(ds.with_options(options)) == WANTED
    assert sum(chunk["elements"] for chunk in committed(tmp_path)) == COUNT


def test_a_free_order_goes_on_with_the_elements_that_are_left(tmp_path):
    options = ps.Options(deterministic=False)
    ds = RANGE(200).map(square, num_parallel_calls=4).snapshot(tmp_path).with_options(options)
    for _ in range(2):
        first = iter(ds)
        for _ in range(30):
            next(first)
        first.close()
    for _ in range(2):
        assert sorted(values(ds)) == [x * x for x in range(200)]


def test_with_a_shard_func_what_is_left_comes_in_the_order_of_its_files(tmp_path):
    def data():
        return squares().snapshot(tmp_path, shard_func=lambda x: x % 2)

    there = begin(data(), 5)
    assert there == WANTED[:5]
    elements = sum(chunk["elements"] for chunk in committed(tmp_path))
    again = values(data())
    assert sorted(again[:elements]) == WANTED[:elements]
    assert again[elements:] == WANTED[elements:]
    assert sorted(values(data())) == WANTED


@pytest.mark.parametrize("count", [0, 1, 7, COUNT])
@pytest.mark.parametrize("shard_func", [None, lambda x: x % 3])
def test_passes_are_resumed_wherever_they_are(count, shard_func, tmp_path):
    ds = squares().snapshot(tmp_path, shard_func=shard_func)
    if count:
        begin(ds, count)
    if shard_func is not None:
        positions(ds)  # from now on every pass comes in one order
    assert_continues_everywhere(ds)


def test_a_pass_is_resumed_in_another_process_without_its_files(tmp_path):
    reading = iter(squares().cache(tmp_path / "one"))
    assert [int(next(reading)) for _ in range(6)] == WANTED[:6]
    state = json.loads(json.dumps(reading.state_dict()))
    reading.close()
    assert values(resumed(squares().cache(tmp_path / "one"), state)) == WANTED[6:]


# -- passes beside each other


def test_one_of_two_iterators_writes_and_both_are_right(tmp_path):
    ds = squares().cache(tmp_path)
    one, other = iter(ds), iter(ds)
    found = [(int(a), int(b)) for a, b in zip(one, other, strict=True)]
    assert found == [(x, x) for x in WANTED]
    assert is_complete(tmp_path)
    assert values(ps.Dataset.zip((ds, ds)).map(lambda a, b: a + b)) == [2 * x for x in WANTED]


def test_a_pass_that_was_left_standing_gives_its_place_away(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._IDLE", 0.0)
    ds = squares().cache(tmp_path)
    standing = iter(ds)
    assert int(next(standing)) == 0
    assert values(ds) == WANTED
    assert is_complete(tmp_path)
    assert values(standing) == WANTED[1:]


# -- what the disk does not take

CALLS = [(os, "fsync"), (os, "open"), (os, "write"), (os, "ftruncate"), (Path, "replace"), (Path, "mkdir")]


@by_kind
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EIO])
def test_wherever_the_disk_refuses_the_pass_is_right_and_the_next_goes_on(kind, number, tmp_path, monkeypatch, caplog):
    for allowed in range(0, 40, 5):
        left = [allowed]

        def refusing(function, left=left):
            def call(*args, **kwargs):
                left[0] -= 1
                if left[0] < 0:
                    raise OSError(number, os.strerror(number))
                return function(*args, **kwargs)

            return call

        path = tmp_path / str(allowed)
        caplog.clear()
        with monkeypatch.context() as patch:
            for owner, name in CALLS:
                patch.setattr(owner, name, refusing(getattr(owner, name)))
            found = values(KINDS[kind](path))
        assert found == WANTED
        warned = [record for record in caplog.records if "nothing is written" in record.message]
        assert len(warned) == (left[0] < 0)
        assert values(KINDS[kind](path)) == WANTED
        assert values(KINDS[kind](path)) == WANTED
        assert is_complete(path)


def test_without_locks_every_pass_makes_its_own(tmp_path, monkeypatch, caplog):
    def refuses(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    begin(squares().cache(tmp_path), 5)
    monkeypatch.setattr("fcntl.flock", refuses)
    for _ in range(2):
        assert values(squares().cache(tmp_path)) == WANTED
    assert caplog.text.count("cannot be locked") == 1
    assert not is_complete(tmp_path)


# -- by load


def test_what_there_is_so_far_is_loaded(tmp_path, caplog):
    begin(squares().snapshot(tmp_path), 6)
    entry = entry_of(tmp_path)
    there = sum(chunk["elements"] for chunk in committed(tmp_path))
    assert values(ps.Dataset.load(entry)) == WANTED[:there]
    assert f"first {there} elements" in caplog.text
    following = iter(ps.Dataset.load(entry, wait=True))
    assert [int(next(following)) for _ in range(there)] == WANTED[:there]
    values(squares().snapshot(tmp_path))
    assert values(following) == WANTED[there:]
    caplog.clear()
    assert values(ps.Dataset.load(entry)) == WANTED
    assert not caplog.records


def test_a_load_that_follows_nobody_says_so_once_and_goes_on(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("penstock.physical.stages.scan._PATIENCE", 0.0)
    begin(squares().snapshot(tmp_path), 6)
    entry = entry_of(tmp_path)
    stage = stage_of(ps.Dataset.load(entry, wait=True))
    pauses = []

    def pause(seconds):
        pauses.append(seconds)
        if len(pauses) == 3:
            values(squares().snapshot(tmp_path))

    stage._pause = pause
    assert [int(x) for x in given(stage, 2)] == WANTED
    (said,) = [record.message for record in caplog.records if "waits for elements" in record.message]
    assert f"no process writes to {entry}, which has" in said


def test_a_load_that_follows_is_resumed(tmp_path):
    begin(squares().snapshot(tmp_path), 6)
    ds = ps.Dataset.load(entry_of(tmp_path), wait=True)
    values(squares().snapshot(tmp_path))
    assert_continues_everywhere(ds)


# -- arguments


def test_a_cache_in_files_needs_an_end_and_a_folder(tmp_path):
    with pytest.raises(errors.InvalidArgumentError, match="infinite"):
        RANGE(3).repeat().cache(tmp_path)
    with pytest.raises(errors.InvalidTypeError):
        RANGE(3).cache(3)


def test_a_second_writer_shares_or_waits():
    with pytest.raises(errors.InvalidArgumentError, match="'share', 'wait'"):
        ps.Options(second_writer="steal")


def test_cached_arrays_are_read_only_and_elements_of_all_kinds_come_back(tmp_path):
    ds = RANGE(9).map(lambda x: {"a": np.full(3, x), "b": b"x" * int(x)}).cache(tmp_path)
    for _ in range(2):
        found = list(ds.with_options(ps.Options(zero_copy=True)))
        assert [row["b"] for row in found] == [b"x" * x for x in range(9)]
        assert [row["a"].tolist() for row in found] == [[x] * 3 for x in range(9)]
        assert not any(row["a"].flags.writeable for row in found)
