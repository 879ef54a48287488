"""Objects behind URLs: tried again, checked, read ahead, kept; and no secret in what is said of them."""

import errno
import io
import multiprocessing
import os
import pickle
import random
import threading
import traceback
from itertools import pairwise
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest
from fsspec.spec import AbstractFileSystem
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock import errors
from penstock.hints import redacted
from penstock.io import storage
from penstock.io.remote import retry
from penstock.io.remote.file import FilesAhead, RemoteFile
from penstock.io.remote.object import BLOCK, GAP, BlockCache, RemoteObject, coalesced
from penstock.io.remote.system import LEAST, ROOM, InFlight, full_name

FILES = {}  # (content, version) by path
FAULTS = []  # exceptions, raised one by one in the place of replies
ASKED = []  # (path, start, stop)


class _Refused(Exception):
    """As HTTP libraries say what the server answered."""

    def __init__(self, status):
        super().__init__(f"status {status}")
        self.status = status


class _Flaky(AbstractFileSystem):
    """Files of a dict, behind a server that fails as it is told."""

    protocol = "flaky"
    cachable = False

    @classmethod
    def _strip_protocol(cls, path):
        return str(path).removeprefix("flaky://")

    def _found(self, path):
        if self._strip_protocol(path) not in FILES:
            raise FileNotFoundError(path)
        return FILES[self._strip_protocol(path)]

    def info(self, path, **kwargs):
        content, version = self._found(path)
        return {"name": path, "type": "file", "size": len(content), "ETag": version}

    def ls(self, path, detail=True, **kwargs):
        return [self.info(name) for name in FILES if name.startswith(path)]

    def cat_file(self, path, start=None, end=None, **kwargs):
        ASKED.append((path, start, end))
        if FAULTS:
            fault = FAULTS.pop(0)
            if isinstance(fault, BaseException):
                raise fault
            if fault is not None:
                return self._found(path)[0][start : start + fault]
        return self._found(path)[0][start:end]

    def _open(self, path, mode="rb", **kwargs):
        return io.BytesIO(self._found(path)[0])


@pytest.fixture(autouse=True)
def server(monkeypatch):
    fsspec.register_implementation("flaky", _Flaky, clobber=True)
    monkeypatch.setattr(retry, "_FIRST", 1e-4)  # the pauses of a test
    for found in (FILES, FAULTS, ASKED):
        found.clear()
    yield FILES
    system = fsspec.filesystem("memory")
    if system.exists("/remote-test"):
        system.rm("/remote-test", recursive=True)
    assert ROOM.taken == 0


def _records(count=200, size=5000):
    noise = np.random.default_rng(0)
    return [noise.bytes(size) for _ in range(count)]


def _write(name, records):
    with ps.io.TFRecordWriter("memory://remote-test/x") as writer:
        for record in records:
            writer.write(record)
    FILES[name] = fsspec.filesystem("memory").cat_file("/remote-test/x"), "v1"
    return f"flaky://{name}"


# -- tried again


@pytest.mark.parametrize(
    "fault",
    [
        _Refused(429),
        _Refused(503),
        ConnectionResetError(),
        TimeoutError(),
        OSError(errno.EIO, "?"),
        17,
        fsspec.exceptions.FSTimeoutError(),
    ],
    ids=repr,
)
def test_what_passes_is_tried_again(fault):
    records = _records(20)
    url = _write("a", records)
    FAULTS.extend([fault, fault])
    assert list(ps.TFRecordDataset(url)) == records
    assert not FAULTS


def test_one_request_in_twenty_fails_and_nothing_is_missing():
    records = _records()
    url = _write("a", records)
    drawn = random.Random(0)
    FAULTS.extend(drawn.choice([_Refused(503), ConnectionResetError(), 3, *[None] * 57]) for _ in range(2000))
    reader = storage.open_read(url)
    parts = []
    while part := reader.read(4000):
        parts.append(part)
    reader.close()
    assert b"".join(parts) == FILES["a"][0]
    assert list(ps.TFRecordDataset(url)) == records


