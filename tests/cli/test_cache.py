"""`penstock cache`: what lies in a folder of snapshots and caches, why two differ, and how they are removed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from tests.dataset.entries import close

import penstock as ps
from penstock.cli import main
from penstock.io import storage
from penstock.store import lock


def scaled(x):
    return x * 2


def names(path):
    return [entry.name for entry in Path(path).iterdir()]


def until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def keep(path, size, *, whole=True):
    """An entry of batches of a size; one that is not whole holds what came before its pass was left."""
    before = {entry.name for entry in path.iterdir()} if path.exists() else set()
    elements = iter(ps.Dataset.range(100).map(scaled).batch(size).snapshot(path))
    next(elements)
    if whole:
        list(elements)
    elements.close()
    (key,) = {entry.name for entry in path.iterdir()} - before
    until(lambda: lock.holder(str(path / key)) is None)  # what was made is written behind the pass
    return key


@pytest.fixture
def entries(tmp_path):
    """Keys of three entries, the oldest first; the last is not complete."""
    keys = [keep(tmp_path / "kept", 2), keep(tmp_path / "kept", 5), keep(tmp_path / "kept", 10, whole=False)]
    for age, key in enumerate(keys):
        for file in (tmp_path / "kept" / key).rglob("*"):
            os.utime(file, (1e9 + age, 1e9 + age))
        manifest = tmp_path / "kept" / key / "manifest.json"
        assert manifest.exists()
    return keys


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "kept")


@pytest.fixture
def printed(capsys):
    """Runs the command, and gives its status, what it printed and its error text."""

    def run(*arguments):
        capsys.readouterr()
        status = main(["cache", *arguments])
        found = capsys.readouterr()
        return status, found.out, found.err

    return run


def test_ls_lists_what_is_there(entries, path, printed):
    status, out, _ = printed("ls", path)
    head, *rows = out.splitlines()
    assert status == 0
    assert head.split() == ["key", "created", "elements", "bytes", "state", "made", "of"]
    by_key = {row.split()[0]: row for row in rows}
    assert set(by_key) == {key[:12] for key in entries}
    assert "range(0, 100, 1) · map(scaled) · batch(2)" in by_key[entries[0][:12]]
    assert " 50 " in by_key[entries[0][:12]]
    assert " complete " in by_key[entries[1][:12]]
    assert " so far " in by_key[entries[2][:12]]


def test_ls_tells_who_writes(entries, path, printed):
    held = lock.take(str(Path(path, entries[2])))
    try:
        _, out, _ = printed("ls", path)
        assert f"so far, written by pid {os.getpid()} on " in out
        _, out, _ = printed("ls", path, "--json")
        writers = {row["key"]: row["writer"] for row in json.loads(out)}
        assert writers[entries[2]]["pid"] == os.getpid()
        assert writers[entries[0]] is None
    finally:
        held.release()


def test_ls_as_json_tells_all(entries, path, printed):
    _, out, _ = printed("ls", path, "--json")
    found = {row["key"]: row for row in json.loads(out)}
    first = found[entries[0]]
    assert (first["elements"], first["complete"], first["problem"]) == (50, True, None)
    assert first["bytes"] == sum(file.stat().st_size for file in Path(first["folder"]).rglob("*") if file.is_file())
    assert ["batch#1 › batch_size", "batch_size = 2"] in [part[:2] for part in first["made_of"]]
    assert found[entries[2]]["complete"] is False


def test_ls_shows_what_cannot_be_read(entries, path, printed):
    Path(path, entries[0], "manifest.json").write_text("{}")
    Path(path, entries[1], "manifest.json").unlink()
    _, out, _ = printed("ls", path)
    assert "cannot be read" in out
    assert "no pass has begun to write it" in out
    status, _, err = printed("why", path, entries[0][:8], entries[2][:8])
    assert status == 1
    assert err.startswith(f"penstock: What {entries[0][:12]} is made of cannot be told: ")


def test_why_compares_two(entries, path, printed):
    status, out, _ = printed("why", path, entries[1][:8], entries[0][:8])
    head, *lines = out.splitlines()
    assert status == 0
    assert head.endswith(":")
    assert entries[0][:12] in head
    assert entries[1][:12] in head
    assert len(lines) == 1
    assert lines[0] in ("  batch_size = 5 (batch#1), was 2", "  batch_size = 2 (batch#1), was 5")


def test_why_finds_the_nearest(entries, path, printed, tmp_path):
    far = ps.Dataset.range(7).map(lambda x: x).take(3).snapshot(path)
    list(far)
    _, out, _ = printed("why", path, entries[0])
    assert sum(key[:12] in out for key in entries) == 2


def test_why_without_keys_takes_the_newest(entries, path, printed):
    (Path(path) / entries[2]).joinpath("manifest.json").unlink()
    _, out, _ = printed("why", path)
    assert entries[0][:12] in out
    assert entries[1][:12] in out


def test_rm_removes_by_key(entries, path, printed):
    size = sum(file.stat().st_size for file in Path(path, entries[0]).rglob("*") if file.is_file())
    status, out, _ = printed("rm", path, entries[0][:10])
    assert status == 0
    assert f"removed {entries[0][:12]}, {size / 1000:.3g} kB" in out
    assert sorted(names(path)) == sorted(entries[1:])


@pytest.mark.parametrize(
    ("arguments", "left"),
    [(["--all"], []), (["--incomplete"], [0, 1]), (["--older-than", "1"], []), (["--older-than", "100000"], [0, 1, 2])],
)
def test_rm_removes_by_kind(arguments, left, entries, path, printed):
    status, out, _ = printed("rm", path, *arguments)
    assert status == 0
    assert sorted(names(path)) == sorted(entries[number] for number in left)
    count = 3 - len(left)
    assert f"{count} {'entry' if count == 1 else 'entries'} removed, " in out


def test_rm_leaves_what_is_being_written(entries, path, printed):
    held = lock.take(str(Path(path, entries[2])))
    try:
        status, out, err = printed("rm", path, entries[0], entries[2])
        assert (status, out) == (1, "")
        assert f"{entries[2][:12]} is being written by pid {os.getpid()}" in err
        assert len(names(path)) == 3
        status, out, _ = printed("rm", path, "--all")
        assert status == 1
        assert f"left {entries[2][:12]}: it is being written" in out
        assert names(path) == [entries[2]]
    finally:
        held.release()
    assert printed("rm", path, "--all")[0] == 0
    assert printed("ls", path)[1] == "no entries\n"


def test_a_pass_goes_on_when_its_entry_was_removed(path, printed):
    ds = ps.Dataset.range(100).map(scaled).batch(2).snapshot(path)
    first = [x.tolist() for x in ds]
    printed("rm", path, "--all")
    assert [x.tolist() for x in ds] == first


def test_rm_touches_no_saved_data_set(entries, path, printed):
    ps.Dataset.range(3).save(Path(path, "mine"))
    printed("rm", path, "--all")
    assert names(path) == ["mine"]
    assert len(ps.Dataset.load(Path(path, "mine"))) == 3


def test_bad_arguments_are_explained(entries, path, printed):
    first = entries[0]
    told = {
        ("ls", f"{path}/nothing"): "There is no folder",
        ("ls", f"{path}/{first}"): f"The folder around it is {path!r}",
        ("why", path, "xyz"): "No key begins with 'xyz'.\n  There are ",
        ("why", path, first, first): "are the same entry",
        ("why", path, "a", "b", "c"): "3 keys were given",
        ("rm", path): "in one way, and was told in 0",
        ("rm", path, first, "--all"): "in one way, and was told in 2",
        ("rm", path, ""): "A key is empty",
        ("why", path, ""): "A key is empty",
        ("rm", path, "--older-than", "-1"): "counts days, got -1",
    }
    for arguments, text in told.items():
        status, out, err = printed(*arguments)
        assert (status, out) == (1, "")
        assert text in err
    assert sorted(names(path)) == sorted(entries)


def test_an_empty_key_removes_nothing_where_there_is_one_entry(path, printed):
    key = keep(Path(path), 2)
    status, _, err = printed("rm", path, "")
    assert status == 1
    assert "A key is empty" in err
    assert names(path) == [key]


def test_what_may_not_be_read_is_listed_as_such(entries, path, printed, monkeypatch):
    close(monkeypatch, Path(path, entries[0]))
    status, out, _ = printed("ls", path)
    assert status == 0
    assert out.count("cannot be read: Permission denied") == 1
    assert entries[1][:12] in out
    status, _, err = printed("why", path, entries[0])
    assert status == 1
    assert "cannot be told: it cannot be read: Permission denied" in err


def test_a_folder_that_may_not_be_looked_into_is_named(entries, path, printed, monkeypatch):
    close(monkeypatch, Path(path))
    status, _, err = printed("ls", path)
    assert status == 1
    assert f"The folder {path!r} cannot be read: Permission denied." in err


def test_other_folders_are_refused(tmp_path, printed):
    (tmp_path / "photo.jpg").write_bytes(b"")
    status, _, err = printed("rm", str(tmp_path), "--all")
    assert status == 1
    assert "is no folder of snapshots or caches" in err
    assert (tmp_path / "photo.jpg").exists()


def test_entries_behind_a_url_are_listed_compared_and_removed(printed):
    url = "memory://cli-cache-test/kept"
    numbers = ps.Dataset.range(10).map(scaled)
    list(numbers.batch(2).snapshot(url))
    with iter(numbers.batch(5).cache(url)) as elements:
        next(elements)
    status, out, _ = printed("ls", url, "--json")
    begun, whole = json.loads(out)
    assert (status, begun["complete"], whole["complete"], whole["elements"]) == (0, False, True, 5)
    assert whole["folder"] == f"{url}/{whole['key']}"
    assert whole["bytes"] > 0
    status, out, _ = printed("why", url)
    assert status == 0
    assert "batch_size = 5" in out
    writes = lock.Lease(begun_in := begun["folder"])
    status, out, _ = printed("rm", url, "--all")
    assert (status, out.splitlines()[0]) == (1, f"left {begun['key'][:12]}: it is being written")
    assert [entry["writer"]["pid"] for entry in json.loads(printed("ls", url, "--json")[1])] == [os.getpid()]
    writes.release()
    assert printed("rm", url, "--older-than", "1")[1].startswith("0 entries removed")
    assert printed("rm", url, "--older-than", "0")[0] == 0
    assert not storage.exists(begun_in)
    status, _, err = printed("ls", url)
    assert status == 1
    assert f"There is no folder '{url}'" in err


def test_texts_of_a_stranger_are_shown_plain(entries, path, printed):
    from dataclasses import replace

    from penstock.store.manifest import read_manifest, write_manifest

    folder = str(Path(path, entries[0]))
    manifest = read_manifest(folder)
    parts = tuple((where, f"{text}\x1b[2J", f"{digest}0") for where, text, digest in manifest.made_of)
    write_manifest(folder, replace(manifest, made_of=parts), replace=True)
    for arguments in (["ls", path], ["why", path, entries[0], entries[1]]):
        assert "\x1b" not in printed(*arguments)[1]


def test_automatic_caches_are_found_below_the_folders_of_their_plans(tmp_path, printed):
    plans = [tmp_path / "autocache" / f"{number:032x}" for number in range(2)]
    for number, plan in enumerate(plans):
        list(ps.Dataset.range(number + 3).cache(plan))
    keys = {entry.name for plan in plans for entry in plan.iterdir()}
    status, out, _ = printed("ls", str(tmp_path / "autocache"), "--json")
    assert (status, {entry["key"] for entry in json.loads(out)}) == (0, keys)
    status, out, _ = printed("rm", str(tmp_path / "autocache"), "--all")
    assert (status, out.splitlines()[-1].startswith("2 entries removed")) == (0, True)
    assert [list(plan.iterdir()) for plan in plans] == [[], []]
