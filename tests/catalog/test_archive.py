"""Archives: read as streams and unpacked; what would do harm is refused, and leaves nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile

import pytest
from tests.golden.golden import assert_golden

from penstock.catalog import DownloadManager
from penstock.catalog.download.archive import Limits, extract, iter_archive
from penstock.errors import DataLossError, InvalidArgumentError

FILES = {"a.txt": b"first", "folder/b.txt": b"second" * 1000, "folder/deep/c.txt": b""}


def make_zip(path, files=FILES):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("empty")
        for name, content in files.items():
            archive.writestr(name, content)


def make_tar(path, files=FILES, links=()):
    kind = {"tar": "", "gz": "gz", "tgz": "gz", "bz2": "bz2", "xz": "xz"}[path.name.rpartition(".")[2]]
    with tarfile.open(path, f"w:{kind}") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target, hard in links:
            member = tarfile.TarInfo(name)
            member.type, member.linkname = (tarfile.LNKTYPE if hard else tarfile.SYMTYPE), target
            archive.addfile(member)


def found(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["x.zip", "x.tar", "x.tar.gz", "x.tgz", "x.tar.bz2", "x.tar.xz"])
def test_every_kind_is_read_and_unpacked(tmp_path, name):
    path = tmp_path / name
    (make_zip if name.endswith("zip") else make_tar)(path)
    assert {name: content.read() for name, content in iter_archive(path)} == FILES
    sizes = []
    extract(path, tmp_path / "out", advance=sizes.append)
    assert found(tmp_path / "out") == FILES
    assert sum(sizes) == sum(map(len, FILES.values()))


def test_a_single_compressed_file_is_unpacked(tmp_path):
    (tmp_path / "train.gz").write_bytes(gzip.compress(b"content"))
    extract(tmp_path / "train.gz", tmp_path / "out")
    assert found(tmp_path / "out") == {"train": b"content"}


def test_the_manager_unpacks_once(tmp_path):
    make_zip(tmp_path / "x.zip")
    manager = DownloadManager(tmp_path / "downloads", name="it")
    folder = manager.download_and_extract({"x": str(tmp_path / "x.zip")})["x"]
    assert found(folder) == FILES
    (folder / "a.txt").unlink()
    assert manager.extract([manager.download(str(tmp_path / "x.zip"))]) == [folder]
    assert "a.txt" not in found(folder)
    (tmp_path / "plain.txt").write_text("no archive")
    assert manager.download_and_extract(str(tmp_path / "plain.txt")).read_text() == "no archive"


def test_links_within_are_copied(tmp_path):
    make_tar(tmp_path / "x.tar", links=[("folder/same.txt", "../a.txt", False), ("hard.txt", "a.txt", True)])
    extract(tmp_path / "x.tar", tmp_path / "out")
    assert found(tmp_path / "out") == {**FILES, "folder/same.txt": b"first", "hard.txt": b"first"}


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt", "..\\out.txt", "C:\\out.txt"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_lead_out_are_refused(tmp_path, name, kind):
    path = tmp_path / f"x.{kind}"
    (make_zip if kind == "zip" else make_tar)(path, {"fine.txt": b"", name: b"evil"})
    with pytest.raises(InvalidArgumentError, match="leads out of the folder"):
        extract(path, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    with pytest.raises(InvalidArgumentError, match="leads out of the folder"):
        list(iter_archive(path))


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("target", ["../../etc/passwd", "/etc/passwd"])
def test_links_that_lead_out_are_refused(tmp_path, target, hard):
    make_tar(tmp_path / "x.tar", links=[("folder/link", target, hard)])
    with pytest.raises(InvalidArgumentError) as raised:
        extract(tmp_path / "x.tar", tmp_path / "out")
    assert "leads out of its folder" in str(raised.value)
    assert [one.name for one in tmp_path.iterdir()] == ["x.tar"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    (make_zip if kind == "zip" else make_tar)(path, {"zeros": bytes(3_000_000)})
    with pytest.raises(DataLossError) as raised:
        extract(path, tmp_path / "out", limits=Limits(ratio=10, free=1_000_000))
    assert_golden("catalog_archive_bomb", str(raised.value).replace(path.name, "x"))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_too_many_files_are_refused(tmp_path):
    make_zip(tmp_path / "x.zip")
    with pytest.raises(DataLossError, match="claims more than 2 files"):
        list(iter_archive(tmp_path / "x.zip", Limits(members=2)))


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_damaged_archive_is_told(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    (make_zip if kind == "zip" else make_tar)(path, {"noise": bytes(range(256)) * 1000})
    content = bytearray(path.read_bytes())
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataLossError, match="the archive is damaged"):
        extract(path, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("kind", ["deflate.zip", "bzip2.zip", "lzma.zip", "tar.gz", "tar.bz2", "tar.xz"])
def test_a_byte_that_has_changed_is_told_whoever_reads(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    noise = hashlib.sha512(b"seed").digest() * 100 + hashlib.shake_256(b"seed").digest(20_000)  # does not get smaller
    if kind.endswith(".zip"):
        how = {"deflate": zipfile.ZIP_DEFLATED, "bzip2": zipfile.ZIP_BZIP2, "lzma": zipfile.ZIP_LZMA}
        with zipfile.ZipFile(path, "w", how[kind.removesuffix(".zip")]) as archive:
            archive.writestr("noise", noise)
    else:
        make_tar(path, {"noise": noise})
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataLossError, match="the archive is damaged"):
        extract(path, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    with pytest.raises(DataLossError, match="the archive is damaged"):
        [file.read() for _, file in iter_archive(path)]


def test_what_cannot_be_unpacked_is_told(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("faces.txt", b"first")
    plain = path.read_bytes()
    central = plain.index(b"PK\x01\x02")
    for which, (local, there), value in (("password", (6, 8), 1), ("way", (8, 10), 99)):
        content = bytearray(plain)
        content[local] = content[central + there] = value
        path.write_bytes(content)
        with pytest.raises(InvalidArgumentError) as raised:
            extract(path, tmp_path / "out")
        assert_golden(f"catalog_archive_{which}", str(raised.value).replace(str(path), "x.zip"))
    make_zip(path, {"a": b"a file", "a/b": b"below it"})
    with pytest.raises(DataLossError, match="holds 'a/b', and a file and a folder of one name"):
        extract(path, tmp_path / "out")
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_what_is_no_archive_is_told(tmp_path):
    (tmp_path / "x.txt").write_text("text")
    with pytest.raises(InvalidArgumentError, match="is not an archive"):
        list(iter_archive(tmp_path / "x.txt"))
