"""Snapshots and caches behind URLs: written where nothing can be locked and nothing appended to."""

import json
import random
import socket
import subprocess
import sys
import time

import fsspec
import pytest
from tests.dataset.entries import COUNT, WANTED, begin, by_kind, squares, values
from tests.positions import given, stage_of

import penstock as ps
from penstock import errors
from penstock.io import storage
from penstock.store import entry_writer as writer
from penstock.store import journal
from penstock.store.entry import remove
from penstock.store.lock import Lease, take_lease

URL = "memory://url-entries-test"


@pytest.fixture(autouse=True)
def system(monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1)
    monkeypatch.setattr("penstock.physical.storage._REMOTE_PAUSE", 0.01)
    system = fsspec.filesystem("memory")
    yield system
    if system.exists("/url-entries-test"):
        system.rm("/url-entries-test", recursive=True)


def kept(kind):
    return getattr(squares(), kind)(URL)


def files(system, suffix):
    return [path for path in system.find("/url-entries-test") if path.endswith(suffix)]


def folder_of(system):
    """The one entry's, once its writer has let go of it."""
    (manifest,) = files(system, "manifest.json")
    folder = f"memory:/{manifest.removesuffix('/manifest.json')}"
    assert not writer.is_writing(folder)
    return folder


@by_kind
@pytest.mark.parametrize("stops", [[], [6], [0, 1, 7, 7, COUNT - 1]])
@pytest.mark.parametrize("length", [2, 3, 256])
def test_a_pass_goes_on_behind_what_others_have_left(monkeypatch, system, kind, stops, length):
    monkeypatch.setattr(journal, "_SEGMENT", length)
    for stop in stops:
        begin(kept(kind), stop)
    if stops:
        so_far = values(ps.Dataset.load(folder_of(system)))
        assert so_far == WANTED[: len(so_far)]
        assert len(so_far) >= stops[-1]
    assert values(kept(kind)) == WANTED
    assert values(kept(kind)) == WANTED
    assert len(kept(kind)) == COUNT
    assert not files(system, "writer.lock")


@by_kind
@pytest.mark.parametrize("seed", range(4))
def test_two_that_write_at_a_time_lose_and_repeat_nothing(monkeypatch, system, kind, seed):
    chance = random.Random(seed)
    monkeypatch.setattr(journal, "_SEGMENT", chance.choice([2, 4, 256]))
    monkeypatch.setattr("penstock.store.snapshot_store.take_lease", lambda folder: _Nobodys())
    monkeypatch.setattr(writer, "goes_on_writing", lambda folder: False)
    monkeypatch.setattr(writer, "is_writing", lambda folder: False)
    for _ in range(3):
        passes = [iter(kept(kind)) for _ in range(2)]
        found = [[], []]
        for _ in range(chance.randrange(2 * COUNT)):
            who = chance.randrange(2)
            found[who] += [int(x) for _, x in zip(range(chance.randrange(1, 4)), passes[who], strict=False)]
        for each, its in zip(found, passes, strict=True):
            assert each == WANTED[: len(each)]
            if chance.random() < 0.5:
                assert each + [int(x) for x in its] == WANTED
            its.close()
    monkeypatch.undo()
    assert values(kept(kind)) == WANTED
    assert values(kept(kind)) == WANTED
    assert len(kept(kind)) == COUNT


class _Nobodys:
    def release(self):
        """It kept nobody out."""


def said(system, name, **values):
    told = {"host": socket.gethostname(), "pid": 1, "at": time.time(), "token": "x"}
    system.pipe_file(name, json.dumps({**told, **values}).encode())


