"""The journal: reading a torn, damaged or unfinished journal; and its entry."""

from dataclasses import replace

import fsspec
import numpy as np
import pytest

import penstock as ps
from penstock.store import entry
from penstock.store import journal as journal_module
from penstock.store.chunk import Chunk
from penstock.store.entry import Point, StoredEntry, stamp
from penstock.store.journal import NAME, Commit, Journal, JournalWriter, text_of
from penstock.store.manifest import Manifest, read_manifest, spec_as_json, write_manifest

NUMBER = spec_as_json(ps.TensorSpec((), np.int64))


def commit(number):
    chunk = Chunk(f"chunks/{number}.arrow", 0, 10, 10, 100, (number,))
    return Commit((chunk,), 10 * number + 10, ["state", number, {"a": 0.5}], "made", {"nest": None})


COMMITS = [commit(number) for number in range(3)]
TEXT = text_of(COMMITS)
ENDS = [0, *(len(text_of(COMMITS[: number + 1])) for number in range(3))]


@pytest.fixture
def journal(tmp_path):
    def write(content):
        (tmp_path / NAME).write_bytes(content)
        return Journal(str(tmp_path))

    return write


def test_none_is_empty(tmp_path):
    found = Journal(str(tmp_path))
    found.refresh()
    assert (found.commits, found.elements, found.end) == ([], 0, 0)


def test_torn_at_every_byte_it_is_as_long_as_its_whole_lines(journal):
    for size in range(len(TEXT) + 1):
        found = journal(TEXT[:size])
        found.refresh()
        whole = sum(end <= size for end in ENDS) - 1
        assert found.commits == COMMITS[:whole]
        assert found.end == ENDS[whole]


def test_a_flipped_bit_anywhere_ends_it_in_front_of_its_line(journal):
    for place in range(len(TEXT)):
        content = bytearray(TEXT)
        content[place] ^= 1 << place % 8
        found = journal(bytes(content))
        found.refresh()
        whole = sum(end <= place for end in ENDS) - 1
        assert found.commits == COMMITS[:whole], place


def test_it_grows_while_it_is_read(journal):
    found = journal(b"")
    for size in range(len(TEXT) + 1):
        journal(TEXT[:size])
        found.refresh()
    assert found.commits == COMMITS


