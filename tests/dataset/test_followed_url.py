"""A snapshot that grows, followed where it is copied to: by a URL."""

import fsspec
import pytest
from tests.dataset.entries import COUNT, WANTED, begin, entry_of, squares, values
from tests.positions import assert_continues_everywhere

import penstock as ps

URL = "memory:///followed-url-test"


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("penstock.store.entry_writer._BYTES", 1)


@pytest.fixture
def copied(tmp_path):
    """Brings what the entry holds now to the URL, chunks first, as whoever copies has to."""
    system = fsspec.filesystem("memory")

    def copy():
        entry = entry_of(tmp_path)
        files = [path for path in entry.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: (path.suffix != ".arrow", path.name)):
            system.pipe_file(f"{URL}/{path.relative_to(entry)}", path.read_bytes())

    yield copy
    if system.exists(URL):
        system.rm(URL, recursive=True)


def test_a_load_follows_a_url(tmp_path, copied, caplog):
    begin(squares().snapshot(tmp_path), 6)
    copied()
    so_far = values(ps.Dataset.load(URL))
    assert so_far == WANTED[: len(so_far)]
    assert 6 <= len(so_far) < COUNT
    assert f"first {len(so_far)} elements" in caplog.text
    following = iter(ps.Dataset.load(URL, wait=True))
    assert [int(next(following)) for _ in range(len(so_far))] == so_far
    begin(squares().snapshot(tmp_path), len(so_far) + 4)
    copied()
    assert int(next(following)) == WANTED[len(so_far)]
    values(squares().snapshot(tmp_path))
    copied()
    assert values(following) == WANTED[len(so_far) + 1 :]
    assert len(ps.Dataset.load(URL, wait=True)) == COUNT


def test_it_is_resumed(tmp_path, copied):
    begin(squares().snapshot(tmp_path), 6)
    copied()
    ds = ps.Dataset.load(URL, wait=True)
    values(squares().snapshot(tmp_path))
    copied()
    assert_continues_everywhere(ds)


def test_a_reader_function_waits_for_all_of_it(tmp_path, copied, monkeypatch):
    begin(squares().snapshot(tmp_path, shard_func=lambda x: x % 2), 6)
    copied()

    def sleep(seconds):
        values(squares().snapshot(tmp_path, shard_func=lambda x: x % 2))
        copied()

    monkeypatch.setattr("penstock.dataset.saved.time.sleep", sleep)
    shards = ps.Dataset.load(URL, reader_func=lambda shards: shards.flat_map(lambda shard: shard), wait=True)
    assert values(shards) == [*WANTED[::2], *WANTED[1::2]]
