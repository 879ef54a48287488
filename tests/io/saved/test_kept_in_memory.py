"""What of the files we write stays in the system's cache of files: as much as a share of the free memory holds."""

import os

import numpy as np
import pytest

import penstock as ps
from penstock.io.saved import chunk_files
from penstock.io.saved.chunk_files import KEPT
from penstock.io.saved.durable import DirectFile, room

ADVISED = pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the system takes no such advice")


@pytest.fixture
def kept(monkeypatch):
    """The sizes of files that the system was told to read into its cache, with what of them."""
    sizes = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, *args: sizes.append((os.fstat(file).st_size, args)))
    return sizes


@ADVISED
@pytest.mark.parametrize("size", [5000, (1 << 18) + 5000])
def test_a_file_that_is_finished_is_asked_for_as_a_whole(size, tmp_path, kept):
    """Piece by piece: of a longer one Linux reads no more than it reads ahead, and passes over the rest."""
    with DirectFile(tmp_path / "file", room()) as file:
        file.write(b"x" * size)
        file.finish()
        file.keep()
    assert {(of, advice) for of, (_, _, advice) in kept} == {(size, os.POSIX_FADV_WILLNEED)}
    pieces = [(begin, length) for _, (begin, length, _) in kept]
    assert [begin for begin, _ in pieces] == list(range(0, size, 1 << 17))
    assert sum(length for _, length in pieces) == size
    assert max(length for _, length in pieces) <= 1 << 17


@ADVISED
@pytest.mark.parametrize("left", ["machine_left", "memory_left"])  # by the machine, and by its control groups
def test_a_cache_in_files_stays_in_memory_up_to_its_share(left, tmp_path, kept, monkeypatch):
    rows = np.random.default_rng(0).integers(0, 256, (40, 1 << 20), np.uint8)  # in chunks of 16 MiB
    monkeypatch.setattr(chunk_files, "machine_left", lambda: None)
    monkeypatch.setattr(chunk_files, "memory_left", lambda: None)
    monkeypatch.setattr(chunk_files, left, lambda: int(40 * (1 << 20) / KEPT))
    ds = ps.Dataset.from_tensor_slices(rows).cache(str(tmp_path / "all"))
    assert sum(1 for _ in ds) == len(rows)
    told = [size for size, (begin, *_) in kept if size > 1 << 20 and begin == 0]
    written = [file.stat().st_size for file in (tmp_path / "all").rglob("*.arrow")]
    assert 0 < sum(told) <= 40 << 20
    assert sum(written) > sum(told)
    assert min(written) > (40 << 20) - sum(told)  # what was left out did not fit


def test_where_nobody_tells_what_is_free_nothing_is_kept(tmp_path, kept, monkeypatch):
    monkeypatch.setattr(chunk_files, "machine_left", lambda: None)
    monkeypatch.setattr(chunk_files, "memory_left", lambda: None)
    assert sum(1 for _ in ps.Dataset.range(8).cache(str(tmp_path / "all"))) == 8
    assert not [args for _, args in kept if args[2] == os.POSIX_FADV_WILLNEED]
