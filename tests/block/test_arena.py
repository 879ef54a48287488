"""Memory is reused after its last reference is gone, and never before."""

import gc
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.block.arena import ALIGNMENT, SMALLEST, Arena

LARGE = (4, SMALLEST)


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [(1,), (3, 5), (SMALLEST,), (7, SMALLEST // 4), (2, 224, 224, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64, bool])
def test_arrays_are_plain_writable_and_of_the_asked_shape(shape, dtype):
    array = Arena().empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert array.flags.writeable
    assert array.flags.c_contiguous
    array[...] = 1
    if array.nbytes >= SMALLEST:
        assert address(array) % ALIGNMENT == 0


def test_memory_is_used_again_when_the_array_is_gone():
    arena = Arena()
    array = arena.empty(LARGE, np.uint8)
    where = address(array)
    assert arena.idle_bytes() == 0
    del array
    assert arena.idle_bytes() == 4 * SMALLEST
    again = arena.empty((2, 2 * SMALLEST), np.uint8)  # reuses the same bytes
    assert address(again) == where
    assert arena.idle_bytes() == 0


VIEWS = {
    "slice": lambda a: a[1:],
    "row": lambda a: a[0],
    "reshaped": lambda a: a.reshape(-1),
    "transposed": lambda a: a.T,
    "other dtype": lambda a: a.view(np.int8),
    "view of view": lambda a: a[:, ::2].T[3:].view(),
    "memoryview": lambda a: memoryview(a),
    "asarray of memoryview": lambda a: np.asarray(memoryview(a)),
    "frombuffer": lambda a: np.frombuffer(a, np.uint8),
    "subclass": lambda a: a.view(np.matrix),
    "capsule": lambda a: np.from_dlpack(a),
    "iterator": lambda a: iter(a),
}


@pytest.mark.parametrize("name", VIEWS)
def test_memory_is_not_used_again_while_a_view_is_alive(name):
    arena = Arena()
    array = arena.empty(LARGE, np.uint8)
    where = address(array)
    view = VIEWS[name](array)
    del array
    gc.collect()
    assert arena.idle_bytes() == 0
    other = arena.empty(LARGE, np.uint8)
    assert address(other) != where
    del view
    gc.collect()
    assert arena.idle_bytes() == 4 * SMALLEST


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=30))
def test_no_two_living_arrays_share_memory(steps):
    arena, alive = Arena(1 << 20), {}
    for slot, size in steps:
        if slot in alive:
            array, content = alive.pop(slot)
            assert (array == content).all()
            del array
        else:
            array = arena.empty((size, SMALLEST), np.uint8)
            array[...] = slot
            alive[slot] = (array[:, 1:], slot)
            del array
    for array, content in alive.values():
        assert (array == content).all()


def test_idle_memory_is_bounded():
    arena = Arena(idle_bytes=3 * SMALLEST)
    for size in (1, 2, 3, 1, 2):
        arrays = [arena.empty((size, SMALLEST), np.uint8) for _ in range(3)]
        del arrays
        assert arena.idle_bytes() <= 3 * SMALLEST
    arena.clear()
    assert arena.idle_bytes() == 0


def test_threads_get_memory_of_their_own():
    arena = Arena()
    wrong = []

    def work(number):
        for _ in range(200):
            array = arena.empty(LARGE, np.uint8)
            array[:, :64] = number
            if not (array[:, :64] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_what_there_is_no_memory_for_says_what_to_do():
    with pytest.raises(MemoryError, match=r"There is no memory for an array of float64 with shape .*\n  Make elements"):
        Arena().empty((1 << 58,), np.float64)


def test_ctrl_c_while_memory_returns_is_not_lost(monkeypatch):
    arena = Arena()
    monkeypatch.setattr(arena, "_trim", lambda: signal.raise_signal(signal.SIGINT))
    arrays = [arena.empty(LARGE, np.uint8)]
    arena._idle_bytes += 7  # a signal may come between any two lines
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a program in the background ignores Ctrl-C
    try:
        with pytest.raises(KeyboardInterrupt):
            arrays.clear()
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    assert arena.idle_bytes() == 4 * SMALLEST
    arrays = [arena.empty(LARGE, np.uint8)]
    assert arena.idle_bytes() == 0
