"""EntryWriter: the committed elements are a prefix of the added ones, in order, with the state after them."""

import threading
from types import SimpleNamespace

import pytest

from penstock.block.block import Block
from penstock.store import entry_writer as writer
from penstock.store.column_buffer import Alike
from penstock.store.entry_writer import EntryWriter

LONG = 60  # seconds: upper bound for events that do come


class Committer:
    """Records the commits. Waits at `gate` first."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.commits = []
        self.completed = False
        self.closed = False
        self.gate = threading.Event()
        self.gate.set()
        self.changed = threading.Semaphore(0)

    @property
    def elements(self):
        return sum(len(found) for found, _ in self.commits)

    def commit(self, shards, state):
        assert self.gate.wait(LONG)
        found = [element for kept in shards.values() for block, _ in kept for element in block.elements()]
        self.commits.append((found, state))
        self.changed.release()

    def complete(self):
        self.completed = True

    def close(self):
        self.closed = True


@pytest.fixture
def committer(tmp_path):
    return Committer(tmp_path)


def block(first, count=2):
    return Block.from_elements(list(range(first, first + count)))


def made(committer):
    return EntryWriter(committer, Alike(), "snapshot")


def ended(written):
    written.finish()
    assert written._work.over.wait(LONG)


@pytest.mark.parametrize("nbytes", [1, 2000, 3500, 1 << 24])
def test_all_is_committed_in_its_order_with_the_last_state(nbytes, committer, monkeypatch):
    monkeypatch.setattr(writer, "_BYTES", nbytes)
    written = made(committer)
    for first in range(0, 20, 2):
        written.add(block(first), None, first + 2)
    written.complete()
    assert [element for found, _ in committer.commits for element in found] == list(range(20))
    seen = 0
    for found, state in committer.commits:
        seen += len(found)
        assert state == seen
    assert committer.completed
    assert committer.closed
    assert written.nbytes == 0


def test_what_waits_is_committed_after_some_time_though_nothing_more_comes(committer, monkeypatch):
    monkeypatch.setattr(writer, "_SECONDS", 0.001)
    written = made(committer)
    for first in (0, 2):
        written.add(block(first), None, first + 2)
        assert committer.changed.acquire(timeout=LONG)
        assert committer.elements == first + 2
    ended(written)
    assert committer.elements == 4
    assert not committer.completed


def test_what_was_gathered_first_is_committed_first_when_time_is_up(committer, monkeypatch):
    monkeypatch.setattr(writer, "_SECONDS", 0.0)
    monkeypatch.setattr(writer, "_BYTES", 3000)
    committer.gate.clear()
    written = made(committer)
    for first in range(0, 30, 2):  # some are handed over, and one is not full
        written.add(block(first), None, first + 2)
    committer.gate.set()
    ended(written)
    assert [element for found, _ in committer.commits for element in found] == list(range(30))


def test_nothing_is_committed_behind_a_block_whose_add_was_interrupted(committer, monkeypatch):
    monkeypatch.setattr(writer, "_BYTES", 2000)
    written = made(committer)
    written.add(block(0), None, 2)
    written.add(block(2), None, 4)
    assert committer.changed.acquire(timeout=LONG)

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("penstock.store.column_buffer.ColumnBuffer.add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            written.add(block(4), None, 6)
    written.add(block(6), None, 8)
    ended(written)
    assert committer.commits == [([0, 1, 2, 3], 4)]


def test_what_is_added_behind_the_end_is_dropped(committer):
    written = made(committer)
    written.add(block(0), None, 2)
    ended(written)
    written.add(block(2), None, 4)
    assert committer.commits == [([0, 1], 2)]
    assert written.nbytes == 0


def test_a_pass_waits_for_the_disk_with_no_more_than_it_may_be_ahead(committer, monkeypatch):
    monkeypatch.setattr(writer, "_BYTES", 1)
    monkeypatch.setattr(writer, "_QUEUE", 5000)
    committer.gate.clear()
    written = made(committer)
    most = []

    def feed():
        for first in range(0, 40, 2):
            written.add(block(first), None, first + 2)
            most.append(written.nbytes)

    feeding = threading.Thread(target=feed)
    feeding.start()
    while written.nbytes <= 5000:
        assert feeding.is_alive()
    feeding.join(0.01)
    assert feeding.is_alive()
    committer.gate.set()
    feeding.join(LONG)
    ended(written)
    assert committer.elements == 40
    assert max(most) < 5000 + 2 * 1100


@pytest.mark.parametrize(("now", "goes_on"), [(100.9, True), (101.0, False)])
def test_an_iteration_without_an_element_for_a_second_loses_its_entry(now, goes_on, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "monotonic", lambda: now)
    work = SimpleNamespace(leaving=False, fed=100.0, over=threading.Event())

    def leave(*, complete):
        assert not complete
        work.leaving = True
        work.over.set()

    work.leave = leave
    writer.begin(str(tmp_path), work)
    assert writer.is_writing(str(tmp_path))
    assert writer.goes_on_writing(str(tmp_path)) == goes_on
    assert work.leaving != goes_on
    writer.end(str(tmp_path), work)
    assert not writer.is_writing(str(tmp_path))
