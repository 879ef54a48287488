"""Special files that report no bytes are read. Files that can be read only once are refused, without a wait."""

import os
import socket
import tempfile
from pathlib import Path

import pytest

import penstock as ps

READERS = {
    "text": ps.TextLineDataset,
    "records": ps.TFRecordDataset,
    "fixed": lambda name: ps.FixedLengthRecordDataset(name, 1),
    "compressed": lambda name: ps.TextLineDataset(name, compression_type="GZIP"),
}
VERSION = Path("/proc/version")
needs_proc = pytest.mark.skipif(not VERSION.exists(), reason="the system has no /proc")


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


@pytest.mark.parametrize("reader", READERS)
def test_a_pipe_is_refused(pipe, reader):
    with pytest.raises(ps.errors.InvalidArgumentError, match="is a pipe, which gives what it has once") as caught:
        list(READERS[reader](pipe))
    assert "Dataset.from_generator(lambda: open(" in str(caught.value)


def test_a_pipe_among_small_files_is_refused(pipe, tmp_path):
    for name in "ab":
        (tmp_path / name).write_text("one\ntwo\n")
    names = [str(tmp_path / "a"), pipe, str(tmp_path / "b")]
    with pytest.raises(ps.errors.InvalidArgumentError, match="is a pipe"):
        list(ps.TextLineDataset(names))
    with pytest.raises(ps.errors.InvalidArgumentError, match="is a pipe"):
        list(ps.Dataset.from_tensor_slices(names).interleave(ps.TextLineDataset))


def test_a_socket_and_a_device_are_refused():
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/s")
        with pytest.raises((ps.errors.InvalidArgumentError, OSError)):
            list(ps.TextLineDataset(f"{folder}/s"))
    with pytest.raises(ps.errors.InvalidArgumentError, match="is a device"):
        list(ps.TextLineDataset("/dev/zero"))


@needs_proc
def test_a_file_of_the_systems_is_read():
    content = VERSION.read_bytes()
    assert list(ps.TextLineDataset(str(VERSION))) == content.splitlines()
    assert list(ps.TextLineDataset([str(VERSION)] * 3)) == content.splitlines() * 3
    assert b"".join(ps.FixedLengthRecordDataset(str(VERSION), 1)) == content
    names = ps.Dataset.from_tensor_slices([str(VERSION)] * 3)
    assert list(names.interleave(ps.TextLineDataset)) == content.splitlines() * 3


def test_nothing_is_in_an_empty_file(tmp_path):
    (tmp_path / "empty").touch()
    for name in (str(tmp_path / "empty"), os.devnull):
        assert list(ps.TextLineDataset(name)) == list(ps.TFRecordDataset(name)) == []
        assert list(ps.FixedLengthRecordDataset(name, 3)) == []
