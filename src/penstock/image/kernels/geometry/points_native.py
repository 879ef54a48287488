"""Where the pixels of a transformed image look, of some rows at a time: the numbers of the reference, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.image.kernels.floats import HALF, ONE, ZERO
from penstock.image.kernels.geometry.transform_reference import CONSTANT, FARTHEST, NEAREST, NOWHERE, REFLECT

BEYOND = np.float32(2**25)  # as good as any coordinate outside: a side has less than 2**24 pixels


@helper
def _reflected(at: Any, size: int) -> Any:
    twice = np.float32(2 * size)
    if at < ZERO:
        at = np.float32(2 * size * np.int64(-at / twice)) + at
        return at + twice if at < np.float32(-size) else -at - ONE
    at = at - np.float32(2 * size * np.int64(at / twice))
    return twice - at - ONE if at >= np.float32(size) else at


@helper
def _wrapped(at: Any, size: int) -> Any:
    turn = np.float32(size - 1)
    if at < ZERO:
        return at + np.float32(size * (np.int64(-at / turn) + 1))
    return at - np.float32(size * np.int64(at / turn))


@helper
def _near(row: Any, size: int) -> bool:
    """Whether all coordinates are on the image or its first mirror image to either side."""
    low, high = np.float32(-size), np.float32(2 * size)
    near = 0
    for j in range(row.size):
        near += (row[j] >= low) & (row[j] < high)
    return bool(near == row.size)


@helper
def _map(row: Any, size: int, mode: int) -> None:
    """Bring the coordinates of a row inside, each of `mode`."""
    last = np.float32(size - 1)
    if mode == CONSTANT:
        for j in range(row.size):
            row[j] = row[j] if abs(row[j]) < np.float32(np.inf) else NOWHERE
        return
    if mode == REFLECT and size > 1 and _near(row, size):
        for j in range(row.size):
            at = row[j]
            row[j] = -at - ONE if at < ZERO else np.float32(2 * size) - at - ONE if at >= np.float32(size) else at
    elif mode != NEAREST:
        for j in range(row.size):
            at = row[j]
            if not (at >= ZERO and at <= last):
                if size <= 1 or not abs(at) < FARTHEST:
                    row[j] = ZERO
                else:
                    row[j] = _reflected(at, size) if mode == REFLECT else _wrapped(at, size)
    for j in range(row.size):
        at = row[j] if row[j] > ZERO else ZERO
        row[j] = last if last < at else at


@helper
def points_of(
    a: Any, first: int, rows: Any, columns: Any, height: int, width: int, mode: int, ys: Any, xs: Any
) -> None:
    """Where output pixels look that lie in `columns`, and in `rows` below row `first`."""
    base = np.float32(first)
    projective = a[6] != ZERO or a[7] != ZERO
    for j in range(columns.size):
        y = base + rows[j]
        xs[j] = a[0] * columns[j] + a[1] * y + a[2]
        ys[j] = a[3] * columns[j] + a[4] * y + a[5]
    if projective:
        for j in range(columns.size):
            k = a[6] * columns[j] + a[7] * (base + rows[j]) + ONE
            xs[j] = xs[j] / k
            ys[j] = ys[j] / k
    _map(xs, width, mode)
    _map(ys, height, mode)
    if projective:
        for j in range(columns.size):
            k = a[6] * columns[j] + a[7] * (base + rows[j]) + ONE
            if k == ZERO:
                xs[j] = NOWHERE
                ys[j] = NOWHERE


@helper
def rounded(row: Any, size: int, found: Any) -> None:
    """The nearest pixel of each coordinate, halves away from zero; -1 outside."""
    for j in range(row.size):
        far = min(abs(row[j]), BEYOND)
        whole = np.int32(far)
        whole = whole + np.int32(1) if far - np.float32(whole) >= HALF else whole
        found[j] = whole if (row[j] > -HALF) & (whole < size) else np.int32(-1)


@helper
def split(row: Any, found: Any, low: Any, high: Any) -> None:
    """The pixel below each coordinate, kept in range of an int32, and the weights of that one and the next."""
    for j in range(row.size):
        floor = np.floor(row[j])
        low[j] = floor + ONE - row[j]
        high[j] = row[j] - floor
        found[j] = np.int32(min(max(floor, NOWHERE), BEYOND))
