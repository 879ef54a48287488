"""Declarations of kernels, and the parts of kernels."""

import numba
import numpy as np
import pytest

from penstock.native.kernel import helper, kernel, maker


def test_what_is_declared_is_what_the_function_takes():
    with pytest.raises(TypeError, match=r"f takes \['a', 'b'\], not what is declared: a: i64"):

        @kernel("a: i64")
        def f(a, b):
            pass


@pytest.mark.parametrize("text", ["a", "a: u8[]", "a: [:]", "a: u8 [:]", "a = u8"])
def test_an_argument_that_cannot_be_read(text):
    with pytest.raises(TypeError, match=r"declared as 'name: u8\[:\]'"):

        @kernel(text)
        def f(a):
            pass


def test_versions_and_results():
    @kernel("a: T[:, :], b: w S[:], c: T -> i64, bool", T="u8 f32", S="i64 f64")
    def f(a, b, c):
        return 1, True

    versions, results, holds_gil = f.declared
    assert results == ["i64", "bool"]
    assert not holds_gil
    assert [[(each.name, each.kind, each.ndim, each.written) for each in version] for version in versions] == [
        [("a", "u8", 2, False), ("b", "i64", 1, True), ("c", "u8", 0, False)],
        [("a", "f32", 2, False), ("b", "f64", 1, True), ("c", "f32", 0, False)],
    ]
    assert versions[0][0].numba_type == numba.types.Array(numba.types.uint8, 2, "C", readonly=True)


@maker
def counted(size):
    return np.zeros(size, np.int64)


@helper
def view(values):
    return values[1:]


@helper
def asks_a_maker(size):
    return counted(size).size


@helper
def makes(size):
    return np.zeros(size).size


@pytest.mark.parametrize("part", [view, asks_a_maker, makes])
def test_an_array_that_nobody_would_count_is_an_error_when_it_is_compiled(part):
    given = np.zeros(3) if part is view else 3
    with pytest.raises((TypeError, numba.TypingError), match=r"use maker|NRT required|Only accept returning"):
        numba.njit(lambda value: part(value))(given) if part is view else part(given)


def test_what_is_only_read_cannot_be_written_to():
    @kernel("a: i64[:]")
    def f(a):
        a[0] = 1

    with pytest.raises(numba.TypingError, match="readonly"):
        f.compile(tuple(argument.numba_type for argument in f.declared.versions[0]))
