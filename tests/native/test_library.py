"""Kernels built for these tests: calls with all kinds of arguments, and refusals of arguments that do not fit."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.native import library
from penstock.native.library import Kernels, plain_versions

ROOT = Path(__file__).parents[2]
NAME = "penstock.native.made_native"
MADE = """
import numpy as np
from penstock.native.kernel import helper, kernel, maker
from penstock.native.made_number import NUMBER

@maker
def twice(size):
    return np.full(2 * size, NUMBER)

@helper
def add_to_all(values, number):
    for i in range(values.size):
        values[i] += number

@kernel("values: T[:], number: i64, out: w T[:]", T="i8 i16 i32 i64 u8 u16 u32 u64 f32 f64")
def add(values, number, out):
    for i in range(values.size):
        out[i] = values[i] + number

@kernel(
    "line: i64[:], square: u8[:, :], cube: w f32[:, :, :], yes: bool, whole: i64, part: f32, same: f64 "
    "-> i64, i64, bool"
)
def each(line, square, cube, yes, whole, part, same):
    cube[-1, -1, -1] = part + same
    return line.sum() + whole, square.shape[0] * 100 + square.shape[1], not yes

@kernel("flags: bool[:], out: w c128[:] -> bool", holds_gil=True)
def flags(flags, out):
    for i in range(flags.size):
        out[i] = 1j if flags[i] else 2
    return flags.size > 2

@kernel("size: i64 -> i64", makes_arrays=True)
def made(size):
    values = twice(size)
    add_to_all(values, 1)
    return values.sum()

