"""Several processes on one entry: one writes, the others follow it, and continue when it is gone."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tests.system.child import SECONDS, SOURCES

import penstock as ps
from penstock.store.lock import holder

COUNT = 12

# Returns as many elements as requested, for each line; each is committed immediately.
WRITER = """
import sys
import penstock as ps
from penstock.store import entry_writer as writer
writer._BYTES = 1
elements = iter(pipeline(ps).cache(sys.argv[1]))
for line in sys.stdin:
    if line == "close\\n":
        elements.close()
        print("closed", flush=True)
        continue
    for _ in range(int(line)):
        print(next(elements, "end"), flush=True)
"""


def pipeline(ps):
    return ps.Dataset.range(12).map(lambda x: x * x)


WANTED = [x * x for x in range(COUNT)]


class Writer:
    """The child process. `ask` makes it return elements."""

    def __init__(self, path):
        source = "def pipeline(ps):\n    return ps.Dataset.range(12).map(lambda x: x * x)\n" + WRITER
        self.process = subprocess.Popen(
            [sys.executable, "-c", source, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(SOURCES)},
        )

    def ask(self, count):
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return [self.process.stdout.readline().strip() for _ in range(count)]

    def close(self):
        self.process.stdin.write("close\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "closed\n"


@pytest.fixture
def writer(tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.physical.storage._PAUSE", 0.005)
    monkeypatch.setattr("penstock.physical.storage._PATIENCE", float(SECONDS))
    child = Writer(str(tmp_path))
    yield child
    child.process.kill()
    child.process.communicate()


def entry_of(path):
    (manifest,) = Path(path).glob("*/manifest.json")
    return manifest.parent


def in_thread(work):
    """Start the function in a thread. Return a function for its result."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()

    def result():
        thread.join(SECONDS)
        (value,) = found
        return value

    return thread, result


def numbers(elements):
    return [int(x) for x in elements]


def test_a_follower_gets_what_the_other_commits_and_outlives_it(writer, tmp_path):
    writer.ask(5)
    following = iter(pipeline(ps).cache(tmp_path))
    assert [int(next(following)) for _ in range(5)] == WANTED[:5]
    assert holder(str(entry_of(tmp_path)))["pid"] == writer.process.pid
    writer.process.kill()
    writer.process.wait()
    assert numbers(following) == WANTED[5:]
    assert '"complete": true' in (entry_of(tmp_path) / "manifest.json").read_text()


def test_a_follower_waits_for_one_that_goes_on(writer, tmp_path):
    writer.ask(1)
    thread, result = in_thread(lambda: numbers(pipeline(ps).cache(tmp_path)))
    writer.ask(COUNT)
    assert result() == WANTED
    assert not thread.is_alive()


def test_one_that_waits_gets_everything_in_the_end(writer, tmp_path):
    writer.ask(3)
    options = ps.Options(second_writer="wait")
    _, result = in_thread(lambda: numbers(pipeline(ps).cache(tmp_path).with_options(options)))
    writer.ask(2)
    writer.close()  # it stops in the middle; the waiting process continues
    assert result() == WANTED


def test_without_patience_a_follower_goes_on_by_itself(writer, tmp_path, monkeypatch):
    monkeypatch.setattr("penstock.physical.storage._PATIENCE", 0.0)
    writer.ask(2)
    assert numbers(pipeline(ps).cache(tmp_path)) == WANTED
    assert writer.ask(COUNT - 1)[-1] == "end"
    assert numbers(pipeline(ps).cache(tmp_path)) == WANTED


def test_a_follower_that_waits_in_a_worker_can_be_closed(writer, tmp_path):
    writer.ask(2)
    following = iter(pipeline(ps).cache(tmp_path).prefetch(4))
    assert int(next(following)) == 0
    _, result = in_thread(lambda: following.close() or "closed")
    assert result() == "closed"
    assert list(following) == []


def test_a_load_that_follows_can_be_closed(writer, tmp_path):
    writer.ask(2)
    following = iter(ps.Dataset.load(entry_of(tmp_path), wait=True).prefetch(4))
    assert int(next(following)) == 0
    _, result = in_thread(lambda: following.close() or "closed")
    assert result() == "closed"


def test_a_load_follows_another_process_to_its_end(writer, tmp_path):
    writer.ask(2)
    following = iter(ps.Dataset.load(entry_of(tmp_path), wait=True))
    assert int(next(following)) == 0
    writer.ask(COUNT)
    assert numbers(following) == WANTED[1:]
