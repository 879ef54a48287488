"""crop_and_resize: parts of images, each stretched to one size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import InvalidArgumentError
from penstock.image import rules
from penstock.image.checks import check_choice, check_image, numbers
from penstock.trace.nature import of_nature

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float32]


OP = "crop_and_resize"


@of_nature(rules.COSTLY)
def crop_and_resize(
    image: npt.NDArray[Any],
    boxes: npt.ArrayLike,
    box_indices: npt.ArrayLike,
    crop_size: Sequence[int],
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Floats:
    """Cut boxes out of a batch of images and resize them to one size, as tf.image.crop_and_resize does.

    A box reaches from the centre of one pixel to that of another: (0, 0, 1, 1) is all of an image, and its corners are
    the result's corners. It may reach outside, and from the right to the left, which mirrors.

    >>> image = np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1)
    >>> crop_and_resize(image, [[0, 0, 0.5, 0.5], [1, 1, 0, 0]], [0, 0], (2, 2))[..., 0].tolist()
    [[[0.0, 1.0], [3.0, 4.0]], [[8.0, 6.0], [2.0, 0.0]]]

    Args:
        image: (N, H, W, C) of any number type.
        boxes: (B, 4) of y1, x1, y2 and x2 as shares of the height and the width.
        box_indices: (B,) which image each box is of.
        crop_size: (height, width) of the result, in pixels.
        method: "bilinear" or "nearest".
        extrapolation_value: what lies outside of the image.

    Returns:
        (B, height, width, C) float32.

    Raises:
        InvalidArgumentError: a shape, index, size or method out of range, or a box that is not finite.
        InvalidTypeError: the image is not of numbers.
    """
    batch = check_image(OP, image, (4,))
    places, indices, (height, width) = _checked(batch, boxes, box_indices, crop_size)
    check_choice(OP, "method", method, ("bilinear", "nearest"))
    out = np.full((len(places), height, width, batch.shape[3]), extrapolation_value, np.float32)
    for number, (y1, x1, y2, x2) in enumerate(places):
        y, x = _positions(y1, y2, batch.shape[1], height), _positions(x1, x2, batch.shape[2], width)
        rows, columns = np.flatnonzero(_inside(y, batch.shape[1])), np.flatnonzero(_inside(x, batch.shape[2]))
        taken = _nearest if method == "nearest" else _mixed
        out[number, rows[:, None], columns] = taken(batch[indices[number]], y[rows], x[columns])
    return out


def _checked(
    batch: npt.NDArray[Any], boxes: Any, box_indices: Any, crop_size: Any
) -> tuple[Floats, npt.NDArray[np.int64], tuple[int, int]]:
    if 0 in batch.shape[1:3]:
        message = f"{OP}: an image needs at least one pixel, got shape {batch.shape}."
        raise InvalidArgumentError(message)
    places, indices, size = numbers(boxes), numbers(box_indices), numbers(crop_size)
    if places.dtype.kind not in "iuf" or places.ndim != 2 or places.shape[1] != 4 or not np.isfinite(places).all():
        message = f"{OP}: boxes must be finite (B, 4) of y1, x1, y2 and x2; got {boxes!r:.80}."
        raise InvalidArgumentError(message)
    if (indices.dtype.kind not in "iu" and indices.size) or indices.shape != places.shape[:1]:
        message = f"{OP}: box_indices must be {len(places)} integers, one for each box; got {box_indices!r:.80}."
        raise InvalidArgumentError(message)
    if indices.size and not (indices.min() >= 0 and indices.max() < len(batch)):
        message = f"{OP}: box_indices go from {indices.min()} to {indices.max()}, but there are {len(batch)} images."
        raise InvalidArgumentError(message)
    if size.shape != (2,) or size.dtype.kind not in "iu" or (size < 1).any():
        message = f"{OP}: crop_size must be (height, width), two integers of at least 1; got {crop_size!r}."
        raise InvalidArgumentError(message)
    return places.astype(np.float32), indices.astype(np.int64), (int(size[0]), int(size[1]))


def _positions(first: np.float32, last: np.float32, side: int, count: int) -> Floats:
    """Where along a side of the image the rows or columns of the result lie; in TensorFlow's order of operations."""
    far = np.float32(side - 1)
    if count == 1:
        middle = 0.5 * np.float64(first + last) * np.float64(far)
        return np.array([middle], np.float32)
    step = (last - first) * far / np.float32(count - 1)
    found: Floats = first * far + np.arange(count, dtype=np.float32) * step
    return found


def _inside(places: Floats, side: int) -> npt.NDArray[np.bool_]:
    return (places >= 0) & (places <= side - 1)


def _nearest(image: npt.NDArray[Any], y: Floats, x: Floats) -> npt.NDArray[Any]:
    rows, columns = (np.floor(places.astype(np.float64) + 0.5).astype(np.int64) for places in (y, x))
    taken: npt.NDArray[Any] = image[rows[:, None], columns]
    return taken


def _mixed(image: npt.NDArray[Any], y: Floats, x: Floats) -> Floats:
    (top, bottom), (left, right) = ((np.floor(p).astype(np.int64), np.ceil(p).astype(np.int64)) for p in (y, x))
    down, across = (y - top.astype(np.float32))[:, None, None], (x - left.astype(np.float32))[:, None]

    def along(rows: npt.NDArray[np.int64]) -> Floats:
        from_left = image[rows[:, None], left].astype(np.float32)
        mixed: Floats = from_left + (image[rows[:, None], right].astype(np.float32) - from_left) * across
        return mixed

    above = along(top)
    return above + (along(bottom) - above) * down