@kernel("rounds: i64 -> i64")
def spin(rounds):
    found = 0
    for i in range(rounds):
        found ^= i * i
    return found
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a copy of the sources with kernels of this test."""
    folder = tmp_path_factory.mktemp("clone")
    package = Path(penstock.__file__).parent
    shutil.copytree(package, folder / "src/penstock", ignore=shutil.ignore_patterns("built", "__pycache__", "compat"))
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "src/penstock/native/made_native.py").write_text(MADE)
    (folder / "src/penstock/native/made_number.py").write_text("NUMBER = 7\n")
    built(folder)
    return folder


def built(clone: Path, *options: str) -> str:
    """Build the kernels. Return the printed output."""
    command = [sys.executable, "tools/build_kernels.py", "--modules", NAME, *options]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def here(clone, monkeypatch):
    """Put the copy in place of the package."""
    monkeypatch.setattr(library, "_PACKAGE", clone / "src/penstock")
    monkeypatch.setenv("PENSTOCK_KERNELS", str(clone / "src/penstock/native/built"))
    library.level.cache_clear()
    yield clone
    library.level.cache_clear()


@pytest.fixture(scope="module")
def kernels(clone):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_PACKAGE", clone / "src/penstock")
        patch.setenv("PENSTOCK_KERNELS", str(clone / "src/penstock/native/built"))
        library.level.cache_clear()
        found = Kernels(NAME).loaded()
    library.level.cache_clear()
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"])
def test_the_version_is_that_of_the_arrays(kernels, kind):
    values, out = np.arange(5, dtype=kind), np.zeros(5, kind)
    kernels.add(values, 3, out)
    assert out.tolist() == (values + 3).tolist()


def test_all_kinds_of_arguments_and_results(kernels):
    cube, square = np.zeros((2, 3, 4), np.float32), np.zeros((5, 6), np.uint8)
    line = np.array([1, -(2**62)])
    square.flags.writeable = line.flags.writeable = False
    assert kernels.each(line, square, cube, True, np.int64(9), np.float32(0.1), 1e-3) == (10 - 2**62, 506, 0)
    assert cube[1, 2, 3] == np.float32(np.float32(0.1) + 1e-3)
    assert cube.reshape(-1)[:-1].tolist() == [0] * 23
    out = np.zeros(3, np.complex128)
    assert kernels.flags(np.array([True, False, True]), out)
    assert out.tolist() == [1j, 2, 1j]
    assert not kernels.flags(np.zeros(0, bool), out)
    assert kernels.made(10) == 20 * 8


@given(
    st.sampled_from(["i8", ">i8", "u8", "f8", "m8[s]", "O", "S8", "V8", "i4", "?"]),
    st.sampled_from([(6,), (2, 3), (), (0,), (1, 6)]),
    st.sampled_from(["as it is", "reversed", "every second", "misaligned", "list", "None", "subclass"]),
)
def test_any_other_array_is_refused_by_its_name_and_nothing_is_written(kernels, kind, shape, how):
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.zeros(2 * size + 8, np.uint8) if kind != "O" else None
    if how == "misaligned" and kind != "O":
        given = np.ndarray(shape, kind, memory, offset=1)
    elif how == "every second" and kind != "O" and len(shape) == 1:
        given = np.ndarray((2 * shape[0],), kind, memory)[::2]
    else:
        given = np.zeros(shape, kind)
        given = given[::-1] if how == "reversed" and len(shape) else given
    given = {"list": [1, 2], "None": None, "subclass": given.view(np.recarray) if kind == "V8" else given}.get(
        how, given
    )
    fits = type(given) is np.ndarray and given.dtype == np.int64 and given.ndim == 1 and given.flags.carray
    cube, square = np.zeros((1, 1, 1), np.float32), np.zeros((1, 1), np.uint8)
    if fits:
        assert kernels.each(given, square, cube, False, 0, 1.0, 0.0)[0] == 0
        return
    with pytest.raises(
        TypeError, match="each takes as 'line' an array of i64 with 1 axes, contiguous and aligned; it is"
    ):
        kernels.each(given, square, cube, False, 0, 1.0, 0.0)
    assert cube[0, 0, 0] == 0


def test_arrays_of_subclasses_are_taken(kernels, tmp_path):
    mapped = np.memmap(tmp_path / "numbers", np.float64, "w+", shape=(4,))
    kernels.add(np.ones(4).view(np.recarray), 1, mapped)
    assert mapped.tolist() == [2] * 4


def test_what_is_written_to_must_be_writable(kernels):
    out = np.zeros(4)
    out.flags.writeable = False
    with pytest.raises(TypeError, match=r"add takes as 'out' a writable array of i8 or .*; it is float64 of 1 axes"):
        kernels.add(np.ones(4), 1, out)
    assert out.tolist() == [0] * 4


def test_numbers_that_do_not_fit(kernels):
    with pytest.raises(TypeError, match="made takes 1 arguments, got 2"):
        kernels.made(1, 2)
    for wrong in ("1", None, 1.5, 2**63):
        with pytest.raises((TypeError, ctypes.ArgumentError, OverflowError, Exception)) as raised:
            kernels.made(wrong)
        assert "argument" in str(raised.value) or "int" in str(raised.value)


def test_no_memory_is_an_error(kernels):
    with pytest.raises(MemoryError, match="made found no memory"):
        kernels.made(1 << 58)


def test_others_run_while_a_kernel_does(kernels):
    """Python code of another thread runs during a kernel that does not hold the GIL."""
    done = threading.Event()
    calling = threading.Thread(target=lambda: (kernels.spin(1 << 33), done.set()), daemon=True)
    calling.start()
    steps = 0
    while not done.is_set() and steps < 1000:
        steps += 1
    assert steps == 1000
    calling.join()


def test_a_library_of_other_sources_is_refused_and_built_again(here, tmp_path, monkeypatch):
    assert Kernels(NAME).loaded().made(1) == 16
    number = here / "src/penstock/native/made_number.py"
    number.write_text("NUMBER = 9\n")
    stale = Kernels(NAME)
    with pytest.warns(RuntimeWarning, match="runs without some of its compiled kernels, and slower: .* other sources"):
        assert stale.loaded() is None
    assert stale.loaded() is None
    assert any(line.startswith(f"{NAME}: ") and "other sources" in line for line in plain_versions())
    assert "1 of 1" in built(here)
    assert built(here) == ""
    shutil.copytree(here / "src/penstock/native/built", tmp_path / "built")  # a process loads a file only once
    monkeypatch.setenv("PENSTOCK_KERNELS", str(tmp_path / "built"))
    assert Kernels(NAME).loaded().made(1) == 20
    number.write_text("NUMBER = 7\n")
    built(here)


def test_a_library_that_is_damaged_or_of_another_machine_leaves_the_plain_version(here, tmp_path, monkeypatch):
    folder = tmp_path / "built"
    shutil.copytree(here / "src/penstock/native/built", folder)
    monkeypatch.setenv("PENSTOCK_KERNELS", str(folder))
    file = folder / library.level() / f"{NAME}.so"
    file.write_bytes(b"\x7fELF" + bytes(100))
    with pytest.warns(RuntimeWarning, match="compiled kernels"):
        assert Kernels(NAME).loaded() is None
    with pytest.raises(OSError, match="is no library of penstock"):
        library._functions("other", foreign(folder))


def foreign(folder):
    """Build a level with a library from elsewhere."""
    (folder / "foreign").mkdir()
    shutil.copy(np._core._multiarray_umath.__file__, folder / "foreign" / "other.so")
    return "foreign"


WITHOUT = """
import sys, warnings
sys.modules["numba"] = sys.modules["llvmlite"] = None
import numpy as np
import penstock as ps
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    with ps.io.TFRecordWriter("records") as writer:
        for i in range(50):
            writer.write(bytes(range(i)))
    assert sorted(map(len, ps.TFRecordDataset("records").shuffle(10, seed=1))) == list(range(50))
    sevens = np.full((4, 5, 3), 7, np.uint8)
    assert (ps.image.decode_png(ps.image.encode_png(sevens)) == sevens).all()
found = [str(each.message) for each in seen if each.category is RuntimeWarning]
assert len(found) == 1, found
assert "There are no kernels for this machine" in found[0] and "build_kernels.py" in found[0], found
from penstock.native.library import serving
assert "There are no kernels" in serving()
"""


def test_without_any_library_the_plain_versions_serve_and_it_is_said_once(tmp_path):
    environment = {
        **os.environ,
        "PENSTOCK_KERNELS": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_what_is_built_says_who_needs_it():
    """Every module of kernels has a library, for the level of this machine."""
    text = library.serving()
    assert re.match(r"compiled for \S+, (\d+) of \1 libraries in ", text), text