def test_in_the_end_it_says_what_where_how_often_and_what_to_do(monkeypatch):
    monkeypatch.setenv("PENSTOCK_REMOTE_TRIES", "3")
    FILES["a"] = bytes(100), "v1"
    FAULTS.extend([_Refused(503)] * 3)
    found = RemoteObject("flaky://a")
    with pytest.raises(errors.UnavailableError, match=r"Reading 'flaky://a' was tried 3 times.*status 503") as raised:
        found.read(40, 60)
    assert raised.value.context.offset == 40
    assert raised.value.context.file == "flaky://a"
    assert "PENSTOCK_REMOTE_TRIES" in raised.value.hint
    assert len(ASKED) == 3
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), ConnectionError)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (_Refused(403), errors.PermissionDeniedError),
        (PermissionError("no"), errors.PermissionDeniedError),
        (_Refused(404), errors.NotFoundError),
        (_Refused(400), errors.UnavailableError),
        (KeyError("x"), errors.UnavailableError),
    ],
)
def test_what_does_not_pass_is_asked_once(fault, kind):
    FILES["a"] = bytes(100), "v1"
    FAULTS.append(fault)
    with pytest.raises(kind):
        RemoteObject("flaky://a").read(0, 10)
    assert len(ASKED) == 1


@pytest.mark.parametrize(("name", "value"), [("TRIES", "none"), ("TIMEOUT", "-1"), ("BUFFER", "1X"), ("TRIES", "0")])
def test_a_limit_that_is_none_is_refused(monkeypatch, name, value):
    monkeypatch.setenv(f"PENSTOCK_REMOTE_{name}", value)
    FILES["a"] = b"x", "v1"
    with pytest.raises(errors.InvalidArgumentError, match=f"PENSTOCK_REMOTE_{name} is a"):
        RemoteObject("flaky://a")


# -- changed, cut short


def test_an_object_that_is_cut_short_is_found():
    FILES["a"] = bytes(100), "v1"
    found = RemoteObject("flaky://a")
    FILES["a"] = bytes(50), "v2"
    with pytest.raises(errors.DataLossError, match="not the one that was opened") as raised:
        found.read(40, 60)
    assert raised.value.context.offset == 40


def test_an_object_that_is_replaced_is_found_at_the_end():
    lines = [b"%04d" % i for i in range(1000)]
    FILES["a"] = b"\n".join(lines), "v1"
    FILES["b"] = b"next", "v1"
    reading = iter(ps.TextLineDataset(["flaky://a", "flaky://b"], buffer_size=100))
    first = [next(reading)]
    FILES["a"] = FILES["a"][0].upper(), "v2"
    with pytest.raises(errors.DataLossError, match="not the one"):
        first += [next(reading) for _ in range(1001)]
    assert first == lines[: len(first)]
    assert list(reading) == [b"next"]


def test_a_version_that_stays_is_asked_for_once_more_and_no_oftener():
    FILES["a"] = bytes(3000), "v1"
    with storage.open_read("flaky://a") as file:
        assert len(file.read()) == 3000
        assert file.read() == b""


# -- by ranges


@given(st.lists(st.tuples(st.integers(0, 3 * GAP), st.integers(0, GAP)), max_size=6))
def test_ranges_are_read_together(places):
    content = np.random.default_rng(1).bytes(4 * GAP)
    FILES["a"] = content, "v1"
    ASKED.clear()
    ranges = [(start, start + size) for start, size in places]
    assert RemoteObject("flaky://a").read_many(ranges) == [content[a:b] for a, b in ranges]
    runs = coalesced(ranges)
    assert sorted((a, b) for _, a, b in ASKED) == runs
    assert all(left[1] + GAP < right[0] for left, right in pairwise(runs))


