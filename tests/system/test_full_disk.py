"""Files that cannot be written to their end: the error names the file, and no partial file has its name."""

import re
import resource
import signal
from contextlib import contextmanager

import numpy as np
import pytest

import penstock as ps
from penstock.io.tfrecord.writer import TFRecordWriter

MOST = 1 << 16  # largest size of a file in bytes


@contextmanager
def files_of_at_most(nbytes):
    """Limit the size of files: like on a full disk, a write fails in the middle of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


ROWS = ps.Dataset.range(40).map(lambda x: np.random.default_rng(int(x)).integers(0, 255, 10_000, np.uint8))


def write_records(path):
    with TFRecordWriter(path) as writer:
        for row in ROWS:
            writer.write(row.tobytes())


def write_small_records(path):
    with TFRecordWriter(path, "GZIP") as writer:
        for row in ROWS:
            writer.write(row.tobytes())
            writer.flush()


def write_quarantine(path):
    def function(x):
        raise ValueError("spoiled " * 20_000)

    list(ps.Dataset.range(3).map(function).ignore_errors(quarantine=path))


def write_side_file(path):
    ds = ps.Dataset.range(3).scan("", lambda state, x: (state + b"x" * 100_000, x))
    elements = iter(ds)
    next(elements)
    elements.state_dict(side_file=path)


WRITERS = {
    "TFRecordWriter": write_records,
    "TFRecordWriter, flushed": write_small_records,
    "quarantine": write_quarantine,
    "side file": write_side_file,
    "save": lambda path: ROWS.save(path),
    "save in shards": lambda path: ROWS.save(path, shard_func=lambda x: np.int64(x[0] % 2), compression="ZSTD"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_cannot_be_written_is_named(name, tmp_path):
    path = tmp_path / "written"
    with files_of_at_most(MOST), pytest.raises(OSError, match=re.escape(str(path))) as caught:
        WRITERS[name](path)
    assert caught.value.errno
    if "TFRecord" not in name and name != "quarantine":
        assert not path.is_file()
        assert not [file for file in tmp_path.rglob("*") if file.is_file()]


def test_a_full_device_is_named():
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_records("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '/dev/full'"):
        write_quarantine("/dev/full")