def ended():
    """The number of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_who_holds_a_lease_keeps_others_out_until_it_is_dead(system):
    folder, name = f"{URL}/entry", "/url-entries-test/entry/writer.lock"
    lease = take_lease(folder)
    assert lease is not None
    assert take_lease(folder) is None
    lease.release()
    lease.release()
    assert not system.exists(name)
    for alive, told in [
        (True, {"host": "another"}),
        (True, {"pid": 1}),
        (False, {"host": "another", "at": time.time() - 100}),
        (False, {"pid": ended()}),
        (False, {"at": "?"}),
    ]:
        said(system, name, **told)
        found = take_lease(folder)
        assert (found is None) == alive, told
        if found is not None:
            found.release()
    system.pipe_file(name, b"not JSON")
    found = take_lease(folder)
    said(system, name, host="another")  # it was taken from us
    found.release()
    assert system.exists(name)


def test_a_pass_beside_one_that_holds_the_lease_goes_on_by_itself(system):
    begin(kept("snapshot"), 5)
    name = folder_of(system).removeprefix("memory:/")
    said(system, f"{name}/writer.lock", host="another")
    options = ps.Options(second_writer="share")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.physical.storage._PATIENCE", 0.05)
        assert values(kept("snapshot").with_options(options)) == WANTED
    assert len(files(system, "manifest.json")) == 1
    assert b'"complete": false' in system.cat_file(f"{name}/manifest.json")


def test_a_damaged_file_of_a_cache_is_made_once_more_and_one_of_a_snapshot_is_an_error(system, caplog):
    for kind in ("cache", "snapshot"):
        assert values(kept(kind)) == WANTED
        name = sorted(files(system, ".arrow"))[3]
        content = bytearray(system.cat_file(name))
        content[len(content) // 2] ^= 1
        system.pipe_file(name, bytes(content))
        if kind == "cache":
            assert values(kept(kind)) == WANTED
            assert "computed and written again" in caplog.text
            caplog.clear()
            assert values(kept(kind)) == WANTED
            assert not caplog.text
            system.rm("/url-entries-test", recursive=True)
        else:
            with pytest.raises(errors.DataLossError, match="delete"):
                values(kept(kind))


def test_a_complete_cache_is_mended_whatever_a_second_writer_has_left_of_its_journal(system):
    assert values(kept("cache")) == WANTED
    folder = folder_of(system)
    found = journal.Journal(folder)
    found.refresh()
    assert len(found.commits) > 2
    system.pipe_file(journal.segment(folder, 0), journal.text_of(found.commits[:2]))  # it was stopped there
    name = sorted(files(system, ".arrow"))[1]
    content = bytearray(system.cat_file(name))
    content[len(content) // 2] ^= 1
    system.pipe_file(name, bytes(content))
    assert values(kept("cache")) == WANTED
    assert values(kept("cache")) == WANTED
    assert len(kept("cache")) == COUNT


def test_what_others_replace_in_our_place_is_read_anew(monkeypatch, system):
    monkeypatch.setattr(journal, "_SEGMENT", 2)
    begin(kept("snapshot"), 9)
    folder = folder_of(system)
    found = journal.Journal(folder)
    found.refresh()
    assert found.first > 0
    before = list(found.commits)
    first = journal.segment(folder, 0)
    system.pipe_file(first, journal.text_of(before[:1]))  # another writer's first object, which ends earlier
    last = journal.segment(folder, found.first).removeprefix("memory:/")
    system.rm(last)
    found.refresh()
    assert found.commits == before[:1]
    again = journal.Journal(folder)
    again.refresh()
    assert again.commits == before[:1]


@pytest.mark.parametrize("url", ["http://host/folder", "simplecache::https://host/folder"])
def test_web_servers_take_nothing(url):
    for step in ("save", "snapshot", "cache"):
        with pytest.raises(errors.InvalidArgumentError, match="web servers are read-only"):
            getattr(squares(), step)(url)


def test_whoever_writes_behind_a_removal_loses_nothing(monkeypatch, system):
    begin(kept("cache"), 6)
    folder = folder_of(system)
    release = Lease.release

    def then_another_writes(lease):
        release(lease)
        system.pipe_file(f"{folder.removeprefix('memory:/')}/of-another", b"x")

    monkeypatch.setattr(Lease, "release", then_another_writes)
    assert remove(folder)
    assert files(system, "") == files(system, "of-another") != []


def test_a_removal_whose_lease_was_taken_leaves_what_is_there(monkeypatch, system):
    """It could not be renewed for a minute, and another process writes."""
    begin(kept("cache"), 6)
    folder = folder_of(system)
    before, removed = files(system, ""), storage.remove

    def slow(name):
        removed(name)
        monkeypatch.setattr("penstock.store.lock._HOLDS", 0.0)  # a minute has gone by
        said(system, f"{folder.removeprefix('memory:/')}/writer.lock", host="another")

    monkeypatch.setattr("penstock.store.entry.storage.remove", slow)
    assert not remove(folder)
    assert len(files(system, "")) == len(before)  # the manifest is gone, and a lease is there


@pytest.mark.parametrize("written", [True, False])
def test_a_load_that_follows_says_that_nobody_writes_if_nobody_does(monkeypatch, system, caplog, written):
    monkeypatch.setattr("penstock.physical.stages.scan._PATIENCE", 0.0)
    begin(kept("snapshot"), 6)
    folder = folder_of(system)
    lease = take_lease(folder)
    if not written:
        lease.release()
    stage = stage_of(ps.Dataset.load(folder, wait=True))

    def pause(seconds):
        assert seconds >= 1  # each look is a request
        lease.release()
        values(kept("snapshot"))

    stage._pause = pause
    assert [int(x) for x in given(stage, 2)] == WANTED
    assert ("no process writes" in caplog.text) == (not written)