@given(st.lists(st.tuples(st.integers(0, 2_500_000), st.integers(-1, 400_000)), max_size=8), st.booleans())
def test_a_file_reads_as_a_local_one(steps, wanted):
    content = np.random.default_rng(2).bytes(2_400_000)
    FILES["a"] = content, "v1"
    plain = io.BytesIO(content)
    with RemoteFile("flaky://a") as file:
        if wanted:
            file.want([(start, start + max(size, 0)) for start, size in steps if start % 2])
        for start, size in steps:
            if start % 3:
                assert file.seek(start) == plain.seek(start)
            assert file.read(size) == plain.read(size)
            assert file.tell() == plain.tell() or plain.tell() > len(content)


@pytest.mark.parametrize("window", [LEAST, 1 << 26])  # one that had grown before the limit was set, too
@pytest.mark.parametrize("others", [0, 500 << 10])  # bytes that other files have taken
def test_what_is_read_in_order_is_asked_for_ahead_and_within_the_limit(monkeypatch, window, others):
    monkeypatch.setenv("PENSTOCK_REMOTE_BUFFER", "600K")
    FILES["a"] = bytes(3 << 20), "v1"
    with RemoteFile("flaky://a") as file:
        monkeypatch.setattr(file._rate, "window", window)
        assert ROOM.take(others)
        read = 0
        while read < 3 << 20:
            read += len(file.read(100_000))
            ahead = sum(piece.stop - piece.start for piece in file._ahead)
            assert ahead == ROOM.taken - others <= (600 << 10) - others
            assert ahead or others or read > 2 << 20
        ROOM.give(others)
    assert ROOM.taken == 0


def test_small_files_are_opened_before_their_turn():
    names = [f"f{i:02}" for i in range(40)]
    for name in names:
        FILES[name] = name.encode(), "v1"
    urls = [f"flaky://{name}" for name in names]
    reading = iter(ps.TextLineDataset(urls))
    assert next(reading) == b"f00"
    reading.close()
    ahead = FilesAhead(urls)
    ahead.reading(0)
    assert len(ahead._asked) == LEAST // (1 << 18)
    ahead.close()
    assert list(ps.TextLineDataset(urls)) == [name.encode() for name in names]
    missing = iter(ps.TextLineDataset([urls[0], "flaky://none", urls[1]]))
    assert next(missing) == b"f00"
    with pytest.raises(errors.NotFoundError):
        next(missing)
    assert list(missing) == [b"f01"]


def test_the_window_grows_while_that_helps_and_comes_down():
    now = [0.0]
    rate = InFlight(lambda: now[0])
    rate.readers = 1
    delay, bandwidth = 0.05, 50e6

    def rounds(count, waits=True):
        for _ in range(count):
            seconds = max(delay, rate.window / bandwidth) * rate.window / rate.window
            now[0] += seconds
            rate.saw(rate.window, seconds if waits else 0.0)

    rounds(12)
    assert 2.5e6 <= rate.window <= 2e7  # bandwidth times delay, and no more than some times that
    rounds(200, waits=False)
    assert rate.window == LEAST


@pytest.mark.parametrize(
    ("path", "url", "inner", "wanted"),
    [
        ("webhdfs:///d/x", "webhdfs://host:1/d/*", "/d/*", "webhdfs://host:1/d/x"),  # which forgets its host
        ("webhdfs:///host/x", "webhdfs://host/host/*", "/host/*", "webhdfs://host/host/x"),
        ("hdfs://host:1/d/x", "hdfs://host:1/d/*", "/d/*", "hdfs://host:1/d/x"),
        ("hdfs://host:1/d/x", "hdfs://ann@host:1/d/*", "/d/*", "hdfs://host:1/d/x"),
        ("s3://bucket/x", "s3://bucket/*", "bucket/*", "s3://bucket/x"),
        ("memory:///a/x", "memory:///a/*", "/a/*", "memory:///a/x"),
        ("memory:///a/x", "memory://a/*", "/a/*", "memory:///a/x"),
        ("http://host:1/x", "http://host:1/*", "http://host:1/*", "http://host:1/x"),
        ("http://host:1/x", "http://ann:pw@host:1/*", "http://ann:pw@host:1/*", "http://host:1/x"),
        ("sftp:///d/x", "sftp://ann:pw@host/d/*", "/d/*", "sftp://ann:pw@host/d/x"),
        ("s3://bucket/x", "simplecache::s3://bucket/*", "bucket/*", "s3://bucket/x"),
        ("abfs://box/d/x", "abfs://box@ann.dfs.core.windows.net/d/*", "box/d/*", "abfs://box/d/x"),  # account: options
    ],
)
def test_a_name_that_is_listed_has_its_host(path, url, inner, wanted):
    assert full_name(SimpleNamespace(unstrip_protocol=lambda path: path), path, url, inner) == wanted


