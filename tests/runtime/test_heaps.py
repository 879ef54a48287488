"""Free memory in the C library's heaps: counted, and not checked more often than is useful."""

import platform
import sys

import pytest
from tests.system.child import run

from penstock.runtime.machine import malloc

GLIBC = pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="the GNU C library's")
FREED = """
    from penstock.runtime.machine.malloc import FreeInHeaps
    from penstock.runtime.machine.malloc import keep_freed_memory

    keep_freed_memory()
    before = FreeInHeaps()()
    pieces = [bytearray(1 << 20) for _ in range(32)]
    held = FreeInHeaps()()
    del pieces[::2]
    print(held - before < 2 << 20, 16 <= FreeInHeaps()() - held >> 20 <= 18)
"""


@GLIBC
def test_holes_between_what_is_held_count():
    done = run(FREED)
    assert (done.code, done.out) == (0, "True True\n"), done.err


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that is set by hand, and a library whose answer takes a second."""
    now = [0.0]
    looks = []

    def look():
        looks.append(now[0])
        now[0] += 1.0
        return malloc._Mallinfo(fordblks=len(looks))

    monkeypatch.setattr(malloc.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(malloc, "_mallinfo2", lambda: look)
    return now


def test_looking_takes_a_hundredth_of_the_time(clock):
    free = malloc.FreeInHeaps()
    assert [free(), free()] == [1, 1]
    clock[0] = 100.0
    assert free() == 1
    clock[0] = 101.0
    assert free() == 2
    assert (free(), free.look(), free()) == (2, 3, 3)


def test_other_c_libraries_tell_nothing(monkeypatch):
    monkeypatch.setattr(malloc.ctypes, "CDLL", lambda name: object())
    malloc._mallinfo2.cache_clear()
    assert malloc.FreeInHeaps()() == 0
    malloc._mallinfo2.cache_clear()
