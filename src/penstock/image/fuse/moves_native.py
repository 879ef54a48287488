"""Windows, a transform, arithmetic and covered rectangles in one go over each image, compiled, without the GIL.

Imported inside functions only: numba takes a third of a second to load.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiled.kernel import helper, kernel
from penstock.image.geometry.transform_native import points_memory, transform_one
from penstock.image.geometry.transform_reference import CONSTANT
from penstock.image.kernels.instructions import BAD_ARGUMENT, calculate, fits

SLACK = 64  # values behind an image in memory of its own, so that its last pixels are blended like all others


@helper
def _picked(
    src: Any, row: int, channels: int, columns: Any, first: int, last: int, fill: Any, dst: Any, at: int
) -> None:
    """Write the pixels of one row that stand at `columns[first:last]`, where -1 is `fill`."""
    for j in range(first, last):
        to = at + j * channels
        if columns[j] < 0:
            for c in range(channels):
                dst[np.uint64(to + c)] = fill
            continue
        of = row + columns[j] * channels
        if channels == 3:
            dst[np.uint64(to)] = src[np.uint64(of)]
            dst[np.uint64(to + 1)] = src[np.uint64(of + 1)]
            dst[np.uint64(to + 2)] = src[np.uint64(of + 2)]
        else:
            for c in range(channels):
                dst[np.uint64(to + c)] = src[np.uint64(of + c)]


@helper
def _window(src: Any, image: int, width: int, channels: int, rows: Any, columns: Any, fill: Any, dst: Any) -> None:
    """Write the pixels at `rows` and `columns` of an image, where -1 is `fill`."""
    first, last, start = 0, 0, 0  # the longest run of columns that follow one another
    for j in range(columns.size):
        if columns[j] < 0 or (j > start and columns[j] != columns[j - 1] + 1):
            start = j + 1 if columns[j] < 0 else j
        if j + 1 - start > last - first:
            first, last = start, j + 1
    for i in range(rows.size):
        at = i * columns.size * channels
        if rows[i] < 0:
            for k in range(at, at + columns.size * channels):
                dst[np.uint64(k)] = fill
            continue
        row = image + rows[i] * width * channels
        _picked(src, row, channels, columns, 0, first, fill, dst, at)
        if last > first:
            of, to = row + columns[first] * channels, at + first * channels
            for k in range((last - first) * channels):
                dst[np.uint64(to + k)] = src[np.uint64(of + k)]
        _picked(src, row, channels, columns, last, columns.size, fill, dst, at)


@helper
def _covered(dst: Any, at: int, height: int, width: int, channels: int, box: Any, values: Any) -> None:
    """Write `values`, one per channel, into the part of the box (top, left, height, width) that is in the image."""
    for i in range(max(box[0], 0), min(box[0] + box[2], height)):
        for j in range(max(box[1], 0), min(box[1] + box[3], width)):
            to = at + (i * width + j) * channels
            for c in range(channels):
                dst[np.uint64(to + c)] = values[c]


@helper
def _within(places: Any, size: int) -> bool:
    """Whether these are rows or columns of an image of that size, or -1."""
    near = True
    for n in range(places.shape[0]):
        for i in range(places.shape[1]):
            near = near & (places[n, i] >= -1) & (places[n, i] < size)
    return near


@helper
def _moved(
    src: Any,
    count: int,
    height: int,
    width: int,
    channels: int,
    rows: Any,
    columns: Any,
    outside: Any,
    transforms: Any,
    mode: int,
    bilinear: bool,
    fill: Any,
    codes: Any,
    numbers: Any,
    boxes: Any,
    covers: Any,
    dst: Any,
    window: Any,
    turned: Any,
    points: Any,
) -> None:
    """As `moves`, of sizes that fit, with memory for an image on its way."""
    out_height, out_width = rows.shape[1], columns.shape[1]
    size, run = out_height * out_width * channels, numbers.shape[1]
    for n in range(count):
        _window(src, n * height * width * channels, width, channels, rows[n], columns[n], outside[0], window)
        now = window
        if transforms.shape[0]:
            a, side = transforms[n if transforms.shape[0] > 1 else 0], (out_height, out_width)
            transform_one(window, 0, *side, channels, a, mode, bilinear, fill, *side, points, turned, 0)
            now = turned
        at = n * size
        for i in range(0, size, run):
            values = dst[at + i : at + min(i + run, size)]
            for k in range(values.size):
                values[k] = now[np.uint64(i + k)]
            calculate(codes, numbers, values)
        for k in range(covers.shape[0]):
            _covered(dst, at, out_height, out_width, channels, boxes[n, k], covers[k])


@kernel
def moves(
    src: Any,
    count: int,
    height: int,
    width: int,
    channels: int,
    rows: Any,
    columns: Any,
    outside: Any,
    transforms: Any,
    mode: int,
    bilinear: bool,
    fill: Any,
    codes: Any,
    numbers: Any,
    boxes: Any,
    covers: Any,
    dst: Any,
) -> int:
    """Move, change and cover each image of the flat `src` on its way into the flat `dst`; 0 or BAD_ARGUMENT.

    First the pixels at `rows` (count, out height) and `columns` (count, out width) are taken, -1 being `outside`. Then
    comes a transform, if `transforms` has rows, (count, 8) or (1, 8). Then comes arithmetic: `codes` in float32, with
    `numbers` for the values of some pixels, which repeat, (codes, pixels * channels). Last are covered `boxes` (count,
    covers, 4) with `covers` (covers, channels). `outside` is an array of one value; `fill` has
    one for each channel.
    """
    out_height, out_width = rows.shape[1], columns.shape[1]
    if (
        max(height, width, out_height, out_width) >= 1 << 24
        or not fits(src.size, count, height, width, channels)
        or not fits(dst.size, count, out_height, out_width, channels)
        or min(rows.shape[0], columns.shape[0], boxes.shape[0]) < count
        or not (_within(rows, height) and _within(columns, width))
        or not (transforms.shape[0] <= 1 or transforms.shape[0] == count)
        or transforms.shape[1] != 8
        or outside.size < 1
        or fill.size != channels
        or numbers.shape[0] != codes.size
        or numbers.shape[1] < channels
        or numbers.shape[1] % channels != 0
        or boxes.shape[1] != covers.shape[0]
        or boxes.shape[2] != 4
        or covers.shape[1] != channels
    ):
        return BAD_ARGUMENT
    size = out_height * out_width * channels
    window = np.empty(size + SLACK, src.dtype)
    turned = np.empty(size + SLACK if transforms.shape[0] else 0, src.dtype)
    points = points_memory(out_height, out_width)
    _moved(
        src,
        count,
        height,
        width,
        channels,
        rows,
        columns,
        outside,
        transforms,
        mode,
        bilinear,
        fill,
        codes,
        numbers,
        boxes,
        covers,
        dst,
        window,
        turned,
        points,
    )
    return 0


def warm_up() -> None:
    """Compile for what most pipelines do: uint8 and float32 images, the first also on their way to float32."""
    transforms, numbers = np.array([[1, 0, 0, 0, 1, 0, 0, 0]], np.float32), np.ones((1, 6), np.float32)
    places, codes, boxes = np.zeros((1, 2), np.int64), np.zeros(1, np.int64), np.zeros((1, 1, 4), np.int64)
    for array in (np.zeros(12, np.uint8), np.zeros(12, np.float32)):
        outside, fill = np.zeros(1, array.dtype), np.zeros(3, array.dtype)
        for each in (array, transforms, outside, fill):
            each.flags.writeable = False
        sizes, turn = (1, 2, 2, 3), (transforms, CONSTANT, True, fill)
        for finished in {array.dtype, np.dtype(np.float32)}:
            covers, result = np.zeros((1, 3), finished), np.zeros(12, finished)
            moves(array, *sizes, places, places, outside, *turn, codes, numbers, boxes, covers, result)
