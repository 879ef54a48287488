"""Folders that cannot be written to: which setting named them, what the system says, what to do."""

import errno
import os

import numpy as np
import pytest
from tests.catalog.test_prepare import Squares
from tests.golden.golden import assert_golden

from penstock import viz
from penstock.catalog import load
from penstock.catalog.download.manager import DownloadManager
from penstock.catalog.folder import prepared_in
from penstock.catalog.spool import Spool
from penstock.errors import FailedPreconditionError, InvalidArgumentError
from penstock.formats import convert, recognise


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"")
    return path


def in_data_dir(place):
    Squares(data_dir=place / "sets").download_and_prepare()


def in_download_dir(place):
    DownloadManager(place / "downloads", name="it").download("somewhere.zip")


def by_convert(place):
    (place.parent / "pets.csv").write_text("name\nRex\n")
    convert(place.parent / "pets.csv", place / "pets.parquet")


def by_grid(place):
    viz.grid([np.zeros((4, 4), np.uint8)], path=place / "grid.png")


@pytest.mark.parametrize("write", [in_data_dir, in_download_dir, by_convert, by_grid])
def test_a_file_where_a_folder_should_be(file, write):
    with pytest.raises(FailedPreconditionError) as raised:
        write(file)
    assert_golden(f"unwritable_{write.__name__}", str(raised.value).replace(str(file.parent), "/tmp"))


@pytest.mark.skipif(getattr(os, "getuid", int)() == 0, reason="root, or no users: nothing is refused")
@pytest.mark.parametrize("write", [in_data_dir, in_download_dir, by_convert, by_grid])
def test_a_folder_that_is_read_only(tmp_path, write):
    place = tmp_path / "read_only"
    place.mkdir(mode=0o500)
    with pytest.raises(FailedPreconditionError, match="cannot be written to: Permission denied"):
        write(place)


@pytest.mark.parametrize(
    "call",
    [
        lambda url: Squares(data_dir="here").download_and_prepare(download_dir=url),
        lambda url: Squares(data_dir="here").download_and_prepare(manual_dir=url),
        lambda url: convert("pets.csv", f"{url}/pets.parquet"),
        lambda url: viz.grid([np.zeros((4, 4), np.uint8)], path=f"{url}/grid.png"),
    ],
)
def test_a_url_makes_no_folder_of_that_name(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"must lie on this machine, got 's3://ann:\*\*\*@bucket") as raised:
        call("s3://ann:pw@bucket")
    assert "Copy the files" in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EROFS, errno.EFBIG])
def test_what_comes_from_a_write_keeps_the_work(tmp_path, monkeypatch, number):
    made, write = Squares(data_dir=tmp_path), Spool.flush

    def refused(spool):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Spool, "flush", refused)
    with pytest.raises(FailedPreconditionError, match=f"cannot be written to: {os.strerror(number)}"):
        made.download_and_prepare()
    monkeypatch.setattr(Spool, "flush", write)
    assert [path.name for path in (tmp_path / "squares").iterdir()] == ["incomplete.1.0.0"]
    made.download_and_prepare()
    assert made.info.splits["train"].num_examples == 40


def test_errors_over_other_files_are_the_builders_own(tmp_path):
    class Reading(Squares):
        def _split_generators(self):
            return {"train": self._lines(tmp_path / "sets" / "missing.txt")}

        def _lines(self, path):
            yield 0, {"square": len(path.read_text())}

    with pytest.raises(FileNotFoundError, match=r"missing\.txt"):
        Reading(data_dir=tmp_path / "sets").download_and_prepare()


def test_a_download_that_fills_the_disk(tmp_path, monkeypatch):
    source = tmp_path / "archive.bin"
    source.write_bytes(b"content")
    manager = DownloadManager(tmp_path / "downloads", name="it")

    def full(url, part, shared):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(manager, "_copy", full)
    with pytest.raises(FailedPreconditionError, match=r"the disk of the downloads is full: .* are left"):
        manager.download(str(source))


@pytest.mark.parametrize("call", ["load", "inspect", "convert from", "convert to", "list", "folder"])
def test_what_may_not_be_looked_into(tmp_path, monkeypatch, call):
    """As for a user without the permission: root has them all."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "pets.csv").write_text("name\nRex\n")
    secret = tmp_path / "secret"
    stat, listed = os.stat, os.listdir

    def refuse(function):
        def called(path, *arguments, **keywords):
            if isinstance(path, str | os.PathLike) and str(path).startswith(f"{secret}{os.sep}"):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            if function is listed and str(path) == str(secret):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return function(path, *arguments, **keywords)

        return called

    monkeypatch.setattr(os, "stat", refuse(stat))
    monkeypatch.setattr(os, "listdir", refuse(listed))
    calls = {
        "load": lambda: load("nowhere", data_dir=secret / "sets"),
        "inspect": lambda: recognise(secret / "a.csv"),
        "convert from": lambda: convert(secret / "a.csv", tmp_path / "b.csv"),
        "convert to": lambda: convert(tmp_path / "pets.csv", secret / "b.parquet"),
        "list": lambda: prepared_in([secret]),
        "folder": lambda: recognise(secret),
    }
    with pytest.raises(FailedPreconditionError, match=r"cannot be (read|written to): Permission denied"):
        calls[call]()
