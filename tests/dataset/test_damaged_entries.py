"""Damaged and lost files of entries: a cache makes their elements once more, in passes and by number."""

import os
import shutil
from pathlib import Path

import pytest
from tests.dataset.entries import (
    COUNT,
    KINDS,
    RANGE,
    WANTED,
    begin,
    by_kind,
    committed,
    damage,
    entry_of,
    is_complete,
    square,
    squares,
    values,
)
from tests.positions import assert_continues_everywhere, given, positions, stage_of, texts

import penstock as ps
from penstock import errors


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1)


# -- in passes

DAMAGES = {"a bit": damage, "cut short": lambda path: os.truncate(path, 50), "missing": Path.unlink}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("stopped", [8, COUNT + 1])
def test_a_damaged_file_of_a_cache_is_made_once_more(name, stopped, tmp_path, caplog):
    begin(squares().cache(tmp_path), stopped)
    chunk = entry_of(tmp_path) / committed(tmp_path)[1]["file"]
    before = chunk.read_bytes()
    DAMAGES[name](chunk)
    assert values(squares().cache(tmp_path)) == WANTED
    (text,) = [record.message for record in caplog.records]
    assert "computed and written again" in text
    assert str(chunk) in text
    assert chunk.read_bytes() == before
    assert values(squares().cache(tmp_path)) == WANTED
    assert len(caplog.records) == 1


def test_every_file_of_a_cache_may_be_damaged(tmp_path):
    assert values(squares().cache(tmp_path)) == WANTED
    for chunk in entry_of(tmp_path).rglob("*.arrow"):
        damage(chunk)
    ds = squares().cache(tmp_path)
    assert_continues_everywhere(ds)
    assert values(ds) == WANTED


def test_a_damaged_file_of_a_snapshot_fails_in_the_place_of_its_elements(tmp_path):
    begin(squares().snapshot(tmp_path, None), 8)
    first, second = committed(tmp_path)[:2]
    damage(entry_of(tmp_path) / second["file"])
    at, count = first["elements"], second["elements"]
    found = texts(positions(squares().snapshot(tmp_path, None)))
    assert found == [*WANTED[:at], *["DataLossError"] * count, *WANTED[at + count :]]


def test_a_damaged_file_that_nobody_may_write_is_made_in_every_pass(tmp_path, monkeypatch, caplog):
    values(squares().cache(tmp_path))
    damage(entry_of(tmp_path) / committed(tmp_path)[1]["file"])

    def refused(folder):
        raise PermissionError(13, "Permission denied", folder)

    monkeypatch.setattr("penstock.store.snapshot_store.take", refused)
    assert values(squares().cache(tmp_path)) == WANTED
    assert "could not be written" in caplog.text
    assert sorted(values(squares().cache(tmp_path).shuffle(ps.ALL))) == WANTED


def test_a_file_is_not_written_into_an_entry_that_was_made_anew(tmp_path):
    """Whoever makes a chunk once more may be late: the folder holds another run by then."""
    reading = iter(squares().cache(tmp_path))
    assert int(next(reading)) == 0
    values(reading)
    ds = squares().cache(tmp_path)
    stage = stage_of(ds)
    chunk = entry_of(tmp_path) / committed(tmp_path)[1]["file"]
    shutil.rmtree(entry_of(tmp_path))
    values(squares().cache(tmp_path))
    damage(chunk)
    assert texts(given(stage)) == WANTED
    assert values(squares().cache(tmp_path)) == WANTED
    assert is_complete(tmp_path)


def test_in_free_order_a_cache_goes_on_without_the_files_behind_the_damage(tmp_path, caplog):
    options = ps.Options(deterministic=False)
    ds = RANGE(60).map(square, num_parallel_calls=2).cache(tmp_path).with_options(options)
    whole = sorted(values(ds))
    damage(entry_of(tmp_path) / committed(tmp_path)[3]["file"])
    for _ in range(2):
        assert sorted(values(ds)) == whole == [x * x for x in range(60)]
    assert "continues without the files" in caplog.text


