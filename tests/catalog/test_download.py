"""Downloads: what arrives is what was published, whatever the server does; and nothing is fetched twice."""

from __future__ import annotations

import gzip
import hashlib
import io
from dataclasses import replace

import pytest
from tests.catalog.server import serving
from tests.golden.golden import assert_golden

from penstock.catalog import Checksum, DownloadManager
from penstock.catalog.download.fetch import Patience, _retry_after
from penstock.catalog.progress import Reporter
from penstock.errors import DataLossError, FailedPreconditionError, PenstockError

CONTENT = bytes(range(256)) * 5000


@pytest.fixture
def site(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving() as served:
        served.files["a.bin"] = CONTENT
        yield served


class Waits(list):
    """Takes the place of sleeping; `meanwhile` is done then."""

    meanwhile = None

    def __call__(self, seconds):
        self.append(seconds)
        if self.meanwhile is not None:
            self.meanwhile()


@pytest.fixture
def waits():
    return Waits()


@pytest.fixture
def manager(tmp_path, site, waits):
    known = {site.url("a.bin"): Checksum(size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())}
    patience = Patience(tries=4, sleep=waits, draw=lambda: 1.0)
    return DownloadManager(tmp_path, name="it", checksums=known, patience=patience, progress=Reporter())


def test_a_file_is_fetched_once_and_kept_by_its_checksum(manager, site, tmp_path):
    path = manager.download(site.url("a.bin"))
    assert path.read_bytes() == CONTENT
    assert path.parent.name == hashlib.sha256(CONTENT).hexdigest()[:16]
    assert manager.download(site.url("a.bin")) == path
    assert replace(manager, name="another").download([site.url("a.bin")]) == [path]
    assert len(site.requests) == 1
    assert [one.name for one in path.parent.iterdir()] == ["a.bin"]


def test_a_nest_of_addresses_is_fetched_in_parallel(manager, site):
    site.files |= {f"{n}.bin": bytes([n]) * 1000 for n in range(10)}
    urls = {"some": [site.url(f"{n}.bin") for n in range(10)], "one": site.url("3.bin")}
    found = manager.download(urls)
    assert [path.read_bytes()[:1] for path in found["some"]] == [bytes([n]) for n in range(10)]
    assert found["one"] == found["some"][3]
    assert manager.downloaded_bytes == 10_000
    assert len(site.requests) == 10


@pytest.mark.parametrize("ranges", [True, False])
def test_what_a_reset_leaves_is_gone_on_with(manager, site, waits, ranges):
    site.ranges = ranges
    site.faults["a.bin"] = [("reset", 1000), ("short", 10), ("status", 503, {}), ("reset", 0)]
    assert manager.download(site.url("a.bin")).read_bytes() == CONTENT
    asked = [range_ for _, range_, _ in site.requests]
    assert asked[0] is None
    assert asked[1] == "bytes=1000-"
    assert len(asked) == 5
    assert waits == [0.5, 0.5, 1.0, 2.0]


def test_another_process_goes_on_with_it_as_well(manager, site):
    site.faults["a.bin"] = [("reset", 2000), *[("status", 500, {})] * 4]
    with pytest.raises(FailedPreconditionError) as raised:
        manager.download(site.url("a.bin"))
    assert_golden("catalog_download_gives_up", text(raised.value, site))
    assert manager.download(site.url("a.bin")).read_bytes() == CONTENT
    assert site.requests[-1][1] == "bytes=2000-"


def test_what_has_changed_meanwhile_is_fetched_anew(manager, site):
    url = site.url("b.bin")
    site.files["b.bin"] = b"old" * 1000
    site.faults["b.bin"] = [("reset", 500), ("other", b"newer" * 900)]
    assert manager.download(url).read_bytes() == b"newer" * 900


@pytest.mark.parametrize(
    "headers",
    [
        lambda content: {"ETag": f'W/"{len(content)}"', "Last-Modified": f"Mon, 01 Jan {len(content)} 00:00:00 GMT"},
        lambda content: {"ETag": f'W/"{len(content)}"'},
        lambda content: {"Last-Modified": f"Mon, 01 Jan {len(content)} 00:00:00 GMT"},
        lambda content: {},
    ],
    ids=["weak tag and date", "weak tag", "date", "length alone"],
)
def test_a_file_that_changes_between_two_requests_is_never_mixed(manager, site, headers):
    """Also where the server takes any `If-Range` for the version that it has."""
    site.headers = headers
    site.files["b.bin"] = b"old" * 1000
    site.faults["b.bin"] = [("reset", 500), ("other", b"newer" * 900)]
    assert manager.download(site.url("b.bin")).read_bytes() == b"newer" * 900


def test_a_packed_answer_that_was_not_asked_for_is_refused(manager, site):
    site.headers = lambda content: {"Content-Encoding": "gzip"}
    site.files |= {"rows.csv": gzip.compress(b"a,b"), "rows.csv.gz": gzip.compress(b"a,b")}
    with pytest.raises(FailedPreconditionError, match="packed"):
        manager.download(site.url("rows.csv"))
    assert manager.download(site.url("rows.csv.gz")).read_bytes() == site.files["rows.csv.gz"]


def test_it_is_waited_as_long_as_the_server_asks_and_said(manager, site, waits):
    manager.progress = Reporter(stream=io.StringIO())
    site.faults["a.bin"] = [
        ("status", 429, {"Retry-After": "7"}),
        ("status", 503, {"Retry-After": "100000"}),
        ("reset", 1),
    ]
    manager.download(site.url("a.bin"))
    assert waits == [7.0, 300.0, 0.5]
    assert manager.progress._stream.getvalue() == (
        f"{site.url('a.bin')}: the server answered 429 Too Many Requests; trying again in 7 s\n"
        f"{site.url('a.bin')}: the server answered 503 Service Unavailable; trying again in 300 s\n"
    )


def test_a_server_that_says_nothing_more_is_asked_again(manager, site, waits, monkeypatch):
    timeout = "penstock.catalog.download.fetch._TIMEOUT"
    monkeypatch.setattr(timeout, (30.0, 1.0))
    waits.meanwhile = lambda: monkeypatch.setattr(timeout, (30.0, 60.0))  # however busy the machine is
    site.faults["a.bin"] = [("stall", 150_000)]
    assert manager.download(site.url("a.bin")).read_bytes() == CONTENT
    assert [range_ for _, range_, _ in site.requests] == [None, f"bytes={2 << 16}-"]


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [("3", 3, 3), ("-1", 0, 0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0), ("Wed, 21 Oct 2135 07:28:00 GMT", 300, 300)],
)
def test_retry_after_is_a_number_or_a_date(header, least, most):
    assert least <= _retry_after(header) <= most


