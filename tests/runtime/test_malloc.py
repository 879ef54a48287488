"""The C library keeps freed arrays, so that the pages of the next element are present."""

import platform
import sys

import pytest
from tests.system.child import run

import penstock as ps
from penstock.runtime.machine import malloc

pytestmark = pytest.mark.system

LINUX = pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="the GNU C library's")
PAGES = """
    import resource
    import numpy as np
    import penstock as ps

    SIZE = 3 << 20
    called = []

    def function(x):
        called.append(x)  # so that nothing of it is done once for many elements
        return int((np.zeros(SIZE, np.uint8) + np.uint8(1)).astype(np.uint8)[-1]) + x

    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    with ps.Dataset.range(240).map(function, {calls}).iterator() as elements:
        for _ in range(40):
            next(elements)
        before = faults()
        rest = len(list(elements))
    print((faults() - before) / rest * resource.getpagesize() / SIZE)
"""


@LINUX
@pytest.mark.parametrize("calls", ["None", "2"])
def test_elements_are_made_in_memory_that_is_there(calls):
    """Measure the share of an element's memory whose pages were new."""
    done = run(PAGES.format(calls=calls))
    assert done.code == 0, done.err
    assert float(done.out) < 0.3


@LINUX
def test_who_has_set_it_otherwise_is_left_alone(monkeypatch):
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", "131072")
    done = run(PAGES.format(calls="None"))
    assert done.code == 0, done.err
    assert float(done.out) > 1.5


@pytest.fixture
def asked(monkeypatch):
    """Record the calls of a C library that has `mallopt`."""
    found = []
    library = type("Library", (), {"mallopt": staticmethod(lambda setting, value: found.append((setting, value)) or 1)})
    monkeypatch.setattr(malloc.ctypes, "CDLL", lambda name: library)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in malloc._SETTINGS:
        monkeypatch.delenv(name, raising=False)
    forget()
    yield found
    forget()


def forget():
    """Forget the results for this process."""
    malloc._mallopt.cache_clear()
    malloc._left.cache_clear()


def test_little_memory_keeps_little(asked, monkeypatch):
    monkeypatch.setattr(malloc, "available_memory", lambda: 256 << 20)
    assert malloc.keep_freed_memory()
    assert asked == [(-3, 32 << 20), (-1, 8 << 20)]


def test_a_small_budget_keeps_little_as_long_as_there_is_one(asked, monkeypatch):
    monkeypatch.setattr(malloc, "available_memory", lambda: 64 << 30)
    large = ps.Dataset.range(4).with_options(ps.Options(autotune={"ram_budget": 8 << 30}))
    with ps.Dataset.range(4).with_options(ps.Options(autotune={"ram_budget": 128 << 20})).iterator():
        list(large)
    list(large)
    assert [kept >> 20 for setting, kept in asked if setting == -1] == [2, 2, 16]


@pytest.mark.parametrize("name", malloc._SETTINGS)
def test_a_variable_of_the_library_switches_it_off(asked, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert not malloc.keep_freed_memory()
    assert asked == []


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_do_without(asked, monkeypatch, platform):
    monkeypatch.setattr(sys, "platform", platform)
    assert not malloc.keep_freed_memory()
    assert asked == []


def test_other_c_libraries_do_without(asked, monkeypatch):
    monkeypatch.setattr(malloc.ctypes, "CDLL", lambda name: object())
    assert not malloc.keep_freed_memory()
