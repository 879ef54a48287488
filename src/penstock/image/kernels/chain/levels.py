"""Pixels to levels, and levels to bytes: levels are the integers of a uint8 image, as float32, in runs by channel."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper

_NEXT, _TWICE, _THRICE = np.uint64(1), np.uint64(2), np.uint64(3)


@helper
def load(src: Any, at: int, n: int, a: Any) -> None:
    """`n` pixels of three bytes each as three runs of levels."""
    start, run = np.uint64(at), np.uint64(n)
    for j in range(run):
        k = start + _THRICE * j
        a[j] = np.float32(src[k])
        a[run + j] = np.float32(src[k + _NEXT])
        a[run + run + j] = np.float32(src[k + _TWICE])


@helper
def load_planes(planes: Any, size: int, at: int, n: int, a: Any) -> None:
    for c in range(3):
        start, to = np.uint64(c * size + at), np.uint64(c * n)
        for j in range(np.uint64(n)):
            a[to + j] = np.float32(planes[start + j])


@helper
def load_columns(src: Any, at: int, step: int, apart: int, columns: Any, a: Any) -> None:
    """The pixels in `columns` of a row: value c of pixel x lies at `at + x * step + c * apart`."""
    n = columns.size
    for c in range(3):
        for j in range(n):
            a[np.uint64(c * n + j)] = np.float32(src[np.uint64(at + columns[j] * step + c * apart)])


@helper
def store_planes(a: Any, n: int, planes: Any, size: int, at: int, sums: Any) -> None:
    """Levels as bytes, one plane per channel, and their sums."""
    for c in range(3):
        start, to = np.uint64(c * n), np.uint64(c * size + at)
        total = np.int32(0)
        for j in range(np.uint64(n)):
            value = np.int32(a[start + j])
            planes[to + j] = np.uint8(value)
            total = np.int32(total + value)
        sums[c] += total
