"""Entries are removed for others: the longest unused first, never one that a process uses or writes."""

import logging
import os
from types import SimpleNamespace

import pytest

import penstock as ps
from penstock.io import storage
from penstock.store import entry
from penstock.store import entry_writer as writer
from penstock.store.durable import write_whole
from penstock.store.entry import kept_below, make_room, remove, size_of
from penstock.store.lock import last_used, take, unused, use


@pytest.fixture
def entries(tmp_path):
    """Write three entries of plans with separate folders; the first was used the longest time ago."""
    found = []
    for number in range(3):
        folder = tmp_path / f"plan{number}"
        list(ps.Dataset.range(number, number + 50).cache(folder))
        (entry,) = folder.iterdir()
        writer.is_writing(str(entry))
        use(str(entry)).release()
        os.utime(entry / "users.lock", ns=(number, number))
        found.append(entry)
    return found


def left(entries):
    return [entry.exists() for entry in entries]


def test_what_was_not_used_for_the_longest_time_goes_first(tmp_path, entries, caplog):
    caplog.set_level(logging.INFO)
    total = sum(size_of(entry) for entry in entries)
    make_room(tmp_path, total, tmp_path)
    assert left(entries) == [True, True, True]
    make_room(tmp_path, total - 1, tmp_path)
    assert left(entries) == [False, True, True]
    (text,) = [record.message for record in caplog.records]
    assert text.startswith(f"{entries[0]} was removed, ")
    use(str(entries[1])).release()
    make_room(tmp_path, size_of(entries[1]), tmp_path)
    assert left(entries) == [False, True, False]


def test_an_entry_that_is_used_or_written_or_its_own_stays(tmp_path, entries):
    using, writing = use(str(entries[0])), take(str(entries[1]))
    assert [kept.in_use for kept in sorted(kept_below(tmp_path))] == [True, False, False]
    make_room(tmp_path, 0, entries[2])
    assert left(entries) == [True, True, True]
    using.release()
    writing.release()
    make_room(tmp_path, 0, entries[2])
    assert left(entries) == [False, False, True]


def test_what_never_said_that_it_may_go_stays(tmp_path, entries):
    """An entry in a cache of the user is never removed."""
    (entries[0] / "users.lock").unlink()
    (entries[0].parent / "notes").mkdir()
    assert last_used(str(entries[0])) == 0
    make_room(tmp_path, 0, tmp_path)
    assert left(entries) == [True, False, False]


def test_several_use_an_entry_and_who_comes_while_it_goes_makes_it_anew(entries):
    one, other = use(str(entries[0])), use(str(entries[0]))
    one.release()
    assert unused(str(entries[0])) is None
    other.release()
    lock = unused(str(entries[0]))
    assert remove(str(entries[0]))
    lock.release()
    again = use(str(entries[0]))
    assert [path.name for path in entries[0].iterdir()] == ["users.lock"]
    again.release()


def test_one_that_cannot_be_removed_is_said_and_the_next_goes(tmp_path, entries, monkeypatch, caplog):
    def refused(folder):
        if folder == str(entries[0]):
            raise PermissionError(13, "Permission denied", folder)
        return remove(folder)

    monkeypatch.setattr("penstock.store.entry.remove", refused)
    make_room(tmp_path, 0, tmp_path)
    assert left(entries) == [True, False, False]
    assert "could not be removed" in caplog.text


@pytest.mark.parametrize(("lasts", "ours", "left"), [(True, True, []), (True, False, []), (False, True, ["a", "b"])])
def test_who_loses_the_lease_of_a_folder_at_a_url_has_not_removed_it(lasts, ours, left, monkeypatch):
    url, calls = "memory://removal-test", []
    for name in ("b", "a"):
        write_whole(f"{url}/{name}", b"content")
    lease = SimpleNamespace(lasts=lasts, ours=ours, release=lambda: calls.append("release"))
    monkeypatch.setattr(entry, "take_lease", lambda folder: lease)
    assert entry.remove_remote(url, "a") == (lasts and ours)
    assert calls == ["release"]
    assert sorted(storage.names_in(url) if left else []) == left
    monkeypatch.setattr(entry, "take_lease", lambda folder: None)
    assert not entry.remove_remote(url, "a")
