"""save, load, snapshot: what comes back, in which order, from whole and from damaged files."""

import json
import re
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from tests.golden.golden import assert_golden, said
from tests.positions import assert_continues_everywhere, given, positions, stage_of, texts

import penstock as ps
from penstock import errors
from penstock.block.block import Block
from penstock.block.structure import flatten
from penstock.dataset import saved
from penstock.store.lock import hold
from penstock.store.saved_writer import SavedWriter
from penstock.testing import assert_resumes_exactly, assert_same_elements, resumed

RANGE = ps.Dataset.range
load = ps.Dataset.load


class Pair(NamedTuple):
    left: object
    right: object


def values(dataset):
    return texts(list(dataset))


def failing(x):
    return int(x) // int(x != 3)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*"))


def committed(folder):
    lines = [line for path in Path(folder).rglob("journal.jsonl") for line in path.read_text().splitlines()]
    return [chunk for line in lines for chunk in json.loads(line)[1]["chunks"]]


def chunks(folder):
    return sorted(Path(folder).rglob("*.arrow"))


# -- arguments

ARGUMENTS = {
    "save_compression": lambda path: RANGE(3).save(path, "LZMA"),
    "save_shard_func": lambda path: RANGE(3).save(path, shard_func=3),
    "save_shard_func_float": lambda path: RANGE(3).save(path, shard_func=lambda x: float(x)),
    "save_checkpoint_args": lambda path: RANGE(3).save(path, checkpoint_args={"checkpoint_interval": 2}),
    "save_infinite": lambda path: RANGE(3).repeat().save(path),
    "save_url": lambda path: RANGE(3).save("https://host/saved"),
    "save_number": lambda path: RANGE(3).save(3),
    "save_empty": lambda path: RANGE(3).save(""),
    "save_datasets": lambda path: RANGE(3).window(2).save(path),
    "load_missing": lambda path: load(path / "nothing"),
    "load_reader_func": lambda path: load(path, reader_func=3),
    "load_reader_func_result": lambda path: load(path, reader_func=lambda shards: 3),
    "load_compression": lambda path: load(path, compression="GZIP"),
    "load_spec_dtype": lambda path: load(path, ps.TensorSpec((), np.int32)),
    "load_spec_shape": lambda path: load(path, ps.TensorSpec((2,), np.int64)),
    "load_spec_nest": lambda path: load(path, (ps.TensorSpec((), np.int64), ps.TensorSpec((), np.int64))),
    "load_spec_number": lambda path: load(path, 3),
    "snapshot_compression": lambda path: RANGE(3).snapshot(path, 3),
    "snapshot_infinite": lambda path: RANGE(3).repeat().snapshot(path),
    "snapshot_url": lambda path: RANGE(3).snapshot("https://host/snapshots"),
    "snapshot_empty": lambda path: RANGE(3).snapshot(""),
    "snapshot_reader_func": lambda path: RANGE(3).snapshot(path, reader_func=3),
    "snapshot_shard_func": lambda path: RANGE(3).snapshot(path, shard_func="x"),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_wrong_arguments_are_refused_where_they_are_given(name, tmp_path):
    RANGE(3).save(tmp_path / "set")
    before = names(tmp_path)
    with pytest.raises(errors.PenstockError) as caught:
        ARGUMENTS[name](tmp_path / "set")
    assert_golden(f"argument_storing_{name}", said(caught.value))
    assert names(tmp_path) == before


def test_a_file_is_no_folder_to_save_into(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        RANGE(3).save(tmp_path / "file")


# -- what comes back

ELEMENTS = {
    "numbers": RANGE(5),
    "none": RANGE(0),
    "one": RANGE(1),
    "bytes": ps.Dataset.from_tensor_slices(np.array([b"", b"ab", b"c"], object)),
    "nests": RANGE(5).map(lambda x: {"a": (x, np.full((2, 3), x, np.float16)), "b": Pair(x > 2, b"x" * int(x))}),
    "differing shapes": RANGE(9).map(lambda x: np.arange(int(x) % 4)),
    "a last batch that is smaller": RANGE(10).map(lambda x: (x, x * 2)).batch(4),
    "sparse and ragged": RANGE(3).map(
        lambda x: (ps.SparseTensor([[0]], [x], [2]), ps.RaggedTensor(np.arange(3), [0, int(x), 3]))
    ),
    "empty tuples": RANGE(3).map(lambda x: ()),
    "complex numbers and times": RANGE(3).map(lambda x: (np.complex64(1j), np.datetime64("2020-01-01", "D"))),
}


@pytest.mark.parametrize("compression", [None, "AUTO", "ZSTD"])
@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_of_all_kinds_come_back(name, compression, tmp_path):
    ds = ELEMENTS[name]
    ds.save(tmp_path, compression)
    found = load(tmp_path)
    assert len(found) == len(list(ds))
    assert_same_elements(list(found), list(ds))
    if len(found):
        kept, told = (flatten(one.element_spec)[0] for one in (found, ds))  # files know the extents of all elements
        assert [one.relax(other) for one, other in zip(told, kept, strict=True)] == told
        assert kept == told or name in ("differing shapes", "nests", "sparse and ragged")
        assert_same_elements([found.at(i) for i in range(len(found))], list(ds))
        assert_continues_everywhere(found)


@pytest.mark.parametrize("name", ELEMENTS)
def test_a_snapshot_gives_the_same_in_every_pass(name, tmp_path):
    ds = ELEMENTS[name].snapshot(tmp_path)
    for _ in range(3):
        assert_same_elements(list(ds), list(ELEMENTS[name]))
    assert len({path.parent for path in chunks(tmp_path)}) <= 1
    assert_resumes_exactly(ds)


def test_the_spec_of_a_saved_data_set_without_elements(tmp_path):
    RANGE(0).batch(2).save(tmp_path)
    assert load(tmp_path).element_spec == ps.TensorSpec((None,), np.int64)
    RANGE(0).map(lambda x: object()).save(tmp_path)
    assert list(load(tmp_path)) == []
    assert load(tmp_path, ps.TensorSpec((), np.int8)).element_spec == ps.TensorSpec((), np.int8)


def test_a_wider_spec_and_dict_keys_in_another_order_are_taken(tmp_path):
    ds = RANGE(3).map(lambda x: {"b": np.full(2, x), "a": x})
    ds.save(tmp_path)
    spec = {"a": ps.TensorSpec((), np.int64), "b": ps.TensorSpec((None,), np.int64)}
    found = load(tmp_path, spec)
    assert found.element_spec["b"].shape == (None,)
    assert_same_elements(list(found), list(ds))


def test_dict_keys_may_come_in_any_order(tmp_path):
    ds = RANGE(20).map(lambda x: {"a": x, "b": x * 0.5} if x % 2 else {"b": x * 0.5, "a": x})
    ds.save(tmp_path, shard_func=lambda row: row["a"] % 3)
    assert_same_elements(list(load(tmp_path)), list(ds))


def test_arrays_are_read_where_they_lie_and_cannot_be_written_to(tmp_path):
    RANGE(4).map(lambda x: np.full(3, x)).save(tmp_path)
    for element in load(tmp_path).with_options(ps.Options(zero_copy=True)):
        assert not element.flags.writeable
        assert not element.flags.owndata
    snapshot = RANGE(4).map(lambda x: np.full(3, x)).snapshot(tmp_path)
    for _ in range(2):
        assert not any(element.flags.writeable for element in snapshot.with_options(ps.Options(zero_copy=True)))


def test_arrow_opens_the_files(tmp_path):
    RANGE(4).map(lambda x: {"a": x, "b": b"x"}).save(tmp_path)
    (chunk,) = chunks(tmp_path)
    assert pa.ipc.open_file(chunk).read_all().to_pydict() == {"a": [0, 1, 2, 3], "b": [b"x"] * 4}
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["elements"] == 4
    assert (tmp_path / manifest["chunks"][0]["file"]) == chunk


def test_many_bytes_are_many_files_of_many_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.store.saved_writer._CHUNK", 20_000)
    monkeypatch.setattr("penstock.store.chunk_files._BATCH", 1_000)
    ds = RANGE(500).map(lambda x: (x, np.full(16, x)), num_parallel_calls=2)
    for compression in (None, "LZ4"):
        ds.save(tmp_path, compression)
        assert len(chunks(tmp_path)) > 1
        assert_same_elements(list(load(tmp_path)), list(ds))
        shuffled = load(tmp_path).shuffle(ps.ALL, seed=1)
        assert sorted(int(x) for x, _ in shuffled) == list(range(500))
        assert_same_elements([load(tmp_path).at(i) for i in (0, 499, 250, -1)], [ds.at(i) for i in (0, 499, 250, -1)])


# -- shards: the orders are those of TensorFlow with as many cores as shards

SHARDS = {
    "in turn": (lambda x: x % 3, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "one": (lambda x: 0, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    "stretches": (lambda x: x // 4, [0, 4, 8, 1, 5, 9, 2, 6, 3, 7]),
    "numbers that fall": (lambda x: 7 - x // 4, [8, 4, 0, 9, 5, 1, 6, 2, 7, 3]),
    "below 0": (lambda x: -x - 1, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
}


@pytest.mark.parametrize("name", SHARDS)
def test_one_element_of_each_shard_comes_in_turn(name, tmp_path):
    shard_func, wanted = SHARDS[name]
    RANGE(10).save(tmp_path, shard_func=shard_func)
    ds = load(tmp_path)
    assert values(ds) == wanted
    assert [int(ds.at(i)) for i in range(10)] == wanted
    assert sorted(values(ds.shuffle(ps.ALL))) == list(range(10))
    assert_resumes_exactly(ds.batch(3))


@pytest.mark.slow
def test_a_reader_func_gets_a_data_set_of_shards(tmp_path):
    RANGE(10).save(tmp_path, shard_func=lambda x: x % 3)
    one_by_one = load(tmp_path, reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    assert values(one_by_one) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
    in_turn = load(tmp_path, reader_func=lambda shards: shards.interleave(lambda shard: shard))
    assert values(in_turn) == list(range(10))
    lengths = load(tmp_path, reader_func=lambda shards: shards.map(lambda shard: len(shard)))
    assert values(lengths) == [4, 3, 3]
    for ds in (one_by_one, in_turn, lengths):
        assert_resumes_exactly(ds)


def test_elements_wait_for_their_shard_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.store.saved_writer._WAITING", 50_000)
    RANGE(2_000).save(tmp_path, shard_func=lambda x: x % 7)
    assert len(chunks(tmp_path)) > 7
    assert values(load(tmp_path)) == list(range(2_000))


# -- whole or not at all


def test_saving_again_replaces_what_was_there(tmp_path):
    RANGE(3).save(tmp_path)
    before = load(tmp_path)
    RANGE(10, 12).save(tmp_path)
    assert values(load(tmp_path)) == [10, 11]
    assert len(chunks(tmp_path)) == 1
    (error,) = {str(item) for item in positions(before)}
    assert "is missing" in error


def test_a_data_set_may_be_saved_over_what_it_was_loaded_from(tmp_path):
    RANGE(5).save(tmp_path)
    load(tmp_path).map(lambda x: x * 2).save(tmp_path)
    assert values(load(tmp_path)) == [0, 2, 4, 6, 8]


def test_a_url_is_loaded_from(tmp_path):
    RANGE(5).save(tmp_path, shard_func=lambda x: x % 2)
    ds = load(f"file://{tmp_path}")
    assert values(ds) == [0, 1, 2, 3, 4]
    assert int(ds.at(3)) == 3


def test_a_snapshot_inside_of_another_data_set(tmp_path):
    ds = RANGE(3).flat_map(lambda n: RANGE(int(n) + 1).map(lambda x: x + n).snapshot(tmp_path))
    for _ in range(2):
        assert values(ds) == [0, 1, 2, 2, 3, 4]
    assert len(chunks(tmp_path)) == 3


def test_elements_that_were_loaded_say_where_they_come_from(tmp_path):
    RANGE(10, 13).save(tmp_path)
    assert [int(where.position) for _, where in load(tmp_path).with_provenance()] == [0, 1, 2]
    ds = RANGE(3).snapshot(tmp_path).with_provenance()
    assert [[int(x) for x, _ in ds] for _ in range(2)] == [[0, 1, 2]] * 2


@pytest.mark.parametrize("first", [True, False])
def test_provenance_behind_an_entry_that_is_partly_there(tmp_path, first):
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{number}\n" for number in range(5000)))
    ds = ps.TextLineDataset(str(lines)).cache(tmp_path / "cache")
    numbered = ds.with_provenance().map(lambda line, where: line)
    with (numbered if first else ds).iterator(executor="inline") as elements:
        for _ in range(2500):
            next(elements)
    assert [int(x) for x in (ds if first else numbered)] == list(range(5000))


def test_a_pass_that_fails_saves_nothing(tmp_path):
    for shard_func in (None, failing):
        ds = RANGE(5) if shard_func else RANGE(5).map(failing)
        with pytest.raises(ZeroDivisionError):
            ds.save(tmp_path / "new", shard_func=shard_func)
        assert not chunks(tmp_path)
        with pytest.raises(FileNotFoundError):
            load(tmp_path / "new")
    RANGE(3).save(tmp_path)
    with pytest.raises(ZeroDivisionError):
        RANGE(5).map(failing).save(tmp_path)
    assert values(load(tmp_path)) == [0, 1, 2]


def test_what_a_killed_save_has_left_goes_with_the_next_and_nothing_else_does(tmp_path):
    code = f"""
import os, penstock as ps
from penstock.store import saved_writer as writer
writer._CHUNK = 1
ps.Dataset.range(50).map(lambda x: os._exit(3) if x == 30 else x).batch(5).save({str(tmp_path)!r})
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 3
    (left,) = names(tmp_path)[:1]
    assert re.fullmatch("data-[0-9a-f]{12}", left)
    (tmp_path / "data-202001010000").mkdir()
    (tmp_path / "data-202001010000" / "mine.arrow").write_text("mine")
    being_written = SavedWriter(str(tmp_path), plan="p", codec=None)
    being_written.add(Block.from_elements([0, 1, 2]))
    being_written._write(0)
    kept = names(tmp_path)
    RANGE(4).save(tmp_path)
    assert not (tmp_path / left).exists()
    assert set(kept) - set(names(tmp_path)) == {name for name in kept if name.startswith(left)}
    being_written.commit()
    being_written.discard()
    assert values(load(tmp_path)) == [0, 1, 2]
    assert len([name for name in names(tmp_path) if "/" not in name]) == 3


def full(*_, **__):
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("fails", ["the write to the disk", "the manifest", "the rename of the manifest"])
def test_a_save_that_finds_no_room_leaves_what_was_there(fails, tmp_path, monkeypatch):
    RANGE(3).save(tmp_path)
    before = names(tmp_path)
    replace = Path.replace
    if fails == "the write to the disk":
        monkeypatch.setattr("os.fsync", full)
    elif fails == "the manifest":
        monkeypatch.setattr("penstock.store.saved_writer.write_manifest", full)
    else:
        monkeypatch.setattr(
            Path, "replace", lambda path, to: full() if Path(to).name == "manifest.json" else replace(path, to)
        )
    with pytest.raises(OSError, match="No space left"):
        RANGE(5).save(tmp_path)
    assert names(tmp_path) == before
    assert values(load(tmp_path)) == [0, 1, 2]


def test_saves_of_several_threads_into_one_folder_are_each_whole(tmp_path):
    RANGE(7).save(tmp_path)
    failed = []

    def save(count):
        try:
            for _ in range(10):
                RANGE(count).save(tmp_path)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=save, args=(count,)) for count in (3, 5, 7)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        with suppress(FileNotFoundError):  # replaced since it was loaded
            found = values(load(tmp_path))
            assert found == list(range(len(found)))
            assert len(found) in (3, 5, 7)
    assert failed == []
    assert len(list(tmp_path.iterdir())) == 2


def written(folder, count):
    """A writer of range(count) whose files are on the disk, and known to nobody."""
    writer = SavedWriter(str(folder), plan="p", codec=None)
    writer.add(Block.from_elements(list(range(count))))
    return writer


def commit(writer):
    writer.commit()
    writer.discard()


def test_a_save_that_another_replaced_before_it_had_ended_removes_its_files(tmp_path):
    first = written(tmp_path, 3)
    first.commit()
    commit(written(tmp_path, 5))  # it finds the files of the first locked
    assert len(list(tmp_path.iterdir())) == 3
    first.discard()
    assert len(list(tmp_path.iterdir())) == 2
    assert values(load(tmp_path)) == [0, 1, 2, 3, 4]


def test_who_looks_at_files_that_another_save_replaces_meanwhile_removes_them(tmp_path, monkeypatch):
    first, second, third = (written(tmp_path, count) for count in (3, 5, 7))
    for writer in (first, second, third):
        writer._write(0)
    held = []

    def hold_first(folder):
        if held or not folder.endswith(first._run):
            return hold(folder)
        held.append(folder)
        commit(first)  # between the look of the second at the manifest and its lock
        lock = hold(folder)
        release = lock.release

        def commit_third():
            commit(third)
            assert Path(folder).exists()  # as it is locked
            release()

        lock.release = commit_third
        return lock

    monkeypatch.setattr("penstock.store.saved_writer.hold", hold_first)
    commit(second)
    assert held
    assert len(list(tmp_path.iterdir())) == 2
    assert values(load(tmp_path)) == list(range(7))


def test_the_manifest_tells_which_files_were_read(tmp_path):
    name = tmp_path / "a.txt"
    name.write_text("one\ntwo")
    ps.Dataset.zip(ps.TextLineDataset(str(name)), RANGE(2)).save(tmp_path / "set")
    manifest = json.loads((tmp_path / "set" / "manifest.json").read_text())
    assert manifest["sources"] == [[str(name), 7, name.stat().st_mtime_ns]]


def saved_after(monkeypatch, folder, seconds):
    """Replace the pauses of a load that waits. The folder holds range(4) after pauses of so many seconds in all."""
    pauses = []

    def sleep(pause):
        pauses.append(pause)
        if sum(pauses) > seconds:
            RANGE(4).save(folder)

    monkeypatch.setattr(saved, "time", SimpleNamespace(sleep=sleep))  # and not that of other threads
    return pauses


def test_a_load_that_waits_sees_what_is_saved_meanwhile(tmp_path, monkeypatch, caplog):
    pauses = saved_after(monkeypatch, tmp_path, 0.3)
    for _ in range(2):
        assert values(load(tmp_path, wait=True)) == [0, 1, 2, 3]
    assert pauses == [0.05, 0.1, 0.2]
    assert caplog.records == []


def test_a_load_that_waits_long_says_so_once(tmp_path, monkeypatch, caplog):
    saved_after(monkeypatch, tmp_path, 25)
    assert values(load(tmp_path, wait=True)) == [0, 1, 2, 3]
    (said,) = [record.message for record in caplog.records]
    assert said == f"load({str(tmp_path)!r}, wait=True) waits, because the folder has no manifest.json."


# -- damage


def damage(path, at=-20):
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


DAMAGES = {
    "a byte": damage,
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "missing": Path.unlink,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_the_elements_of_a_damaged_file_fail_and_no_others(name, tmp_path):
    RANGE(6).save(tmp_path, shard_func=lambda x: x // 3)
    DAMAGES[name](chunks(tmp_path)[1])
    found = positions(load(tmp_path))
    kind = "NotFoundError" if name == "missing" else "DataLossError"
    assert texts(found) == [0, kind, 1, kind, 2, kind]
    text = re.sub(r"data-\w+/", "data-RUN/", said(found[1])).replace(tmp_path.name, "SAVED")
    assert_golden(f"element_storing_{name.replace(' ', '_')}", text)
    assert values(load(tmp_path).ignore_errors()) == [0, 1, 2]
    assert int(load(tmp_path).at(2)) == 1
    with pytest.raises(errors.PenstockError):
        load(tmp_path).at(1)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 2}'])
def test_a_damaged_manifest_is_named(text, tmp_path):
    RANGE(3).save(tmp_path)
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(errors.DataLossError, match="manifest") as caught:
        load(tmp_path)
    assert caught.value.context.file == f"{tmp_path}/manifest.json"


def test_a_later_format_is_not_read(tmp_path):
    RANGE(3).save(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 3}))
    with pytest.raises(errors.FailedPreconditionError, match=r"format 3.*format 2"):
        load(tmp_path)


# -- snapshot


class Calls:
    """Of a function; no part of a plan's fingerprint, as what is in a list would be."""

    def __init__(self):
        self.count = 0


def counted(count=10):
    calls = Calls()

    def square(x):
        calls.count += 1
        return x * x

    return RANGE(count).map(square), calls


def test_the_first_whole_pass_writes_and_the_others_read(tmp_path):
    ds, calls = counted()
    snapshot = ds.snapshot(tmp_path)
    assert values(snapshot.take(3)) == [0, 1, 4]
    for _ in range(3):
        assert values(snapshot) == [x * x for x in range(10)]
    assert calls.count == 10
    assert values(snapshot.repeat(2).take(15)) == [x % 10 * (x % 10) for x in range(15)]
    assert int(snapshot.at(4)) == 16
    assert sorted(values(snapshot.shuffle(ps.ALL))) == [x * x for x in range(10)]
    assert calls.count == 10


def test_every_pass_over_a_snapshot_is_the_same(tmp_path):
    with pytest.warns(errors.RandomnessWarning, match="shuffle"):
        first = values(RANGE(10).shuffle(10).snapshot(tmp_path))
    ds = RANGE(10).shuffle(10, seed=3, reshuffle_each_iteration=False)
    assert sorted(first) == list(range(10))
    assert values(ds.snapshot(tmp_path)) == values(ds.snapshot(tmp_path)) == values(ds.cache()) == values(ds)


@pytest.mark.system
def test_another_process_reads_the_snapshot(tmp_path):
    program = """
import sys, penstock as ps
def times(x): print("called"); return x * FACTOR
FACTOR = int(sys.argv[2])
print([int(x) for x in ps.Dataset.range(3).map(times).snapshot(sys.argv[1])])
"""

    def run(factor):
        command = [sys.executable, "-c", program, str(tmp_path), str(factor)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")

    assert run(2) == ["called"] * 3 + ["[0, 2, 4]", ""]
    assert run(2) == ["[0, 2, 4]", ""]
    assert run(3) == ["called"] * 3 + ["[0, 3, 6]", ""]


def test_what_comes_before_a_failure_is_kept(tmp_path):
    ds = RANGE(5).map(failing).snapshot(tmp_path)
    for _ in range(2):
        assert texts(positions(ds)) == [0, 1, 2, "ZeroDivisionError", 4]
    assert [chunk["elements"] for chunk in committed(tmp_path)] == [3]
    assert_continues_everywhere(ds)


def test_a_shard_func_that_fails_takes_the_place_of_its_element(tmp_path):
    ds = RANGE(5).snapshot(tmp_path, shard_func=failing)
    assert texts(positions(ds)) == [0, 1, 2, "ZeroDivisionError", 4]
    assert not committed(tmp_path)
    assert_continues_everywhere(ds)


def test_elements_that_no_file_holds_are_an_error(tmp_path):
    ds = RANGE(4).window(2).snapshot(tmp_path / "kept")
    assert len(positions(ds)) == 2
    with pytest.raises(errors.InvalidTypeError) as caught:
        list(ds)
    assert_golden("element_storing_snapshot_datasets", said(caught.value))


@pytest.mark.parametrize("chunk", [1, 1 << 20])
def test_a_disk_that_takes_no_more_leaves_the_pass_as_it_is(chunk, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("os.fsync", full)
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", chunk)
    ds = RANGE(5).snapshot(tmp_path)
    assert values(ds) == [0, 1, 2, 3, 4]
    assert "nothing is written" in caplog.text
    assert not chunks(tmp_path)
    monkeypatch.undo()
    assert values(ds) == [0, 1, 2, 3, 4]
    assert len(chunks(tmp_path)) == 1


@pytest.mark.slow
def test_shards_and_their_order_are_seen_from_the_second_pass_on(tmp_path):
    ds = RANGE(10).snapshot(
        tmp_path, shard_func=lambda x: x % 3, reader_func=lambda shards: shards.flat_map(lambda shard: shard)
    )
    assert values(ds) == list(range(10))
    assert values(ds) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
    assert_resumes_exactly(ds)
    shuffled = RANGE(10).snapshot(
        tmp_path,
        shard_func=lambda x: x % 3,
        reader_func=lambda shards: shards.shuffle(3).flat_map(lambda shard: shard),
    )
    passes = {str(values(shuffled)) for _ in range(10)}
    assert len(passes) > 1


def test_a_state_goes_on_in_the_order_of_its_pass(tmp_path):
    def data(path):
        return RANGE(10).snapshot(path, shard_func=lambda x: x // 5)

    ds = data(tmp_path)
    writing = iter(ds)
    first = [int(next(writing)) for _ in range(4)]
    state = writing.state_dict()
    writing.close()
    assert sorted(values(ds)) == list(range(10))  # it is written meanwhile
    assert first + [int(x) for x in resumed(ds, state)] == list(range(10))
    reading = iter(ds)
    wanted = [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    assert [int(next(reading)) for _ in range(4)] == wanted[:4]
    state = reading.state_dict()
    assert [int(x) for x in resumed(ds, state)] == wanted[4:]
    chunks(tmp_path)[0].parent.parent.joinpath("manifest.json").unlink()
    with pytest.raises(errors.FailedPreconditionError, match="is not there"):
        list(resumed(data(tmp_path), state))


def test_a_state_goes_on_with_or_without_the_files_where_the_order_is_the_same(tmp_path):
    ds, calls = counted()
    snapshot = ds.snapshot(tmp_path)
    writing = iter(snapshot)
    for _ in range(4):
        next(writing)
    state = writing.state_dict()
    writing.close()
    assert values(resumed(snapshot, state)) == [x * x for x in range(4, 10)]
    assert calls.count == 10  # behind what the first pass had written
    before = calls.count
    reading = resumed(snapshot, state)
    assert int(next(reading)) == 16
    assert calls.count == before
    state = reading.state_dict()
    for path in Path(tmp_path).rglob("manifest.json"):
        path.unlink()
    assert values(resumed(snapshot, state)) == [x * x for x in range(5, 10)]
    assert calls.count == before + 10  # passed over from the start, and so written once more
    assert values(snapshot) == [x * x for x in range(10)]
    assert calls.count == before + 10


def test_of_two_passes_at_a_time_one_is_kept(tmp_path):
    ds = RANGE(4).snapshot(tmp_path)
    one, other = iter(ds), iter(ds)
    next(one), next(other)
    assert values(one) == values(other) == [1, 2, 3]
    assert len(chunks(tmp_path)) == 1
    assert values(ds) == [0, 1, 2, 3]


def test_what_a_pass_made_before_it_was_left_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1)
    snapshot = RANGE(10).map(lambda x: x * x).snapshot(tmp_path)
    stage = stage_of(snapshot)
    elements = given(stage, 2)
    next(elements)
    stage.close()
    stage.close()
    assert values(snapshot) == [x * x for x in range(10)]
    assert sum(chunk["elements"] for chunk in committed(tmp_path)) == 10
    assert len(committed(tmp_path)) > 1


def test_the_seed_counts_and_each_seed_has_its_snapshot(tmp_path):
    ds = RANGE(20).shuffle(20, reshuffle_each_iteration=False).snapshot(tmp_path)
    passes = [values(ds.with_options(ps.Options(seed=seed))) for seed in (1, 2, 1, 2)]
    assert passes[0] == passes[2] != passes[1] == passes[3]