def test_at_a_url_it_is_read_from_objects_of_a_few_commits(monkeypatch):
    monkeypatch.setattr(journal_module, "_SEGMENT", 2)
    url, system = "memory://journal-test", fsspec.filesystem("memory")
    commits = [commit(number) for number in range(6)]
    writer, growing = JournalWriter(url, [], 0), Journal(url)
    for number in range(len(commits)):
        writer.append(commits[:number], commits[number])
        whole = Journal(url)
        for found in (growing, whole):
            found.refresh()
            assert found.commits == commits[: number + 1]
            assert found.first in (number // 2 * 2, number + 1)
            assert found.elements == 10 * number + 10
        JournalWriter(url, whole.commits, whole.first).append(whole.commits, commit(number + 1))
        growing.refresh()
        assert growing.commits[: number + 1] == commits[: number + 1]
    assert sorted(path.rpartition("/")[2] for path in system.find("/journal-test")) == [
        *("journal-000002.jsonl", "journal-000004.jsonl", "journal-000006.jsonl", "journal.jsonl"),
    ]
    system.rm("/journal-test", recursive=True)


def test_one_that_was_cut_off_or_written_anew_is_read_from_its_start(journal):
    found = journal(TEXT)
    found.refresh()
    journal(TEXT[: ENDS[1]])
    found.refresh()
    assert found.commits == COMMITS[:1]
    other = [replace(commit(number), made_by="other") for number in range(2)]
    journal(text_of(other) + b"x" * 1000 + b"\n")
    found.refresh()
    assert found.commits == other


def test_a_line_that_counts_otherwise_than_its_chunks_is_none(journal):
    found = journal(text_of([COMMITS[0], replace(COMMITS[1], elements=21)]))
    found.refresh()
    assert found.commits == COMMITS[:1]


def test_a_line_in_the_wrong_place_is_none(journal):
    found = journal(COMMITS[1].line(1))
    found.refresh()
    assert found.commits == []


# -- the entry


def write(folder, *, complete, spec=NUMBER):
    chunks = tuple(chunk for commit in COMMITS for chunk in commit.chunks)
    manifest = Manifest("key", "run", None, spec, chunks if complete else (), complete=complete)
    write_manifest(str(folder), manifest, replace=True)


@pytest.fixture(params=[False, True], ids=["begun", "complete"])
def found(request, tmp_path):
    """Return an entry of three commits of ten elements each."""
    (tmp_path / NAME).write_bytes(TEXT)
    write(tmp_path, complete=request.param)
    found = StoredEntry(str(tmp_path))
    found.refresh()
    assert found.complete == request.param
    return found


def test_an_entry_goes_on_from_the_last_commit_in_front_of_an_element(found):
    for elements, wanted in {0: 0, 9: 0, 10: 10, 29: 20, 30: 30, 99: 30}.items():
        state = COMMITS[wanted // 10 - 1].state if wanted else None
        assert found.point(elements, "made") == Point(wanted, state)
        assert found.point(elements, "made otherwise") == Point(0, None)
    assert found.goes_on("made")
    assert not found.goes_on("made otherwise")
    assert found.commits() == COMMITS


def test_an_entry_says_what_it_holds(found):
    assert found.commits() == COMMITS
    assert (found.elements, found.run) == (30, "run")
    assert found.chunks == [chunk for commit in COMMITS for chunk in commit.chunks]
    assert found.spec == (NUMBER if found.complete else COMMITS[-1].spec)
    assert [found.chunk_at(element) for element in (0, 9, 10, 29)] == [(0, 0), (0, 0), (1, 10), (2, 20)]
    with pytest.raises(IndexError):
        found.chunk_at(30)
    part = found.part(1)
    assert part.complete
    assert part.shards == (0,)
    assert [chunk.file for chunk in part.chunks] == [chunk.file for chunk in found.chunks[1:]]


def test_an_entry_without_a_commit_has_the_spec_of_its_manifest(tmp_path):
    found = StoredEntry(str(tmp_path))
    assert (found.elements, found.run, found.spec, found.chunks) == (0, None, None, [])
    write(tmp_path, complete=False)
    found.refresh()
    assert (found.elements, found.run, found.spec, found.chunks) == (0, "run", NUMBER, [])
    assert found.element_spec() == ps.TensorSpec((), np.int64)


def test_an_entry_that_is_gone_is_none_that_a_pass_began(found, tmp_path):
    for path in tmp_path.iterdir():
        path.unlink()
    found.refresh()
    assert (found.manifest, found.elements, found.commits()) == (None, 0, [])


def test_a_manifest_is_read_again_when_it_has_changed(tmp_path, monkeypatch):
    read = []
    monkeypatch.setattr(entry, "read_manifest", lambda folder: read.append(folder) or read_manifest(folder))
    write(tmp_path, complete=False)
    (tmp_path / NAME).write_bytes(TEXT)
    found = StoredEntry(str(tmp_path))
    for _ in range(3):
        found.refresh()
    assert (found.complete, len(read)) == (False, 1)
    write(tmp_path, complete=True)
    for _ in range(3):
        found.refresh()
    assert (found.complete, len(read)) == (True, 2)


@pytest.mark.parametrize(("told", "reads"), [("etag", 1), ("", 3)])
def test_behind_a_url_the_version_says_whether_a_manifest_has_changed(told, reads, tmp_path, monkeypatch):
    read = []
    write(tmp_path, complete=True)
    manifest = read_manifest(str(tmp_path))
    monkeypatch.setattr(entry, "read_manifest", lambda folder: read.append(folder) or manifest)
    monkeypatch.setattr("penstock.io.storage.version", lambda name: (7, told))
    found = StoredEntry("memory://entry")
    for _ in range(3):
        found.refresh()
    assert read == ["memory://entry"] * reads
    assert stamp("memory://entry/manifest.json") == ((7, "etag") if told else None)
