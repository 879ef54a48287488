"""decode_png: of one file, and of a Block, whose usual files are decoded in one call without the GIL.

Each chunk is checked, so that damage is named with its place. No package of images is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.arena import ARENA
from penstock.block.column import BytesColumn, Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.errors import Context, InvalidArgumentError, annotate
from penstock.image import rules
from penstock.image.checks import MAX_VALUES, check_choice, check_contents
from penstock.image.png.chunks import MAX_INFLATION, PALETTE, SAMPLES, read_png
from penstock.image.png.pixels import NATIVE, pixels_of
from penstock.trace.graph import Allocate
from penstock.trace.lift import of_nature, traceable

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


def png_block(column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column] | None:
    """All files of a Block at once, where that gives what decoding them one by one gives."""
    plain = isinstance(column, BytesColumn) and column.starts.ndim == 1 and params["channels"] in (0, 1, 3, 4)
    if not plain or np.dtype(params["dtype"]) != np.uint8:
        return None
    return png_rows(column, lambda contents: decode_png(contents, **params), params["channels"], rows, allocate)


@of_nature(rules.DECODER)
@traceable("image.decode_png", rules.decoded, block=png_block)
def decode_png(contents: bytes, channels: int = 0, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
    """Decode one PNG into (height, width, channels), as tf.io.decode_png does.

    A palette becomes RGB, or RGBA if it has transparency. 16-bit files read as uint8 keep the upper byte, 8-bit files
    read as uint16 repeat theirs. Colour becomes grey by ITU-R BT.601 weights, in linear light if the file says its
    gamma. Of an animation it is the picture for readers that do not know them. Profiles and rotation are not applied.
    In `Dataset.map` the files of a Block are decoded in one go.

    >>> from penstock.image import encode_png
    >>> decode_png(encode_png(np.full((2, 3, 1), 7, np.uint8)), channels=3)[0, 0].tolist()
    [7, 7, 7]

    Args:
        contents: the bytes of the file.
        channels: 1 grey, 3 RGB, 4 RGBA, 0 what the file has (2 for grey with transparency).
        dtype: uint8 or uint16.

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: not a PNG, an absurd size, or an argument out of range.
    """
    data = bytes(check_contents("decode_png", contents))
    dtype = np.dtype(dtype)
    check_choice("decode_png", "channels", channels, (0, 1, 3, 4))
    check_choice("decode_png", "dtype", dtype, (np.dtype(np.uint8), np.dtype(np.uint16)))
    plain = decode_plain(data, channels) if dtype == np.uint8 else None
    if plain is not None:
        return plain
    image: npt.NDArray[Any] = pixels_of(read_png(data), channels, narrow=dtype == np.uint8)
    if image.dtype == np.uint16 and dtype == np.uint8:
        return (image >> 8).astype(np.uint8)
    if image.dtype == np.uint8 and dtype == np.uint16:
        return image.astype(np.uint16) * np.uint16(257)
    return image
