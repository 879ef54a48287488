"""ParkingLot: each ring reaches all listeners."""

import gc
import signal
import threading
import time
from collections import deque
from types import SimpleNamespace

import pytest

from penstock.runtime import parking
from penstock.runtime.parking import ParkingLot, collecting, new_token

SECONDS = 30


@pytest.fixture
def lot():
    return ParkingLot(threading.RLock())


def sleeper(lot, ready):
    """Start a thread that waits until `ready()`."""

    def wait():
        with lot._lock:
            lot.wait_for(ready)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def waiting(lot, count, found):
    """Start threads that listen and wait until `found` has an item."""
    threads = [sleeper(lot, lambda: bool(found)) for _ in range(count)]
    while len(lot.registered) < count:
        assert all(thread.is_alive() for thread in threads)
    return threads


def ended(threads):
    for thread in threads:
        thread.join(SECONDS)
    return [not thread.is_alive() for thread in threads]


def test_a_ring_reaches_all(lot):
    found = []
    threads = waiting(lot, 3, found)
    with lot._lock:
        found.append(1)
        lot.unpark_all()
    assert ended(threads) == [True] * 3
    assert not lot.registered


def test_one_ring_for_one_reaches_one(lot):
    found = []
    threads = waiting(lot, 3, found)
    with lot._lock:
        found.append(1)
        lot.unpark_one()
        assert len(lot.registered) == 2
    threads[0].join(SECONDS)
    with lot._lock:
        assert len(lot.registered) == 2
        lot.unpark_all()
    assert ended(threads) == [True] * 3


def test_who_waits_looks_again_at_each_ring_and_sleeps_on(lot):
    looks = []

    def ready():
        looks.append(None)
        return len(looks) > 2

    thread = sleeper(lot, ready)
    end = time.monotonic() + SECONDS
    while thread.is_alive() and time.monotonic() < end:
        with lot._lock:
            lot.unpark_all()
    assert ended([thread]) == [True]
    assert len(looks) == 3


def test_a_ring_between_the_look_and_the_sleep_is_heard(lot):
    """A garbage collection causes this in a thread that is about to sleep."""
    found = []

    def ready():
        if found:
            return True
        found.append(1)
        lot.unpark_all()
        return False

    assert ended([sleeper(lot, ready)]) == [True]


def test_too_late(lot):
    with lot._lock:
        assert not lot.wait_for(lambda: False, timeout=0.01)
        assert not lot.wait_for(lambda: False, timeout=0)
        assert lot.wait_for(lambda: True, timeout=0)
    assert not lot.registered


def test_who_is_interrupted_while_looking_listens_no_more(lot):
    def ready():
        raise KeyboardInterrupt

    with lot._lock:
        with pytest.raises(KeyboardInterrupt):
            lot.wait_for(ready)
        assert not lot.registered


def test_who_is_interrupted_while_asleep_listens_no_more(lot):
    def interrupted(*, timeout=None, blocking=True):
        raise KeyboardInterrupt

    token = SimpleNamespace(acquire=interrupted)
    with lot._lock:
        lot.register(token)
        with pytest.raises(KeyboardInterrupt):
            lot.park(token)
        assert not lot.registered


def test_the_lock_is_let_go_of_however_often_it_is_taken(lot):
    found = []

    def wait():
        with lot._lock, lot._lock:
            lot.wait_for(lambda: bool(found))
            found.append(2)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    while not lot.registered:
        assert thread.is_alive()
    assert lot._lock.acquire(timeout=SECONDS)
    found.append(1)
    lot.unpark_all()
    lot._lock.release()
    assert ended([thread]) == [True]
    assert found == [1, 2]


@pytest.mark.parametrize("rung", [False, True])
def test_an_ear_that_left_can_listen_again(lot, rung):
    token = new_token()
    with lot._lock:
        lot.register(token)
        if rung:
            lot.unpark_all()
        lot.unregister(token)
        assert not lot.registered
        lot.register(token)
        lot.park(token, 0.01)  # without a ring it returns after its time, and does not listen any more
        assert not lot.registered
        lot.register(token)
        lot.unpark_all()
        lot.park(token)
        assert token.locked()


def test_nobody_is_there(lot):
    with lot._lock:
        lot.unpark_all()
        lot.unpark_one()
    assert not lot.registered


class Told:
    """An object that records whether a collection called its finaliser."""

    def __init__(self, found):
        self.found, self.me = found, self

    def __del__(self):
        self.found.append(collecting())


def test_a_finaliser_knows_that_a_collection_has_called_it():
    found = []
    gc.disable()
    try:
        told = Told(found)
        told.me = None
        del told
        Told(found)
        assert found == [False]
        gc.collect()
    finally:
        gc.enable()
    assert found == [False, True]
    assert not collecting()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers of signals are for POSIX")
def test_a_signal_that_arrives_in_a_collection_is_not_lost():
    class Arrived(Exception):
        pass

    def arrive(number, frame):
        raise Arrived

    kept = [{"number": i, "list": [i]} for i in range(100_000)]  # a collection takes some milliseconds
    before, callbacks = signal.signal(signal.SIGALRM, arrive), gc.callbacks[:]
    gc.callbacks[:] = [
        call for call in callbacks if not (getattr(call, "__module__", "") or "").startswith("hypothesis")
    ]
    try:
        for _ in range(10):
            started = time.perf_counter()
            gc.collect()
            took = time.perf_counter() - started
            signal.setitimer(signal.ITIMER_REAL, took / 4)
            with pytest.raises(Arrived):
                deque((gc.collect() for _ in range(100)), maxlen=0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        gc.callbacks[:] = callbacks
        signal.signal(signal.SIGALRM, before)
    assert len(kept) == 100_000


def test_a_worker_waits_until_the_consumer_runs_that_it_has_woken(monkeypatch):
    monkeypatch.setattr(parking, "_PASSING", SECONDS)
    lock = threading.RLock()
    hand_over = parking.HandOver(lock)
    hand_over.wait()  # no finaliser was called

    def work():
        with lock:
            hand_over.call()
        hand_over.wait()

    worker = threading.Thread(target=work)
    worker.start()
    while not hand_over._lot.registered:
        threading.Event().wait(0.001)
    assert worker.is_alive()
    hand_over.wait()  # another thread called
    with lock:
        hand_over.answer()
    worker.join(SECONDS)
    assert not worker.is_alive()


def test_a_worker_does_not_wait_for_long(monkeypatch):
    monkeypatch.setattr(parking, "_PASSING", 0.0)
    hand_over = parking.HandOver(threading.RLock())
    hand_over.call()
    hand_over.wait()


def test_a_collection_in_another_thread_does_not_disturb_the_question():
    over = threading.Event()

    def collect():
        while not over.is_set():
            gc.collect(0)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        assert {collecting() for _ in range(20_000)} <= {True, False}
    finally:
        over.set()
        thread.join()
    assert not collecting()
