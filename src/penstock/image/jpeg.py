"""Decode JPEG: libjpeg-turbo through simplejpeg, with TensorFlow's defaults bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataLossError, InvalidArgumentError
from penstock.image import rules
from penstock.image.backends import simplejpeg
from penstock.image.checks import check_choice, check_contents, refuse_absurd_size
from penstock.image.jpeg_damage import REFUSALS, describe, despite_damage, intact_rows, is_unnamed
from penstock.image.jpeg_sampling import decode_parts, oddly_sampled
from penstock.image.jpeg_segments import with_width, without_capacity
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from penstock.block.column import Column
    from penstock.trace.graph import Allocate

PARTED = "sampled so that its components are decoded one by one"
COMPONENTS = {PARTED: 3, "Gray": 1, "YCbCr": 3, "RGB": 3, "CMYK": 4, "YCCK": 4}
AMBIGUOUS = 5  # pixels of a side, of which several of libjpeg's scales make as many: it would take the largest of them
PIXELS_PER_BYTE = 512  # at least one bit per block of 8 x 8: no file that is whole holds more


def jpeg_block(column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column] | None:
    """All files of a Block at once."""
    from penstock.image.jpeg_column import decode_column  # which is built on this module

    return decode_column(column, params, rows, allocate)


@traceable("image.decode_jpeg", rules.decoded, block=jpeg_block)
def decode_jpeg(
    contents: bytes,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1.0,
    dct_method: str = "",
) -> npt.NDArray[np.uint8]:
    """Decode one JPEG into (height, width, channels) uint8, as tf.io.decode_jpeg does.

    The default is TensorFlow's: the fast integer DCT with smooth upsampling of colour. CMYK becomes RGB. An EXIF
    rotation is not applied. A progressive file that lacks scans is smoothed, by a few levels otherwise than there. Runs
    without the GIL; in `Dataset.map` a Block of pictures of one size at a time.

    >>> from penstock.image import encode_jpeg
    >>> decode_jpeg(encode_jpeg(np.full((4, 6, 3), 200, np.uint8)), channels=1).shape
    (4, 6, 1)

    Args:
        contents: the bytes of the file.
        channels: 3 for RGB, 1 for grey, 0 for what the file has.
        ratio: decode to 1/1, 1/2, 1/4 or 1/8 of the size (rounded up), which costs less than decoding all.
        fancy_upscaling: interpolate colour between its coarser samples; without, they are repeated.
        try_recover_truncated: fill in what is missing at the end of a cut file, which gives grey. Where in a row of
            units the file ends, TensorFlow makes up other pixels.
        acceptable_fraction: accept a cut file if this share of its rows is whole; the missing rows are black.
        dct_method: "" or "INTEGER_FAST", or "INTEGER_ACCURATE" (as most other libraries decode).

    Raises:
        DataLossError: the file is cut short, or damaged outside of its rows. Damage in the rows of a file with an end
            marker is filled in as libjpeg and TensorFlow do: with grey, or with what the bytes happen to say.
        InvalidArgumentError: not a JPEG, an absurd size, or an argument out of range.
        MissingDependencyError: simplejpeg is not installed.
    """
    data = check_contents("decode_jpeg", contents)
    check_decode_jpeg(channels, ratio, dct_method)
    settings = {"fastdct": dct_method != "INTEGER_ACCURATE", "fastupsample": not fancy_upscaling}
    try:
        return decode_into(data, None, channels, ratio, **settings, cut=try_recover_truncated)
    except DataLossError:
        if try_recover_truncated or acceptable_fraction >= 1:
            raise
    return _whole_rows(bytes(data), channels, ratio, settings, acceptable_fraction)


def check_decode_jpeg(channels: int, ratio: int, dct_method: str) -> None:
    """Refuse arguments of `decode_jpeg` that are out of range.

    Raises:
        InvalidArgumentError: one is.
    """
    check_choice("decode_jpeg", "channels", channels, (0, 1, 3))
    check_choice("decode_jpeg", "ratio", ratio, (1, 2, 4, 8))
    check_choice("decode_jpeg", "dct_method", dct_method, ("", "INTEGER_FAST", "INTEGER_ACCURATE"))


def extract_jpeg_shape(contents: bytes, output_type: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
    """Read `[height, width, channels]` from the header without decoding; channels as stored, 4 for CMYK.

    >>> from penstock.image import encode_jpeg
    >>> extract_jpeg_shape(encode_jpeg(np.zeros((4, 6, 1), np.uint8))).tolist()
    [4, 6, 1]

    Raises:
        DataLossError: the header is damaged.
        InvalidArgumentError: not a JPEG.
    """
    data = check_contents("extract_jpeg_shape", contents)
    height, width, space = _header(data)
    return np.array([height, width, COMPONENTS[space]], output_type)


@traceable("image.is_jpeg", rules.told)
def is_jpeg(contents: bytes) -> np.bool_:
    """Whether the bytes begin as a JPEG does, as tf.io.is_jpeg says; the rest is not looked at.

    >>> from penstock.image import encode_jpeg, encode_png
    >>> image = np.zeros((4, 6, 1), np.uint8)
    >>> bool(is_jpeg(encode_jpeg(image))), bool(is_jpeg(encode_png(image)))
    (True, False)

    Raises:
        InvalidTypeError: not a bytes-like object.
    """
    return np.bool_(bytes(check_contents("is_jpeg", contents)[:3]) == b"\xff\xd8\xff")


def decode_into(
    data: bytes | memoryview,
    buffer: Any,
    channels: int,
    ratio: int = 1,
    *,
    fastdct: bool = True,
    fastupsample: bool = False,
    cut: bool = False,
) -> npt.NDArray[np.uint8]:
    """Decode into `buffer` (bytes-like and large enough, or a function from the size needed to one), or a new array.

    The result is a view of `buffer`, which may be longer. With `cut` a file may end anywhere behind its header: libjpeg
    fills in what is missing.

    >>> from penstock.image import encode_jpeg
    >>> scratch = np.empty(100, np.uint8)
    >>> image = decode_into(encode_jpeg(np.zeros((4, 6, 3), np.uint8)), scratch, 3)
    >>> image.shape, np.shares_memory(image, scratch)
    ((4, 6, 3), True)

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: not a JPEG, or of an absurd size.
    """
    rows, columns, space = _header(data)
    height, width, components = -(-rows // ratio), -(-columns // ratio), COMPONENTS[space]
    refuse_absurd_size("decode_jpeg", height, width, components)
    if rows * columns > PIXELS_PER_BYTE * len(data) and without_capacity(data):
        message = f"JPEG cut short: its header says {columns} x {rows} pixels, which {len(data)} bytes cannot hold."
        raise DataLossError(message)
    channels = channels or min(components, 3)
    cmyk = components == 4
    if cmyk and channels == 1:
        message = "decode_jpeg: a CMYK picture cannot be decoded to channels=1."
        raise InvalidArgumentError(message, hint="Decode it with channels=3 and convert the result.")
    colorspace = "CMYK" if cmyk else "GRAY" if channels == 1 else "RGB"
    if callable(buffer):
        buffer = buffer(height * width * channels)
    if space == PARTED:
        image = decode_parts(bytes(data), channels, ratio, fastdct=fastdct, fastupsample=fastupsample)
        return _placed(image, buffer)
    if ratio > 1 and max(rows, columns) <= AMBIGUOUS:
        settings = {"fastdct": fastdct, "fastupsample": fastupsample, "cut": cut}
        wider = decode_into(with_width(data, 8), None, channels, ratio, **settings)
        return _placed(wider[:, :width].copy(), buffer)

    def decode(contents: bytes | memoryview, memory: Any, strict: bool) -> npt.NDArray[np.uint8]:
        image: npt.NDArray[np.uint8] = simplejpeg().decode_jpeg(
            contents,
            colorspace,
            fastdct=fastdct,
            fastupsample=fastupsample,
            min_height=height if ratio > 1 else 0,
            min_width=width if ratio > 1 else 0,
            min_factor=ratio,
            buffer=memory,
            strict=strict,
        )
        return image

    memory = None if cmyk else buffer
    try:
        image = decode(data, memory, True)
    except REFUSALS as error:
        size = height * width * (4 if cmyk else channels)
        memory = np.empty(size, np.uint8) if memory is None else np.frombuffer(memory, np.uint8)[:size]
        image = despite_damage(bytes(data), str(error), decode, memory, cut=cut)
    return _rgb_from_cmyk(image, bytes(data), buffer) if cmyk else image


def _header(data: bytes | memoryview) -> tuple[int, int, str]:
    """Height, width, and the colour space."""
    try:
        height, width, space, _ = simplejpeg().decode_jpeg_header(data, strict=False)
    except REFUSALS as error:
        found = oddly_sampled(data) if is_unnamed(str(error)) else None
        if found is None:
            raise describe(bytes(data), str(error)) from None
        return found.height, found.width, PARTED
    if space not in COMPONENTS:
        message = f"decode_jpeg: unknown colour space {space!r}."
        raise InvalidArgumentError(message)
    return height, width, space


def _rgb_from_cmyk(image: npt.NDArray[np.uint8], contents: bytes, buffer: Any) -> npt.NDArray[np.uint8]:
    """TensorFlow's formula; files with Adobe's marker store ink inverted."""
    ink = image.astype(np.uint16)
    if b"\xff\xee\x00\x0eAdobe" not in contents:
        ink = 255 - ink
    rgb = (ink[..., :3] * ink[..., 3:] // 255).astype(np.uint8)
    return _placed(rgb, buffer)


def _placed(image: npt.NDArray[np.uint8], buffer: Any) -> npt.NDArray[np.uint8]:
    """The pixels at the beginning of `buffer`, if there is one."""
    if buffer is None:
        return image
    out = np.frombuffer(buffer, np.uint8)[: image.size].reshape(image.shape)
    out[...] = image
    return out


def _whole_rows(
    contents: bytes, channels: int, ratio: int, settings: dict[str, bool], acceptable_fraction: float
) -> npt.NDArray[np.uint8]:
    def filled_in(contents: bytes) -> npt.NDArray[np.uint8]:
        return decode_into(contents, None, channels, ratio, **settings, cut=True)

    image = filled_in(contents)
    rows = intact_rows(contents, filled_in)
    if rows < acceptable_fraction * len(image):
        message = (
            f"JPEG cut short: {rows} of {len(image)} rows are whole, "
            f"acceptable_fraction={acceptable_fraction} asks for {acceptable_fraction * len(image):g}."
        )
        raise DataLossError(message)
    image[rows:] = 0
    return image
