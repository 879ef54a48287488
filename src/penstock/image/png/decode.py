"""decode_png, for one file and for a Block. The usual files of a Block are decoded in one call without the GIL.

The module also has the plain decoder, from a PNG's stream of packed rows to its pixels.

Each chunk is checked, so that errors name the position of damage. No image package is needed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.block.arena import ARENA
from penstock.block.column import BytesColumn, Column, DenseColumn, column_of
from penstock.block.leaf import as_leaf
from penstock.errors import Context, DataLossError, InvalidArgumentError, annotate
from penstock.image import rules
from penstock.image.channels import grey_in_linear_light, is_significant, with_channels
from penstock.image.checks import MAX_VALUES, check_choice, check_contents
from penstock.image.png.chunks import GREY, MAX_INFLATION, PALETTE, RGB, SAMPLES, PngFile, PngHeader, read_png
from penstock.native.library import Kernels
from penstock.trace.graph import Allocate
from penstock.trace.lift import of_nature, traceable


def unfilter(raw: npt.NDArray[np.uint8], height: int, stride: int, step: int, out: npt.NDArray[np.uint8]) -> bool:
    """Undo the filters of `height` rows of `raw`, each a filter's number and `stride` bytes, into `out`.

    `step` is the distance in bytes to the left neighbour. Returns False for an invalid filter number. A byte needs its
    neighbours to the left, above and between, so all bytes of a diagonal are computed at once.

    >>> out = np.empty(4, np.uint8)
    >>> unfilter(np.array([0, 1, 2, 2, 3, 4], np.uint8), 2, 2, 1, out), out.tolist()
    (True, [1, 2, 4, 6])
    """
    rows = raw[: height * (stride + 1)].reshape(height, stride + 1)
    kinds = rows[:, :1]
    if (kinds > 4).any():
        return False
    columns = stride // step
    whole = np.zeros((height + 1, columns + 1, step), np.int16)  # a row and a column of zeros before the first
    whole[1:, 1:] = rows[:, 1:].reshape(height, columns, step)
    pixels = whole.reshape(-1, step)
    nothing = np.int16(0)
    for diagonal in range(height + columns - 1):
        first = max(0, diagonal - columns + 1)
        count = min(height, diagonal + 1) - first
        at = (first + 1) * (columns + 1) + diagonal - first + 1
        end = at + (count - 1) * columns + 1  # one row down and one pixel to the left is `columns` further
        left, up = pixels[at - 1 : end - 1 : columns], pixels[at - columns - 1 : end - columns - 1 : columns]
        corner = pixels[at - columns - 2 : end - columns - 2 : columns]
        here = pixels[at:end:columns]
        guesses = (nothing, left, up, (left + up) >> 1, _nearest(left, up, corner))
        here += kinds[first : first + count].choose(guesses)
        here &= 255
    out[: height * stride] = whole[1:, 1:].reshape(-1)
    return True


def _nearest(left: Any, up: Any, corner: Any) -> Any:
    """Return the neighbour that is nearest to left + up - corner: Paeth's filter."""
    from_left, from_up = up - corner, left - corner
    to_left, to_up, to_corner = np.abs(from_left), np.abs(from_up), np.abs(from_left + from_up)
    return np.where(to_left <= np.minimum(to_up, to_corner), left, np.where(to_up <= to_corner, up, corner))


