"""The interpreter's switch interval while an iteration wants a shorter one."""

import sys
import threading
import time
from pathlib import Path

import pytest

import penstock as ps
from penstock.runtime.machine import granted, switching
from penstock.runtime.machine.granted import outside_cpu, share
from penstock.runtime.machine.switching import SEEN, SHORT, Switching


@pytest.fixture(autouse=True)
def interval(monkeypatch):
    """Reset the interval. Iterations of other tests may not have been collected yet."""
    monkeypatch.setattr(switching, "_OPEN", {})
    monkeypatch.setattr(switching, "_SET", [])
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    SEEN.long = SEEN.short = 0
    SEEN.busy = False
    yield
    sys.setswitchinterval(before)


def near(seconds):
    return pytest.approx(seconds, rel=0.01)


def opened(seconds):
    made = Switching(seconds)
    made.open()
    return made


def test_the_shortest_wish_counts_and_in_the_end_it_is_as_before():
    first, second = opened(0.001), opened(0.0005)
    assert sys.getswitchinterval() == near(0.0005)
    second.close()
    assert sys.getswitchinterval() == near(0.001)
    second.close()
    first.close()
    assert sys.getswitchinterval() == near(0.005)


def test_it_is_never_made_longer():
    made = opened(0.1)
    assert sys.getswitchinterval() == near(0.005)
    made.close()
    assert sys.getswitchinterval() == near(0.005)


def test_what_somebody_else_sets_meanwhile_stays():
    first = opened(0.001)
    sys.setswitchinterval(0.002)
    first.close()
    assert sys.getswitchinterval() == near(0.002)
    second = opened(0.001)
    sys.setswitchinterval(0.003)
    third = opened(0.0005)
    second.close()
    third.close()
    assert sys.getswitchinterval() == near(0.003)


def test_without_a_wish_it_is_shorter_while_threads_wait():
    made = opened(None)
    for seconds in (0.005, 0.006, 0.001, 0.005, 0.005):
        made.waited(seconds)
        assert sys.getswitchinterval() == near(0.005)
    made.waited(0.003)
    assert sys.getswitchinterval() == near(SHORT)
    for seconds in (0.0, 0.001, *[0.0001] * 9):
        made.waited(seconds)
        assert sys.getswitchinterval() == near(SHORT)
    made.waited(0.0001)
    assert sys.getswitchinterval() == near(0.005)
    made.close()
    assert sys.getswitchinterval() == near(0.005)


def test_what_one_pass_saw_counts_for_the_next():
    for _ in range(3):
        assert sys.getswitchinterval() == near(0.005)
        made = opened(None)
        made.waited(0.005)
        made.close()
    made = opened(None)
    assert sys.getswitchinterval() == near(SHORT)
    made.close()
    assert sys.getswitchinterval() == near(0.005)


def test_a_pass_without_autotune_leaves_it_alone():
    for _ in range(3):
        SEEN.add(0.005, None)
    with iter(ps.Dataset.range(9).with_options(ps.Options(autotune={"enabled": False}))):
        assert sys.getswitchinterval() == near(0.005)
    with iter(ps.Dataset.range(9)):
        assert sys.getswitchinterval() == near(SHORT)


def test_a_pass_that_is_collected_while_another_ends_leaves_nothing(monkeypatch):
    class Wishes(dict):
        """Reading them collects garbage: an abandoned iteration."""

        abandoned = None

        def values(self):
            found = list(super().values())
            if self.abandoned is not None:
                self.abandoned.close()
            return found

    wishes = Wishes()
    monkeypatch.setattr(switching, "_OPEN", wishes)
    first, wishes.abandoned = opened(0.001), opened(0.0005)
    first.close()
    assert sys.getswitchinterval() == near(0.005)
    assert not wishes


def test_a_wish_is_not_changed_by_waits_and_a_closed_pass_wants_nothing():
    wished, closed = opened(0.004), opened(None)
    closed.close()
    for _ in range(9):
        wished.waited(0.004)
        closed.waited(0.004)
    assert sys.getswitchinterval() == near(0.004)
    wished.close()
    assert sys.getswitchinterval() == near(0.005)


