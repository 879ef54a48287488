"""DiskFile: the file has the written bytes with their checksums, whatever the file system supports."""

import errno
import os

import numpy as np
import pytest

from penstock.store import durable
from penstock.store.chunk import PAGE, checksums
from penstock.store.durable import ROOM, DiskFile

CONTENT = np.random.default_rng(0).integers(0, 256, ROOM + PAGE + 5000, np.uint8).tobytes()
DIRECT = pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="the system has no direct files")


CACHED = pytest.mark.parametrize("cached", [False, True], ids=["past the cache", "cached"])


def written(path, pieces, *, cached=False):
    with DiskFile(path, cached=cached) as file:
        for piece in pieces:
            assert file.write(piece) == len(piece)
        file.finish()
    assert file.size == sum(map(len, pieces))
    return file


def check(path, pieces, file):
    content = b"".join(pieces)
    assert path.read_bytes() == content
    assert file.crcs == list(checksums(memoryview(content)))


@CACHED
@pytest.mark.parametrize(
    "size", [0, 1, 4095, 4096, 4097, PAGE - 1, PAGE, PAGE + 1, ROOM - 1, ROOM, ROOM + 1, len(CONTENT)]
)
def test_all_of_it_is_there(cached, size, tmp_path):
    pieces = [CONTENT[:size]]
    check(tmp_path / "file", pieces, written(tmp_path / "file", pieces, cached=cached))


@CACHED
@pytest.mark.parametrize("seed", range(5))
def test_it_comes_in_pieces_of_any_size(cached, seed, tmp_path):
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, len(CONTENT), 60)).tolist()
    pieces = [CONTENT[a:b] for a, b in zip([0, *cuts], [*cuts, len(CONTENT)], strict=True)]
    check(tmp_path / "file", pieces, written(tmp_path / "file", pieces, cached=cached))


@CACHED
def test_memory_that_is_used_again_leaves_nothing_of_the_file_before(cached, tmp_path):
    written(tmp_path / "long", [CONTENT], cached=cached)
    check(tmp_path / "short", [b"short"], written(tmp_path / "short", [b"short"], cached=cached))


def test_large_pieces_go_into_the_cache_as_they_lie_with_small_ones_in_their_places(tmp_path, monkeypatch):
    """A MiB is copied at a time, which is then in the processor's cache, without a copy of earlier bytes."""
    real, sizes = os.write, []

    def counted(file, piece):
        sizes.append(len(piece))
        return real(file, piece)

    monkeypatch.setattr(os, "write", counted)
    pieces = [b"head" * 50, CONTENT[: 2 * PAGE], b"tail" * 7, b"end"]
    check(tmp_path / "file", pieces, written(tmp_path / "file", pieces, cached=True))
    assert sizes == [200, PAGE - 200, PAGE, 200 + 31]


@CACHED
def test_a_longer_file_that_was_there_is_gone(cached, tmp_path):
    (tmp_path / "file").write_bytes(CONTENT)
    check(tmp_path / "file", [b"short"], written(tmp_path / "file", [b"short"], cached=cached))


@DIRECT
def test_a_file_system_that_opens_no_direct_files_gets_others(tmp_path, monkeypatch):
    real, asked = os.open, []

    def picky(path, flags, *args):
        asked.append(bool(flags & os.O_DIRECT))
        if asked[-1]:
            raise OSError(errno.EINVAL, "no direct files here")
        return real(path, flags, *args)

    monkeypatch.setattr(os, "open", picky)
    check(tmp_path / "file", [CONTENT], written(tmp_path / "file", [CONTENT]))
    assert asked == [True, False]


@DIRECT
@pytest.mark.parametrize("refused_from", [1, 2])
def test_a_file_system_that_takes_no_such_piece_gets_it_otherwise(refused_from, tmp_path, monkeypatch):
    import fcntl

    real, calls = os.write, []

    def picky(file, piece):
        calls.append(len(piece))
        if len(calls) >= refused_from and fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT:
            raise OSError(errno.EINVAL, "not from there")
        return real(file, piece)

    monkeypatch.setattr(os, "write", picky)
    check(tmp_path / "file", [CONTENT], written(tmp_path / "file", [CONTENT]))
    assert len(calls) == 3  # one of them was refused


@CACHED
def test_a_system_that_writes_a_part_is_asked_for_the_rest(cached, tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda file, piece: real(file, piece[: max(len(piece) // 2 & -4096, 4096)]))
    check(tmp_path / "file", [CONTENT], written(tmp_path / "file", [CONTENT], cached=cached))


@CACHED
@pytest.mark.parametrize("kind", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_any_other_error_is_the_callers(cached, kind, tmp_path, monkeypatch):
    def failing(*args):
        raise OSError(kind, "no")

    monkeypatch.setattr(os, "write", failing)
    with pytest.raises(OSError, match="no") as caught:
        written(tmp_path / "file", [CONTENT], cached=cached)
    assert caught.value.errno == kind


@CACHED
def test_a_system_without_direct_files_has_the_same(cached, tmp_path, monkeypatch):
    monkeypatch.setattr(durable, "_DIRECT", 0)
    check(tmp_path / "file", [CONTENT], written(tmp_path / "file", [CONTENT], cached=cached))


@CACHED
def test_a_folder_that_is_missing_is_named(cached, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        DiskFile(tmp_path / "nowhere" / "file", cached=cached)
