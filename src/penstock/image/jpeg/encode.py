"""encode_jpeg, by OpenCV (libjpeg-turbo with the accurate DCT), and JPEG noise as an augmentation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_choice, check_integer
from penstock.image.checks import check_encodable as _checked
from penstock.image.colour.arguments import check_numbers
from penstock.image.drawn import stateless_key
from penstock.image.dtypes import convert_image_dtype
from penstock.image.jpeg.decode import decode_jpeg
from penstock.keys import draw
from penstock.opencv import opencv
from penstock.trace.drawing import element_key
from penstock.trace.lift import of_nature, random_op, traceable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


@of_nature(rules.COSTLY)
def encode_jpeg(
    image: npt.NDArray[np.uint8],
    format: str = "",  # noqa: A002 - tf.io's name
    quality: int = 95,
    progressive: bool = False,
    optimize_size: bool = False,
    chroma_downsampling: bool = True,
) -> bytes:
    r"""Encode a uint8 image (H, W, 1 or 3) as JPEG, as tf.io.encode_jpeg does.

    Args:
        image: Grey or RGB, 0 to 255.
        format: "grayscale", "rgb", or "" to go by the number of channels.
        quality: 0 to 100; 100 is the largest file and still loses a little.
        progressive: Store coarse to fine.
        optimize_size: Spend more time on a smaller file of the same pixels.
        chroma_downsampling: Store colour at half the resolution, as cameras do.

    Returns:
        The bytes of the file.

    Raises:
        InvalidArgumentError: If the shape, the dtype or an argument is out of range.
        MissingDependencyError: If OpenCV is not installed.

    Example:
        >>> encode_jpeg(np.zeros((4, 6, 3), np.uint8))[:2]
        b'\xff\xd8'
    """
    array = _checked("encode_jpeg", image, (np.uint8,), (1, 3))
    check_choice("encode_jpeg", "format", format, ("", "grayscale", "rgb"))
    if format and array.shape[2] != {"grayscale": 1, "rgb": 3}[format]:
        message = f"encode_jpeg: format {format!r} does not fit an image of shape {array.shape}."
        raise InvalidArgumentError(message)
    if not 0 <= quality <= 100:
        message = f"encode_jpeg: quality must be from 0 to 100, got {quality}."
        raise InvalidArgumentError(message)
    if max(array.shape) > 65535:
        message = f"encode_jpeg: a JPEG has at most 65535 rows and columns, got shape {array.shape}."
        raise InvalidArgumentError(message, hint="Use encode_png.")
    cv2 = opencv()
    settings = {
        cv2.IMWRITE_JPEG_QUALITY: quality,
        cv2.IMWRITE_JPEG_PROGRESSIVE: int(progressive),
        cv2.IMWRITE_JPEG_OPTIMIZE: int(optimize_size),
        cv2.IMWRITE_JPEG_SAMPLING_FACTOR: (
            cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420 if chroma_downsampling else cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444
        ),
    }
    bgr = np.ascontiguousarray(array[..., ::-1])
    _, encoded = cv2.imencode(".jpg", bgr, [number for setting in settings.items() for number in setting])
    return bytes(encoded)


@of_nature(rules.COSTLY)
@traceable("image.adjust_jpeg_quality", rules.same_shape)
def adjust_jpeg_quality(image: npt.NDArray[Any], jpeg_quality: int, dct_method: str = "") -> npt.NDArray[Any]:
    """Encode an image as a JPEG of a given quality and decode it again, as tf.image.adjust_jpeg_quality does.

    Of a batch each image is a JPEG of its own. It becomes uint8 on the way and is converted back, both as
    `convert_image_dtype` with saturation does.

    Args:
        image: (H, W, 1 or 3), or a batch of such, of any dtype that `convert_image_dtype` takes; floats from 0 to 1.
        jpeg_quality: 0 to 100.
        dct_method: Of the decoding, as in `decode_jpeg`.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the shape, the dtype or an argument is out of range.

    Example:
        >>> image = np.arange(192, dtype=np.uint8).reshape(8, 8, 3)
        >>> int(np.abs(adjust_jpeg_quality(image, 95).astype(int) - image).max()) <= 8
        True
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
    """Return the random quality of a key, from `min_jpeg_quality` up to `max_jpeg_quality` (exclusive)."""
    return {"jpeg_quality": _drawn("random_jpeg_quality", key, min_jpeg_quality, max_jpeg_quality)}


def _drawn(op: str, key: int, min_jpeg_quality: Any, max_jpeg_quality: Any) -> int:
    least = _checked_quality(op, "min_jpeg_quality", min_jpeg_quality)
    most = _checked_quality(op, "max_jpeg_quality", max_jpeg_quality)
    if least >= most:
        message = f"{op}: min_jpeg_quality must be below max_jpeg_quality; got {least} and {most}."
        raise InvalidArgumentError(message)
    return least + draw(key, 0, most - least)


@of_nature(rules.COSTLY)
@random_op("image.random_jpeg_quality", rules.same_shape, sample=quality_of, becomes=adjust_jpeg_quality)
def random_jpeg_quality(
    image: npt.NDArray[Any], min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> npt.NDArray[Any]:
    """Call `adjust_jpeg_quality` with a random quality, the same for a whole batch.

    In a data set the quality follows from its seed, the epoch and the element's number, see `element_key`.

    Args:
        image: (H, W, 1 or 3) or a batch of such, as in `adjust_jpeg_quality`.
        min_jpeg_quality: The least quality, 0 to 100.
        max_jpeg_quality: Above the greatest quality, 0 to 100.
        seed: An integer. Equal seeds give equal results for the same element.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the shape, the dtype or an argument is out of range.

    Example:
        >>> image = np.zeros((8, 8, 3), np.uint8)
        >>> random_jpeg_quality(image, 75, 95, seed=1).shape
        (8, 8, 3)
    """
    op = "random_jpeg_quality"
    return _adjusted(op, image, _drawn(op, element_key(seed), min_jpeg_quality, max_jpeg_quality))


@of_nature(rules.COSTLY)
def stateless_random_jpeg_quality(
    image: npt.NDArray[Any], min_jpeg_quality: int, max_jpeg_quality: int, seed: int | Sequence[int]
) -> npt.NDArray[Any]:
    """Do the same as `random_jpeg_quality`, with random numbers that depend on `seed` only.

    Args:
        image: (H, W, 1 or 3) or a batch of such, as in `adjust_jpeg_quality`.
        min_jpeg_quality: The least quality, 0 to 100.
        max_jpeg_quality: Above the greatest quality, 0 to 100.
        seed: An integer or a pair of integers. The result depends on the seed and the arguments only.

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the shape, the dtype or an argument is out of range.

    Example:
        >>> image = np.zeros((8, 8, 3), np.uint8)
        >>> stateless_random_jpeg_quality(image, 75, 95, (1, 2)).shape
        (8, 8, 3)
    """
    op = "stateless_random_jpeg_quality"
    return _adjusted(op, image, _drawn(op, stateless_key(op, seed), min_jpeg_quality, max_jpeg_quality))


def _checked_quality(op: str, name: str, value: Any) -> int:
    quality = check_integer(op, name, value)
    if quality > 100:
        message = f"{op}: {name} must be from 0 to 100, got {value}."
        raise InvalidArgumentError(message)
    return quality
