"""Windows, a transform, arithmetic and covered rectangles in one pass over each image, compiled, without the GIL.

One kernel takes bytes and floats, and single transforms. Its helpers are compiled for each type.
"""

from __future__ import annotations

import numpy as np

from penstock.image.geometry.transform_native import points_memory, transform_one
from penstock.image.kernels import BAD_ARGUMENT
from penstock.image.kernels.instructions import calculate, fits, writable
from penstock.native.kernel import helper, kernel

SLACK = 64  # extra values after an image in memory of its own, so that its last pixels are blended like all others


@helper
def _picked(src, row, channels, columns, first, last, fill, dst, at):
    """Write the pixels of one row at `columns[first:last]`; -1 stands for `fill`."""
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
def _window(src, image, width, channels, rows, columns, fill, dst):
    """Write the pixels at `rows` and `columns` of an image; -1 stands for `fill`."""
    first, last, start = 0, 0, 0  # the longest run of consecutive columns
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
def _covered(dst, at, height, width, channels, box, values):
    """Write `values`, one per channel, into the part of the box (top, left, height, width) inside the image."""
    for i in range(max(box[0], 0), min(box[0] + box[2], height)):
        for j in range(max(box[1], 0), min(box[1] + box[3], width)):
            to = at + (i * width + j) * channels
            for c in range(channels):
                dst[np.uint64(to + c)] = values[c]


@helper
def _within(places, size):
    """Return True if all places are rows or columns of an image of this size, or -1."""
    near = True
    for n in range(places.shape[0]):
        for i in range(places.shape[1]):
            near = near & (places[n, i] >= -1) & (places[n, i] < size)
    return near


@helper
def _one(src, n, sizes, where, out_size, window, points, dst, at):
    """Write the window of image `n`, or the whole image, transformed, into `dst` from `at` on.

    `sizes` and `where` are those of `_all`.
    """
    height, width, channels = sizes
    rows, columns, outside, transforms, mode, bilinear, fill = where
    tall, wide = out_size
    image = n * height * width * channels
    a = transforms[n if transforms.shape[0] > 1 else 0]
    if rows.shape[0] == 0:
        transform_one(src, image, height, width, channels, a, mode, bilinear, fill, tall, wide, points, dst, at)
        return
    _window(src, image, width, channels, rows[n], columns[n], outside, window)
    transform_one(window, 0, tall, wide, channels, a, mode, bilinear, fill, tall, wide, points, dst, at)


@helper
def _calculated(now, size, codes, numbers, dst, at):
    run = numbers.shape[1]
    for i in range(0, size, run):
        values = dst[at + i : at + min(i + run, size)]
        for k in range(values.size):
            values[k] = now[np.uint64(i + k)]
        calculate(codes, numbers, values)


@helper
def _all(src, count, sizes, where, out_size, finish, dst, made, points):
    """Run `moves` with checked sizes. `made` has memory for intermediate images."""
    height, width, channels = sizes
    rows, columns, outside, transforms, _, _, _ = where
    out_height, out_width = out_size
    codes, numbers, boxes, covers = finish
    window, now = made
    size = out_height * out_width * channels
    for n in range(count):
        at = n * size
        if rows.shape[0] == 0:
            _one(src, n, sizes, where, out_size, window, points, dst, at)
        else:
            if transforms.shape[0] == 0:
                image = n * height * width * channels
                _window(src, image, width, channels, rows[n], columns[n], outside, now)
            else:
                _one(src, n, sizes, where, out_size, window, points, now, 0)
            _calculated(now, size, codes, numbers, dst, at)
        for k in range(covers.shape[0]):
            _covered(dst, at, out_height, out_width, channels, boxes[n, k], covers[k])


@kernel(
    "src: T[:], count: i64, height: i64, width: i64, channels: i64, rows: i64[:, :], columns: i64[:, :], "
    "outside: f32, transforms: f32[:, :], mode: i64, bilinear: bool, fill: f32[:], out_height: i64, out_width: i64, "
    "codes: w i64[:], numbers: w f32[:, :], boxes: w i64[:, :, :], covers: w f32[:, :], dst: w S[:] -> i64",
    T="u8 u8 f32",
    S="u8 f32 f32",
    makes_arrays=True,
)
def moves(
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
    out_height,
    out_width,
    codes,
    numbers,
    boxes,
    covers,
    dst,
):
    """Move, change and cover each image. Return 0 or BAD_ARGUMENT.

    Images are in the flat `src`. Results go to the flat `dst`, as bytes only if there is no arithmetic.
    First the pixels at `rows` (count, out height) and `columns` (count, out width) are taken; -1 stands for `outside`.
    Then a transform follows, if `transforms` has rows, (count, 8) or (1, 8). Then arithmetic follows: `codes` in
    float32, with `numbers` for the values of some pixels, repeated, (codes, pixels * channels). Last, `boxes` (count,
    covers, 4) are covered with `covers` (covers, channels). `outside` is a float32, as are `covers` and `fill`, which
    has one for each channel. Without `rows` and `columns`, (0, 0), only a transform runs, and the dtype stays.
    """
    direct = rows.shape[0] == 0
    if (
        max(height, width, out_height, out_width) >= 1 << 24
        or (dst.itemsize == 1 and codes.size)
        or not fits(src.size, count, height, width, channels)
        or not fits(dst.size, count, out_height, out_width, channels)
        or boxes.shape[0] < count
        or not (transforms.shape[0] <= 1 or transforms.shape[0] == count)
        or transforms.shape[1] != 8
        or fill.size != channels
        or numbers.shape[0] != codes.size
        or numbers.shape[1] < channels
        or numbers.shape[1] % channels != 0
        or boxes.shape[1] != covers.shape[0]
        or boxes.shape[2] != 4
        or covers.shape[1] != channels
    ):
        return BAD_ARGUMENT
    if direct:
        if transforms.shape[0] == 0 or codes.size or src.itemsize != dst.itemsize:
            return BAD_ARGUMENT
    elif (
        min(rows.shape[0], columns.shape[0]) < count
        or rows.shape[1] != out_height
        or columns.shape[1] != out_width
        or not (_within(rows, height) and _within(columns, width))
    ):
        return BAD_ARGUMENT
    made = 0 if direct else out_height * out_width * channels + SLACK
    _all(
        writable(src),
        count,
        (height, width, channels),
        (rows, columns, outside, transforms, mode, bilinear, fill),
        (out_height, out_width),
        (codes, numbers, boxes, covers),
        dst,
        (np.empty(made if transforms.shape[0] else 0, src.dtype), np.empty(made, src.dtype)),
        points_memory(out_height, out_width),
    )
    return 0
