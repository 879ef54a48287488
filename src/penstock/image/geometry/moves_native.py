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
def _all(images, sizes, where, out_size, finish, results, made, points):
    """Run `moves` with checked sizes. `made` has memory for intermediate images."""
    bytes_in, floats_in, count = images
    height, width, channels = sizes
    rows, columns, outside, transforms, _, _, _ = where
    out_height, out_width = out_size
    codes, numbers, boxes, covers = finish
    bytes_out, floats_out = results
    size, values, direct = out_height * out_width * channels, height * width * channels, rows.shape[0] == 0
    byte_window, bytes_now, float_window, floats_now = made
    for n in range(count):
        at = n * size
        begin = at if direct else 0
        if bytes_in.size:
            into = bytes_out if direct else bytes_now
            if transforms.shape[0] == 0:
                _window(bytes_in, n * values, width, channels, rows[n], columns[n], outside, bytes_now)
            else:
                _one(bytes_in, n, sizes, where, out_size, byte_window, points, into, begin)
            if floats_out.size:
                _calculated(bytes_now, size, codes, numbers, floats_out, at)
            elif not direct:
                for k in range(np.uint64(size)):
                    bytes_out[np.uint64(at) + k] = bytes_now[k]
        else:
            target = floats_out if direct else floats_now
            if transforms.shape[0] == 0:
                _window(floats_in, n * values, width, channels, rows[n], columns[n], outside, floats_now)
            else:
                _one(floats_in, n, sizes, where, out_size, float_window, points, target, begin)
            if not direct:
                _calculated(floats_now, size, codes, numbers, floats_out, at)
        for k in range(covers.shape[0]):
            if floats_out.size:
                _covered(floats_out, at, out_height, out_width, channels, boxes[n, k], covers[k])
            else:
                _covered(bytes_out, at, out_height, out_width, channels, boxes[n, k], covers[k])


@kernel(
    "bytes_in: u8[:], floats_in: f32[:], count: i64, height: i64, width: i64, channels: i64, rows: i64[:, :], "
    "columns: i64[:, :], outside: f32, transforms: f32[:, :], mode: i64, bilinear: bool, fill: f32[:], "
    "out_height: i64, out_width: i64, codes: w i64[:], numbers: w f32[:, :], boxes: w i64[:, :, :], covers: w "
    "f32[:, :], bytes_out: w u8[:], floats_out: w f32[:] -> i64",
    makes_arrays=True,
)
def moves(
    bytes_in,
    floats_in,
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
    bytes_out,
    floats_out,
):
    """Move, change and cover each image. Return 0 or BAD_ARGUMENT.

    Images are in one of the flat `bytes_in` and `floats_in`. Results go to one of the flat `bytes_out` and
    `floats_out`. The other arrays are empty. `bytes_out` takes bytes that are only moved.
    First the pixels at `rows` (count, out height) and `columns` (count, out width) are taken; -1 stands for `outside`.
    Then a transform follows, if `transforms` has rows, (count, 8) or (1, 8). Then arithmetic follows: `codes` in
    float32, with `numbers` for the values of some pixels, repeated, (codes, pixels * channels). Last, `boxes` (count,
    covers, 4) are covered with `covers` (covers, channels). `outside` is a float32, as are `covers` and `fill`, which
    has one for each channel. Without `rows` and `columns`, (0, 0), only a transform runs, and the dtype stays.
    """
    room, direct = bytes_out.size + floats_out.size, rows.shape[0] == 0
    if (
        max(height, width, out_height, out_width) >= 1 << 24
        or (bytes_in.size and floats_in.size)
        or (bytes_out.size and (floats_out.size or floats_in.size or codes.size))
        or not fits(bytes_in.size + floats_in.size, count, height, width, channels)
        or not fits(room, count, out_height, out_width, channels)
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
        if transforms.shape[0] == 0 or codes.size or (bytes_in.size and floats_out.size):
            return BAD_ARGUMENT
    elif (
        min(rows.shape[0], columns.shape[0]) < count
        or rows.shape[1] != out_height
        or columns.shape[1] != out_width
        or not (_within(rows, height) and _within(columns, width))
    ):
        return BAD_ARGUMENT
    made = 0 if direct else out_height * out_width * channels + SLACK
    window = made if transforms.shape[0] else 0
    as_bytes, as_floats = (made, window) if bytes_in.size else (0, 0), (0, 0) if bytes_in.size else (made, window)
    byte_window, bytes_now = np.empty(as_bytes[1], np.uint8), np.empty(as_bytes[0], np.uint8)
    float_window, floats_now = np.empty(as_floats[1], np.float32), np.empty(as_floats[0], np.float32)
    _all(
        (writable(bytes_in), writable(floats_in), count),
        (height, width, channels),
        (rows, columns, outside, transforms, mode, bilinear, fill),
        (out_height, out_width),
        (codes, numbers, boxes, covers),
        (bytes_out, floats_out),
        (byte_window, bytes_now, float_window, floats_now),
        points_memory(out_height, out_width),
    )
    return 0
