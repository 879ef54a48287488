"""The bilinear resize of a chain, row by row, left to right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.compiled.kernel import helper
from penstock.image.kernels.floats import HALF, ZERO
from penstock.image.kernels.jpeg.vectors import Code, vector_step


def _lerp_pixel(*, falling: bool) -> Callable[[Code], None]:
    def write(code: Code) -> None:
        levels, out = 0, 4
        _, run, at, weight, _, to = code.args
        b = code.builder
        green = b.add(at, run)
        reds, greens = (code.load(code.at(levels, place), 2) for place in (at, green))
        both = code.shuffled(reds, greens, [0, 2, 1, 3])
        blues = code.load(code.at(levels, b.add(green, run)), 2)
        blue = code.shuffled(blues, blues, [0, 1, 0, 1])
        near, far = code.shuffled(both, blue, [0, 1, 4, 5]), code.shuffled(both, blue, [2, 3, 5, 4])
        a, c = (far, near) if falling else (near, far)
        result = b.fadd(a, b.fmul(b.fsub(c, a), code.splat(weight, 4)))
        code.store(result, code.at(out, to))

    return write


lerp_rising, lerp_falling = (vector_step(_lerp_pixel(falling=falling), "aiifai") for falling in (False, True))
"""lerp_rising(levels, run, at, weight, out, to): weigh two neighbouring pixels of a row: three values, one too many.

The row is three runs of `run` values; the neighbours lie at `at` and right behind. The first counts in full, with
`lerp_falling` the second, and the other by `weight`. LLVM does not find these vectors of four.
"""


@helper
def taps(n_in: int, n_out: int, mirrored: bool, low: Any, high: Any, weight: Any) -> None:
    """The numbers of `bilinear_taps`, but where both taps are the same pixel the weight is 0."""
    scale = np.float32(n_in) / np.float32(n_out)
    for i in range(n_out):
        at = (np.float32(i) + HALF) * scale - HALF
        floor = np.floor(at)
        low[i] = min(max(np.int64(floor), 0), n_in - 1)
        high[i] = min(max(np.int64(floor) + 1, 0), n_in - 1)
        weight[i] = at - floor
        if low[i] == high[i]:
            weight[i] = ZERO
        if mirrored:
            low[i], high[i] = n_in - 1 - low[i], n_in - 1 - high[i]


@helper
def columns_read(left: Any, right: Any, width: int, columns: Any) -> int:
    """How many columns are worth taking out of each row, or 0; `left` then points to places among these."""
    number = np.empty(width, np.int64)
    for x in range(width):
        number[x] = -1
    for j in range(left.size):
        number[left[j]] = 0
        number[right[j]] = 0
    found = 0
    for x in range(width):
        if number[x] == 0:
            number[x] = found
            columns[found] = x
            found += 1
    if 5 * found > 3 * width:
        return 0
    for j in range(left.size):
        left[j] = number[left[j]]
    return found


@helper
def along(levels: Any, n: int, at: Any, weight: Any, falling: bool, reverse: bool, row: Any) -> None:
    """Resize a row of `n` pixels, left to right: the value too many of a pixel is written over by the next one's."""
    count = at.size
    for j in range(count):
        k = np.uint64(count - 1 - j if reverse else j)
        if falling:
            lerp_falling(levels, n, at[k] - 1, weight[k], row, 3 * j)
        else:
            lerp_rising(levels, n, at[k], weight[k], row, 3 * j)


@helper
def between(top: Any, bottom: Any, weight: Any, line: Any) -> None:
    for j in range(np.uint64(line.size)):
        a = top[j]
        line[j] = a + (bottom[j] - a) * weight