def test_workers_that_wait_for_each_other_leave_it_alone():
    made = opened(None)
    for _ in range(9):
        made.waited(0.005, outside=0.2)  # cores: the consumer's loop
    assert sys.getswitchinterval() == near(0.005)
    for _ in range(3):
        made.waited(0.005, outside=0.4)  # another thread
    assert sys.getswitchinterval() == near(SHORT)
    for _ in range(10):
        assert sys.getswitchinterval() == near(SHORT)
        made.waited(0.005, outside=0.2)  # the thread has ended
    assert sys.getswitchinterval() == near(0.005)
    made.close()


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the system does not count it")
def test_what_a_thread_computes_is_counted_outside_unless_it_is_a_worker():
    ended = threading.Event()

    def compute():
        while time.thread_time() < 0.05:
            pass
        counted.set()
        ended.wait(30)

    counted = threading.Event()
    before = outside_cpu(())
    other = threading.Thread(target=compute)
    other.start()
    try:
        assert counted.wait(30)
        now = outside_cpu(())
        assert 0.05 <= now[other] < 5
        assert other not in outside_cpu({other})
        assert share(now, before, 0.1) >= 0.5
    finally:
        ended.set()
        other.join()
    assert other not in outside_cpu(())


def test_cores_are_those_of_the_threads_there_are():
    first, second = threading.Thread(), threading.Thread()
    assert share({first: 3.0}, {first: 2.0, second: 9.0}, 2.0) == 0.5  # an ended thread does not reduce the share
    assert share({first: 3.0, second: 1.0}, {first: 3.0}, 2.0) == 0.5  # a new thread


def test_where_the_system_does_not_count_nothing_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(granted, "_TASKS", tmp_path)
    assert outside_cpu(()) is None
    task = tmp_path / str(threading.main_thread().native_id)
    task.mkdir()
    for content in ("", "unknown\n", "0 0 0\n"):
        (task / "schedstat").write_text(content)
        assert outside_cpu(()) is None
    monkeypatch.setattr(sys, "platform", "win32")
    assert outside_cpu(()) is None
    assert share(None, {}, 1.0) is share({}, None, 1.0) is share({}, {}, 0.0) is None


def test_alone_a_thread_does_not_wait():
    made = opened(None)
    for _ in range(20):
        made.measure(outside=None)
    assert sys.getswitchinterval() == near(0.005)
    made.close()


def test_a_pass_beside_a_thread_that_computes_without_pause_shortens_it_by_itself():
    ended = threading.Event()

    def compute():
        number = 0
        while not ended.is_set():
            number = (number * 3 + 1) % 1000003

    other = threading.Thread(target=compute)
    other.start()
    try:
        deadline = time.monotonic() + 30
        with iter(ps.Dataset.range(1 << 40).map(lambda x: x + 1, num_parallel_calls=2)) as elements:
            while sys.getswitchinterval() > 0.001 and time.monotonic() < deadline:
                next(elements)
            assert sys.getswitchinterval() == near(SHORT)
        assert sys.getswitchinterval() == near(0.005)
    finally:
        ended.set()
        other.join()


def test_a_pass_has_it_as_long_as_it_is_open():
    options = ps.Options(threading={"switch_interval": 0.0005})
    ds = ps.Dataset.range(100).map(lambda x: x + 1, num_parallel_calls=2).with_options(options)
    iterator = iter(ds)
    next(iterator)
    assert sys.getswitchinterval() == near(0.0005)
    iterator.close()
    assert sys.getswitchinterval() == near(0.005)
    assert len(list(ds)) == 100
    assert sys.getswitchinterval() == near(0.005)


@pytest.mark.parametrize("wrong", [0, -0.001, "fast"])
def test_other_values_are_refused(wrong):
    with pytest.raises((ps.errors.InvalidArgumentError, ps.errors.InvalidTypeError), match="switch_interval"):
        ps.Options(threading={"switch_interval": wrong})