@pytest.mark.parametrize("header", [None, "", "soon"])
def test_or_nothing(header):
    assert _retry_after(header) is None


def test_redirects_are_followed(manager, site):
    site.files["old.bin"] = b""
    site.faults["old.bin"] = [("redirect", "a.bin")]
    assert manager.download(site.url("old.bin")).read_bytes() == CONTENT


def test_a_login_is_taken_from_netrc(manager, site, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    manager.download(site.url("a.bin"))
    assert site.requests[0][2].startswith("Basic ")


def test_a_proxy_is_asked(manager, site, monkeypatch):
    monkeypatch.setenv("http_proxy", site.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    site.files["http://data.example/x.bin"] = b"through the proxy"
    assert manager.download("http://data.example/x.bin").read_bytes() == b"through the proxy"


def test_local_files_are_copied(manager, tmp_path):
    (tmp_path / "here.bin").write_bytes(b"local")
    assert manager.download(str(tmp_path / "here.bin")).read_bytes() == b"local"


def text(error, site):
    return str(error).replace(site.address, "http://server")


def _wrong_content(site, manager, monkeypatch):
    site.files["a.bin"] = CONTENT[::-1]


def _wrong_size(site, manager, monkeypatch):
    site.files["a.bin"] = CONTENT[:-1]


def _gone(site, manager, monkeypatch):
    del site.files["a.bin"]


def _refused(site, manager, monkeypatch):
    site.faults["a.bin"] = [("status", 403, {})]


def _no_room(site, manager, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda folder: type("Usage", (), {"free": 1000})())


@pytest.mark.parametrize("prepare", [_wrong_content, _wrong_size, _gone, _refused, _no_room])
def test_what_cannot_be_had_is_told(site, manager, monkeypatch, prepare):
    prepare(site, manager, monkeypatch)
    with pytest.raises(PenstockError) as raised:
        manager.download(site.url("a.bin"))
    found = text(raised.value, site).replace(str(manager.folder), "/data/downloads")
    assert_golden(f"catalog_download{prepare.__name__}", found)


def test_what_is_wrong_is_kept_aside(site, manager):
    site.files["a.bin"] = CONTENT[::-1]
    with pytest.raises(DataLossError):
        manager.download(site.url("a.bin"))
    (kept,) = manager.place(site.url("a.bin")).parent.iterdir()
    assert kept.name == "a.bin.wrong"
    assert kept.read_bytes() == CONTENT[::-1]
    site.files["a.bin"] = CONTENT
    assert manager.download(site.url("a.bin")).read_bytes() == CONTENT


def test_nobody_there(tmp_path, waits):
    patience = Patience(tries=2, sleep=waits)
    manager = DownloadManager(tmp_path, name="it", patience=patience, progress=Reporter())
    with serving() as site:
        address = site.url("a.bin")
    with pytest.raises(
        FailedPreconditionError, match=r"the connection failed \(ConnectionError\) \(2 times in a row\)"
    ):
        manager.download(address)


def test_manual_downloads_say_what_to_put_where(tmp_path):
    manager = DownloadManager(tmp_path, name="it", instructions="Log in at https://example.org and get the archive.")
    with pytest.raises(FailedPreconditionError) as raised:
        manager.manual("archive.zip")
    assert_golden("catalog_download_manual", str(raised.value))
    (tmp_path / "manual").mkdir()
    (tmp_path / "manual" / "archive.zip").write_bytes(b"")
    assert manager.manual("archive.zip") == tmp_path / "manual"
