"""Conversions between RGB, HSV and grey."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from penstock.errors import InvalidArgumentError, InvalidTypeError
from penstock.image.checks import check_image
from penstock.image.colour import run
from penstock.image.colour.arguments import check_colours
from penstock.image.rules import image_op, one_channel, three_channels

__all__ = ["grayscale_to_rgb", "hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv"]


@image_op()
def rgb_to_hsv(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert RGB floats from 0 to 1 to HSV floats from 0 to 1, as tf.image.rgb_to_hsv does.

    The result has the dtype and shape of the input; the hue of grey is 0. The function releases the GIL; equal inputs
    give equal bits on every machine, those of TensorFlow for float32.

    Args:
        images: Floats, (H, W, 3) or (N, H, W, 3).

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels.
        InvalidTypeError: If the image has integers. Convert it with `convert_image_dtype` first.

    Example:
        >>> import numpy as np
        >>> rgb_to_hsv(np.array([[[0.5, 0.25, 0.25]]], np.float32)).ravel().tolist()
        [0.0, 0.5, 0.5]
    """
    return run.to_hsv(_floats("rgb_to_hsv", images))


@image_op()
def hsv_to_rgb(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Convert HSV floats from 0 to 1 to RGB floats from 0 to 1, as tf.image.hsv_to_rgb does.

    The result has the dtype and shape of the input. The function releases the GIL; equal inputs give equal bits on
    every machine, those of TensorFlow for float32.

    Args:
        images: Floats, (H, W, 3) or (N, H, W, 3).

    Returns:
        An image or batch of the same shape and dtype.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels.
        InvalidTypeError: If the image has integers. Convert it with `convert_image_dtype` first.

    Example:
        >>> import numpy as np
        >>> hsv_to_rgb(np.array([[[0.0, 0.5, 0.5]]], np.float32)).ravel().tolist()
        [0.5, 0.25, 0.25]
    """
    return run.to_rgb(_floats("hsv_to_rgb", images))


def _floats(op: str, images: Any) -> npt.NDArray[Any]:
    array = check_colours(op, images)
    if array.dtype.kind != "f":
        message = f"{op} needs floats from 0 to 1, got {array.dtype}."
        raise InvalidTypeError(message, hint="Scale them: convert_image_dtype(image, np.float32).")
    return array


@image_op(one_channel)
def rgb_to_grayscale(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Compute `0.2989 R + 0.587 G + 0.114 B` of RGB images, as tf.image.rgb_to_grayscale does.

    Integers are computed in float32 from 0 to 1 and are truncated. The result has the dtype of the input. Runs without
    the GIL; equal inputs give equal bits on every machine, those of TensorFlow for uint8 and for float32 of more than
    one pixel.

    Args:
        images: Integers or floats, (H, W, 3) or (N, H, W, 3).

    Returns:
        An image or batch of the same dtype with one channel.

    Raises:
        InvalidArgumentError: If the image has another rank or number of channels.
        InvalidTypeError: If the values are not integers or floats.

    Example:
        >>> import numpy as np
        >>> rgb_to_grayscale(np.array([[[255, 255, 255], [255, 0, 0]]], np.uint8)).ravel().tolist()
        [255, 76]
    """
    return run.to_grey(check_colours("rgb_to_grayscale", images))


@image_op(three_channels)
def grayscale_to_rgb(images: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Repeat the only channel of an image (H, W, 1) or a batch (N, H, W, 1), as tf.image.grayscale_to_rgb does.

    Args:
        images: Any number type.

    Returns:
        An image or batch of the same dtype with three channels.

    Raises:
        InvalidArgumentError: If the image has another rank, or not one channel.
        InvalidTypeError: If the image has no numbers.

    Example:
        >>> import numpy as np
        >>> grayscale_to_rgb(np.array([[[7], [8]]], np.uint8)).tolist()
        [[[7, 7, 7], [8, 8, 8]]]
    """
    array = check_image("grayscale_to_rgb", images)
    if array.shape[-1] != 1:
        raise InvalidArgumentError(f"grayscale_to_rgb needs 1 channel, got shape {array.shape}.")
    return run.spread(array)
