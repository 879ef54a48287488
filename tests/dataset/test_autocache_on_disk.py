"""Options.autocache = "disk": what all such caches take together is bounded, and none that is used goes."""

import gc
import itertools
import shutil
from collections import namedtuple

import numpy as np
import pytest

import penstock as ps
from penstock.profiler.placement import choose as deciding
from penstock.profiler.placement.remembered import room
from penstock.store import entry_writer as writer
from penstock.store.entry import kept_below

Usage = namedtuple("Usage", "total used free")
BIG = 8000  # bytes of the elements of a data set


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Of all automatic caches; whatever a step costs, keeping what it gives is worth it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(deciding, "_LEAST", -1e9)
    monkeypatch.setattr(deciding, "_LEAST_SHARE", 0.0)
    monkeypatch.setattr(
        deciding, "_KINDS", tuple(deciding._CacheKind(kind.name, -1.0, 0.0) for kind in deciding._KINDS)
    )
    return tmp_path / "penstock" / "autocache"


@pytest.fixture
def disk(monkeypatch):
    """Sets the bytes that are free on it, beside those that the caches take."""

    def of(free):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, free))

    return of


def data(number):
    ds = ps.Dataset.range(10).map(lambda x: np.full(BIG // 80, x + number))
    return ds.with_options(ps.Options(autocache="disk"))


def passes(ds, count=3):
    return [[int(x[0]) for x in ds] for _ in range(count)]


def kept(folder):
    return {entry.folder.parent.name for entry in kept_below(folder)}


def test_the_longest_unused_goes_when_there_is_no_room(folder, disk):
    disk(2 * 10**6)
    names = []
    for number in range(3):
        ds = data(number)
        assert passes(ds) == [[x + number for x in range(10)]] * 3
        names.append((kept(folder) - set(names)).pop())
        del ds
    gc.collect()
    total = sum(entry.nbytes for entry in kept_below(folder))
    disk(total // 2)  # half of what is taken and free is less than what is taken, and more than two of them need
    ds = data(3)
    assert passes(ds) == [[x + 3 for x in range(10)]] * 3
    assert names[0] not in kept(folder)
    assert names[2] in kept(folder)
    assert "disk:" in ds._placing.place


def test_one_that_a_data_set_uses_stays_and_leaves_the_others_less(folder, disk):
    disk(10**6)
    first = data(0)
    passes(first)
    (entry,) = kept_below(folder)
    assert entry.in_use
    disk(entry.nbytes + 2)
    assert room(folder / "another") == 1
    second = data(1)
    assert passes(second) == [[x + 1 for x in range(10)]] * 3
    assert second._placing.place is None
    assert "there is room for 1 bytes on disk" in second.explain()
    assert [left.folder for left in kept_below(folder)] == [entry.folder]
    del first
    gc.collect()
    third = data(1)
    assert passes(third) == [[x + 1 for x in range(10)]] * 3
    assert "disk:" in third._placing.place
    assert not entry.folder.exists()


def test_explain_shows_the_cache_that_runs(folder):
    ds = data(5)
    list(ds)
    text = ds.explain()
    plan, _, runs = text.partition("runs as")
    assert "cache(" not in plan
    assert "cache(" in runs.partition("autocache")[0]
    assert "penstock cache" in text
    assert not folder.exists()  # to look at it makes nothing
    passing = iter(ds)
    list(itertools.islice(passing, 4))
    del passing
    gc.collect()
    (entry,) = kept_below(folder)
    writer.is_writing(str(entry.folder))
    assert f"elements, in {entry.folder}; the next iterations write the others" in ds.explain()
    list(ds)
    assert f"it is full, with 10 elements in {entry.folder}, and serves all later epochs" in ds.explain()
    memory = ps.Dataset.range(3).map(lambda x: x + 1).with_options(ps.Options(autocache="memory"))
    list(memory)
    assert "  cache: in the thread that reads this step" in memory.explain().partition("runs as")[2]