# -- no ranges


def test_a_server_without_ranges_is_asked_for_the_whole_once(monkeypatch, caplog):
    monkeypatch.setattr(_Flaky, "cat_file", lambda self, path, start=None, end=None: FILES[path][0])
    records = _records(60)
    url = _write("a", records)
    reading = iter(ps.TFRecordDataset(url))
    assert [next(reading) for _ in range(30)] == records[:30]
    state = reading.state_dict()
    again = iter(ps.TFRecordDataset(url))
    again.load_state_dict(state)
    assert list(again) == list(reading) == records[30:]
    assert "no ranges" in caplog.text


# -- resumes, forks


def test_a_pass_goes_on_in_the_middle_of_a_file():
    records = _records(100)
    url = _write("a", records)
    for at in (0, 1, 37, 99, 100):
        reading = iter(ps.TFRecordDataset([url, url]))
        assert [next(reading) for _ in range(at)] == records[:at]
        state = reading.state_dict()
        reading.close()
        again = iter(ps.TFRecordDataset([url, url]))
        again.load_state_dict(state)
        assert list(again) == records[at:] + records


def _rest(file, out):
    out.send_bytes(file.read())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_reads_on():
    content = np.random.default_rng(3).bytes(3 << 20)
    FILES["a"] = content, "v1"
    with RemoteFile("flaky://a") as file:
        assert file.read(100_000) == content[:100_000]
        receive, send = multiprocessing.get_context("fork").Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(target=_rest, args=(file, send))
        child.start()
        assert receive.recv_bytes() == content[100_000:]
        child.join(30)
        assert child.exitcode == 0
        assert file.read() == content[100_000:]


# -- the cache of blocks


def test_blocks_are_kept_and_checked(tmp_path):
    content = np.random.default_rng(4).bytes(3 * BLOCK + 5)
    asked = []

    def ask(start, stop):
        asked.append((start, stop))
        return content[start:stop]

    cache = BlockCache(str(tmp_path), 1 << 30)
    assert cache.read("k", len(content), BLOCK + 1, BLOCK + 9, ask) == content[BLOCK + 1 : BLOCK + 9]
    assert cache.read("k", len(content), 5, len(content), ask) == content[5:]
    assert asked == [(BLOCK, 2 * BLOCK), (0, BLOCK), (2 * BLOCK, len(content))]
    assert cache.read("k", len(content), 0, len(content), ask) == content
    assert len(asked) == 3
    path = next(path for path in tmp_path.glob("??/*.1"))
    for damage in (b"", b"short", bytes(BLOCK + 4)):
        path.write_bytes(damage)
        assert cache.read("k", len(content), 0, len(content), ask) == content
    assert len(asked) == 6
    assert cache.read("another", 4, 0, 4, lambda a, b: b"abcd") == b"abcd"


def test_the_cache_has_a_limit_and_outlives_a_kill(tmp_path):
    cache = BlockCache(str(tmp_path), 8 * BLOCK)
    threads = [
        threading.Thread(
            target=lambda k=k: [cache.read(f"{k}{i}", BLOCK, 0, BLOCK, lambda a, b: bytes(b - a)) for i in range(10)]
        )
        for k in range(3)
    ]
    abandoned = tmp_path / "aa"
    abandoned.mkdir()
    (abandoned / "x.0.part").write_bytes(b"killed here")
    os.utime(abandoned / "x.0.part", (1, 1))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache.read("last", BLOCK, 0, BLOCK, lambda a, b: bytes(b - a))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 9 * BLOCK
    assert not (abandoned / "x.0.part").exists()