NATIVE = Kernels("penstock.image.png.kernels.block")
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def pixels_of(png: PngFile, channels: int, *, narrow: bool) -> Any:
    """Return (height, width, `channels`) at the file's own depth, uint8 or uint16; 0 keeps the file's channels.

    `narrow` is True if 16 bits will be cut to 8, which changes libpng's conversion of colour to grey.

    Raises:
        DataLossError: the stream is damaged or too short.
    """
    colour = png.header.colour
    samples = _samples(png)
    alpha: npt.NDArray[Any] | None = None
    if colour == PALETTE:
        assert png.palette is not None
        if png.transparent is not None:
            opacity = np.full(256, 255, np.uint8)
            opacity[: len(png.transparent)] = np.frombuffer(png.transparent, np.uint8)
            alpha = opacity[samples]
        samples = png.palette[samples[..., 0]]
        channels = channels or (3 if alpha is None else 4)
    elif colour in (GREY, RGB) and png.transparent is not None and channels == 4:
        key = np.frombuffer(png.transparent, ">u2") & ((1 << png.header.depth) - 1)
        seen = (samples == key).all(axis=-1, keepdims=True)
        alpha = np.where(seen, 0, np.iinfo(samples.dtype).max).astype(samples.dtype)
    if colour == GREY and png.header.depth < 8:
        samples = samples * np.uint8(255 // ((1 << png.header.depth) - 1))
    if channels == 1 and samples.shape[-1] > 2 and is_significant(png.gamma):
        return grey_in_linear_light(samples[..., :3], png.gamma, _shift(png, narrow=narrow), narrow=narrow)
    if alpha is not None:
        samples = np.concatenate([samples, alpha], axis=-1)
    return with_channels(samples, channels)


def _shift(png: PngFile, *, narrow: bool) -> int:
    """Return the number of low bits of 16 that libpng ignores, 0 for 8 bits."""
    if png.header.depth < 16:
        return 0
    unused = 16 - png.significant if 0 < png.significant < 16 else 0
    return min(8, max(unused, 5) if narrow else unused)


def _samples(png: PngFile) -> npt.NDArray[Any]:
    """Return (height, width, samples). Palette indices, and grey of less than 8 bits, are as stored."""
    header = png.header
    raw = _inflated(
        png.packed, sum(height * (_stride(header, width) + 1) for height, width, _ in _parts(header)), header
    )
    if not header.interlaced:
        return _part(raw, header, header.height, header.width)
    whole = np.empty(
        (header.height, header.width, SAMPLES[header.colour]), np.uint16 if header.depth == 16 else np.uint8
    )
    at = 0
    for height, width, place in _parts(header):
        whole[place] = _part(raw[at:], header, height, width)
        at += height * (_stride(header, width) + 1)
    return whole


def _parts(header: PngHeader) -> Iterator[tuple[int, int, tuple[slice, slice]]]:
    """Yield height, width and place of the file's partial images: up to seven if it is interlaced, else one."""
    for x, y, dx, dy in PASSES if header.interlaced else ((0, 0, 1, 1),):
        height, width = -((y - header.height) // dy), -((x - header.width) // dx)
        if height > 0 and width > 0:
            yield height, width, (slice(y, None, dy), slice(x, None, dx))


def _stride(header: PngHeader, width: int) -> int:
    return (width * SAMPLES[header.colour] * header.depth + 7) // 8


def _inflated(packed: bytes, size: int, header: PngHeader) -> npt.NDArray[np.uint8]:
    """Return the first `size` bytes of the decompressed stream. If there are no more, their checksum is verified."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, size)
        ended = stream.eof or bool(stream.decompress(stream.unconsumed_tail, 1)) or stream.eof
    except zlib.error as error:
        raise DataLossError(f"PNG damaged: its pixels cannot be unpacked (zlib: {error}).") from None
    if len(raw) < size or not ended:
        raise DataLossError(
            f"PNG damaged: its {len(packed)} packed bytes do not unpack to {header.width} x {header.height} pixels."
        )
    return np.frombuffer(bytearray(raw), np.uint8)


def _part(raw: npt.NDArray[np.uint8], header: PngHeader, height: int, width: int) -> npt.NDArray[Any]:
    """Return the samples of one partial image, whose filtered rows are at the start of `raw`."""
    stride = _stride(header, width)
    step = max(1, SAMPLES[header.colour] * header.depth // 8)
    out = np.empty(height * stride, np.uint8)
    native = NATIVE.loaded()
    sound = (
        unfilter(raw, height, stride, step, out)
        if native is None
        else native.unfilter(raw, height, stride, step, out, 0)
    )
    if not sound:
        raise DataLossError("PNG damaged: a row names a filter that there is not; filters are 0 to 4.")
    if header.depth == 16:
        return out.view(">u2").astype(np.uint16).reshape(height, width, -1)
    if header.depth == 8:
        return out.reshape(height, width, -1)
    bits = np.unpackbits(out.reshape(height, stride), axis=1).reshape(height, -1, header.depth)[:, :width]
    return np.packbits(bits, axis=-1) >> np.uint8(8 - header.depth)


SHORTEST = 57  # bytes of the smallest possible file
SIZE = slice(16, 24)  # positions of width and height
DEPTH, COLOUR, INTERLACED = 24, 25, 28


def decode_png_block(
    buffer: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64],
    out: npt.NDArray[np.uint8],
    *,
    as_stored: bool = False,
) -> npt.NDArray[np.int64]:
    """Decode the files `buffer[starts[i] : starts[i] + lengths[i]]` into `out[i]`. Return the rows that are not done.

    The function decodes valid files of 8 bits, not interlaced, of the height and width of `out`. Their pixels equal
    those of `decode_png`. Without the kernel it decodes none. It holds the GIL for microseconds only.

    >>> from penstock.image import encode_png
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
        raise InvalidArgumentError(
            f"decode_png_block writes into C-contiguous uint8 ({len(starts)}, height, width, channels), "
            f"got {out.dtype} of shape {out.shape}."
        )
    native = NATIVE.loaded()
    if native is None:
        return np.arange(len(starts))
    done = np.zeros(len(starts), np.uint8)
    places = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)
    native.decode_block(
        np.ascontiguousarray(buffer, np.uint8), *places, as_stored, out.shape[1], out.shape[2], out.reshape(-1), done
    )
    return np.flatnonzero(done == 0)


def png_rows(
    column: BytesColumn, decode: Callable[..., Any], channels: int, rows: int, allocate: Allocate | None
) -> Sequence[Column] | None:
    """Return the Block's images as uint8, or None if they differ in size or are not of the usual kinds.

    `decode` decodes a single remaining file, or reports its error.
    """
    buffer, starts, lengths = column.packed()
    shape = _shape(buffer, starts, lengths, channels)
    if shape is None or NATIVE.loaded() is None:
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
    """Decode one file with the kernel. Return None for an unsupported or damaged file.

    >>> decode_plain(b"no PNG at all", 3) is None
    True
    """
    shape = _plain_shape(data, channels)
    if shape is None or NATIVE.loaded() is None:
        return None
    out = np.empty((1, *shape), np.uint8)
    whole = np.frombuffer(data, np.uint8), np.zeros(1, np.int64), np.array([len(data)])
    return None if decode_png_block(*whole, out, as_stored=not channels).size else out[0]


def _shape(
    buffer: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64], channels: int
) -> tuple[int, int, int] | None:
    """Return height, width and channels that all headers share, if the files may contain so many pixels."""
    if not len(starts) or lengths.min() < SHORTEST:
        return None
    sizes = buffer[starts[:, None] + np.arange(SIZE.start, SIZE.stop)]
    if (sizes != sizes[0]).any():
        return None
    shape = _plain_shape(buffer[starts[0] : starts[0] + lengths[0]].tobytes(), channels)
    fits = shape is not None and _fits(shape, len(starts), int(lengths.sum()))
    return shape if fits else None


