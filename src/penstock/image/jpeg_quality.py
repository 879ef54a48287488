"""adjust_jpeg_quality, random_jpeg_quality: the noise that a JPEG of some quality leaves in an image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_choice
from penstock.image.colour.arguments import check_numbers
from penstock.image.drawn import stateless_key
from penstock.image.dtypes import convert_image_dtype
from penstock.image.encode import encode_jpeg
from penstock.image.geometry.arguments import check_integer
from penstock.image.jpeg import decode_jpeg
from penstock.keys import draw
from penstock.trace.drawing import element_key
from penstock.trace.lift import traceable
from penstock.trace.random_op import random_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


@traceable("image.adjust_jpeg_quality", rules.same_shape)
def adjust_jpeg_quality(image: npt.NDArray[Any], jpeg_quality: int, dct_method: str = "") -> npt.NDArray[Any]:
    """Encode an image as JPEG of this quality and decode it again, as tf.image.adjust_jpeg_quality does.

    Of a batch each image is a JPEG of its own. It becomes uint8 on the way and is converted back, both as
    `convert_image_dtype` with saturation does.

    >>> image = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
    >>> int(np.abs(adjust_jpeg_quality(image, 95).astype(int) - image).max()) <= 8
    True

    Args:
        image: (H, W, 1 or 3), or a batch of such, of any dtype that `convert_image_dtype` takes; floats from 0 to 1.
        jpeg_quality: 0 to 100.
        dct_method: of the decoding, as in `decode_jpeg`.

    Raises:
        InvalidArgumentError: a shape, dtype or argument out of range.
    """
    return _adjusted("adjust_jpeg_quality", image, jpeg_quality, dct_method)


def _adjusted(op: str, image: Any, jpeg_quality: Any, dct_method: str = "") -> npt.NDArray[Any]:
    array = check_numbers(op, image)
    check_choice(op, "channels", array.shape[-1], (1, 3))
    if 0 in array.shape[-3:-1]:
        message = f"{op}: an image needs at least one pixel, got shape {array.shape}."
        raise InvalidArgumentError(message)
    quality = _checked_quality(op, "jpeg_quality", jpeg_quality)
    small = convert_image_dtype(array, np.uint8, saturate=True)
    batch = small if small.ndim == 4 else small[None]
    decoded = np.empty(batch.shape, np.uint8)
    for source, place in zip(batch, decoded, strict=True):
        place[...] = decode_jpeg(encode_jpeg(source, quality=quality), small.shape[-1], dct_method=dct_method)
    result: npt.NDArray[Any] = convert_image_dtype(decoded.reshape(array.shape), array.dtype, saturate=True)
    return result


def quality_of(key: int, shape: Sequence[int], *, min_jpeg_quality: int, max_jpeg_quality: int) -> dict[str, Any]:
    """The quality that a key stands for, from `min_jpeg_quality` on and below `max_jpeg_quality`."""
    return {"jpeg_quality": _drawn("random_jpeg_quality", key, min_jpeg_quality, max_jpeg_quality)}


def _drawn(op: str, key: int, min_jpeg_quality: Any, max_jpeg_quality: Any) -> int:
    least = _checked_quality(op, "min_jpeg_quality", min_jpeg_quality)
    most = _checked_quality(op, "max_jpeg_quality", max_jpeg_quality)
    if least >= most:
        message = f"{op}: min_jpeg_quality must be below max_jpeg_quality; got {least} and {most}."
        raise InvalidArgumentError(message)
    return least + draw(key, 0, most - least)


@random_op("image.random_jpeg_quality", rules.same_shape, sample=quality_of, becomes=adjust_jpeg_quality)
def random_jpeg_quality(
    image: npt.NDArray[Any], min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> npt.NDArray[Any]:
    """`adjust_jpeg_quality` with a random quality, as tf.image.random_jpeg_quality does; a batch draws once for all.

    In a data set the quality follows from its seed, the epoch and the element's number, see `element_key`.

    >>> image = np.zeros((8, 8, 3), np.uint8)
    >>> random_jpeg_quality(image, 75, 95, seed=1).shape
    (8, 8, 3)

    Args:
        image: (H, W, 1 or 3) or a batch of such, as in `adjust_jpeg_quality`.
        min_jpeg_quality: the least quality, 0 to 100.
        max_jpeg_quality: above the greatest quality, 0 to 100.
        seed: any integer; equal seeds draw alike for the same element.

    Raises:
        InvalidArgumentError: a shape, dtype or argument out of range.
    """
    op = "random_jpeg_quality"
    return _adjusted(op, image, _drawn(op, element_key(seed), min_jpeg_quality, max_jpeg_quality))


def stateless_random_jpeg_quality(
    image: npt.NDArray[Any], min_jpeg_quality: int, max_jpeg_quality: int, seed: int | Sequence[int]
) -> npt.NDArray[Any]:
    """`random_jpeg_quality` that follows from `seed` alone, an integer or a pair of integers.

    >>> image = np.zeros((8, 8, 3), np.uint8)
    >>> stateless_random_jpeg_quality(image, 75, 95, (1, 2)).shape
    (8, 8, 3)

    Raises:
        InvalidArgumentError: a shape, dtype or argument out of range.
    """
    op = "stateless_random_jpeg_quality"
    return _adjusted(op, image, _drawn(op, stateless_key(op, seed), min_jpeg_quality, max_jpeg_quality))


def _checked_quality(op: str, name: str, value: Any) -> int:
    quality = check_integer(op, name, value)
    if quality > 100:
        message = f"{op}: {name} must be from 0 to 100, got {value}."
        raise InvalidArgumentError(message)
    return quality
