"""Decode an image of any known format, found out from its first bytes."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.column import BytesColumn, Column, column_of
from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.bmp import decode_bmp
from penstock.image.channels import with_channels
from penstock.image.checks import check_choice, check_contents, format_of
from penstock.image.dtypes import convert_image_dtype
from penstock.image.gif import gif_frames
from penstock.image.jpeg.decode import decode_jpeg, jpeg_block
from penstock.image.png.decode import decode_png, png_block
from penstock.image.webp import webp_frames
from penstock.trace.lift import traceable
from penstock.trace.nature import of_nature

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from penstock.trace.graph import Allocate

_JPEG = {name: value.default for name, value in signature(decode_jpeg).parameters.items() if name != "contents"}
DTYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32))


def _block(column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column] | None:
    """The files of a Block, all JPEGs and all PNGs of them at once."""
    if not isinstance(column, BytesColumn) or column.starts.ndim != 1:
        return None
    kinds = np.array([format_of(file) for file in column.views()])
    if params["expand_animations"] and np.isin(kinds, ("GIF", "WebP")).any():
        message = "A GIF or WebP among pictures: its frames are an axis more."  # they are decoded one by one
        raise InvalidArgumentError(message)
    if np.dtype(params["dtype"]) != np.uint8:
        return None
    found: list[Column] = []
    places: list[npt.NDArray[np.intp]] = []
    for kind in np.unique(kinds):
        here = np.flatnonzero(kinds == kind)
        files = column if len(here) == rows else column.take(here)
        found.append(_of_kind(str(kind), files, params, allocate if len(here) == rows else None))
        places.append(here)
    if len(found) == 1:
        return found
    values = [value for part in found for value in part.values()]
    return [column_of([values[i] for i in np.argsort(np.concatenate(places), kind="stable")])]


def _of_kind(kind: str, files: BytesColumn, params: Mapping[str, Any], allocate: Allocate | None) -> Column:
    """Files of one format, decoded at once where that has a form for it."""
    channels = params["channels"] or 0
    whole: Sequence[Column] | None = None
    if kind == "JPEG" and channels in (0, 1, 3):
        whole = jpeg_block(files, {**_JPEG, "channels": channels}, len(files), allocate)
    elif kind == "PNG" and channels in (0, 1, 3, 4):
        whole = png_block(files, {"channels": channels, "dtype": np.uint8}, len(files), allocate)
    return column_of([decode_image(bytes(file), **params) for file in files.views()]) if whole is None else whole[0]


@of_nature(rules.DECODER)
@traceable("image.decode_image", rules.decoded_any, block=_block, presumes=lambda params: params["expand_animations"])
def decode_image(
    contents: bytes,
    channels: int | None = None,
    dtype: npt.DTypeLike = np.uint8,
    expand_animations: bool = True,
) -> npt.NDArray[Any]:
    """Decode a JPEG, PNG, GIF, BMP or WebP, as tf.io.decode_image does.

    The result is (height, width, channels); for a GIF or WebP, moving or not, (frames, height, width, channels) unless
    `expand_animations` is False, which takes the first frame. Otherwise the result is that of `decode_jpeg`,
    `decode_png`, `decode_gif`, `decode_bmp` and `decode_webp`.

    >>> from penstock.image import encode_png
    >>> decode_image(encode_png(np.full((2, 3, 3), 255, np.uint8)), dtype=np.float32).max()
    np.float32(1.0)

    Args:
        contents: the bytes of the file.
        channels: 1, 3 or 4; None or 0 for what the file has. JPEG has no 4, GIF only 3.
        dtype: uint8, uint16 or float32; other than the file's, it is scaled as `convert_image_dtype` does.
        expand_animations: keep all frames of a GIF or WebP.

    Raises:
        DataLossError: the file is cut short or damaged.
        InvalidArgumentError: not one of these formats, an absurd size, or an argument out of range.
        MissingDependencyError: the package that reads this format is not installed.
    """
    data = bytes(check_contents("decode_image", contents))
    channels = channels or 0
    dtype = np.dtype(dtype)
    check_choice("decode_image", "channels", channels, (0, 1, 3, 4))
    check_choice("decode_image", "dtype", dtype, DTYPES)
    image: npt.NDArray[Any] = convert_image_dtype(_decoded(data, channels, dtype, expand_animations), dtype)
    return image


def _decoded(data: bytes, channels: int, dtype: np.dtype[Any], expand_animations: bool) -> npt.NDArray[Any]:
    kind = format_of(data)
    if kind == "JPEG":
        if channels == 4:
            message = "decode_image: a JPEG has no transparency, channels must be 0, 1 or 3; got 4."
            raise InvalidArgumentError(message)
        return decode_jpeg(data, channels)
    if kind == "PNG":
        return decode_png(data, channels, np.uint8 if dtype == np.uint8 else np.uint16)
    if kind == "BMP":
        return decode_bmp(data, channels)
    if kind not in ("GIF", "WebP"):
        message = f"decode_image: not a JPEG, PNG, GIF, BMP or WebP: the {len(data)} bytes start with {data[:8]!r}."
        raise InvalidArgumentError(message)
    if kind == "GIF" and channels not in (0, 3):
        message = f"decode_image: a GIF decodes to 3 channels, got channels={channels}."
        raise InvalidArgumentError(message)
    if kind == "GIF":
        frames = gif_frames("decode_image", data, first_only=not expand_animations)
    else:
        frames = with_channels(webp_frames("decode_image", data), channels)
    return frames if expand_animations else frames[0]
