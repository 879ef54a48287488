"""The system's reports on load: idle processors, and threads that wait for one."""

import os
import sys
import threading
from pathlib import Path

import pytest

from penstock.runtime.machine import granted
from penstock.runtime.machine.granted import Queued, idle_seconds

STAT = """cpu  1 2 3 4000 5 6 7 8 0 0
cpu0 10 0 10 1000 200 0 0 0 0 0
cpu1 10 0 10 500 0 0 0 0 0 0
cpu2 10 0 10 7 0 0 0 0 0 0
intr 12345
"""


@pytest.fixture
def allowed(monkeypatch):
    monkeypatch.setattr(granted.os, "sched_getaffinity", lambda pid: {0, 2}, raising=False)
    monkeypatch.setattr(granted.os, "sysconf", lambda name: 100, raising=False)


def test_the_idle_time_of_the_processors_that_may_be_used(allowed, tmp_path):
    (tmp_path / "stat").write_text(STAT)
    assert idle_seconds(tmp_path / "stat") == pytest.approx(12.07)


@pytest.mark.parametrize("text", [None, "cpu0 1 2\n", "cpu0 a b c d e\n", "\xff"])
def test_what_cannot_be_read_is_not_known(allowed, tmp_path, text):
    if text is not None:
        (tmp_path / "stat").write_text(text, encoding="latin-1")
    assert idle_seconds(tmp_path / "stat") is None


def test_systems_without_affinity_do_not_tell(monkeypatch, tmp_path):
    monkeypatch.delattr(granted.os, "sched_getaffinity", raising=False)
    (tmp_path / "stat").write_text(STAT)
    assert idle_seconds(tmp_path / "stat") is None


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts it")
def test_a_thread_s_wait_for_a_core_only_grows_and_its_file_goes_with_it():
    mine = Queued()
    first = mine.seconds()
    assert mine.seconds() >= first >= 0
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(10):
        thread = threading.Thread(target=lambda: Queued().seconds())
        thread.start()
        thread.join()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.skipif(sys.platform != "linux", reason="Linux counts it")
def test_of_a_thread_that_has_ended_nothing_is_said():
    made = []
    thread = threading.Thread(target=lambda: made.append(Queued()))
    thread.start()
    thread.join()
    while Path(f"/proc/self/task/{thread.native_id}").exists():  # `join` returns a little earlier
        os.sched_yield()
    assert made[0].seconds() == 0.0


def test_without_the_file_nobody_has_waited(monkeypatch):
    monkeypatch.setattr(os, "open", lambda *arguments: (_ for _ in ()).throw(OSError("no such file")))
    assert Queued().seconds() == 0.0
