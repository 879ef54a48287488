"""gather is numpy's `take`, also where it writes past the cache."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.block.arena import ARENA
from penstock.native.library import Kernels
from penstock.physical.kernels import run as module
from penstock.physical.kernels.run import gather

native = Kernels("penstock.physical.kernels.gather_native").loaded()


@given(
    st.integers(1, 1300),
    st.integers(0, 130),
    st.lists(st.integers(0, 6), min_size=1, max_size=5),
    st.booleans(),
)
def test_the_compiled_form_is_equal_and_writes_nothing_else(size, offset, rows, fixed):
    rng = np.random.default_rng(size)
    whole = rng.integers(0, 256, (7, size), np.uint8)
    whole.flags.writeable = not fixed
    memory = rng.integers(0, 256, len(rows) * size + 300, np.uint8)
    before = memory.copy()
    out = memory[offset : offset + len(rows) * size].reshape(len(rows), size)
    assert native.gather(whole.reshape(-1), np.array(rows), size, out.reshape(-1), -out.ctypes.data % 64) == 0
    assert (out == whole[rows]).all()
    end = offset + out.size
    assert (memory[:offset] == before[:offset]).all()
    assert (memory[end:] == before[end:]).all()


@pytest.mark.parametrize(
    ("rows", "shape", "lead"),
    [([7], (1, 9), 0), ([-1], (1, 9), 0), ([1], (2, 9), 0), ([1], (1, 8), 0), ([1], (1, 9), 64)],
)
def test_what_does_not_fit_writes_nothing(rows, shape, lead):
    out = np.full(shape, 5, np.uint8)
    assert native.gather(np.zeros(63, np.uint8), np.array(rows), 9, out.reshape(-1), lead) == -1
    assert (out == 5).all()


ARRAYS = {
    "float32": np.arange(90, dtype=np.float32).reshape(6, 3, 5),
    "int64": np.arange(6),
    "bool": np.arange(12).reshape(6, 2) % 3 == 0,
    "complex": np.arange(30).reshape(6, 5) * 1j,
    "large": np.arange(6 << 12, dtype=np.int16).reshape(6, 1 << 12),
}


@pytest.mark.parametrize("large", [False, True], ids=["as take", "past the cache"])
@pytest.mark.parametrize("name", ARRAYS)
def test_any_array(name, large, monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 0 if large else 1 << 40)
    whole, rows = ARRAYS[name], np.array([5, 0, 0, 3])
    out = ARENA.empty((4, *whole.shape[1:]), whole.dtype)
    gather(whole, rows, out)
    assert (out == whole[rows]).all()


def test_without_the_kernel(monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 0)
    monkeypatch.setattr(module._GATHER, "loaded", lambda: None)
    out = np.empty((2, 3))
    gather(np.arange(12.0).reshape(4, 3), np.array([3, 1]), out)
    assert out.tolist() == [[9, 10, 11], [3, 4, 5]]


def test_a_number_beyond_the_array_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 0)
    with pytest.raises(IndexError, match="Elements 1 to 4 of 4 as 2"):
        gather(np.zeros((4, 3)), np.array([4, 1]), np.empty((2, 3)))


@pytest.mark.parametrize("rows", [np.array([3, 9, 1, 9])[::2], np.array([3, 1], np.int32)], ids=["strided", "int32"])
def test_rows_of_any_layout(rows, monkeypatch):
    monkeypatch.setattr(module, "_LARGE", 0)
    out = np.empty((2, 3))
    gather(np.arange(12.0).reshape(4, 3), rows, out)
    assert out.tolist() == [[9, 10, 11], [3, 4, 5]]
