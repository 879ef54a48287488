"""decode_png: checks each chunk, so that damage is named with its place, and decodes without a package of images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.block.column import BytesColumn, Column
from penstock.image import rules
from penstock.image.checks import check_choice, check_contents
from penstock.image.png_block import decode_plain, png_rows
from penstock.image.png_chunks import read_png
from penstock.image.png_pixels import pixels_of
from penstock.trace.graph import Allocate
from penstock.trace.lift import traceable

if TYPE_CHECKING:
    import numpy.typing as npt


def png_block(column: Any, params: Mapping[str, Any], rows: int, allocate: Allocate | None) -> Sequence[Column] | None:
    """All files of a Block at once, where that gives what decoding them one by one gives."""
    plain = isinstance(column, BytesColumn) and column.starts.ndim == 1 and params["channels"] in (0, 1, 3, 4)
    if not plain or np.dtype(params["dtype"]) != np.uint8:
        return None
    return png_rows(column, lambda contents: decode_png(contents, **params), params["channels"], rows, allocate)


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
