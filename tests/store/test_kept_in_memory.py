"""Written files stay in the system's file cache, up to a share of the free memory."""

import os

import numpy as np
import pytest

import penstock as ps
from penstock.block.block import Block
from penstock.block.column import DenseColumn
from penstock.errors import DataLossError
from penstock.store import chunk_files
from penstock.store.chunk_files import KEPT, ChunkFile, ChunkWriter, read_soon
from penstock.store.durable import is_as_written

ADVISED = pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no such advice")
DIRECT = pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="the system has no direct files")


@ADVISED
@pytest.mark.parametrize("size", [5000, (1 << 18) + 5000])
def test_a_file_that_comes_next_is_asked_for_as_a_whole(size, tmp_path, monkeypatch):
    """The reader requests the file in pieces: for a longer request, Linux reads only its read-ahead size."""
    asked = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *args: asked.append(args))
    (tmp_path / "file").write_bytes(b"x" * size)
    read_soon(str(tmp_path / "file"))
    assert {advice for _, _, advice in asked} == {os.POSIX_FADV_WILLNEED}
    assert [begin for begin, _, _ in asked] == list(range(0, size, 1 << 17))
    assert sum(length for _, length, _ in asked) == size
    assert max(length for _, length, _ in asked) <= 1 << 17


@pytest.fixture
def past_it(monkeypatch):
    """Return for each file of elements True if its writes bypass the system's file cache."""
    found = {}
    real = os.open

    def opened(path, flags, *args, **kwargs):
        if ".arrow" in str(path) and flags & os.O_CREAT:
            found[str(path).partition(".arrow")[0]] = bool(flags & os.O_DIRECT)
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", opened)
    return found


@pytest.fixture
def read_back(monkeypatch):
    """Record the sizes of files that the system was asked to read into its cache."""
    sizes = []

    def advise(file, begin, length, advice):
        if advice == os.POSIX_FADV_WILLNEED and not begin:
            sizes.append(os.fstat(file).st_size)

    monkeypatch.setattr(os, "posix_fadvise", advise)
    return sizes


def free(monkeypatch, left, nbytes):
    """Set the memory that `left` reports; other measures report plenty."""
    monkeypatch.setattr(chunk_files, "machine_left", lambda: None)
    monkeypatch.setattr(chunk_files, "memory_left", lambda: None)
    monkeypatch.setattr(chunk_files, left, lambda: nbytes)


@ADVISED
@DIRECT
@pytest.mark.parametrize("dear", [False, True], ids=["copied", "read back"])
@pytest.mark.parametrize("left", ["machine_left", "memory_left"])  # the machine, and its control groups
def test_a_cache_in_files_stays_in_memory_up_to_its_share(left, dear, tmp_path, past_it, read_back, monkeypatch):
    rows = np.random.default_rng(0).integers(0, 256, (40, 1 << 20), np.uint8)  # in chunks of 16 MiB
    monkeypatch.setattr(chunk_files, "_DEAR", -1.0 if dear else 1.0)
    free(monkeypatch, left, int(36 * (1 << 20) / KEPT))
    ds = ps.Dataset.from_tensor_slices(rows).cache(str(tmp_path / "all"))
    assert sum(1 for _ in ds) == len(rows)
    sizes = {str(file).partition(".arrow")[0]: file.stat().st_size for file in (tmp_path / "all").rglob("*.arrow")}
    assert set(sizes) == set(past_it)
    copied = [size for file, size in sizes.items() if not past_it[file]]
    kept = [*copied, *(size for size in read_back if size > 1 << 20)]
    assert 0 < sum(kept) <= 36 << 20
    assert (len(copied) == 1) == dear  # one, to measure its cost; then the file comes from the disk
    assert len(kept) < len(sizes)
    left_out = sum(sizes.values()) - sum(kept)
    assert left_out > (36 << 20) - sum(kept)  # the rest did not fit
    assert all(np.array_equal(found, row) for found, row in zip(ds, rows, strict=True))


@DIRECT
def test_copies_that_were_dear_are_tried_again(tmp_path, past_it, monkeypatch):
    writer = ChunkWriter(str(tmp_path), None)
    block = Block.single(DenseColumn(np.zeros((8, 8))))
    for number in range(20):
        monkeypatch.setattr(chunk_files, "_DEAR", 1.0 if number else -1.0)
        writer.write(f"{number:02}.arrow", 0, block, block.specs())
    past = [past for _, past in sorted(past_it.items())]
    assert past == [False, *[True] * 15, *[False] * 4]


@DIRECT
def test_what_is_read_back_is_looked_at_two_chunks_later(tmp_path, monkeypatch):
    """The next epoch need not check it again. The reader finds later changes."""
    monkeypatch.setattr(chunk_files, "_DEAR", -1.0)
    writer = ChunkWriter(str(tmp_path), None)
    block = Block.single(DenseColumn(np.arange(64.0).reshape(8, 8)))
    chunks = []
    for number in range(6):
        chunks.append(writer.write(f"{number}.arrow", 0, block, block.specs()))
        if number == 2:
            with (tmp_path / "2.arrow").open("r+b") as file:
                file.write(b"XXXXXXXX")
    known = [is_as_written(str(tmp_path / chunk.file), chunk.crcs) for chunk in chunks]
    assert known == [True, True, False, True, False, False]
    with pytest.raises(DataLossError, match="bytes 0 to"):
        ChunkFile(str(tmp_path / "2.arrow"), chunks[2])


@ADVISED
@DIRECT
def test_where_nobody_tells_what_is_free_nothing_is_kept(tmp_path, past_it, read_back, monkeypatch):
    free(monkeypatch, "machine_left", None)
    assert sum(1 for _ in ps.Dataset.range(8).cache(str(tmp_path / "all"))) == 8
    assert set(past_it.values()) == {True}
    assert not read_back