# -- by number


def third(x):
    return x % 3 == 0


CALLS = []


def counted(x):
    CALLS.append(int(x))
    return x * x


BY_NUMBER = {
    "an index": (squares, WANTED),
    "no index": (
        lambda: RANGE(60).filter(third).map(square).map(lambda x: x + 1),
        [x * x + 1 for x in range(0, 60, 3)],
    ),
}


@pytest.mark.parametrize("how", ["at", "shuffle"])
@pytest.mark.parametrize("name", BY_NUMBER)
def test_damaged_files_of_a_cache_are_made_once_more_by_number(name, how, tmp_path, caplog):
    build, wanted = BY_NUMBER[name]
    values(build().cache(tmp_path))
    chunks = [entry_of(tmp_path) / chunk["file"] for chunk in committed(tmp_path)]
    before = [chunk.read_bytes() for chunk in chunks]
    for chunk in chunks[1:4]:
        damage(chunk)
    ds = build().cache(tmp_path)
    if how == "at":
        found = [int(ds.at(number)) for number in range(len(ds))]
    else:
        found = sorted(values(ds.shuffle(ps.ALL)))
    assert found == wanted
    assert [chunk.read_bytes() for chunk in chunks] == before
    warned = [record.message for record in caplog.records]
    assert len(warned) == 3
    assert all(sum(str(chunk) in text for text in warned) == 1 for chunk in chunks[1:4])


@by_kind
def test_worker_processes_read_an_entry_by_number_and_mend_it(kind, tmp_path):
    def build():
        return KINDS[kind](tmp_path, RANGE(COUNT).map(square, num_parallel_calls=2))

    ds = build()
    values(ds)
    shuffled = ds.shuffle(ps.ALL)
    assert sorted(values(shuffled.iterator(executor="process"))) == WANTED
    if kind == "cache":
        chunk = entry_of(tmp_path) / committed(tmp_path)[1]["file"]
        before = chunk.read_bytes()
        damage(chunk)
        assert sorted(values(build().shuffle(ps.ALL).iterator(executor="process"))) == WANTED
        assert chunk.read_bytes() == before


def test_elements_are_made_from_the_checkpoint_in_front_of_their_file(tmp_path):
    ds = RANGE(COUNT).filter(lambda x: x >= 0).map(counted).cache(tmp_path)
    values(ds)
    first = sum(chunk["elements"] for chunk in committed(tmp_path)[:2])
    damaged = committed(tmp_path)[2]
    damage(entry_of(tmp_path) / damaged["file"])
    CALLS.clear()
    again = RANGE(COUNT).filter(lambda x: x >= 0).map(counted).cache(tmp_path)
    assert int(again.at(first)) == first * first
    assert set(CALLS) == set(range(first, first + damaged["elements"]))


def test_elements_that_cannot_be_made_again_stay_lost_and_say_why(tmp_path):
    switch = tmp_path / "switch"

    def failing(x):
        if switch.exists():
            raise ValueError("no more")
        return x

    values(RANGE(COUNT).map(failing).cache(tmp_path / "kept"))
    damage(entry_of(tmp_path / "kept") / committed(tmp_path / "kept")[0]["file"])
    switch.touch()
    ds = RANGE(COUNT).map(failing).cache(tmp_path / "kept")
    with pytest.raises(errors.DataLossError) as caught:
        ds.at(0)
    assert "no more" in caught.value.__notes__[0]
    assert int(ds.at(COUNT - 1)) == COUNT - 1


def test_a_damaged_file_of_a_snapshot_is_an_error_by_number(tmp_path):
    values(squares().snapshot(tmp_path, None))
    second = committed(tmp_path)[1]
    damage(entry_of(tmp_path) / second["file"])
    ds = squares().snapshot(tmp_path, None)
    assert int(ds.at(0)) == 0
    with pytest.raises(errors.DataLossError) as caught:
        ds.at(committed(tmp_path)[0]["elements"])
    assert caught.value.context.file == str(entry_of(tmp_path) / second["file"])
