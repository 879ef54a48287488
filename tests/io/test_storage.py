"""Where bytes live: local paths and URLs behave alike."""

import subprocess
import sys

import numpy as np
import pytest

from penstock.errors import InvalidArgumentError, InvalidTypeError, MissingDependencyError, NotFoundError
from penstock.io import storage


@pytest.fixture
def memory():
    """A prefix of URLs in fsspec's in-memory file system, empty before and after."""
    import fsspec

    system = fsspec.filesystem("memory")
    yield "memory:///storage-test"
    if system.exists("/storage-test"):
        system.rm("/storage-test", recursive=True)


@pytest.fixture(params=["local", "url"])
def folder(request, tmp_path):
    return str(tmp_path) if request.param == "local" else request.getfixturevalue("memory")


def write(path, content):
    with storage.open_write(path) as file:
        file.write(content)


def test_round_trip(folder):
    write(f"{folder}/a.bin", b"abc")
    assert storage.exists(f"{folder}/a.bin")
    assert storage.size(f"{folder}/a.bin") == 3
    with storage.open_read(f"{folder}/a.bin") as file:
        assert file.read() == b"abc"


def test_glob_is_sorted_and_finds_files_only(folder, tmp_path):
    for name in ["b.txt", "a.txt", "c.bin", "deep.txt/d.txt"]:
        if folder == str(tmp_path):
            (tmp_path / name).parent.mkdir(exist_ok=True)
        write(f"{folder}/{name}", b"")
    assert storage.glob(f"{folder}/*.txt") == [f"{folder}/a.txt", f"{folder}/b.txt"]
    assert storage.glob(f"{folder}/?.[tb]*") == [f"{folder}/{name}" for name in ["a.txt", "b.txt", "c.bin"]]
    assert storage.glob(f"{folder}/**/d.txt") == [f"{folder}/deep.txt/d.txt"]
    assert storage.glob(f"{folder}/c.bin") == [f"{folder}/c.bin"]


def test_a_path_that_exists_matches_itself(tmp_path):
    odd = tmp_path / "shard[1].txt"
    odd.write_bytes(b"")
    assert storage.glob(odd) == [str(odd)]


def test_a_relative_pattern_stays_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_bytes(b"")
    assert storage.glob("*.txt") == ["a.txt"]


def test_nothing_matches(folder):
    with pytest.raises(NotFoundError, match=r"No files matched pattern '.*nothing-\*'"):
        storage.glob(f"{folder}/nothing-*")


def test_a_relative_miss_names_the_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError) as caught:
        storage.glob("nothing-*")
    assert str(tmp_path) in caught.value.hint
    with pytest.raises(FileNotFoundError) as missing:
        storage.open_read("nothing")
    assert str(tmp_path) in missing.value.hint
    assert missing.value.context.file == "nothing"


@pytest.mark.parametrize("function", [storage.size, storage.open_read, storage.map_file])
def test_missing_file(function, tmp_path):
    with pytest.raises(NotFoundError, match="There is no file"):
        function(tmp_path / "missing")


@pytest.mark.parametrize("function", [storage.size, storage.open_read])
def test_missing_url(function, memory):
    with pytest.raises(NotFoundError, match="There is no file"):
        function(f"{memory}/missing")


def test_missing_directory(tmp_path):
    with pytest.raises(NotFoundError, match="The directory of"):
        storage.open_write(tmp_path / "missing" / "a.bin")


@pytest.mark.parametrize("function", [storage.open_read, storage.map_file])
def test_a_directory_is_no_file(function, tmp_path):
    with pytest.raises(InvalidArgumentError, match="is a directory"):
        function(tmp_path)


def test_map_file(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(256)))
    mapped = storage.map_file(path)
    assert type(mapped) is np.ndarray
    assert mapped.dtype == np.uint8
    assert not mapped.flags.writeable
    assert mapped.tobytes() == bytes(range(256))
    path.unlink()
    assert mapped[255] == 255


def test_map_an_empty_file(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert storage.map_file(path).shape == (0,)


def test_what_is_no_path():
    with pytest.raises(InvalidTypeError, match="got int"):
        storage.open_read(3)


def test_unknown_protocol():
    with pytest.raises(InvalidArgumentError, match="does not know"):
        storage.open_read("nosuchprotocol://x/y")


def test_a_protocol_without_its_package(monkeypatch):
    import fsspec

    def fails(url):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", fails)
    with pytest.raises(MissingDependencyError, match=r"penstock\[s3\]"):
        storage.open_read("s3://bucket/key")


def test_local_paths_need_no_fsspec(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"abc")
    program = (
        "import sys\nfrom penstock.io import storage\n"
        f"name = storage.glob({str(tmp_path / '*')!r})[0]\n"
        "storage.map_file(name), storage.open_read(name).close(), storage.size(name)\n"
        "sys.exit('fsspec' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
