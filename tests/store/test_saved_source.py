"""SavedSource: elements as views of the files, by number, and effects of other programs."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, current_thread
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.sources.arrow_pieces import Recent
from penstock.store import chunk_files, durable
from penstock.store import saved_source as saved
from penstock.store.chunk import Chunk
from penstock.store.chunk_files import ChunkWriter
from penstock.store.manifest import Manifest, spec_as_json, write_manifest
from penstock.store.saved_source import SavedSource
from penstock.testing import assert_same_elements

RANGE = ps.Dataset.range
load = ps.Dataset.load


def of_all_kinds(x):
    return {
        "image": np.full((4, 5, 3), x, np.uint8),
        "label": x,
        "scale": np.float16(x),
        "wave": np.full(2, x, np.complex64),
        "when": np.datetime64("2020-01-01", "D"),
        "name": b"number %d" % int(x),
    }


DENSE = ("image", "label", "scale", "wave", "when")


@pytest.fixture
def mapped(monkeypatch):
    """Record the bytes of the files that are opened."""
    found = []
    whole = chunk_files._whole

    def keep(name):
        found.append(whole(name))
        return found[-1]

    monkeypatch.setattr(chunk_files, "_whole", keep)
    return found


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr("penstock.store.saved_writer._CHUNK", 1_000)


def inside(array, files):
    return any(np.shares_memory(array, file) for file in files)


# -- views

READERS = {
    "elements": lambda ds: ds.map(lambda row: row),
    "batches": lambda ds: ds.batch(32),
    "batches that are fetched ahead": lambda ds: ds.batch(32, drop_remainder=True).prefetch(2),
    "batches of a part": lambda ds: ds.skip(3).take(80).batch(7),
    "batches of several passes": lambda ds: ds.repeat(2).batch(50),
    "batches of batches": lambda ds: ds.batch(5).batch(4),
}


@pytest.mark.parametrize("name", READERS)
def test_arrays_of_one_shape_are_views_of_the_mapped_file(name, tmp_path, mapped):
    RANGE(100).map(of_all_kinds).save(tmp_path)
    for element in READERS[name](load(tmp_path)).with_options(ps.Options(zero_copy=True)):
        for field in DENSE:
            # a single number is no array: numpy returns a scalar
            assert inside(element[field], mapped) or not np.ndim(element[field])
            assert not isinstance(element[field], np.ndarray) or not element[field].flags.writeable
    assert len(mapped) == 1


def test_byte_strings_are_places_in_the_mapped_file(tmp_path, mapped):
    RANGE(100).map(of_all_kinds).save(tmp_path)
    block = load(tmp_path)._plan.source.rows(3, 60)
    strings = block.columns[list(of_all_kinds(np.int64(0))).index("name")]
    assert all(inside(buffer, mapped) for buffer in strings.buffers)
    assert strings.values()[0] == b"number 3"


def test_the_rows_of_several_files_are_put_together(tmp_path, mapped, small_chunks):
    RANGE(100).map(of_all_kinds).save(tmp_path)
    batches = list(load(tmp_path).batch(16).with_options(ps.Options(zero_copy=True)))
    assert len(mapped) > 5
    assert_same_elements(batches, list(RANGE(100).map(of_all_kinds).batch(16)))
    assert not any(batch[field].flags.writeable for batch in batches for field in DENSE)


# -- an iteration


def saved_in(folder, sizes, codec=None):
    """Save rows of 100 bytes in chunks of the given lengths, for reading by number."""
    rows = np.random.default_rng(0).integers(0, 256, (sum(sizes), 100), np.uint8)
    writer, chunks, begin = ChunkWriter(str(folder), codec), [], 0
    for number, size in enumerate(sizes):
        block = Block.single(DenseColumn(rows[begin : begin + size]))
        chunks.append(writer.write(f"{number}.arrow", 0, block, block.specs()))
        begin += size
    manifest = Manifest("key", "run", codec, spec_as_json(ps.TensorSpec((100,), np.uint8)), tuple(chunks))
    return SavedSource.whole(str(folder), manifest), rows


def test_a_file_of_several_record_batches_is_read_by_number(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_files, "_BATCH", 1_000)
    source, rows = saved_in(tmp_path, [25, 7, 33], "lz4")
    assert [chunk.rows for chunk in source.manifest.chunks] == [10, 7, 10]
    numbers = np.random.default_rng(0).permutation(len(rows))
    assert np.array_equal(source.rows_at(numbers).columns[0].array, rows[numbers])
    assert np.array_equal(source.rows(3, 60).columns[0].array, rows[3:60])


def test_the_next_file_is_read_soon_that_was_not_read_yet(tmp_path, monkeypatch):
    soon = []
    monkeypatch.setattr(saved, "read_soon", lambda name: soon.append(Path(name).name))
    source, _ = saved_in(tmp_path, [2, 2, 2, 2])
    for first in (0, 1, 2, 6, 4):
        source.rows(first, first + 1)
    assert soon == ["1.arrow", "2.arrow"]


def given(source, wants):
    """Return the results of requests of a size, with the errors in their places."""
    reader = source.open()
    while True:
        try:
            block = reader.read(next(wants))
        except ps.errors.PenstockError as error:
            yield error
            continue
        if block is None:
            return
        yield block.columns[0].array


@pytest.fixture(params=[0, 3_000, 1 << 40], ids=["all large", "some large", "none large"])
def large(request, monkeypatch):
    """Set the size from which a file is large."""
    monkeypatch.setattr(saved, "_LARGE", request.param)
    return request.param


@pytest.mark.parametrize("seed", range(4))
def test_a_pass_is_given_large_files_by_themselves_and_small_ones_together(seed, tmp_path, large, mapped):
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1, 2, 3, 40, 70], 12).tolist()
    source, rows = saved_in(tmp_path, sizes)
    ends = np.cumsum(sizes).tolist()
    by_themselves = [
        range(end - chunk.elements, end)
        for end, chunk in zip(ends, source.manifest.chunks, strict=True)
        if chunk.bytes >= large
    ]
    seams = {seam for places in by_themselves for seam in (places.start, places.stop)}
    wants = rng.integers(1, 100, 1000).tolist()
    at = 0
    for want, block in zip(wants, given(source, iter(wants)), strict=False):
        stop = at + len(block)
        assert np.array_equal(block, rows[at:stop])
        assert not block.flags.writeable
        assert stop == min(at + want, len(rows), *(seam for seam in seams if seam > at))
        assert inside(block, mapped) or not any(at in places for places in by_themselves)
        at = stop
    assert at == len(rows)


def test_what_is_wrong_with_a_file_is_told_in_its_turn_whoever_looked_at_it(tmp_path, large):
    source, rows = saved_in(tmp_path, [40] * 6)
    with (tmp_path / "3.arrow").open("r+b") as file:
        file.seek(2000)
        file.write(b"damage")
    (tmp_path / "5.arrow").unlink()
    found = list(given(source, iter([64] * 1000)))
    kinds = {120: ps.errors.DataLossError, 200: ps.errors.NotFoundError}
    at = 0
    for part in found:
        if isinstance(part, Exception):
            assert type(part) is kinds[at // 40 * 40]
            assert part.context.file == str(tmp_path / f"{at // 40}.arrow")
            at += 1
        else:
            assert np.array_equal(part, rows[at : at + len(part)])
            at += len(part)
    assert at == len(rows)


def checked_files(monkeypatch):
    """Record the names of files whose checksums are verified."""
    found, check = [], Chunk.check

    def checked(chunk, content, name):
        found.append(Path(name).name)
        check(chunk, content, name)

    monkeypatch.setattr(Chunk, "check", checked)
    return found


def test_files_that_this_process_has_just_written_need_no_look_at_their_checksums(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_files, "_DEAR", float("inf"))  # all through the system's file cache
    source, rows = saved_in(tmp_path, [10] * 5)
    checked = checked_files(monkeypatch)
    assert np.array_equal(np.concatenate(list(given(source, iter([10] * 1000)))), rows)
    assert checked == []


@pytest.mark.parametrize("way", ["in place", "cut", "touched", "another", "copied"])
def test_files_that_somebody_has_changed_since_are_looked_at(way, tmp_path, monkeypatch):
    source, _ = saved_in(tmp_path, [10] * 2)
    path = tmp_path / "1.arrow"
    content = path.read_bytes()
    if way == "in place":
        with path.open("r+b") as file:
            file.seek(len(content) // 2)
            file.write(bytes([content[len(content) // 2] ^ 1]))
    elif way == "cut":
        os.truncate(path, len(content) - 1)
    elif way == "touched":
        os.utime(path)
    elif way == "another":
        (tmp_path / "0.arrow").replace(path)
    else:
        path.unlink()
        path.write_bytes(content)
    checked = checked_files(monkeypatch)
    found = list(given(source, iter([10] * 1000)))
    assert "1.arrow" in checked
    damaged = way in ("in place", "cut", "another")
    assert any(isinstance(part, ps.errors.DataLossError) for part in found) == damaged


def test_several_threads_note_their_files_at_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "_MOST_KNOWN", 4)
    monkeypatch.setattr(durable, "_WRITTEN", {})
    files = [tmp_path / str(i) for i in range(32)]
    for i, file in enumerate(files):
        file.write_bytes(b"x" * i)
        os.utime(file, ns=(10**18 - 1, 10**18 - 1))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: durable.note_as_written(files[i % 32], (i,)), range(2000)))
    assert 0 < len(durable._WRITTEN) <= 4 + 8


def test_of_what_was_written_the_last_files_are_known(tmp_path, monkeypatch):
    monkeypatch.setattr(chunk_files, "_DEAR", float("inf"))
    monkeypatch.setattr(durable, "_MOST_KNOWN", 2)
    monkeypatch.setattr(durable, "_WRITTEN", {})
    source, _ = saved_in(tmp_path, [10] * 5)
    assert len(durable._WRITTEN) == 2
    checked = checked_files(monkeypatch)
    list(given(source, iter([10] * 1000)))
    assert sorted(checked) == ["0.arrow", "1.arrow", "2.arrow"]


def test_files_are_looked_at_where_the_system_does_not_keep_their_time(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "utime", mock.Mock(side_effect=OSError))
    source, _ = saved_in(tmp_path, [10] * 2)
    checked = checked_files(monkeypatch)
    list(given(source, iter([10] * 1000)))
    assert checked == ["0.arrow", "1.arrow"]


def test_a_file_is_looked_at_while_the_one_before_it_is_given(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "_LARGE", 0)
    source, _ = saved_in(tmp_path, [10] * 5)
    for number in range(5):
        os.utime(tmp_path / f"{number}.arrow")  # as if another process had written it
    by = {}
    check = Chunk.check

    def checked(chunk, content, name):
        by[chunk.file] = current_thread().name
        looked_at[chunk.file].set()
        check(chunk, content, name)

    looked_at = {chunk.file: Event() for chunk in source.manifest.chunks}
    monkeypatch.setattr(Chunk, "check", checked)
    for number, _ in enumerate(given(source, iter([10] * 10))):
        if 1 <= number < 4:
            assert looked_at[f"{number + 1}.arrow"].wait(60)  # before it is requested
    assert [by[f"{number}.arrow"] == "penstock-saved" for number in range(5)] == [False, False, True, True, True]


def test_a_system_without_another_thread_looks_at_files_in_their_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "_LARGE", 0)
    none_left = mock.Mock(side_effect=RuntimeError("can't start new thread"))
    monkeypatch.setattr(saved, "_looking", lambda: mock.Mock(submit=none_left))
    source, rows = saved_in(tmp_path, [10] * 5)
    assert np.array_equal(np.concatenate(list(given(source, iter([7] * 50)))), rows)
    assert none_left.called


@pytest.mark.parametrize("batch", [7, 40, 64])
def test_batches_over_several_files_are_copied_once_and_can_be_written_to(batch, tmp_path, monkeypatch, large):
    """The batches have their own memory, which the consumer gets without a copy."""
    source, rows = saved_in(tmp_path, [50, 1, 40, 2, 2, 70])
    write_manifest(str(tmp_path), source.manifest, replace=True)
    for skipped in (0, 0, 45):
        found = list(load(tmp_path).skip(skipped).batch(batch))
        assert all(one.flags.writeable for one in found)
        assert np.array_equal(np.concatenate(found), rows[skipped:])
        for one in found:
            one[:] = 0  # no other array sees the change


# -- files


OPEN = Path("/proc/self/fd")


@pytest.mark.skipif(not OPEN.is_dir(), reason="counts the open files of Linux")
def test_files_that_are_mapped_are_not_kept_open(tmp_path, small_chunks):
    RANGE(100).map(of_all_kinds).save(tmp_path)
    before = sum(1 for _ in OPEN.iterdir())
    with load(tmp_path).iterator(executor="inline") as elements:
        held = list(elements)
        assert sum(1 for _ in OPEN.iterdir()) <= before + 1
    assert len(held) == 100


def test_a_file_is_verified_once_though_it_is_opened_again(tmp_path, small_chunks, monkeypatch):
    RANGE(100).map(of_all_kinds).save(tmp_path)
    monkeypatch.setattr(saved, "_MOST_OPEN", 2)
    monkeypatch.setattr(saved, "RECENT", Recent(0))
    monkeypatch.setattr(durable, "_WRITTEN", {})  # as in another process
    ds = load(tmp_path)
    with mock.patch.object(Chunk, "check", autospec=True, side_effect=Chunk.check) as check:
        for _ in range(2):
            assert_same_elements(list(ds), list(RANGE(100).map(of_all_kinds)))
            assert_same_elements([ds.at(i) for i in (0, 99, 50)], [of_all_kinds(np.int64(i)) for i in (0, 99, 50)])
    verified = [call.args[0].file for call in check.call_args_list]
    assert len(verified) == len(set(verified)) > 5


def test_a_file_that_was_cut_short_after_it_was_verified_is_not_read(tmp_path, small_chunks, monkeypatch):
    RANGE(100).map(of_all_kinds).save(tmp_path)
    monkeypatch.setattr(saved, "_MOST_OPEN", 1)
    monkeypatch.setattr(saved, "RECENT", Recent(0))
    ds = load(tmp_path)
    assert int(ds.at(0)["label"]) == 0
    assert int(ds.at(99)["label"]) == 99
    first = min(tmp_path.rglob("*.arrow"))
    os.truncate(first, first.stat().st_size - 8)
    with pytest.raises(ps.errors.DataLossError, match="were written"):
        ds.at(0)


@pytest.mark.parametrize("shards", [1, 7, 80])
def test_elements_have_numbers_whatever_the_files(shards, tmp_path):
    RANGE(300).save(tmp_path, shard_func=lambda x: x % shards)
    ds = load(tmp_path)
    assert len(ds) == 300
    assert [int(x) for x in ds] == list(range(300))
    assert [int(ds.at(i)) for i in (0, 299, 123)] == [0, 299, 123]
    assert sorted(int(x) for x in ds.shuffle(ps.ALL, seed=1)) == list(range(300))


# -- other programs


@pytest.mark.parametrize("compression", [None, "LZ4", "ZSTD"])
def test_arrow_sees_tensors_of_fixed_shape(compression, tmp_path):
    RANGE(6).map(of_all_kinds).save(tmp_path, compression)
    (path,) = tmp_path.rglob("*.arrow")
    table = pa.ipc.open_file(path).read_all()
    assert table.schema.field("image").type == pa.fixed_shape_tensor(pa.uint8(), [4, 5, 3])
    images = table.column("image").combine_chunks().to_numpy_ndarray()
    np.testing.assert_array_equal(images, np.stack([np.full((4, 5, 3), i, np.uint8) for i in range(6)]))
    assert table.column("label").to_pylist() == list(range(6))
    assert table.column("name").to_pylist() == [b"number %d" % i for i in range(6)]
    assert table.schema.field("wave").type == pa.fixed_shape_tensor(pa.float32(), [2, 2])  # of pairs


def test_arrow_sees_lists_where_shapes_differ(tmp_path):
    RANGE(4).map(lambda x: {"tokens": np.arange(int(x)), "boxes": np.zeros((int(x), 4), np.float32)}).save(tmp_path)
    (path,) = tmp_path.rglob("*.arrow")
    found = pa.ipc.open_file(path).read_all().to_pylist()
    assert [row["tokens"] for row in found] == [[], [0], [0, 1], [0, 1, 2]]
    assert found[2]["boxes"] == {"values": [0.0] * 8, "shape": [2, 4]}


def test_a_whole_folder_is_a_data_set_of_arrows(tmp_path, small_chunks):
    import pyarrow.dataset

    RANGE(100).map(of_all_kinds).save(tmp_path)
    files = sorted(map(str, tmp_path.rglob("*.arrow")))
    found = pyarrow.dataset.dataset(files, format="ipc")
    assert found.count_rows() == 100
    assert found.to_table(columns=["label"], filter=pyarrow.dataset.field("label") > 97).to_pylist() == [
        {"label": 98},
        {"label": 99},
    ]
