"""Draw rectangles on images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.errors import InvalidArgumentError
from penstock.image.checks import check_image, numbers

__all__ = ["draw_bounding_boxes"]

# Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia.
COLORS = np.array(
    [
        (1, 1, 0, 1),
        (0, 0, 1, 1),
        (1, 0, 0, 1),
        (0, 1, 0, 1),
        (0.5, 0, 0.5, 1),
        (0.5, 0.5, 0, 1),
        (0.5, 0, 0, 1),
        (0, 0, 0.5, 1),
        (0, 1, 1, 1),
        (1, 0, 1, 1),
    ],
    np.float32,
)


def draw_bounding_boxes(
    images: npt.NDArray[Any], boxes: npt.ArrayLike, colors: npt.ArrayLike | None = None
) -> npt.NDArray[Any]:
    """Draw the edges of boxes, one pixel wide, as tf.image.draw_bounding_boxes does.

    A box is (y_min, x_min, y_max, x_max), where 0 is the first and 1 the last row or column; fractions of a pixel are
    cut off. What lies outside the image is cut off, and a box whose sides are the wrong way round is not drawn. Later
    boxes lie on top.

    Args:
        images: (N, H, W, C), or (H, W, C), with 1, 3 or 4 channels; TensorFlow takes batches of floats alone.
        boxes: (N, boxes, 4), or (boxes, 4) for one image.
        colors: (colors, C or more), taken in turn, in the range of the images; by default ten of 0 to 1, for integer
            images of 0 to the largest value.

    Returns:
        New images of the same dtype.

    Raises:
        InvalidArgumentError: If the shapes do not fit each other, or if a number is not finite.
        InvalidTypeError: If the images have no numbers.

    Example:
        >>> draw_bounding_boxes(np.zeros((3, 4, 1), np.float32), [[0, 0, 1, 0.7]], [[5]])[:, :, 0].tolist()
        [[5.0, 5.0, 5.0, 0.0], [5.0, 0.0, 5.0, 0.0], [5.0, 5.0, 5.0, 0.0]]
    """
    op = "draw_bounding_boxes"
    array = check_image(op, images)
    channels = array.shape[-1]
    if channels not in (1, 3, 4):
        raise InvalidArgumentError(f"{op} needs 1, 3 or 4 channels, got shape {array.shape}.")
    corners = numbers(boxes)
    if corners.ndim != array.ndim - 1 or corners.shape[-1] != 4 or corners.shape[:-2] != array.shape[:-3]:
        wanted = f"(boxes, 4) for an image of shape {array.shape}"
        if array.ndim == 4:
            wanted = f"({len(array)}, boxes, 4) for images of shape {array.shape}"
        raise InvalidArgumentError(f"{op}: boxes must have shape {wanted}, got {corners.shape}.")
    if corners.dtype.kind not in "iuf" or not np.isfinite(corners).all():
        raise InvalidArgumentError(f"{op}: boxes must be finite numbers, got {boxes!r:.200}.")
    table = _table(op, colors, channels, array.dtype)
    drawn = np.array(array if array.ndim == 4 else array[None], order="C")
    pixels = _pixels(corners.reshape(len(drawn), -1, 4), *drawn.shape[1:3])
    for image, rectangles in zip(drawn, pixels.tolist(), strict=True):
        for number, rectangle in enumerate(rectangles):
            _draw(image, table[number % len(table)], *rectangle)
    return drawn if array.ndim == 4 else drawn[0]


def _table(op: str, colors: Any, channels: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if colors is None or not np.size(colors):
        table = COLORS[:, :channels]
        if channels == 1:
            table = np.ones_like(table)
        if dtype.kind in "iu":
            return (table * np.float64(np.iinfo(dtype).max)).astype(dtype)
        return table.astype(dtype)
    given = numbers(colors)
    if given.ndim != 2 or given.shape[1] < channels or given.dtype.kind not in "iuf":
        raise InvalidArgumentError(f"{op}: colors must have shape (colors, {channels} or more), got {colors!r:.200}.")
    table = given[:, :channels]
    if dtype.kind in "iu" and not ((table >= np.iinfo(dtype).min) & (table <= np.iinfo(dtype).max)).all():
        raise InvalidArgumentError(f"{op}: colors must fit {dtype}, got {colors!r:.200}.")
    return table.astype(dtype)


def _pixels(boxes: npt.NDArray[Any], height: int, width: int) -> npt.NDArray[np.int64]:
    """Return the first row and column, and the last row and column, computed in float32 and truncated."""
    last = np.array([height - 1, width - 1] * 2, np.float32)
    places = boxes.astype(np.float32) * last
    return np.clip(places, -(2.0**31), 2.0**31).astype(np.int64)


def _draw(image: npt.NDArray[Any], color: npt.NDArray[Any], top: int, left: int, bottom: int, right: int) -> None:
    height, width = image.shape[:2]
    if top > bottom or left > right or top >= height or left >= width or bottom < 0 or right < 0:
        return
    rows, columns = slice(max(top, 0), bottom + 1), slice(max(left, 0), right + 1)
    if top >= 0:
        image[top, columns] = color
    if bottom < height:
        image[bottom, columns] = color
    if left >= 0:
        image[rows, left] = color
    if right < width:
        image[rows, right] = color
