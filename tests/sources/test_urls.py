"""The same elements from a local file, from memory://, and from a web server with ranges of bytes."""

import gzip
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from tests.sources.passes import assert_equal, everything
from tests.sources.test_webdataset import archive, samples

import penstock as ps
from penstock import errors

# -- files of each format, with their readers

NUMBERS = list(range(50))
TABLE = pa.table({"id": NUMBERS, "text": [f"t{i}" for i in NUMBERS], "list": [[i] * (i % 3) for i in NUMBERS]})


def _arrow(path, new):
    with new(path, TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=20)


def _saved(path, save, *args, **kwargs):
    with path.open("wb") as file:
        save(file, *args, **kwargs)


FORMATS = {
    "parquet": (lambda path: pq.write_table(TABLE, path, row_group_size=20), ps.ParquetDataset),
    "arrow": (lambda path: _arrow(path, pa.ipc.new_file), ps.ArrowDataset),
    "arrow columns": (lambda path: _arrow(path, pa.ipc.new_file), lambda name: ps.ArrowDataset(name, ["text"])),
    "stream": (lambda path: _arrow(path, pa.ipc.new_stream), ps.ArrowDataset),
    "npy": (lambda path: _saved(path, np.save, np.arange(60).reshape(20, 3)), ps.NumpyDataset),
    "npz": (lambda path: _saved(path, np.savez, x=np.arange(20), y=np.ones((20, 2))), ps.NumpyDataset),
    "bin": (
        lambda path: np.arange(600, dtype=np.uint16).tofile(path),
        lambda name: ps.TokenDataset(name, np.uint16, 20, shift=True),
    ),
    "tar": (lambda path: path.write_bytes(archive(samples(range(30)))), ps.WebDataset),
    "tar.gz": (lambda path: path.write_bytes(gzip.compress(archive(samples(range(30))))), ps.WebDataset),
}


class _Ranges(BaseHTTPRequestHandler):
    """Serves the files of a dict, whole or by ranges."""

    def do_GET(self):
        content = self.server.files.get(self.path)
        if content is None:
            self.send_error(404)
            return
        first, last = 0, len(content) - 1
        if wanted := self.headers.get("Range"):
            first, last = map(int, wanted.removeprefix("bytes=").split("-"))
            self.server.ranges += 1
        part = content[first : last + 1]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *args):
        """Print nothing."""


class _LoopbackFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return _fetch(self.path, start, end - 1)[0]


class _Loopback(AbstractFileSystem):
    """Files of a web server on this machine; fsspec's own server needs a package that is not required here."""

    protocol = "loopback"
    cachable = False

    @classmethod
    def _strip_protocol(cls, path):
        return str(path).removeprefix("loopback://")

    def info(self, path, **kwargs):
        return {"name": path, "type": "file", "size": _fetch(self._strip_protocol(path), 0, 0)[1]}

    def _open(self, path, mode="rb", **kwargs):
        return _LoopbackFile(self, path, mode, block_size=1024, cache_type="readahead")


def _fetch(path, first, last):
    """(bytes, size of the file)"""
    request = urllib.request.Request(f"http://{path}", headers={"Range": f"bytes={first}-{last}"})
    assert urlsplit(request.full_url).hostname == "127.0.0.1"
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.read(), int(answer.headers["Content-Range"].split("/")[1])
    except urllib.error.HTTPError as error:
        with error:
            raise FileNotFoundError(path) from error


@pytest.fixture
def server():
    fsspec.register_implementation("loopback", _Loopback, clobber=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Ranges) as found:
        found.files, found.ranges = {}, 0
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def local(tmp_path):
    def make(name):
        FORMATS[name][0](tmp_path / "file")
        return tmp_path / "file"

    return make


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_in_memory_gives_what_the_local_one_gives(name, local):
    path = local(name)
    system = fsspec.filesystem("memory")
    system.pipe("/url-test/file", path.read_bytes())
    try:
        found = everything(FORMATS[name][1]("memory://url-test/file"))
    finally:
        system.rm("/url-test", recursive=True)
    assert_equal(found, everything(FORMATS[name][1](path)))
    assert found
    assert not any(isinstance(item, Exception) for item in found)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_a_web_server_gives_what_the_local_one_gives(name, local, server):
    path = local(name)
    server.files["/file"] = path.read_bytes()
    url = f"loopback://127.0.0.1:{server.server_port}/file"
    assert_equal(list(FORMATS[name][1](url)), list(FORMATS[name][1](path)))
    assert server.ranges > 1
    missing = everything(FORMATS[name][1](url + "-missing"))
    assert [type(item) for item in missing] == [errors.NotFoundError]


def test_a_part_of_a_remote_file_is_read_without_the_rest(server):
    size = 200_000
    stored = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": np.arange(size), "noise": np.random.default_rng(0).random(size)}), stored)
    server.files["/file"] = stored.getvalue().to_pybytes()
    url = f"loopback://127.0.0.1:{server.server_port}/file"
    assert len(ps.ParquetDataset(url)) == size
    assert server.ranges < 30  # of a kilobyte, of a file of megabytes
