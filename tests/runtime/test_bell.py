"""Bell: whoever listens is reached by every ring."""

import threading
import time

import pytest

from penstock.runtime.bell import Bell, new_ear

SECONDS = 30


@pytest.fixture
def bell():
    return Bell(threading.RLock())


def sleeper(bell, ready):
    """A thread that waits until `ready()`."""

    def wait():
        with bell._lock:
            bell.wait_for(ready)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def waiting(bell, count, found):
    """So many threads that wait until `found` has something, each of them listening."""
    threads = [sleeper(bell, lambda: bool(found)) for _ in range(count)]
    while len(bell.listening) < count:
        assert all(thread.is_alive() for thread in threads)
    return threads


def ended(threads):
    for thread in threads:
        thread.join(SECONDS)
    return [not thread.is_alive() for thread in threads]


def test_a_ring_reaches_all(bell):
    found = []
    threads = waiting(bell, 3, found)
    with bell._lock:
        found.append(1)
        bell.ring()
    assert ended(threads) == [True] * 3
    assert not bell.listening


def test_one_ring_for_one_reaches_one(bell):
    found = []
    threads = waiting(bell, 3, found)
    with bell._lock:
        found.append(1)
        bell.ring_one()
        assert len(bell.listening) == 2
    threads[0].join(SECONDS)
    with bell._lock:
        assert len(bell.listening) == 2
        bell.ring()
    assert ended(threads) == [True] * 3


def test_who_waits_looks_again_at_each_ring_and_sleeps_on(bell):
    looks = []

    def ready():
        looks.append(None)
        return len(looks) > 2

    thread = sleeper(bell, ready)
    end = time.monotonic() + SECONDS
    while thread.is_alive() and time.monotonic() < end:
        with bell._lock:
            bell.ring()
    assert ended([thread]) == [True]
    assert len(looks) == 3


def test_a_ring_between_the_look_and_the_sleep_is_heard(bell):
    """As a garbage collection brings it about, in the thread that is about to sleep."""
    found = []

    def ready():
        if found:
            return True
        found.append(1)
        bell.ring()
        return False

    assert ended([sleeper(bell, ready)]) == [True]


def test_too_late(bell):
    with bell._lock:
        assert not bell.wait_for(lambda: False, timeout=0.01)
        assert not bell.wait_for(lambda: False, timeout=0)
        assert bell.wait_for(lambda: True, timeout=0)
    assert not bell.listening


def test_who_is_interrupted_while_looking_listens_no_more(bell):
    def ready():
        raise KeyboardInterrupt

    with bell._lock:
        with pytest.raises(KeyboardInterrupt):
            bell.wait_for(ready)
        assert not bell.listening


def test_the_lock_is_let_go_of_however_often_it_is_taken(bell):
    found = []

    def wait():
        with bell._lock, bell._lock:
            bell.wait_for(lambda: bool(found))
            found.append(2)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while not bell.listening:
        assert thread.is_alive()
    assert bell._lock.acquire(timeout=SECONDS)
    found.append(1)
    bell.ring()
    bell._lock.release()
    assert ended([thread]) == [True]
    assert found == [1, 2]


@pytest.mark.parametrize("rung", [False, True])
def test_an_ear_that_left_can_listen_again(bell, rung):
    ear = new_ear()
    with bell._lock:
        bell.listen(ear)
        if rung:
            bell.ring()
        bell.leave(ear)
        assert not bell.listening
        bell.listen(ear)
        bell.sleep(ear, 0.01)  # nobody rings: it returns in its time, and listens no more
        assert not bell.listening
        bell.listen(ear)
        bell.ring()
        bell.sleep(ear)
        assert ear.locked()


def test_nobody_is_there(bell):
    with bell._lock:
        bell.ring()
        bell.ring_one()
    assert not bell.listening