def _plain_shape(data: bytes, channels: int) -> tuple[int, int, int] | None:
    """Return height, width and channels of a file that the kernel probably supports."""
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
    """Return True if `packed` bytes can decompress to this shape. A byte of a palette or of grey may become four."""
    height, width, channels = shape
    return rows * height * width * channels <= 4 * MAX_INFLATION * packed


def png_block(column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column] | None:
    """Decode all files of a Block at once, if this is equal to decoding them one by one."""
    plain = isinstance(column, BytesColumn) and column.starts.ndim == 1 and params["channels"] in (0, 1, 3, 4)
    if not plain or np.dtype(params["dtype"]) != np.uint8:
        return None
    return png_rows(column, lambda contents: decode_png(contents, **params), params["channels"], rows, allocate)


@of_nature(rules.DECODER)
@traceable("image.decode_png", rules.decoded, block=png_block, fresh=True)
def decode_png(contents: bytes, channels: int = 0, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
    """Decode a PNG, as tf.io.decode_png does.

    A palette becomes RGB, or RGBA if it has transparency. 16-bit files read as uint8 keep the upper byte, 8-bit files
    read as uint16 repeat theirs. Colour becomes grey by ITU-R BT.601 weights, in linear light if the file says its
    gamma. Of an animation it is the image for readers that do not know them. Profiles and rotation are not applied. In
    `Dataset.map` the files of a Block are decoded in one go.

    Args:
        contents: The bytes of the file.
        channels: 1 grey, 3 RGB, 4 RGBA, 0 what the file has (2 for grey with transparency).
        dtype: uint8 or uint16.

    Returns:
        Array of shape (height, width, channels), uint8 or uint16.

    Raises:
        DataLossError: If the file is truncated or damaged.
        InvalidArgumentError: If the file is not a PNG, if its size is implausible, or if an argument is out of range.

    Example:
        >>> from penstock.image import encode_png
        >>> decode_png(encode_png(np.full((2, 3, 1), 7, np.uint8)), channels=3)[0, 0].tolist()
        [7, 7, 7]
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
