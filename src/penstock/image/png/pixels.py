"""From a PNG's stream of packed rows to its pixels: unpack, undo the filters and the interlacing, find the alpha."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.compiled import Compiled
from penstock.errors import DataLossError
from penstock.image.channels import grey_in_linear_light, is_significant, with_channels
from penstock.image.png.chunks import GREY, PALETTE, RGB, SAMPLES, PngFile, PngHeader


def unfilter(raw: npt.NDArray[np.uint8], height: int, stride: int, step: int, out: npt.NDArray[np.uint8]) -> bool:
    """Undo the filters of `height` rows of `raw`, each a filter's number and `stride` bytes, into `out`.

    `step` is how many bytes before a byte its neighbour to the left is. False if a filter's number is none. A byte
    needs those to its left, above and between; so all bytes of a diagonal are done at once.

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
        end = at + (count - 1) * columns + 1  # a row down and one to the left is `columns` further
        left, up = pixels[at - 1 : end - 1 : columns], pixels[at - columns - 1 : end - columns - 1 : columns]
        corner = pixels[at - columns - 2 : end - columns - 2 : columns]
        here = pixels[at:end:columns]
        guesses = (nothing, left, up, (left + up) >> 1, _nearest(left, up, corner))
        here += kinds[first : first + count].choose(guesses)
        here &= 255
    out[: height * stride] = whole[1:, 1:].reshape(-1)
    return True


def _nearest(left: Any, up: Any, corner: Any) -> Any:
    """The neighbour of a byte that is nearest to left + up - corner: Paeth's filter."""
    from_left, from_up = up - corner, left - corner
    to_left, to_up, to_corner = np.abs(from_left), np.abs(from_up), np.abs(from_left + from_up)
    return np.where(to_left <= np.minimum(to_up, to_corner), left, np.where(to_up <= to_corner, up, corner))


NATIVE = Compiled("penstock.image.png.kernels.block")
PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def pixels_of(png: PngFile, channels: int, *, narrow: bool) -> Any:
    """(height, width, `channels`) at the file's own depth, uint8 or uint16; 0 channels for those of the file.

    `narrow` says that 16 bits will be cut to 8, which libpng knows when it makes grey of colour.

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
    """How many low bits of 16 libpng does not look at; none of 8."""
    if png.header.depth < 16:
        return 0
    unused = 16 - png.significant if 0 < png.significant < 16 else 0
    return min(8, max(unused, 5) if narrow else unused)


def _samples(png: PngFile) -> npt.NDArray[Any]:
    """(height, width, samples): indices of a palette, and grey of less than 8 bits, as they are stored."""
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
    """Height, width and place of the pictures that the file consists of: seven at most where it is interlaced."""
    for x, y, dx, dy in PASSES if header.interlaced else ((0, 0, 1, 1),):
        height, width = -((y - header.height) // dy), -((x - header.width) // dx)
        if height > 0 and width > 0:
            yield height, width, (slice(y, None, dy), slice(x, None, dx))


def _stride(header: PngHeader, width: int) -> int:
    return (width * SAMPLES[header.colour] * header.depth + 7) // 8


def _inflated(packed: bytes, size: int, header: PngHeader) -> npt.NDArray[np.uint8]:
    """The first `size` bytes that `packed` unpacks to; if there are no more, their checksum is right."""
    stream = zlib.decompressobj()
    try:
        raw = stream.decompress(packed, size)
        ended = stream.eof or bool(stream.decompress(stream.unconsumed_tail, 1)) or stream.eof
    except zlib.error as error:
        message = f"PNG damaged: its pixels cannot be unpacked (zlib: {error})."
        raise DataLossError(message) from None
    if len(raw) < size or not ended:
        message = (
            f"PNG damaged: its {len(packed)} packed bytes do not unpack to {header.width} x {header.height} pixels."
        )
        raise DataLossError(message)
    return np.frombuffer(bytearray(raw), np.uint8)


def _part(raw: npt.NDArray[np.uint8], header: PngHeader, height: int, width: int) -> npt.NDArray[Any]:
    """The samples of one picture whose filtered rows `raw` begins with."""
    stride = _stride(header, width)
    step = max(1, SAMPLES[header.colour] * header.depth // 8)
    out = np.empty(height * stride, np.uint8)
    native = NATIVE.ready()
    sound = (
        unfilter(raw, height, stride, step, out)
        if native is None
        else native.unfilter(raw, height, stride, step, out, 0)
    )
    if not sound:
        message = "PNG damaged: a row names a filter that there is not; filters are 0 to 4."
        raise DataLossError(message)
    if header.depth == 16:
        return out.view(">u2").astype(np.uint16).reshape(height, width, -1)
    if header.depth == 8:
        return out.reshape(height, width, -1)
    bits = np.unpackbits(out.reshape(height, stride), axis=1).reshape(height, -1, header.depth)[:, :width]
    return np.packbits(bits, axis=-1) >> np.uint8(8 - header.depth)