def test_a_second_pass_asks_nothing_of_the_server(monkeypatch, tmp_path):
    monkeypatch.setenv("PENSTOCK_REMOTE_CACHE", str(tmp_path / "blocks"))
    records = _records(100)
    url = _write("a", records)
    assert list(ps.TFRecordDataset(url)) == records
    assert ASKED
    ASKED.clear()
    assert list(ps.TFRecordDataset(url)) == records
    assert not ASKED
    FILES["a"] = FILES["a"][0], "v2"
    assert list(ps.TFRecordDataset(url)) == records
    assert ASKED


def test_a_cache_that_cannot_be_written_costs_requests_only(monkeypatch, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("PENSTOCK_REMOTE_CACHE", str(tmp_path / "file" / "blocks"))
    records = _records(10)
    assert list(ps.TFRecordDataset(_write("a", records))) == records


# -- written whole, or not at all


@pytest.mark.parametrize("size", [10, 9 << 20])
def test_what_is_not_finished_is_not_there(size):
    system = fsspec.filesystem("memory")

    def fail():
        with ps.io.TFRecordWriter("memory://remote-test/half") as writer:
            writer.write(bytes(size))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not system.exists("/remote-test/half")
    with ps.io.TFRecordWriter("memory://remote-test/whole") as writer:
        writer.write(bytes(size))
        assert not system.exists("/remote-test/whole")
    assert list(ps.TFRecordDataset("memory://remote-test/whole")) == [bytes(size)]


# -- secrets

SECRETS = [
    "https://ann:hunter2@host/a?x=1",
    "https://host/a?X-Amz-Credential=hunter2&X-Amz-Signature=hunter2",
    "https://host/a?sv=1&sig=hunter2",
    "https://host/a?GoogleAccessId=x&Signature=hunter2",
    "https://host/a?access_token=hunter2#x",
    "sftp://ann:hu@nter2@host/a",
]


@pytest.mark.parametrize("url", SECRETS)
def test_a_secret_is_not_said(url):
    assert "nter2" not in redacted(f"What happened to '{url}' is bad")
    assert "host/a" in redacted(url)


@pytest.mark.parametrize("fault", [_Refused(403), _Refused(500), FileNotFoundError("?"), KeyError("x")])
def test_no_error_text_holds_a_secret(monkeypatch, caplog, fault):
    monkeypatch.setenv("PENSTOCK_REMOTE_TRIES", "1")
    url = "flaky://ann:hunter2@host/a?sig=hunter2"
    FILES["ann:hunter2@host/a?sig=hunter2"] = b"abc", "v1"
    fault.args = (f"cannot GET {url}",)
    FAULTS.append(fault)
    with pytest.raises(errors.PenstockError) as raised:
        next(iter(ps.TextLineDataset(url)))
    assert "hunter2" not in "".join(traceback.format_exception(raised.value))
    assert "hunter2" not in caplog.text
    for source in (ps.TextLineDataset, ps.ParquetDataset, lambda name: ps.Dataset.list_files([name])):
        assert "hunter2" not in repr(source(url))


def test_no_saved_data_set_holds_a_secret(tmp_path):
    FILES["ann:hunter2@host/a?sig=hunter2"] = b"abc", "v1"
    saved = ps.TextLineDataset("flaky://ann:hunter2@host/a?sig=hunter2").snapshot(tmp_path / "snapshot")
    assert list(saved) == [b"abc"]
    ps.TextLineDataset("flaky://ann:hunter2@host/a?sig=hunter2").save(tmp_path / "saved")
    for path in tmp_path.rglob("*"):
        assert "hunter2" not in path.name
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
