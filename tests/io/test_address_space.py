"""A local file that cannot be mapped, as one that is larger than the address space left, is read."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import penstock as ps
from penstock.io import storage
from penstock.sources import arrow_pieces
from penstock.store import chunk_files
from penstock.testing import assert_resumes_exactly, assert_same_elements

LINES = [b"line %05d" % i for i in range(20_000)]


def lines(path):
    path.write_bytes(b"\n".join(LINES))
    return ps.TextLineDataset(path)


def records(path):
    with ps.io.TFRecordWriter(path) as writer:
        for line in LINES[:3000]:
            writer.write(line)
    return ps.TFRecordDataset(path)


def indexed_records(path):
    records(path)
    return ps.IndexedTFRecordDataset(path)


def fixed(path):
    path.write_bytes(b"".join(LINES))
    return ps.FixedLengthRecordDataset(path, 10)


def arrow(path):
    table = pa.table({"id": np.arange(3000), "line": LINES[:3000]})
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=500)
    return ps.ArrowDataset(path)


def parquet(path):
    pa.parquet.write_table(pa.table({"id": np.arange(3000), "line": LINES[:3000]}), path, row_group_size=500)
    return ps.ParquetDataset(path)


def npy(path):
    np.save(path, np.arange(6000).reshape(3000, 2))
    return ps.NumpyDataset(f"{path}.npy")


def npz(path):
    np.savez(path, a=np.arange(3000), b=np.ones((3000, 3)))
    return ps.NumpyDataset(f"{path}.npz")


def saved(path):
    ps.Dataset.range(3000).save(path)
    return ps.Dataset.load(path)


SOURCES = [lines, records, indexed_records, fixed, arrow, parquet, npy, npz, saved]


@pytest.mark.parametrize("refusal", [errno.ENOMEM, errno.ENODEV])
@pytest.mark.parametrize("make", SOURCES)
def test_elements_come_all_the_same(make, refusal, tmp_path, monkeypatch):
    ds = make(tmp_path / "content")
    wanted = list(ds)
    asked = []

    def refuse(*called):
        asked.append(called)
        raise OSError(refusal, os.strerror(refusal))

    monkeypatch.setattr(storage, "mapped", refuse)
    ds = make(tmp_path / "content")
    assert_same_elements(list(ds), wanted)
    assert asked
    assert_resumes_exactly(ds.skip(len(wanted) - 6), limit=4)
    if ds.cardinality() >= 0:
        assert_same_elements([ds[5], ds[-1]], [wanted[5], wanted[-1]])


def test_what_forbids_reading_is_said(tmp_path, monkeypatch):
    ds = lines(tmp_path / "content")

    def refuse(*called):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(storage, "mapped", refuse)
    with pytest.raises(OSError, match="Input/output"):
        list(ds)


MAKES_ARRAYS = {arrow: arrow_pieces, parquet: arrow_pieces, saved: chunk_files}


@pytest.mark.parametrize("make", MAKES_ARRAYS)
def test_memory_that_does_not_suffice_is_no_damage_and_not_remembered(make, tmp_path, monkeypatch):
    ds = make(tmp_path / "content")
    wanted = list(ds)
    ds = make(tmp_path / "content")

    def fail(*given, **options):
        raise pa.lib.ArrowMemoryError("malloc of size 8000000 failed")

    with monkeypatch.context() as changed:
        changed.setattr(MAKES_ARRAYS[make], "from_arrow", fail)
        with pytest.raises(MemoryError, match="malloc"):
            list(ds)
    assert_same_elements(list(ds), wanted)


@pytest.mark.parametrize("make", MAKES_ARRAYS)
def test_a_buffer_that_no_machine_holds_is_damage(make, tmp_path, monkeypatch):
    """A compressed buffer begins with its size, of which a flipped bit makes any."""

    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    def fail(*given, **options):
        raise pa.lib.ArrowMemoryError(f"malloc of size {2 * memory} failed")

    ds = make(tmp_path / "content")
    monkeypatch.setattr(MAKES_ARRAYS[make], "from_arrow", fail)
    with pytest.raises(ps.errors.DataLossError, match="content"):
        list(ds)


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet
import penstock as ps

folder = Path(sys.argv[1])
table = pa.table({"id": np.arange(3)})
with pa.OSFile(str(folder / "a.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
    writer.write_table(table)
ps.Dataset.range(9).batch(3)
for kind in (ps.TextLineDataset, ps.ArrowDataset, ps.IndexedTFRecordDataset):  # what is imported late, is by now
    list(kind(folder / "a.arrow").ignore_errors().iterator(executor="inline"))
many, stated = pa.table({"id": np.arange(4000)}), (32000).to_bytes(8, "little")  # in front of a compressed buffer
for name, new in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream)):
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(folder / name), "wb") as file, new(file, many.schema, options=options) as writer:
        writer.write_table(many)
    content = (folder / name).read_bytes()
    assert content.count(stated) == 1
    (folder / name).write_bytes(content.replace(stated, (1 << 32).to_bytes(8, "little")))
(folder / "large.txt").write_bytes(b"first\\nsecond\\n")
import os
os.truncate(folder / "large.txt", 3 << 30)  # a hole, which takes no room on the disk
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), used + (1 << 30)))
lines = ps.TextLineDataset(folder / "large.txt").iterator(executor="inline")
print(next(lines), next(lines))
fixed = ps.FixedLengthRecordDataset(folder / "large.txt", 8)
print(len(fixed), next(fixed.iterator(executor="inline")), fixed[-1] == bytes(8))
try:
    len(ps.IndexedTFRecordDataset(folder / "large.txt"))
except ps.errors.ResourceExhaustedError as error:
    print(isinstance(error, MemoryError), error.context.file == str(folder / "large.txt"), "ulimit -v" in error.hint)
for name in ("file", "stream"):
    try:
        list(ps.ArrowDataset(folder / name).iterator(executor="inline"))
    except ps.errors.DataLossError as error:
        print(error.context.file == str(folder / name), "states more than" in str(error))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, and macOS has no limit of the address space")
def test_files_larger_than_the_address_space(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, timeout=100,
        env={"PYTHONPATH": str(Path(ps.__file__).parents[1]), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [
        "b'first' b'second'",
        rf"{3 << 27} b'first\nse' True",
        "True True True",
        *["True True"] * 2,
    ]
