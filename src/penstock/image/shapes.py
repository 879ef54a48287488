"""What shape and dtype each image function gives for what it is given; None is a dimension not known yet.

`resize_shape` stands beside `resize`, which uses it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.image.resizing import resize_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["decode_image_shape", "decode_jpeg_shape", "decode_png_shape", "elementwise_shape", "resize_shape"]

Shape = tuple[int | None, ...]


def decode_jpeg_shape(channels: int = 0) -> Shape:
    """The shape of `decode_jpeg(contents, channels)` for contents not seen yet.

    >>> decode_jpeg_shape(3)
    (None, None, 3)
    """
    return (None, None, channels or None)


def decode_png_shape(channels: int = 0) -> Shape:
    """The shape of `decode_png(contents, channels)` for contents not seen yet.

    >>> decode_png_shape()
    (None, None, None)
    """
    return (None, None, channels or None)


def decode_image_shape(channels: int | None = None, *, expand_animations: bool = True) -> Shape | None:
    """The shape of `decode_image`; None if even the rank depends on the contents, as a GIF has one axis more.

    >>> decode_image_shape(3) is None, decode_image_shape(3, expand_animations=False)
    (True, (None, None, 3))
    """
    return None if expand_animations else (None, None, channels or None)


def elementwise_shape(in_shape: Sequence[int | None]) -> Shape:
    """The shape of `flip_left_right`, `flip_up_down`, `cast` and `convert_image_dtype`: the shape given.

    >>> elementwise_shape([None, 4, 3])
    (None, 4, 3)
    """
    return tuple(in_shape)
