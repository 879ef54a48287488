"""decode_png for a Block: files of one size in one call without the GIL, what that call leaves one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.arena import ARENA
from penstock.block.column import BytesColumn, Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.errors import Context, InvalidArgumentError, annotate
from penstock.image.checks import MAX_VALUES
from penstock.image.png_chunks import MAX_INFLATION, PALETTE, SAMPLES
from penstock.image.png_pixels import NATIVE
from penstock.trace.graph import Allocate

SHORTEST = 57  # bytes of the smallest file there can be
SIZE = slice(16, 24)  # where width and height are
DEPTH, COLOUR, INTERLACED = 24, 25, 28


def decode_png_block(
    buffer: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    *,
    as_stored: bool = False,
) -> npt.NDArray[np.int64]:
    """Decode the files `buffer[starts[i] : starts[i] + lengths[i]]` into `out[i]`; the rows that are not done.

    Done are sound files of 8 bits and not interlaced, of the height and width of `out`; their pixels are those of
    `decode_png`. While the kernel is being compiled no row is. Holds the GIL for microseconds, not for the Block.

    >>> from penstock.image import encode_png
    >>> from penstock.compiled import wait_for_kernels
    >>> ready, wait = NATIVE.ready(), wait_for_kernels()
    >>> file = np.frombuffer(encode_png(np.full((1, 2, 3), 7, np.uint8)), np.uint8)
    >>> out = np.zeros((2, 1, 2, 3), np.uint8)
    >>> decode_png_block(file, np.array([0, 5]), np.array([len(file), 20]), out).tolist(), out[0, 0].tolist()
    ([1], [[7, 7, 7], [7, 7, 7]])

    Args:
        buffer: bytes with all files, in any order and with anything between them.
        starts: (N,) where each file starts.
        lengths: (N,) how many bytes it has.
        out: (N, height, width, channels) in C order; undefined where a row is not done.
        as_stored: take only files that have as many channels as `out`, instead of converting.

    Raises:
        InvalidArgumentError: `out` is not uint8, not in C order or of another length than `starts`.
    """
    if out.dtype != np.uint8 or out.ndim != 4 or not out.flags.c_contiguous or len(out) != len(starts):
        message = (
            f"decode_png_block writes into C-contiguous uint8 ({len(starts)}, height, width, channels), "
            f"got {out.dtype} of shape {out.shape}."
        )
        raise InvalidArgumentError(message)
    native = NATIVE.ready()
    if native is None:
        return np.arange(len(starts))
    done = np.zeros(len(starts), np.uint8)
    places = _unwritable(buffer, np.uint8), _unwritable(starts, np.int64), _unwritable(lengths, np.int64)
    native.decode_block(*places, as_stored, out.shape[1], out.shape[2], out.reshape(-1), done)
    return np.flatnonzero(done == 0)


def _unwritable(array: npt.NDArray[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """A view of the one type that the kernel is compiled for."""
    view = np.ascontiguousarray(array, dtype).view()
    view.flags.writeable = False
    return view


def png_rows(
    column: BytesColumn, decode: Callable[..., Any], channels: int, rows: int, allocate: Allocate | None
) -> Sequence[Column] | None:
    """The Block's images as uint8; None where they are not all of one size, or not of the common kinds.

    `decode` decodes a single file, for those that are left, and says what is wrong with them.
    """
    buffer, starts, lengths = column.packed()
    shape = _shape(buffer, starts, lengths, channels)
    if shape is None or NATIVE.ready() is None:
        return None
    place = None if allocate is None else allocate(shape, np.uint8)
    out = ARENA.empty((rows, *shape), np.uint8) if place is None else place
    left = decode_png_block(buffer, starts, lengths, out, as_stored=not channels)
    others: dict[int, Any] = {}
    for row in left.tolist():
        try:
            image = decode(buffer[starts[row] : starts[row] + lengths[row]])
        except Exception as error:
            annotate(error, Context(element=row))
            raise
        if image.shape == shape:
            out[row] = image
        else:
            others[row] = image
    if not others:
        return [DenseColumn(out)]
    return [column_of([as_leaf(others[row] if row in others else out[row]) for row in range(rows)])]


def decode_plain(data: bytes, channels: int) -> npt.NDArray[np.uint8] | None:
    """One file by the same kernel; None for what it does not take or finds damaged.

    >>> decode_plain(b"no PNG at all", 3) is None
    True
    """
    shape = _plain_shape(data, channels)
    if shape is None or NATIVE.ready() is None:
        return None
    out = np.empty((1, *shape), np.uint8)
    whole = np.frombuffer(data, np.uint8), np.zeros(1, np.int64), np.array([len(data)])
    return None if decode_png_block(*whole, out, as_stored=not channels).size else out[0]


def _shape(
    buffer: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], channels: int
) -> tuple[int, int, int] | None:
    """Height, width and channels that all headers agree on, if the files may hold so much."""
    if not len(starts) or lengths.min() < SHORTEST:
        return None
    sizes = buffer[starts[:, None] + np.arange(SIZE.start, SIZE.stop)]
    if (sizes != sizes[0]).any():
        return None
    shape = _plain_shape(buffer[starts[0] : starts[0] + lengths[0]].tobytes(), channels)
    fits = shape is not None and _fits(shape, len(starts), int(lengths.sum()))
    return shape if fits else None


def _plain_shape(data: bytes, channels: int) -> tuple[int, int, int] | None:
    """Height, width and channels of a file that looks as if the kernel took it."""
    if len(data) < SHORTEST or data[DEPTH] != 8 or data[INTERLACED] or data[COLOUR] not in SAMPLES:
        return None
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    if not channels:
        channels = SAMPLES[data[COLOUR]]
        if data[COLOUR] == PALETTE:
            channels = 4 if b"tRNS" in data else 3
    shape = height, width, channels
    return shape if 0 < height * width * channels < MAX_VALUES and _fits(shape, 1, len(data)) else None


def _fits(shape: tuple[int, int, int], rows: int, packed: int) -> bool:
    """Whether so many bytes can unpack to so many pixels; a byte of a palette or of grey may become four."""
    height, width, channels = shape
    return rows * height * width * channels <= 4 * MAX_INFLATION * packed
